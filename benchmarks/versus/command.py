"""python -m benchmarks versus: strategies and other fuzzers side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from benchmarks.versus import columns, tables
from benchmarks.versus.contestants import contestant_names
from benchmarks.versus.goals import Goal
from benchmarks.versus.judge import Verdict
from benchmarks.versus.kept import load as load_kept
from benchmarks.versus.report import Report, write_report
from benchmarks.versus.results import Contest
from benchmarks.versus.targets import choose
from benchmarks.versus.trials import Done, Plan, run_all
from policyfuzz.cli.console import results
from policyfuzz.cli.options import FOLDER
from policyfuzz.report.quantities import format_seconds

EPILOG = """\
\b
Contestants: default, and every other strategy of PolicyFuzz or of an installed package; pypi-mdpfuzz and
pypi-mdpfuzz-no-coverage are the package mdpfuzz in both of its modes; cma-me is quality diversity by pyribs;
curiosity random network distillation; half-noise a naive baseline. What is not installed is left out:
pip install -e '.[versus]'
\b
Targets: acasxu, acasxu-public, coopnavi, bipedal, ripple-2, ripple-10, ripple-50, cartpole, lunarlander,
or any other that `policyfuzz fuzz` takes, with a colon: ripple:probability=0.01
\b
Examples:
  python -m benchmarks versus --target acasxu --seeds 3
  python -m benchmarks versus --target ripple-10 --contestant default --contestant random
  python -m benchmarks versus -o versus --report-only --page versus.md
  python -m benchmarks versus --target ripple-50 --kept docs/versus-trials.csv --page docs/versus.md"""


@click.command("versus", epilog=EPILOG)
@click.option("--target", "names", multiple=True, help="To search; may be repeated.  [default: all]")
@click.option(
    "--contestant", "contestants", multiple=True, help="Takes part; may be repeated.  [default: all]"
)
@click.option("--seeds", default=10, show_default=True, help="Trials of each contestant on each target.")
@click.option("--peer-seeds", default=3, show_default=True, help="The same for the slow pypi-* peers.")
@click.option("--episodes", type=int, help="Of each trial.  [default: by target, 5,000 or 20,000]")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu-public.")
@click.option("-j", "--jobs", default=1, show_default=True, help="Trials at a time, a process each.")
@click.option(
    "-o", "--out", type=FOLDER, default=Path("versus"), show_default=True, help="For raw files and reports."
)
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Write a page of results here.")
@click.option(
    "--notes", type=click.Path(path_type=Path), help="Markdown file that goes to the end of the page."
)
@click.option(
    "--kept",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV file beside a page: go on from there.",
)
@click.option("--report-only", is_flag=True, help="Run nothing; report what lies in the folder.")
def command(
    names: tuple[str, ...],
    contestants: tuple[str, ...],
    seeds: int,
    peer_seeds: int,
    episodes: int | None,
    public_networks: Path | None,
    jobs: int,
    out: Path,
    page: Path | None,
    notes: Path | None,
    kept: Path | None,
    report_only: bool,
) -> int:
    """Run strategies and other fuzzers side by side: the same targets, rules and numbers of episodes.

    Every crash that a contestant claims is run again by a judge before it counts. Each trial is written to
    its own file in OUT/raw as soon as it is done, so the bench can be stopped at any time, and continues
    when it is started again. With --kept it goes on from the numbers of an earlier page, wherever that was
    measured; of these, only the default is run again once its code has changed. Exit code 1 if a goal is
    missed. A goal is measured only with as many seeds as are usual, and with the usual episodes of its
    target. Covered failure mass needs a reference set, which `versus-reference` makes.
    """
    asked_targets: list[str] = []
    asked_contestants: tuple[str, ...] = ()
    earlier = [] if kept is None else load_kept(kept)
    if not report_only:
        entries = choose(names, public_networks, episodes)
        asked_targets, asked_contestants = [one.label for one in entries], contestants or contestant_names()
        plan = Plan.make(entries, asked_contestants, seeds, peer_seeds)
        for line in plan.left_out:
            _say(line)
        for number, done in enumerate(run_all(plan.tasks, out / "raw", jobs, _say, earlier), 1):
            _say(f"{number}. {_described(done)}")
    report = write_report(out, page, notes, asked_targets, asked_contestants, earlier=earlier)
    _print_tables(report)
    _say(f"pictures and CSV files are in {out}" + (f", the page is {page}" if page else ""))
    return int(any(goal.is_met is False for goal in report.goals))


def _print_tables(report: Report) -> None:
    """Print a table for each contest, and the goals."""
    console = results()
    for label in report.results.labels:
        for contest in report.results.contests(label):
            title = f"{contest.label}, {contest.episodes:,} episodes"
            leading, further = columns.heads(columns.LEADING), columns.heads(columns.FURTHER)
            costs = {head: metric for metric, head in columns.COSTS.items()}
            console.print(_contest_table(contest, leading, title, is_compared=False))
            console.print(_contest_table(contest, further | costs, "", is_compared=False))
            console.print(_contest_table(contest, {}, "", is_compared=True))
            console.print()
    console.print(_goal_table(report.goals))


def _contest_table(contest: Contest, metrics: Mapping[str, str], title: str, is_compared: bool) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    heads, rows = tables.table(contest, metrics, is_compared)
    for position, head in enumerate(heads):
        table.add_column(head, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{cell.main}\n{cell.detail}" if cell.detail else cell.main for cell in row))
    return table


def _goal_table(goals: Sequence[Goal]) -> Table:
    words = {True: ("met", "green"), False: ("missed", "bold red"), None: ("not measured", "dim")}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("target", "goal", "numbers", ""):
        table.add_column(head)
    for goal in goals:
        table.add_row(goal.target, goal.what, goal.numbers, Text(*words[goal.is_met]))
    return table


def _say(line: str) -> None:
    click.echo(line, err=True)


def _described(done: Done) -> str:
    task = done.task
    who = f"{task.label} {task.contestant} seed {task.seed}"
    if done.result is None:
        return f"{who}: cannot run: {done.problem}"
    result = done.result
    found = int((result.verdicts == Verdict.FINDING).sum())
    length = f"{task.episodes:,}"
    if result.episodes < task.episodes:
        length = f"broke off after {result.episodes:,} of {length}"
    counts = f"{found:,} findings, {int(result.distinct.sum()):,} distinct"
    if found < len(result.verdicts):
        counts += f", {len(result.verdicts) - found:,} claims refused"
    return f"{who}: {counts}, {length} episodes in {format_seconds(result.seconds)}"
