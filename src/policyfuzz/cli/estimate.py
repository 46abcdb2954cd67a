"""policyfuzz estimate: how likely a failure is, however rare."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import DURATION, FOLDER, Request, as_json, asks_for_target, asks_for_workers
from policyfuzz.cli.process import user_prints_to_stderr

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.triage.estimation import Estimation

EPILOG = """\
\b
Examples:
  policyfuzz estimate acasxu
  policyfuzz estimate acasxu --policy acasxu:networks/ -j 4 --max-execs 1000000
  policyfuzz estimate gym:CartPole-v1 --policy sb3:model.zip --trust --bounds own -o cartpole.npz

\b
With -o FILE it can be stopped, even killed: the same command goes on from the file. The same seed and
options give the same result, whatever the number of workers."""


@click.command(epilog=EPILOG)
@asks_for_target
@click.option(
    "--max-execs",
    type=int,
    help="Episodes at most; more of them give a narrower interval.  [default: about 150,000]",
)
@click.option("--max-time", type=DURATION, help="Stop after this time: 90s, 2m, 12h.")
@click.option(
    "--replicates",
    type=int,
    default=10,
    show_default=True,
    help="Independent runs of subset simulation, 8 or more; the interval follows from their spread.",
)
@asks_for_workers
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("-o", "--out", metavar="FILE", type=FOLDER, help="File to go on from after a stop.")
@as_json
@click.option("--force", is_flag=True, help="Estimate even if the health check fails.")
def command(
    request: Request,
    executor: "ExecutorChoice",
    max_execs: int | None,
    max_time: float | None,
    replicates: int,
    seed: int,
    out: Path | None,
    is_json: bool,
    force: bool,
) -> int:
    """Estimate the probability that a random valid input (a solvable one, if TARGET tests that) fails.

    Common failures are counted among random draws. Rare ones, down to 1e-8, are estimated by subset
    simulation, which needs an oracle that tells a margin. `check` says if TARGET has what it takes.
    """
    from policyfuzz.api.estimate import run_estimate
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.triage.estimate import EstimateSettings

    settings = EstimateSettings(seed, replicates, max_execs)
    with showing_steps() as steps, user_prints_to_stderr():

        def told(estimation: "Estimation") -> None:
            steps.count(f"estimating, {estimation.counts.episodes:,} of {settings.limit:,} episodes at most")

        steps.say(f"loading {request.name}")
        target = request.load(executor)
        steps.say(f"running {target.name}")
        estimate = run_estimate(target, settings, executor.make_runner, max_time, out, force, told)
    if is_json:
        values = dataclasses.asdict(estimate)
        print_json(values | {"notes": list(estimate.notes)})
    else:
        for line in str(estimate).splitlines():
            echo(line)
    return 0
