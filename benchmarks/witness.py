"""Witnesses and points of no return of a campaign's findings: how many, at what cost, and do they hold."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.campaigns import finished_campaign
from benchmarks.measurement import Measurement, progress, ratio_table
from benchmarks.versus.targets import Entry, choose, load
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.core.branches import Branches
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.core.target import Runner, Target
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_records import DECIDED, FRAGILE, NOT_MEANINGFUL, WITNESS, Avoidance
from policyfuzz.triage.avoidance import find_witnesses
from policyfuzz.triage.point_of_no_return import PointSearch, recorded_actions
from policyfuzz.triage.trials import Branch, Search, run_together
from policyfuzz.triage.witness import Crash, WitnessSettings

_USUAL = ("acasxu", "coopnavi", "bipedal", "lunarlander")
_PUBLIC = "acasxu-public"
#: Episodes of the campaigns on slow targets.
_SLOW = {"bipedal": 2_500, "lunarlander": 2_500}
#: Where it is checked against a look at every step.
_SWEPT = ("acasxu", _PUBLIC)


@click.command("witness")
@click.option("--target", "names", multiple=True, help=f"May be repeated.  [default: {', '.join(_USUAL)}]")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu-public.")
@click.option("--episodes", type=click.IntRange(min=10), help="Of each campaign.")
@click.option("--findings", "most", default=200, show_default=True, help="Of each campaign, at most.")
@click.option("--seed", default=0, show_default=True, help="Of the campaigns, and of the draw of findings.")
@click.option("--campaign", "folder", type=FOLDER, help="Take findings of this campaign on the one --target.")
@as_json
def command(
    names: tuple[str, ...],
    public_networks: Path | None,
    episodes: int | None,
    most: int,
    seed: int,
    folder: Path | None,
    is_json: bool,
) -> int:
    """Look for witnesses of findings, replay them, and compare points of no return with a full sweep."""
    chosen = names or (*_USUAL, *([_PUBLIC] if public_networks else []))
    entries = choose(chosen, public_networks, episodes)
    if folder is not None and len(entries) != 1:
        raise click.UsageError("--campaign needs exactly one --target")
    lines: list[Measurement] = []
    with progress() as track:
        for entry in track(entries, "targets"):
            lines += _measure(entry, episodes, most, seed, folder)
    if is_json:
        print_json([asdict(line) for line in lines])
    else:
        results().print(ratio_table(lines))
    return int(any(line.is_met is False for line in lines))


def _measure(
    entry: Entry, episodes: int | None, most: int, seed: int, folder: Path | None
) -> list[Measurement]:
    target = load(entry)
    if folder is not None:
        findings = _drawn(CampaignReader(folder), most, seed)
    else:
        count = episodes or _SLOW.get(entry.label, entry.episodes)
        with finished_campaign(target, count, CampaignOptions(seed=seed), force=True) as campaign:
            findings = _drawn(campaign, most, seed)
    crashes = [
        Crash(one.input, one.case_seed, one.crash_step, one.kind, one.episode_return) for one in findings
    ]
    if not crashes:
        return [Measurement(f"{entry.label}: findings", 0, "")]
    settings = WitnessSettings()
    runs = Runner(target), Runner(target.prolonged(settings.longer))
    found = dict(find_witnesses(target, crashes, *runs, settings, recorded_actions(target)))
    ordered = [found[place] for place in range(len(crashes))]
    lines = [*_verdicts(ordered, settings), *_held(target, crashes, ordered), *_points(ordered, settings)]
    if entry.label in _SWEPT:
        lines.append(_sweep(target, crashes, ordered, settings))
    return [replace(line, what=f"{entry.label}: {line.what}") for line in lines]


def _drawn(campaign: CampaignReader, most: int, seed: int) -> list[Finding]:
    """At most so many findings at random; each has an outcome of its own."""
    confirmed = [one for one in campaign.findings() if one.status == "confirmed"]
    order = np.random.default_rng(seed).permutation(len(confirmed))[:most]
    return [confirmed[place] for place in order]


def _verdicts(found: Sequence[Avoidance], settings: WitnessSettings) -> Iterator[Measurement]:
    episodes = np.array([one.episodes for one in found])
    within = episodes <= settings.episodes
    yield _share("a verdict within 64 episodes", within, ">= 95 %", 0.95)
    median = float(np.median(episodes))
    yield Measurement("episodes for a verdict, median", median, "", goal="<= 8", is_met=median <= 8)
    yield Measurement("the same, 90 % quantile", float(np.quantile(episodes, 0.9)), "")
    for verdict, count in sorted(Counter(one.verdict for one in found).items()):
        yield _share(verdict, np.arange(len(found)) < count)
    is_unknown = np.array([np.isnan(one.usual_return) for one in found if one.verdict == WITNESS])
    yield _share("witnesses without a return to compare with", is_unknown)


def _held(target: Target, crashes: Sequence[Crash], found: Sequence[Avoidance]) -> Iterator[Measurement]:
    """Every witness, run again by new runners."""
    pairs = [(crash, one) for crash, one in zip(crashes, found, strict=True) if one.verdict == WITNESS]
    branches = [one.branch for _, one in pairs]
    short = _run(target, [crash for crash, _ in pairs], branches)
    long = _run(target.prolonged(3), [crash for crash, _ in pairs], branches)
    told = np.array([one.episode_return for _, one in pairs])
    usual = np.array([one.usual_return for _, one in pairs])
    yield _share("witnesses that replay", ~short.crashed & short.sound & (short.returns == told), "all", 1.0)
    yield _share("and earn enough", ~(short.returns < usual), "all", 1.0)
    yield _share("and survive three times the horizon", ~long.crashed & long.sound, "all", 1.0)


def _points(found: Sequence[Avoidance], settings: WitnessSettings) -> Iterator[Measurement]:
    episodes = np.array([one.point_episodes for one in found])
    yield _share("a standing within 80 episodes", episodes <= settings.point_episodes, "all", 1.0)
    yield Measurement("episodes for the standing, median", float(np.median(episodes)), "")
    for standing in (DECIDED, FRAGILE, NOT_MEANINGFUL):
        yield _share(standing, np.array([one.standing == standing for one in found]))
    survived = np.array([one.survived / max(1, one.disturbances) for one in found])
    yield Measurement("small disturbances survived, mean", float(survived.mean()), "")


def _sweep(
    target: Target, crashes: Sequence[Crash], found: Sequence[Avoidance], settings: WitnessSettings
) -> Measurement:
    """How many points of no return a look at every step gives alike."""
    pairs = [(crash, one) for crash, one in zip(crashes, found, strict=True) if one.standing == DECIDED]
    assert target.actions is not None
    searches = (_last_saving_step(target, crash, one, settings) for crash, one in pairs)
    runs = Runner(target), Runner(target.prolonged(settings.longer))
    swept = dict(run_together(searches, *runs, len(target.actions.low)))
    is_equal = np.array([swept[place] == one.last_chance for place, (_, one) in enumerate(pairs)])
    return _share("points of no return equal to a full sweep", is_equal, ">= 95 %", 0.95)


def _last_saving_step(
    target: Target, crash: Crash, found: Avoidance, settings: WitnessSettings
) -> Search[int]:
    search = PointSearch(crash, target, settings, found)
    steps = list(range(1, crash.step + 1))
    saving, _ = yield from search.probe(steps, found.branch, left=10**9)
    assert saving is not None
    return max((step for step, branch in saving.items() if branch), default=0)


def _run(target: Target, crashes: Sequence[Crash], branches: Sequence[Branch]) -> Executions:
    assert target.actions is not None
    return Runner(target)(
        np.array([crash.row for crash in crashes]).reshape(len(crashes), len(target.inputs.dimensions)),
        np.array([crash.case_seed for crash in crashes], np.uint64),
        branches=Branches.of(branches, len(target.actions.low)),
    )


def _share(what: str, holds: NDArray[np.bool_], goal: str = "", least: float | None = None) -> Measurement:
    count, of = int(np.count_nonzero(holds)), len(holds)
    ratio = count / of if of else None
    is_met = None if least is None or ratio is None else ratio >= least
    return Measurement(what, count, "", f"of {of}", ratio, goal, is_met)
