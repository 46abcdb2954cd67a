"""The paper's table of results beside ours: its five scenarios, models of our own, budgets in episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import click
from rich.table import Table

from benchmarks.campaigns import run_campaign
from benchmarks.measurement import Track, progress
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import MissingExtra, UsageError, unknown_name
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.report.quantities import format_seconds
from policyfuzz.targets.registry import load_target


@dataclass(frozen=True, slots=True)
class Published:
    """What twelve hours gave in the paper, the mean of its runs."""

    model: str
    mutations: int
    crashes: float
    fuzzer_share: float  #: of the time


PUBLISHED = {
    "acasxu": Published("ACAS Xu, 45 networks", 161_543, 135.7, 0.76),
    "coopnavi": Published("Coop Navi, MADDPG", 531_200, 80.7, 0.82),
    "bipedal": Published("BipedalWalker, TQC", 6_602, 124.0, 0.32),
    "driving-rl": Published("CARLA, RL", 3_477, 161.7, 0.05),
    "driving-il": Published("CARLA, imitation", 3_167, 88.0, 0.07),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One target: the paper's numbers and ours."""

    target: str
    published: Published
    policy: str = ""  #: that was tested
    mutations: int = 0  #: changed inputs that were run, probes included
    crashes: int = 0  #: confirmed
    distinct: int = 0
    seconds: float = 0.0
    fuzzer_share: float = 0.0  #: of the time
    missing: str = ""  #: what to install, where the target cannot run


@click.command("table")
@click.option("--episodes", default=1000, show_default=True, help="Of each campaign.")
@click.option("--strategy", default="mdpfuzz", show_default=True, help="As in the paper by default.")
@click.option("--target", "targets", multiple=True, help="To fuzz; may be repeated.  [default: all]")
@click.option(
    "--policy",
    "policies",
    metavar="TARGET=URI",
    multiple=True,
    help="Another model of a target, such as the paper's networks: acasxu=acasxu:DIR; may be repeated.",
)
@as_json
def command(
    episodes: int, strategy: str, targets: tuple[str, ...], policies: tuple[str, ...], is_json: bool
) -> None:
    """Run a campaign on each scenario of the paper, with our models, and print its results beside ours."""
    with progress() as track:
        rows = run(track, episodes, strategy, targets, dict(map(_assignment, policies)))
    if is_json:
        print_json([asdict(row) for row in rows])
        return
    results().print(_paper_table(rows))
    for row in rows:
        if row.missing:
            click.echo(f"{row.target} cannot run here: {row.missing}")


def _assignment(text: str) -> tuple[str, str]:
    """Target and policy of TARGET=URI."""
    target, equals, uri = text.partition("=")
    if not (target and equals and uri):
        raise UsageError(f"policy is {text!r}, expected TARGET=URI", "such as acasxu=acasxu:networks/")
    return target, uri


def run(
    track: Track,
    episodes: int,
    strategy: str,
    targets: Sequence[str] = (),
    policies: Mapping[str, str] | None = None,
) -> list[Row]:
    """One campaign of `episodes` on each of `targets`, all of the paper's by default.

    `policies` replace the models of ours, by target.
    """
    policies = policies or {}
    for name in (*targets, *policies):
        if name not in PUBLISHED:
            raise unknown_name("target of the table", name, PUBLISHED)
    if episodes < 10:
        raise UsageError(f"episodes is {episodes}, expected 10 or more")
    chosen = list(targets or PUBLISHED)
    return [_row(name, episodes, strategy, policies.get(name)) for name in track(chosen, "targets")]


def _row(name: str, episodes: int, strategy: str, policy: str | None) -> Row:
    try:
        target = load_target(name, policy)
        # at most a fifth of the budget goes into seeds
        options = CampaignOptions(strategy=strategy, samples=min(target.samples, episodes // 5))
        progress = run_campaign(target, episodes, options)
    except MissingExtra as error:
        return Row(name, PUBLISHED[name], missing=error.hint)
    return Row(
        name,
        PUBLISHED[name],
        policy=target.policy_name,
        mutations=progress.mutants,
        crashes=progress.findings,
        distinct=progress.distinct_findings,
        seconds=progress.seconds,
        fuzzer_share=1 - progress.simulate_seconds / progress.seconds,
    )


def _paper_table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("\ntarget")
    table.add_column("paper, 12 h\nmodel")
    paper_columns = ("\nmutations", "\ncrashes", "time in\nfuzzer")
    our_columns = ("ours\nmutations", "\ncrashes", "\ndistinct", "\ntime", "time in\nfuzzer")
    for head in (*paper_columns, *our_columns):
        table.add_column(head, justify="right")
    for row in rows:
        paper = row.published
        ours = [
            f"{row.mutations:,}",
            f"{row.crashes:,}",
            f"{row.distinct:,}",
            format_seconds(row.seconds),
            f"{row.fuzzer_share:.0%}",
        ]
        theirs = [paper.model, f"{paper.mutations:,}", f"{paper.crashes:.1f}", f"{paper.fuzzer_share:.0%}"]
        table.add_row(row.target, *theirs, *(["-"] * len(ours) if row.missing else ours))
    return table
