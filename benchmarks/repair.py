"""Repairs of whole targets: does the new policy crash less, break little, and give searches less to find."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.measurement import Measurement, ratio_table
from benchmarks.versus.targets import Entry, choose, load
from policyfuzz.api.repair import RepairResult, repair_campaign
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.cli.steps import showing_steps
from policyfuzz.core.settings import Budget, CampaignOptions
from policyfuzz.execution.executor import ExecutorChoice
from policyfuzz.repairing.files import policy_file
from policyfuzz.repairing.rounds import RepairSettings
from policyfuzz.repairing.verdict import VerdictSettings
from policyfuzz.store.reader import CampaignReader

#: Times by which the rate of random crashes should fall, and the share of distinct findings that may stay.
_GOALS = {"acasxu": (5.0, 0.5), "acasxu-public": (5.0, 0.5)}
_USUAL_GOAL = (2.0, 1.0)
#: By which the mean return of ACAS Xu may change where neither policy crashes.
_RETURN = 0.1


@click.command("repair")
@click.option("--target", "names", multiple=True, default=("acasxu",), help="May be repeated.")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu-public.")
@click.option(
    "--work",
    type=FOLDER,
    default="build/repair",
    show_default=True,
    help="Folder to go on from after a stop.",
)
@click.option("--campaign", "campaign_episodes", default=60_000, show_default=True, help="Its episodes.")
@click.option("--rounds", default=3, show_default=True, help="Times to search, learn and fine-tune.")
@click.option("--budget", default=300_000, show_default=True, help="Episodes of all rounds.")
@click.option("--newly-broken", default=0.1, show_default=True, help="Allowed for each fixed case.")
@click.option("--pool", default=1_000_000, show_default=True, help="Random cases of the verdict.")
@click.option("--episodes", default=200_000, show_default=True, help="Of each campaign of the verdict.")
@click.option("--seeds", default=3, show_default=True, help="Campaigns of each strategy and policy.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
@as_json
def command(
    names: tuple[str, ...],
    public_networks: Path | None,
    work: Path,
    campaign_episodes: int,
    rounds: int,
    budget: int,
    newly_broken: float,
    pool: int,
    episodes: int,
    seeds: int,
    seed: int,
    is_json: bool,
) -> int:
    """Fuzz a target, repair its policy, and hold the verdict against goals."""
    settings = RepairSettings(rounds=rounds, budget=budget, seed=seed, allowed=newly_broken)
    wanted = VerdictSettings(pool, episodes, seeds, seed, settings.allowed)
    lines: list[Measurement] = []
    with showing_steps() as steps:
        for entry in choose(names, public_networks, None):
            done = _repaired(entry, work, campaign_episodes, settings, wanted, steps.say)
            lines += _lines(entry.label, done)
    if is_json:
        print_json([asdict(line) for line in lines])
    else:
        results().print(ratio_table(lines))
    return int(any(line.is_met is False for line in lines))


def _repaired(
    entry: Entry,
    work: Path,
    campaign_episodes: int,
    settings: RepairSettings,
    wanted: VerdictSettings,
    tell: Callable[[str], None],
) -> RepairResult:
    target, folder = load(entry), work / entry.label / "campaign"
    tell(f"fuzzing {target.name}")
    launch(
        target,
        Budget(executions=campaign_episodes),
        CampaignOptions(seed=settings.seed),
        policy=target.policy_uri,
        folder=folder,
        resume=folder.exists(),
        force=True,
    )
    out = work / entry.label / f"repaired{policy_file(target).suffix}"
    campaign, choice = CampaignReader(folder), ExecutorChoice()
    return repair_campaign(campaign, target, out, settings, wanted, choice, trust=True, tell=tell)


def _lines(label: str, done: RepairResult) -> Iterator[Measurement]:
    for one in done.rounds:
        words = f"{label}: validation crashes after round {one.number}"
        words += "" if one.is_accepted else ", which was rejected"
        ratio = one.crashes_after / max(1, one.crashes_before)
        yield Measurement(words, one.crashes_after, "", f"{one.crashes_before:,} before", ratio)
    if done.verdict is None:
        yield Measurement(f"{label}: candidates that were accepted", 0, "", goal=">= 1", is_met=False)
        return
    fewer, share = _GOALS.get(label, _USUAL_GOAL)
    pool, returns = done.verdict.pool, done.verdict.returns
    times = pool.crashes_before / max(1, pool.crashes_after)
    yield Measurement(
        f"{label}: random crashes after",
        pool.crashes_after,
        "",
        f"{pool.crashes_before:,} of {pool.cases:,} before",
        times,
        f"/ {fewer:g}",
        times >= fewer,
    )
    broken = pool.newly_broken / max(1, pool.fixed)
    yield Measurement(
        f"{label}: newly broken",
        pool.newly_broken,
        "",
        f"{pool.fixed:,} fixed",
        broken,
        f"<= {pool.allowed:.0%}",
        broken <= pool.allowed,
    )
    for line in done.verdict.fuzzed:
        before, after = sum(line.distinct_before), sum(line.distinct_after)
        left = after / max(1, before)
        is_met = left <= share if share < 1.0 else line.holds
        yield Measurement(
            f"{label}: distinct findings, {line.strategy}",
            after,
            "",
            f"{before:,} in {len(line.distinct_before)} x {line.episodes:,} episodes",
            left,
            f"<= {share:.0%}" if share < 1.0 else "fewer",
            is_met,
        )
    is_kept = abs(returns.difference) <= _RETURN if label in _GOALS else returns.holds
    yield Measurement(
        f"{label}: change of return where neither crashes",
        returns.difference,
        "",
        f"{returns.mean_before:.4g} before",
        None,
        f"within {_RETURN}" if label in _GOALS else "not lower",
        is_kept,
    )
    fixed, found = sum(done.verdict.replayed.fixed), sum(done.verdict.replayed.findings)
    yield Measurement(f"{label}: old findings fixed", fixed, "", f"of {found:,}", fixed / max(1, found))
