"""policyfuzz fuzz: the search itself."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import (
    DURATION,
    FOLDER,
    Request,
    as_json,
    asks_for_target,
    asks_for_workers,
    campaign_options,
    not_blank,
    reference,
)
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands
from policyfuzz.core.errors import Interrupted, interrupt
from policyfuzz.core.settings import CampaignOptions

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice

EPILOG = """\
\b
Examples:
  policyfuzz fuzz acasxu --max-time 1m
  policyfuzz fuzz gym:LunarLander-v3 --policy sb3:ppo.zip --trust --max-time 2m
  policyfuzz fuzz gym:CartPole-v1 --policy onnx:cart.onnx --input 'theta=-0.1..0.1' --oracle terminated
  policyfuzz fuzz gym:LunarLander-v3 --policy sb3:a.zip --reference sb3:b.zip --trust --max-time 2m
  policyfuzz fuzz acasxu --strategy random --max-execs 100000 --seed 7 --json
  policyfuzz fuzz acasxu --policy acasxu:networks/ -o campaigns/mine --max-findings 10
  policyfuzz fuzz acasxu -o campaigns/mine --resume --max-time 1h
  policyfuzz fuzz acasxu --sync shared --max-time 1h      once per core or machine
  policyfuzz fuzz bipedal -j 8 --timeout 30s --max-time 1h
  policyfuzz fuzz bipedal --executor ray:auto --max-time 12h
  policyfuzz fuzz acasxu --log tensorboard --on-finding ./tell-chat.sh --max-time 12h

\b
Limits count from the first start of a campaign, resumed parts included. Without a limit it runs
until Ctrl-C, which saves and stops. The same seed and options give the same findings, whatever
the number of workers."""


@click.command(epilog=EPILOG)
@asks_for_target
@reference
@campaign_options("strategy")
@click.option("--max-time", type=DURATION, help="Stop after this time: 90s, 2m, 12h.")
@click.option("--max-execs", type=int, help="Stop after this many episodes, second runs included.")
@click.option("--max-findings", type=int, help="Stop once at least this many findings are confirmed.")
@asks_for_workers
@campaign_options("seed")
@click.option("-o", "--out", type=FOLDER, help="Campaign folder.  [default: campaigns/TARGET-N]")
@click.option(
    "--sync",
    metavar="DIR",
    type=FOLDER,
    help="Sync with other instances in DIR. The campaign goes there, by default as DIR/TARGET-STRATEGY-SEED"
    " with the first free seed.",
)
@click.option("--resume", is_flag=True, help="Continue the campaign in the folder given by -o.")
@click.option(
    "--ui",
    type=click.Choice(["auto", "screen", "plain", "none"]),
    default="auto",
    show_default=True,
    help="Live screen, a line every few seconds, or nothing; all on stderr.",
)
@click.option(
    "--log",
    "logs",
    type=click.Choice(["tensorboard"]),
    multiple=True,
    help="Log curves, histograms and pictures of new modes to DIR/tensorboard.",
)
@click.option(
    "--on-finding",
    metavar="COMMAND",
    help="Run COMMAND for each new mode: a finding unlike all earlier ones of its kind. It gets the facts by"
    " variables (POLICYFUZZ_KIND, ...) and as JSON on stdin; what it prints goes to DIR/on-finding.log.",
)
@as_json
@click.option("--force", is_flag=True, help="Search even if the health check fails.")
@campaign_options(
    "batch",
    "window",
    "samples",
    "sensitivity",
    "quantile",
    "freshness",
    "tau",
    "gamma",
    "components",
    "children",
    "when_empty",
    "radius",
)
def command(
    request: Request,
    executor: "ExecutorChoice",
    references: tuple[str, ...],
    max_time: float | None,
    max_execs: int | None,
    max_findings: int | None,
    out: Path | None,
    sync: Path | None,
    resume: bool,
    ui: str,
    logs: tuple[str, ...],
    on_finding: str | None,
    is_json: bool,
    force: bool,
    **chosen: Any,
) -> int:
    """Search for valid inputs of TARGET (solvable ones, if it has a test of that) that make its policy crash.

    TARGET is a name from `policyfuzz targets`, gym:ENVIRONMENT, pettingzoo:MODULE, or module:function or
    FILE.py:function of your own.
    """
    from policyfuzz.campaign.launch import OWN_POLICY, launch, stored_policies
    from policyfuzz.cli.console import print_json, results
    from policyfuzz.cli.screen import chosen_ui, make_listener
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.cli.summary import print_summary
    from policyfuzz.core.settings import Budget, StopReason
    from policyfuzz.report.tables import totals
    from policyfuzz.report.watching import check_watchers, watching
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.targets.trust import require_trust

    budget = Budget(max_time, max_execs, max_findings)
    check_watchers(logs, on_finding)
    _stop_on_signals()
    ui = chosen_ui(ui)
    with user_prints_to_stderr():
        policy = request.policy
        if resume:
            stored, stored_references = stored_policies(out, sync)
            policy = policy or stored
            require_trust(f"the campaign in {out}", None, None if request.policy else policy, request.trust)
            if not references:
                named = ";".join(one for one in stored_references if one != OWN_POLICY)
                require_trust(f"the campaign in {out}", None, named, request.trust)
                references = tuple(stored_references)
        with showing_steps(ui != "none") as steps:
            steps.say(f"loading {request.name}")
            target = request.load(executor, policy, will_check=not resume)
            loaded = [
                request.load_reference(executor, target, not_blank("--reference", uri)) for uri in references
            ]
        say_wait = _say if ui != "none" else lambda _: None
        watched = watching(target, logs, on_finding, _say, say_wait)
        with watched as watchers, make_listener(ui) as listener:
            launched = launch(
                target,
                budget,
                CampaignOptions(**chosen),
                policy=policy,
                folder=out,
                sync=sync,
                resume=resume,
                references=loaded,
                make_executor=executor.make_executor,
                make_runner=executor.make_runner,
                listeners=(listener, *watchers),
                force=force,
            )
    if launched.reason is StopReason.UNHEALTHY:
        if ui != "plain":  # plain lines have said so already
            for diagnosis in launched.bad_diagnoses:
                echo(f"policyfuzz: {diagnosis.level}: {diagnosis.message}", err=True)
                if diagnosis.hint:
                    echo(f"  hint: {diagnosis.hint}", err=True)
        echo("policyfuzz: nothing was searched; --force searches anyway", err=True)
    with verdict_stands():
        campaign = CampaignReader(launched.folder, is_at_rest=True)
        if is_json:
            print_json(totals(campaign, launched.progress, launched.reason.value))
        else:
            print_summary(results(), campaign, launched.progress, launched.reason.value)
    codes = {StopReason.INTERRUPTED: 130, StopReason.UNHEALTHY: 3}
    if launched.reason not in codes and not launched.progress.executions:
        echo("policyfuzz: no episode was run within the limits; allow more time", err=True)
        return 3
    return codes.get(launched.reason, 1 if launched.progress.findings else 0)


def _say(note: str) -> None:
    echo(f"policyfuzz: {note}", err=True)


def _stop_on_signals() -> None:
    """Let signals that end a process stop the campaign as Ctrl-C does, unless they are ignored (nohup)."""
    Interrupted.is_pending = False
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
