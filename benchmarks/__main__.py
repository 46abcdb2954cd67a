"""policyfuzz bench: measure speed, as ratios within one run."""

import dataclasses
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.options import as_json, format_seconds

if TYPE_CHECKING:
    from policyfuzz.benchmarks.measurement import Measurement
    from policyfuzz.benchmarks.table import Row

BENCHMARKS = {
    "density": "freshness of a state sequence against SciPy point by point and against stored sequences",
    "acasxu": "a whole campaign against the bare matrix products of its networks",
    "coopnavi": "episodes against the same policy stepped through mpe2, one environment at a time",
    "bipedal": "episodes in lock-step against one environment, one policy call per step",
    "driving": "episodes against the plain loop with the package's own expert",
    "gym": "CartPole with a stable-baselines3 policy against the loop around model.predict",
    "workers": "two worker processes against one, how busy they are, and what a batch costs (minutes)",
    "scale": "cost per episode up to a million seeds, memory of a million episodes (minutes)",
    "startup": "import and --help against an empty Python",
    "table": "the paper's table of results beside ours, a campaign on each of its models (half an hour)",
    "versus": "strategies and other fuzzers side by side (hours); see policyfuzz bench versus --help",
}
#: The benchmark that has options of its own, and so a command of its own.
_VERSUS = "versus"

EPILOG = "\b\nBenchmarks:\n" + "\n".join(f"  {name:<9} {what}" for name, what in BENCHMARKS.items())
EPILOG += "\n\n\b\nExamples:\n  policyfuzz bench density\n  policyfuzz bench table --episodes 2000"


class _Bench(click.Command):
    """All benchmarks are one command, except for one that has too many options for that."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] == _VERSUS:
            from policyfuzz.cli.versus import command as versus

            return versus.make_context(f"{info_name} {_VERSUS}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_Bench, epilog=EPILOG)
@click.argument("name")
@click.option("--episodes", type=int, help="Of each campaign of the table.  [default: 1000]")
@click.option("--strategy", help="Of the table.  [default: mdpfuzz, as in the paper]")
@click.option("--target", "targets", multiple=True, help="Of the table; may be repeated.  [default: all]")
@as_json
def command(
    name: str, episodes: int | None, strategy: str | None, targets: tuple[str, ...], is_json: bool
) -> int:
    """Run the benchmark NAME. Exit code 1 if a goal is missed.

    Numbers are ratios against a baseline of the same run, because absolute times mean little on a
    shared machine.
    """
    from policyfuzz.cli.console import print_json, progress_bar, results
    from policyfuzz.core.errors import UsageError, unknown_name

    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    options: dict[str, Any] = {}
    if name == "table":
        count = 1000 if episodes is None else episodes
        options = {"episodes": count, "strategy": strategy or "mdpfuzz", "targets": targets}
    elif episodes is not None or strategy or targets:
        raise UsageError(f"bench {name} takes no --episodes, --strategy or --target", "bench table does")
    with progress_bar() as bar:
        lines = import_module(f"policyfuzz.benchmarks.{name}").run(
            lambda items, description: bar.track(list(items), description=description), **options
        )
    if is_json:
        print_json([dataclasses.asdict(line) for line in lines])
    else:
        results().print(_paper_table(lines) if name == "table" else _ratio_table(lines))
        for row in lines if name == "table" else ():
            if row.missing:
                click.echo(f"{row.target} cannot run here: {row.missing}")
    return int(any(getattr(line, "is_met", None) is False for line in lines))


def _paper_table(rows: list["Row"]) -> object:
    from rich.table import Table

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


def _ratio_table(lines: list["Measurement"]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what", "measured", "", "ratio", "against", "goal"):
        table.add_column(name, justify="right" if name in ("measured", "ratio") else "left")
    for line in lines:
        met = {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}[line.is_met]
        ratio = (
            ""
            if line.ratio is None
            else f"{line.ratio:,.2f} x"
            if line.ratio < 100
            else f"{line.ratio:,.0f} x"
        )
        value = f"{line.value:,.3f}" if line.value < 10 else f"{line.value:,.1f}"
        goal = Text.from_markup(f"{line.goal} {met}".strip())
        table.add_row(line.what, value, line.unit, ratio, line.baseline, goal)
    return table
