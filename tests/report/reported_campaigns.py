"""Campaigns for tests of reports, written without running anything; every text in them may be hostile."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz import Angle, CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real
from policyfuzz.core.branches import Segment
from policyfuzz.store.records import BatchRecord, FailedEpisode, Finding, Progress
from policyfuzz.store.triage_file import FindingTriage, add_to_triage
from policyfuzz.store.triage_records import DECIDED, WITNESS, Avoidance, Boundary, Change, Mode, Modes

#: Ends attributes, elements and comments, and would run a script in a page that obeys it.
HOSTILE = (
    "\"'><script>pwned=1</script><img src=x onerror=pwned=1>--></style>[a](http://x.y)|`\x1b\u202e{{7*7}}"
)


def write_campaign(
    folder: Path,
    size: int = 12,
    text: str = "",
    flaky: int = 0,
    failed: int = 0,
    strategy: str = "portfolio",
    seed: int = 0,
    executions: int = 1000,
    stop_reason: str | None = "max-execs",
    imports: int = 0,
) -> Path:
    """A campaign with `size` confirmed findings; `text` is part of all that it names."""
    space = InputSpace((Real(f"speed{text}", 0, 9, unit=f"m{text}"), Real("gap", 0, 1), Angle("heading")))
    # a name of a target from a package: its films would run code
    config = CampaignConfig(f"package:make{text}", strategy=strategy, seed=seed, policy=f"py:policy{text}")
    store = CampaignWriter.create(folder, config, space)
    rng = np.random.default_rng(seed)
    for batch in (1, 2):
        now = Progress(
            batch=batch,
            seconds=4.0 * batch,
            executions=executions * batch // 2,
            samples=100 * batch,
            sample_crashes=min(size, 2 * batch),
            findings=size * batch // 2,
            distinct_findings=size * batch // 4,
            lineages=min(size, batch),
            flaky=flaky * (batch - 1),
            errors=failed * (batch - 1),
            drawn=200 * batch,
            imports=imports,
            simulate_seconds=3.0 * batch,
        )
        findings = [a_finding(n, rng, text) for n in range(1, size + flaky + 1)] if batch == 2 else []
        findings = [
            one if one.id <= size else changed(one, status="flaky", is_distinct=False) for one in findings
        ]
        errors = [
            FailedEpisode(
                n,
                "raised",
                3,
                f"Traceback\nValueError: no {text}",
                "mutant",
                None,
                n,
                1,
                9,
                0.5,
                rng.random(3),
            )
            for n in range(1, failed * (batch - 1) + 1)
        ]
        store.commit(BatchRecord(now, findings, failed=errors))
    store.set_stop_reason(stop_reason)
    store.close()
    return folder


def a_finding(number: int, rng: np.random.Generator, text: str) -> Finding:
    return Finding(
        id=number,
        status="confirmed",
        is_distinct=number % 2 == 0,
        is_novel=number % 2 == 0,
        kind=f"caught{text}",
        crash_step=20 + number,
        episode_return=-float(number),
        margin=-number / 10,
        outcome=number,
        repeats=0,
        root=number % 3,
        behaviour=json.dumps(rng.normal(size=4).tolist()),
        reseeded=None,
        reseeded_crashes=None,
        survived_by=None,
        parent=None,
        case_seed=number,
        batch=2,
        execution=10 * number,
        seconds=0.5,
        origin=None,
        input=rng.random(3),
    )


def changed(finding: Finding, **values: Any) -> Finding:
    from dataclasses import replace

    return replace(finding, **values)


def add_modes(folder: Path, text: str = "", is_stable: bool = True, count: int = 2) -> Path:
    """Results of triage for the campaign in `folder`: `count` modes, the first with a witness."""
    reader = CampaignReader(folder)
    avoidance = Avoidance(
        WITNESS,
        5,
        (Segment(1, 30, (1.0,)),),
        f"strong left{text}",
        standing=DECIDED,
        last_chance=15,
        blamed=f"went on{text}",
    )
    change = Change(f"speed{text}", 0.6, 0.1, f"m{text}")
    boundary = Boundary((0.5, 0.5, 0.1), (0.6, 0.5, 0.1), 0.1, 0.001, (change,), (f"gap{text}",), 20)
    modes = tuple(
        Mode(
            n,
            f"caught{text}",
            n,
            tuple(range(n, 13, count)),
            2,
            0.5,
            f"mode {n} {text}",
            0.5,
            0.2,
            0.8,
            4,
            0.4,
            32,
        )
        for n in range(1, count + 1)
    )
    known = {1: FindingTriage(avoidance=avoidance, boundary=boundary)}
    found = Modes(modes, is_stable, 0.95, 12, 8, 400, reason="" if is_stable else f"halves disagree{text}")
    add_to_triage(folder, reader.about["instance"], known, found)
    return folder
