"""policyfuzz fuzz: the search itself."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import click

from policyfuzz.cli.options import DURATION, FOLDER, as_json, policy

EPILOG = """\
\b
Examples:
  policyfuzz fuzz acasxu --max-time 1m
  policyfuzz fuzz acasxu --strategy random --max-execs 100000 --seed 7 --json
  policyfuzz fuzz acasxu --policy acasxu:networks/ -o campaigns/mine --max-findings 10
  policyfuzz fuzz acasxu -o campaigns/mine --resume --max-time 1h

\b
Limits count from the first start of a campaign, resumed parts included. Without a limit it runs
until Ctrl-C, which saves and stops. The same seed and options give the same findings."""


@click.command(epilog=EPILOG)
@click.argument("target")
@policy
@click.option("--strategy", help="How to search: mixed (default), mdpfuzz, reward or random.")
@click.option("--max-time", type=DURATION, help="Stop after this time: 90s, 2m, 12h.")
@click.option("--max-execs", type=int, help="Stop after this many episodes, all of them counted.")
@click.option("--max-findings", type=int, help="Stop after this many confirmed findings.")
@click.option("-s", "--seed", type=int, help="Of all randomness of the search.  [default: 0]")
@click.option("-o", "--out", type=FOLDER, help="Campaign folder.  [default: campaigns/TARGET-N]")
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
@click.option("--batch", "batch_size", type=int, help="Episodes per batch.  [default: the target's]")
@click.option("--samples", type=int, help="Random inputs before the first mutant.  [default: 1000]")
@click.option("--sensitivity", help="Energy of kept mutants: lineage (default) or exact.")
@click.option("--quantile", type=float, help="Share of state sequences called fresh.  [default: 0.05]")
@click.option("--tau", type=float, help="Fixed freshness threshold instead: a log-density per state.")
@click.option("--gamma", type=float, help="Forget learnt sequences at this rate (paper: 0.01).  [default: 0]")
@click.option("--components", type=int, help="Gaussians per mixture.  [default: 10]")
@click.option("--radius", type=float, help="Findings nearer than this are not distinct.  [default: 0.01]")
def command(
    target: str,
    policy: str | None,
    max_time: float | None,
    max_execs: int | None,
    max_findings: int | None,
    out: Path | None,
    resume: bool,
    ui: str,
    is_json: bool,
    force: bool,
    **chosen: Any,
) -> int:
    """Search for valid, solvable inputs of TARGET that make its policy crash.

    TARGET is a name from `policyfuzz targets`, or module:function of your own.
    """
    from policyfuzz.campaign.budget import Budget, StopReason
    from policyfuzz.campaign.engine import Campaign
    from policyfuzz.cli.console import results
    from policyfuzz.cli.listeners import make_listener
    from policyfuzz.cli.summary import as_dictionary, print_summary
    from policyfuzz.targets.registry import load_target

    budget = Budget(max_time, max_execs, max_findings)
    loaded = load_target(target, policy)
    store = _open(
        loaded, policy, out, resume, {key: value for key, value in chosen.items() if value is not None}
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with make_listener(ui) as listener:
            reason = Campaign(loaded, store, budget, listener, accept_unhealthy=force).run()
        if is_json:
            click.echo(json.dumps(as_dictionary(store, reason.value), indent=2))
        else:
            print_summary(results(), store, reason.value)
        found = store.progress().findings
    finally:
        store.close()
    if reason is StopReason.INTERRUPTED:
        return 130
    if reason is StopReason.UNHEALTHY:
        return 3
    return 1 if found else 0


def _open(target: Any, policy: str | None, out: Path | None, resume: bool, chosen: dict[str, Any]) -> Any:
    """The store of a new campaign, or of the one to resume after making sure that nothing has changed."""
    from policyfuzz.campaign.store import CampaignWriter
    from policyfuzz.errors import CampaignError, UsageError

    if not resume:
        config = _config(target, policy, chosen)
        return CampaignWriter.create(out or _next_folder(target.name), config, target.inputs)
    if out is None:
        raise UsageError("--resume needs to know which campaign", hint="give its folder with -o")
    store = CampaignWriter(out)
    changes = store.config.differences(_config(target, policy, chosen, store.config))
    if changes:
        store.close()
        raise CampaignError(
            f"cannot resume {out}: {'; '.join(changes)}",
            hint="a resumed campaign keeps its target, policy and options; start a new one in another folder",
        )
    return store


def _config(target: Any, policy: str | None, chosen: dict[str, Any], earlier: Any = None) -> Any:
    """The configuration that was asked for; what was not mentioned is as in `earlier` or by default."""
    from dataclasses import replace

    from policyfuzz.campaign.config import CampaignConfig

    base = earlier or CampaignConfig(target.name, batch_size=target.batch_size)
    search = base.search
    freshness = {"quantile": chosen.get("quantile"), "threshold": chosen.get("tau")}
    density = {"forgetting": chosen.get("gamma"), "components": chosen.get("components")}
    searching = {"samples": chosen.get("samples"), "sensitivity": chosen.get("sensitivity")}
    search = replace(
        search,
        density=replace(search.density, **_given(density)),
        freshness=replace(search.freshness, **_given(freshness)),
        **_given(searching),
    )
    plain = {name: chosen.get(name) for name in ("strategy", "seed", "batch_size")}
    return replace(
        base,
        target=target.name,
        policy=policy,
        policy_sha256=target.policy_sha256,
        search=search,
        **_given({**plain, "distinct_radius": chosen.get("radius")}),
    )


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _next_folder(target: str) -> Path:
    """The first free folder campaigns/TARGET-N."""
    name = re.sub(r"[^A-Za-z0-9.=_-]+", "-", target)
    taken = {path.name for path in Path("campaigns").glob(f"{name}-*")}
    number = next(number for number in range(1, len(taken) + 2) if f"{name}-{number}" not in taken)
    return Path("campaigns") / f"{name}-{number}"
