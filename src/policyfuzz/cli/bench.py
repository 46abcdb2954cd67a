"""policyfuzz bench: measure speed, as ratios within one run."""

import dataclasses
from importlib import import_module

import click

from policyfuzz.cli.options import as_json

BENCHMARKS = {
    "density": "freshness of a state sequence against SciPy point by point and against stored sequences",
    "acasxu": "a whole campaign against the bare matrix products of its networks",
    "scale": "cost per episode up to a million seeds, memory of a million episodes (minutes)",
    "startup": "import and --help against an empty Python",
}

EPILOG = "\b\nBenchmarks:\n" + "\n".join(f"  {name:<9} {what}" for name, what in BENCHMARKS.items())
EPILOG += "\n\n\b\nExample: policyfuzz bench density"


@click.command(epilog=EPILOG)
@click.argument("name")
@as_json
def command(name: str, is_json: bool) -> int:
    """Run the benchmark NAME. Exit code 1 if a goal is missed.

    Numbers are ratios against a baseline of the same run, because absolute times mean little on a
    shared machine.
    """
    from policyfuzz.cli.console import print_json, progress_bar, results
    from policyfuzz.errors import unknown_name

    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    with progress_bar() as bar:
        lines = import_module(f"policyfuzz.benchmarks.{name}").run(
            lambda items, description: bar.track(list(items), description=description)
        )
    if is_json:
        print_json([dataclasses.asdict(line) for line in lines])
    else:
        results().print(_table(lines))
    return int(any(line.is_met is False for line in lines))


def _table(lines: list) -> object:  # type: ignore[type-arg]
    from rich.table import Table

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
        table.add_row(line.what, value, line.unit, ratio, line.baseline, f"{line.goal} {met}".strip())
    return table
