"""python -m benchmarks modes: prints how well planted failure modes are found, and the modes of targets."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import click
import numpy as np
from rich.table import Table

from benchmarks.campaigns import finished_campaign
from benchmarks.measurement import progress
from benchmarks.modes.planted import Water, planted_target
from benchmarks.versus.targets import find_entry
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.core.target import Runner, Target
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_records import Modes
from policyfuzz.triage.clusters import STABLE, adjusted_rand
from policyfuzz.triage.modes import ModeSettings, behaviours_of, find_modes

#: Planted cases: shares of the starts that each mode takes, and coordinates that play no part.
PLANTED: dict[str, tuple[tuple[float, ...], int]] = {
    "1": ((1e-3,), 0),
    "1, 5 idle": ((1e-3,), 5),
    "2": ((1e-3,) * 2, 0),
    "5": ((1e-3,) * 5, 0),
    "5, 5 idle": ((1e-3,) * 5, 5),
    "4, sizes 1 to 50": ((2.5e-3, 1e-3, 2e-4, 5e-5), 0),
    "3, sizes 1 to 50, 4 idle": ((2.5e-3, 1e-3, 5e-5), 4),
    "20": ((5e-4,) * 20, 0),
    "20, 4 idle": ((5e-4,) * 20, 4),
}
_EPISODES = 20_000
#: Of the synthetic campaign that speed is measured on.
_MANY = 100_000
_GOAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """One campaign, and the modes of it."""

    target: str
    seed: int
    findings: int
    lineages: int
    modes: int
    agreement: float  #: between halves
    is_stable: bool
    planted: int | None = None  #: modes that the campaign has found
    rand: float | None = None  #: adjusted Rand index against the planted ones
    rand_of_others: float | None = None  #: the same if only 500 findings are run again
    reason: str = ""


@click.command("modes")
@click.option(
    "--target", "targets", multiple=True, help="As in versus, instead of planted modes; repeatable."
)
@click.option("--seeds", default=2, show_default=True, help="Campaigns of each case.")
@click.option("--episodes", type=int, help="Of each campaign.  [default: 20,000, or as in versus]")
@click.option("--speed", is_flag=True, help="Measure 100,000 findings instead.")
@as_json
def command(targets: tuple[str, ...], seeds: int, episodes: int | None, speed: bool, is_json: bool) -> int:
    """Measure failure modes (minutes): planted ones by default, or those of real targets."""
    if seeds < 1:
        raise UsageError(f"seeds is {seeds}, expected 1 or more")
    if speed:
        seconds = measure_speed()
        results().print(
            f"{_MANY:,} findings beside the episodes: {seconds:.1f} processor seconds, goal {_GOAL_SECONDS:g}"
        )
        return int(seconds > _GOAL_SECONDS)
    with progress() as track:
        if targets:
            jobs = [(name, seed) for name in targets for seed in range(seeds)]
            lines = [_of_target(name, seed, episodes) for name, seed in track(jobs, "campaigns")]
        else:
            jobs = [(name, seed) for name in PLANTED for seed in range(seeds)]
            lines = [
                _of_planted(name, seed, episodes or _EPISODES) for name, seed in track(jobs, "campaigns")
            ]
    if is_json:
        print_json([asdict(one) for one in lines])
    else:
        results().print(_table(lines))
    return int(any(one.rand is not None and one.rand < STABLE for one in lines))


def _of_planted(name: str, seed: int, episodes: int) -> Line:
    sizes, idle = PLANTED[name]
    water = Water.make(np.array(sizes), seed)
    target = planted_target(water, idle)
    findings, behaviours = _campaign(target, episodes, seed)
    modes, few = (
        find_modes(
            target, findings, behaviours, Runner(target), seed=seed, settings=ModeSettings(findings=most)
        )
        for most in (2000, 500)
    )
    inputs = np.array([one.input for one in findings])
    truth = water.nearest(inputs)[0].astype(np.int64)
    numbers = [one.id for one in findings]
    return replace(
        _line(f"planted {name}", seed, findings, modes),
        planted=len(np.unique(truth)),
        rand=adjusted_rand(labels_of(modes, numbers), truth),
        rand_of_others=adjusted_rand(labels_of(few, numbers), truth),
    )


def _of_target(name: str, seed: int, episodes: int | None) -> Line:
    entry = find_entry(name)
    target = entry.load()
    findings, behaviours = _campaign(target, episodes or entry.episodes, seed)
    modes = find_modes(target, findings, behaviours, Runner(target), seed=seed)
    return _line(name, seed, findings, modes)


def _campaign(target: Target, episodes: int, seed: int) -> tuple[list[Finding], dict[int, list[float]]]:
    with finished_campaign(target, episodes, CampaignOptions(seed=seed), force=True) as campaign:
        findings = [one for one in campaign.findings() if one.status == CONFIRMED]
        return findings, behaviours_of(campaign, findings)


def _line(name: str, seed: int, findings: list[Finding], modes: Modes) -> Line:
    lineages = len({one.root for one in findings})
    found = modes.agreement, modes.is_stable
    return Line(name, seed, len(findings), lineages, len(modes.modes), *found, reason=modes.reason)


def labels_of(modes: Modes, numbers: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(n,) mode of the findings with these `numbers`; 0 for none."""
    mode_of = {member: mode.number for mode in modes.modes for member in mode.members}
    return np.array([mode_of.get(one, 0) for one in numbers], np.int64)


def measure_speed() -> float:
    """Processor seconds that modes of many findings take, without those of the episodes."""
    water = Water.make(np.full(8, 1e-3), 0)
    target = planted_target(water)
    rng = np.random.default_rng(0)
    inputs = np.concatenate(list(_crashing(water, rng)))[:_MANY]
    findings, _ = _campaign(target, 3000, 0)
    model = findings[0]
    many = [replace(model, id=number, root=number % 200, input=row) for number, row in enumerate(inputs, 1)]
    behaviours = {one.id: row for one, row in zip(many, inputs.tolist(), strict=True)}
    runner, spent = Runner(target), 0.0

    def run(cases, seeds):  # type: ignore[no-untyped-def]
        nonlocal spent
        started = time.process_time()
        executions = runner(cases, seeds)
        spent += time.process_time() - started
        return executions

    started = time.process_time()
    find_modes(target, many, behaviours, run, seed=0)
    return time.process_time() - started - spent


def _crashing(
    water: Water, rng: np.random.Generator
) -> Iterator[np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    found = 0
    while found < _MANY:
        drawn = rng.random((200_000, 3))
        good = drawn[water.nearest(drawn)[1] < 1.0]
        found += len(good)
        yield good


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in (
        "target",
        "seed",
        "findings",
        "lineages",
        "modes",
        "planted",
        "Rand",
        "of 500",
        "halves",
        "",
    ):
        table.add_column(head, justify="left" if head in ("target", "") else "right")
    for one in lines:
        planted = ["" if value is None else f"{value:.2f}" for value in (one.rand, one.rand_of_others)]
        table.add_row(
            *(one.target, str(one.seed), f"{one.findings:,}", str(one.lineages), str(one.modes)),
            *("" if one.planted is None else str(one.planted), *planted),
            *(f"{one.agreement:.2f}", "" if one.is_stable else f"unstable: {one.reason}"),
        )
    return table
