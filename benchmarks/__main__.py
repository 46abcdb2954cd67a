"""python -m benchmarks: finds a benchmark by its name, turns errors into one message and an exit code."""

import dataclasses
from importlib import import_module

import click

from benchmarks.measurement import progress, ratio_table
from policyfuzz.cli import main as cli
from policyfuzz.cli import process
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import unknown_name

#: Benchmarks of `benchmarks.speed`: a function `run` that returns measurements.
SPEED = {
    "density": "freshness of a state sequence against SciPy point by point and against stored sequences",
    "acasxu": "a whole campaign against the bare matrix products of its networks",
    "coopnavi": "episodes against the same policy stepped through mpe2, one environment at a time",
    "bipedal": "episodes in lock-step against one environment, one policy call per step",
    "driving": "episodes against the plain loop with the package's own expert",
    "gym": "CartPole with a stable-baselines3 policy against the loop around model.predict",
    "workers": "two worker processes against one, how busy they are, and what a batch costs (minutes)",
    "scale": "cost per episode up to a million seeds, memory of a million episodes (minutes)",
    "startup": "import and --help against an empty Python",
}
#: Benchmarks with options, and the module that holds the click `command` of each.
MODULES = {
    "table": "benchmarks.table",
    "paper": "benchmarks.paper.command",
    "versus": "benchmarks.versus.command",
    "versus-reference": "benchmarks.versus.reference_command",
    "soak": "benchmarks.soak.run",
    "attacks": "benchmarks.attacks.command",
    "coordinator-limit": "benchmarks.coordinator.limit",
    "estimate": "benchmarks.estimate.command",
    "footprint": "benchmarks.footprint",
    "freshness": "benchmarks.freshness.command",
    "million": "benchmarks.million",
    "readers": "benchmarks.readers.command",
    "witness": "benchmarks.witness",
    "modes": "benchmarks.modes.command",
    "boundary": "benchmarks.boundary",
    "web": "benchmarks.web",
    "repair": "benchmarks.repair",
    "fragility": "benchmarks.fragility",
    "monitor": "benchmarks.monitor",
    "monitor-memory": "benchmarks.monitor_memory",
}
BENCHMARKS = SPEED | {
    "table": "the paper's table of results beside ours (half an hour)",
    "paper": "every table and figure of the paper beside ours (minutes; all of it hours)",
    "versus": "strategies and other fuzzers side by side (hours)",
    "versus-reference": "random crashes by which versus measures what share of failures is covered (minutes)",
    "soak": "a campaign on a simulator with every fault, and whether its accounts are right (half an hour)",
    "attacks": "kills, stops, copies, cut logs, full disks: is a campaign the same afterwards (half an hour)",
    "coordinator-limit": "how many workers one coordinator keeps busy (minutes)",
    "estimate": "do the intervals of estimate hold, and how many episodes does it save (half an hour)",
    "footprint": "how much code there is, and how much of it runs before the first episode",
    "freshness": "are crashes fresher than other episodes, and does a search gain by freshness (minutes)",
    "million": "status, show, export, report and --resume on a campaign with a million findings (minutes)",
    "witness": "witnesses of findings, whether they hold, and what they cost (an hour)",
    "readers": "mutated files, texts and command lines against all our readers (as long as you like)",
    "modes": "are planted failure modes found, and do those of real targets hold (minutes)",
    "web": "pages on a campaign with 100,000 findings, and what watching costs a campaign (minutes)",
    "repair": "repairs whole targets and tests the new policies (hours)",
    "fragility": "how many crashes a tiny change of the policy undoes (minutes)",
    "boundary": "how near and at what cost minimize finds what passes, and do its rules hold (an hour)",
    "monitor": "do runtime monitors warn of held-out and random crashes, and what do they cost (an hour)",
    "monitor-memory": "would a monitor of coopnavi work if it counted contacts or added up scores (minutes)",
}

EPILOG = """\
\b
Examples:
  python -m benchmarks density
  python -m benchmarks table --episodes 2000
  python -m benchmarks versus --target acasxu --seeds 3"""


class _Benchmarks(click.Group):
    """Imports a benchmark when it is asked for, and suggests a name for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(BENCHMARKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name in SPEED:
            return _speed_command(cmd_name)
        if cmd_name not in MODULES:
            raise unknown_name("benchmark", cmd_name, BENCHMARKS)
        command: click.Command = import_module(MODULES[cmd_name]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_dl(list(BENCHMARKS.items()))


def _print_list(ctx: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        for name, what in BENCHMARKS.items():
            click.echo(f"{name:<18} {what}")
        ctx.exit()


@click.group(cls=_Benchmarks, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_list,
    help="List the benchmarks, and exit.",
)
def main() -> None:
    """Measure PolicyFuzz. Exit code 1 if a goal is missed.

    Numbers are ratios against a baseline of the same run, because absolute times mean little on a
    shared machine.
    """


def _speed_command(name: str) -> click.Command:
    """The command of a benchmark of `benchmarks.speed`."""

    @click.command(name, help=f"Measure {SPEED[name]}.")
    @as_json
    def command(is_json: bool) -> int:
        with progress() as track:
            lines = import_module(f"benchmarks.speed.{name}").run(track)
        if is_json:
            print_json([dataclasses.asdict(line) for line in lines])
        else:
            results().print(ratio_table(lines))
        return int(any(line.is_met is False for line in lines))

    return command


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; return the code to exit with."""
    return cli.exit_code(arguments, main, "python -m benchmarks")


if __name__ == "__main__":
    process.prepare()
    process.leave(exit_code())
