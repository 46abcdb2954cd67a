"""The campaigns of a scenario: what each strategy finds over its episodes, and where its time goes."""

import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.paper.results import Identity
from benchmarks.paper.scenarios import Scenario
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import DEFAULT_STRATEGY, Budget, CampaignOptions, SearchSettings, StopReason
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.search.strategies import find_strategy
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding, Progress

#: Folders of the package that decide what a campaign finds.
CODE = ("search", "density", "core", "campaign")
#: Points of a curve, the first at zero episodes.
_POINTS = 200
#: At most this part of the episodes goes into first samples.
_SAMPLES_PART = 5


def folder_of(scenario: Scenario, out: Path, strategy: str, seed: int) -> Path:
    """Where the campaign lies, for everything that reads it later."""
    return scenario.folder(out) / "campaigns" / f"{strategy}-{seed}"


def run_campaign(
    scenario: Scenario, target: Target, strategy: str, folder: Path, identity: Identity
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the campaign in `folder`, or what is left of it; what it found, and what it cost."""
    is_resumed = is_begun(folder, identity)
    cpu_started = time.process_time()
    launched = launch(
        target,
        Budget(executions=scenario.size.episodes),
        options(scenario, target, strategy, identity.seed),
        policy=scenario.policy,
        folder=folder,
        resume=is_resumed,
        force=True,  # what the health check dislikes is a part of the result
    )
    if launched.reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt  # half a campaign is no result; the next start goes on with it
    cpu_seconds = time.process_time() - cpu_started
    reader = CampaignReader(folder)
    try:
        found = _found(reader, scenario.size.episodes)
    finally:
        reader.close()
    return found, _costs(launched.progress, cpu_seconds, is_resumed)


def options(scenario: Scenario, target: Target, strategy: str, seed: int) -> CampaignOptions:
    """As `policyfuzz fuzz` has them, but most of a small budget is left for the search."""
    name = DEFAULT_STRATEGY if strategy == "default" else strategy
    usual = find_strategy(name).defaults(SearchSettings(samples=target.samples), target.name).samples
    samples = max(1, min(usual, scenario.size.episodes // _SAMPLES_PART))
    return CampaignOptions(strategy=name, seed=seed, samples=samples)


def is_begun(folder: Path, identity: Identity) -> bool:
    """True if the part was begun in `folder`; what was begun there as another part is removed."""
    note = folder.with_name(f"{folder.name}.begun")
    text = json.dumps(asdict(identity), sort_keys=True)
    if folder.exists() and note.exists() and note.read_text(encoding="utf-8") == text:
        return True
    shutil.rmtree(folder, ignore_errors=True)
    make_folder_of(note)
    with whole_file(note) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    return False


def _found(reader: CampaignReader, episodes: int) -> dict[str, Any]:
    progress = reader.progress()
    findings = [one for one in reader.findings() if one.status == CONFIRMED]
    findings.sort(key=lambda one: one.execution)
    points = np.unique(np.linspace(0, episodes, _POINTS + 1).round()).astype(np.int64)
    return {
        "stopped": reader.stop_reason() or "",
        "executions": progress.executions,
        "samples": progress.samples,
        "sample_crashes": progress.sample_crashes,
        "mutants": progress.mutants,
        "crashes": progress.findings,
        "distinct": progress.distinct_findings,
        "lineages": progress.lineages,
        "repeats": progress.repeats,
        "flaky": progress.flaky,
        "corpus": progress.corpus,
        "curves": {
            "episodes": points.tolist(),
            "crashes": _curve(findings, points),
            "distinct": _curve([one for one in findings if one.is_distinct], points),
            "lineages": _curve(_first_of_lineages(findings), points),
        },
    }


def _first_of_lineages(findings: list[Finding]) -> list[Finding]:
    """The first finding of every lineage; one that descends from nothing is a lineage of its own."""
    first = {(one.id, None) if one.root is None else (0, one.root): one for one in reversed(findings)}
    return sorted(first.values(), key=lambda one: one.execution)


def _curve(findings: list[Finding], points: NDArray[np.int64]) -> list[int]:
    """How many of `findings`, in their order, had been made after `points` (p,) episodes."""
    numbers = np.array([one.execution for one in findings], np.int64)
    return [int(count) for count in np.searchsorted(numbers, points, side="right")]


def _costs(progress: Progress, cpu_seconds: float, is_resumed: bool) -> dict[str, Any]:
    split = progress.time_split
    total = sum(split.values()) or 1.0
    return {
        "cpu_seconds": round(cpu_seconds, 2),
        "is_resumed": is_resumed,  # then the seconds are of the last start only
        "shares": {name: round(seconds / total, 4) for name, seconds in split.items()},
    }
