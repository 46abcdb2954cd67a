"""policyfuzz inconsistent: replaces some of a policy's decisions, and counts crashes."""

import dataclasses
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import Request, as_json, asks_for_target, asks_for_workers
from policyfuzz.cli.process import user_prints_to_stderr

if TYPE_CHECKING:
    from policyfuzz.analysis.inconsistent import InconsistentDecisions
    from policyfuzz.execution.executor import ExecutorChoice

EPILOG = """\
\b
Examples:
  policyfuzz inconsistent acasxu
  policyfuzz inconsistent gym:CartPole-v1 --policy sb3:ppo.zip --trust --episodes 200 -j 2"""


@click.command(epilog=EPILOG)
@asks_for_target
@asks_for_workers
@click.option("--episodes", default=1000, show_default=True, help="Normal episodes to change.")
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of the episodes and of the changes.")
@as_json
def command(request: Request, executor: "ExecutorChoice", episodes: int, seed: int, is_json: bool) -> int:
    """Replace 1 to 50 % of the decisions in normal episodes of TARGET by others, and count crashes.

    Normal are random valid inputs on which the policy does not crash.
    """
    from policyfuzz.analysis.inconsistent import replace_decisions
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps

    with showing_steps() as steps, user_prints_to_stderr():
        steps.say(f"loading {request.name}")
        target = request.load(executor, will_check=False)
        steps.say(f"running {target.name}")
        found = replace_decisions(
            target,
            executor.make_runner(target),
            episodes,
            seed,
            told=lambda what, done: steps.count(f"running {what}, {done:,} of {episodes:,}"),
        )
    if is_json:
        rates = [one.crash_rate for one in found.shares]
        values = dataclasses.asdict(found)
        rows = zip(values["shares"], rates, strict=True)
        print_json(values | {"shares": [row | {"crash_rate": rate} for row, rate in rows]})
    else:
        _print(found)
    return 0


def _print(found: "InconsistentDecisions") -> None:
    from policyfuzz.analysis.inconsistent import PAPER_CRASH_RATES

    echo(f"{found.target}: policy {found.policy}, horizon {found.horizon} steps")
    echo(f"{found.episodes:,} episodes that do not crash by themselves, of {found.draws:,} random ones")
    echo(f"{'replaced':<26}{'episodes that crash':<38}paper, CARLA RL")
    for one, paper in zip(found.shares, PAPER_CRASH_RATES, strict=True):
        replaced = f"{one.share:.0%} ({one.replaced:,} decisions)"
        crashes = f"{one.crash_rate:.1%} ({one.crashes:,}; 95 %: {one.low:.1%} to {one.high:.1%})"
        echo(f"{replaced:<26}{crashes:<38}{paper:.1%}")
