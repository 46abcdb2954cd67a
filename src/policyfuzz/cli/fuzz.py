"""policyfuzz fuzz: the search itself."""

import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.options import DURATION, FOLDER, Request, as_json, asks_for_target, asks_for_workers

if TYPE_CHECKING:
    from policyfuzz.core.target import MakeRunner, Target
    from policyfuzz.execution.choice import ExecutorChoice
    from policyfuzz.store.writer import CampaignWriter

EPILOG = """\
\b
Examples:
  policyfuzz fuzz acasxu --max-time 1m
  policyfuzz fuzz gym:LunarLander-v3 --policy sb3:ppo.zip --trust --max-time 2m
  policyfuzz fuzz gym:CartPole-v1 --policy onnx:cart.onnx --input 'theta=-0.1..0.1' --oracle terminated
  policyfuzz fuzz acasxu --strategy random --max-execs 100000 --seed 7 --json
  policyfuzz fuzz acasxu --policy acasxu:networks/ -o campaigns/mine --max-findings 10
  policyfuzz fuzz acasxu -o campaigns/mine --resume --max-time 1h
  policyfuzz fuzz acasxu --sync shared --max-time 1h      as often as there are cores or machines
  policyfuzz fuzz bipedal -j 8 --timeout 30s --max-time 1h
  policyfuzz fuzz bipedal --executor ray:auto --max-time 12h

\b
Limits count from the first start of a campaign, resumed parts included. Without a limit it runs
until Ctrl-C, which saves and stops. The same seed and options give the same findings, whatever
the number of workers."""


@click.command(epilog=EPILOG)
@asks_for_target
@click.option("--strategy", help="How to search: portfolio (default), mdpfuzz, reward or random.")
@click.option("--max-time", type=DURATION, help="Stop after this time: 90s, 2m, 12h.")
@click.option("--max-execs", type=int, help="Stop after this many episodes, all of them counted.")
@click.option("--max-findings", type=int, help="Stop once at least this many findings are confirmed.")
@asks_for_workers
@click.option("-s", "--seed", type=int, help="Of all randomness of the search.  [default: 0]")
@click.option("-o", "--out", type=FOLDER, help="Campaign folder.  [default: campaigns/TARGET-N]")
@click.option(
    "--sync",
    metavar="DIR",
    type=FOLDER,
    help="Exchange with other instances in DIR; this one goes there, by default as DIR/TARGET-STRATEGY-SEED"
    " with a seed that is free.",
)
@click.option("--resume", is_flag=True, help="Continue the campaign in the folder given by -o.")
@click.option(
    "--ui",
    type=click.Choice(["auto", "screen", "plain", "none"]),
    default="auto",
    show_default=True,
    help="Live screen, a line every few seconds, or nothing; all on stderr.",
)
@as_json
@click.option("--force", is_flag=True, help="Go on although the health check failed.")
@click.option("--batch", type=int, help="Episodes per batch.  [default: the target's]")
@click.option("--window", type=int, help="Batches in flight; more for many workers.  [default: 2]")
@click.option("--samples", type=int, help="Random inputs before the first mutant.  [default: the target's]")
@click.option("--sensitivity", help="Energy of kept mutants: lineage (default) or exact.")
@click.option("--quantile", type=float, help="Share of state sequences called fresh.  [default: 0.05]")
@click.option("--tau", type=float, help="Fixed freshness threshold instead: a log-density per state.")
@click.option("--gamma", type=float, help="Forget learnt sequences at this rate (paper: 0.01).  [default: 0]")
@click.option("--components", type=int, help="Gaussians per mixture.  [default: 10]")
@click.option("--radius", type=float, help="Findings nearer than this are not distinct.  [default: 0.01]")
def command(
    request: Request,
    executor: "ExecutorChoice",
    max_time: float | None,
    max_execs: int | None,
    max_findings: int | None,
    out: Path | None,
    sync: Path | None,
    resume: bool,
    ui: str,
    is_json: bool,
    force: bool,
    **chosen: Any,
) -> int:
    """Search for valid, solvable inputs of TARGET that make its policy crash.

    TARGET is a name from `policyfuzz targets`, gym:ENVIRONMENT, pettingzoo:MODULE, or module:function or
    FILE.py:function of your own.
    """
    from policyfuzz.campaign.budget import Budget, StopReason
    from policyfuzz.campaign.engine import Campaign
    from policyfuzz.campaign.sync.synchronizer import Synchronizer
    from policyfuzz.cli.console import print_json, results
    from policyfuzz.cli.listeners import make_listener
    from policyfuzz.cli.summary import print_summary
    from policyfuzz.report.tables import totals

    budget = Budget(max_time, max_execs, max_findings)
    loaded, store = (_resume if resume else _start)(request, executor.make_runner, out, sync, chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        campaign = Campaign(
            loaded,
            store,
            budget,
            accept_unhealthy=force,
            make_executor=executor.make_executor,
            make_runner=executor.make_runner,
        )
        campaign.synchronizer = Synchronizer(store, loaded) if sync else None
        with make_listener(ui) as campaign.listener:
            reason = campaign.run()
        if reason is StopReason.UNHEALTHY and ui != "plain":  # which has told it already
            for diagnosis in campaign.bad_diagnoses:
                click.echo(f"policyfuzz: {diagnosis.level}: {diagnosis.message}", err=True)
                click.echo(f"  hint: {diagnosis.hint}", err=True)
        if reason is StopReason.UNHEALTHY:
            click.echo("policyfuzz: nothing was searched; --force does all the same", err=True)
        with suppress(BrokenPipeError):  # the exit code tells it too
            if is_json:
                print_json(totals(store, campaign.progress, reason.value))
            else:
                print_summary(results(), store, campaign.progress, reason.value)
    finally:
        store.close_or_discard()
    codes = {StopReason.INTERRUPTED: 130, StopReason.UNHEALTHY: 3}
    return codes.get(reason, 1 if campaign.progress.findings else 0)


def _start(
    request: Request, make_runner: "MakeRunner", out: Path | None, sync: Path | None, chosen: dict[str, Any]
) -> tuple["Target", "CampaignWriter"]:
    """The target, and the store of a new campaign."""
    from policyfuzz.api.instances import new_instance
    from policyfuzz.api.stores import new_store

    target = request.load(make_runner)
    if sync is not None:
        return target, new_instance(target, request.policy, sync, out, chosen)
    return target, new_store(target, request.policy, out or _next_folder(target.name), chosen)


def _resume(
    request: Request, make_runner: "MakeRunner", out: Path | None, sync: Path | None, chosen: dict[str, Any]
) -> tuple["Target", "CampaignWriter"]:
    """The target, and the store of the campaign to go on with."""
    from policyfuzz.api.instances import instance_folder
    from policyfuzz.api.stores import resumed_store
    from policyfuzz.core.errors import UsageError
    from policyfuzz.store.reader import CampaignReader

    if out is None:
        raise UsageError("--resume needs to know which campaign", hint="give its folder with -o")
    out = out if sync is None else instance_folder(sync, out)
    request = replace(request, policy=request.policy or CampaignReader(out).config.policy)
    target = request.load(make_runner)
    return target, resumed_store(target, request.policy, out, chosen)


def _next_folder(target: str) -> Path:
    """The first free folder campaigns/TARGET-N."""
    from policyfuzz.api.instances import folder_name

    name = folder_name(target)
    taken = {path.name for path in Path("campaigns").glob(f"{name}-*")}
    number = next(number for number in range(1, len(taken) + 2) if f"{name}-{number}" not in taken)
    return Path("campaigns") / f"{name}-{number}"
