"""policyfuzz repair: fine-tunes the policy of a campaign, and tests whether that helped."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, asks_for_workers, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice

EPILOG = """\
\b
Examples:
  policyfuzz repair campaigns/acasxu-1 -o repaired.npz
  policyfuzz repair campaigns/acasxu-1 -o repaired.npz --rounds 1 --budget 50000
  policyfuzz repair campaigns/lander -o lander-2.zip --trust      a stable-baselines3 model

\b
It can be stopped, even killed: the same command goes on from the folder beside NEW_POLICY. The same seed
and options give the same policy. Exit code 0 if the new policy passes every test, 1 if it fails any, or if
no candidate was good enough to be written."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "-o", "--out", metavar="NEW_POLICY", type=FOLDER, required=True, help="File or folder of the new policy."
)
@click.option("--target", metavar="NAME", help="Use this target instead of the one that the campaign names.")
@click.option("--rounds", default=3, show_default=True, help="Times to search, learn and fine-tune.")
@click.option(
    "--budget", type=int, metavar="N", help="Episodes of all rounds.  [default: 300 per sample of the target]"
)
@click.option(
    "--newly-broken",
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Newly broken cases that are allowed for each fixed one.",
)
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("--pool", type=int, metavar="N", help="Random cases of the verdict.  [default: 20 per sample]")
@click.option(
    "--episodes",
    type=int,
    metavar="N",
    help="Episodes of each campaign of the verdict.  [default: 20 per sample]",
)
@click.option("--seeds", default=3, show_default=True, help="Campaigns of each strategy and policy.")
@asks_for_workers
@trust
@as_json
def command(
    folder: Path,
    out: Path,
    target: str | None,
    rounds: int,
    budget: int | None,
    newly_broken: float,
    seed: int,
    pool: int | None,
    episodes: int | None,
    seeds: int,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Fine-tune the policy of the campaign in DIR so that it crashes less, and test the result.

    What would have avoided a crash is found by trying it, before the point of no return. The new policy must
    crash less on random cases, give a search less to find with three strategies, earn no less, and fix the
    old findings; the verdict says so test by test.
    """
    import dataclasses

    from policyfuzz.api.repair import run_repair
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.store.reader import CampaignReader

    with showing_steps() as steps, user_prints_to_stderr():
        done = run_repair(
            CampaignReader(folder),
            out,
            target=target,
            trust=trust,
            rounds=rounds,
            budget=budget,
            newly_broken=newly_broken,
            seed=seed,
            pool=pool,
            episodes=episodes,
            seeds=seeds,
            choice=executor,
            tell=steps.say,
        )
    with verdict_stands():
        if is_json:
            rows = [dataclasses.asdict(one) for one in done.rounds]
            verdict = None if done.verdict is None else done.verdict.summary()
            print_json({"policy": done.policy and str(done.policy), "rounds": rows, "verdict": verdict})
        else:
            echo("\n".join(done.lines()))
    return int(not done.holds)
