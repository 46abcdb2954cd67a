"""policyfuzz status: how a campaign is doing, or several that share a folder."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console, JustifyMethod
from rich.table import Table

from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.cli.summary import print_summary
from policyfuzz.report.commands import POLICY_OF_TARGET
from policyfuzz.report.instances import (
    DAMAGED,
    KILLED,
    RUNNING,
    Instance,
    Together,
    Unreadable,
    groups_of,
    holds_instances,
    instances_in,
    together,
)
from policyfuzz.report.quantities import format_rate, format_seconds
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.tables import totals
from policyfuzz.store.database import is_being_written
from policyfuzz.store.reader import CampaignReader

EPILOG = """\
\b
Examples:
  policyfuzz status campaigns/acasxu-1
  policyfuzz status shared      all instances that were started with --sync shared"""


_STYLES = {RUNNING: "green", KILLED: "yellow", DAMAGED: "red"}
_COLUMNS = (
    "instance",
    "strategy",
    "seed",
    "state",
    "workers",
    "episodes",
    "speed",
    "findings",
    "own",
    "imported",
    "distinct",
    "errors",
    "since\nfinding",
)
_NO_LIMIT = 10_000
_LEFT = ("instance", "strategy", "state")
#: Columns to leave out: the first choice that fits, or the last.
_LEFT_OUT = ((), ("workers", "own"), ("strategy", "seed", "workers", "speed", "own", "imported"))


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@as_json
def command(folder: Path, is_json: bool) -> None:
    """Say how the campaign in DIR is doing, or all campaigns in folders of DIR. They may be running."""
    if not holds_instances(folder):
        _print_campaign(CampaignReader(folder), is_json)
    elif is_json:
        print_json(_instances_values(folder))
    else:
        _print_instances(results(), folder)


def _print_campaign(campaign: CampaignReader, is_json: bool) -> None:
    is_running, progress = is_being_written(campaign.folder), campaign.progress()
    stop_reason = campaign.stop_reason()
    shown_reason = None if is_running else stop_reason
    if is_json:
        print_json(totals(campaign, progress, shown_reason) | {"running": is_running})
        return
    console = results()
    if is_running:
        console.print("running", style="bold green")
    elif stop_reason is None:
        console.print("not running, did not stop cleanly: continue it with --resume", style="yellow")
    print_summary(console, campaign, progress, shown_reason)


def _print_instances(console: Console, folder: Path) -> None:
    """Print a table for the campaigns in `folder` on each target and policy."""
    rows = list(instances_in(folder))
    instances = [row for row in rows if isinstance(row, Instance)]
    for group in groups_of(instances):
        _print_group(console, group)
    for row in rows:
        if isinstance(row, Unreadable):
            console.print(f"{row.name}: {row.state}: {row.problem}", style=_STYLES.get(row.state))
    for one in instances:
        if one.state == KILLED:
            console.print(f"{one.name} did not stop cleanly: continue it with --resume", style="yellow")


def _print_group(console: Console, group: list[Instance]) -> None:
    """Print what the campaigns of `group` fuzz, one row for each of them, and one for all together."""
    config, total = group[0].config, together(group)
    console.print(f"target {config.target}, policy {config.policy or POLICY_OF_TARGET}", soft_wrap=True)
    free = console.options.update(width=_NO_LIMIT)
    for left_out in _LEFT_OUT:
        table = _table(group, total, [name for name in _COLUMNS if name not in left_out])
        if console.measure(table, options=free).maximum <= console.width:
            break
    console.print(table)
    if total.failure_probability is not None:
        console.print(f"failure probability {total.failure_probability}", soft_wrap=True)


def _instances_values(folder: Path) -> dict[str, Any]:
    """All campaigns in `folder`, for programs. Those on different targets or policies are not added up."""
    rows = list(instances_in(folder))
    instances = [row for row in rows if isinstance(row, Instance)]
    groups = groups_of(instances)
    return {
        "folder": str(folder),
        "instances": [
            _instance_values(row, folder) if isinstance(row, Instance) else asdict(row) for row in rows
        ],
        "together": asdict(together(instances)) if len(groups) < 2 else None,
        "groups": [_group_values(group) for group in groups],
    }


def _group_values(group: list[Instance]) -> dict[str, Any]:
    """What the campaigns of `group` fuzz, and their sums."""
    config = group[0].config
    names = [one.name for one in group]
    return {
        "target": config.target,
        "policy": config.policy,
        "instances": names,
        "together": asdict(together(group)),
    }


def _table(instances: list[Instance], total: Together, columns: Sequence[str]) -> Table:
    """The table of `instances` with these `columns`, and the totals as its last row."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        # a long name may take several lines, so that no number is cut
        is_name = name == "instance"
        justify: JustifyMethod = "left" if name in _LEFT else "right"
        table.add_column(name, justify=justify, no_wrap=not is_name, overflow="fold")
    rows = [(_cells(one), _STYLES.get(one.state)) for one in instances]
    for cells, style in [*rows, (_sums(total), "bold")]:
        named = dict(zip(_COLUMNS, cells, strict=True))
        table.add_row(*(named[name] for name in columns), style=style)
    return table


def _cells(one: Instance) -> list[str]:
    progress, is_running = one.progress, one.state == RUNNING
    state = one.stop_reason or one.state
    return [
        one.name,
        one.config.strategy,
        str(one.config.seed),
        f"{state} on {one.host}" if one.host else state,
        str(progress.workers) if is_running else "-",
        f"{progress.executions:,}",
        format_rate(progress.executions_per_second),
        f"{progress.findings:,}",
        f"{one.own_findings:,}",
        f"{progress.imported_findings:,}",
        f"{progress.distinct_findings:,}",
        f"{progress.failures:,}",
        _since(one.seconds_since_finding),
    ]


def _sums(total: Together) -> list[str]:
    return [
        "together",
        "",
        "",
        f"{total.running}/{total.instances} running",
        str(total.workers) if total.running else "-",
        f"{total.executions:,}",
        format_rate(total.executions_per_second) if total.running else "-",
        f"{total.findings:,}",
        f"{total.findings:,}",
        f"{total.imported_findings:,}",
        f"{'' if total.distinct_is_exact else '>= '}{total.distinct_findings:,}",
        f"{total.failures:,}",
        _since(total.seconds_since_finding),
    ]


def _since(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _instance_values(one: Instance, folder: Path) -> dict[str, Any]:
    progress = one.progress
    return {
        "name": one.name,
        "campaign": str(folder / one.name),
        "state": one.state,
        "stop_reason": one.stop_reason,
        "host": one.host,
        "target": one.config.target,
        "policy": one.config.policy,
        "strategy": one.config.strategy,
        "seed": one.config.seed,
        "workers": progress.workers,
        "executions": progress.executions,
        "executions_per_second": progress.executions_per_second,
        "seconds": progress.seconds,
        "findings": progress.findings,
        "own_findings": one.own_findings,
        "imported_findings": progress.imported_findings,
        "distinct_findings": progress.distinct_findings,
        "errors": progress.errors,
        "hangs": progress.hangs,
        "simulator_crashes": progress.simulator_crashes,
        "imports": progress.imports,
        "failure_probability": asdict(FailureProbability.of_campaigns([progress], one.is_solvability_tested)),
        "seconds_since_finding": one.seconds_since_finding,
    }
