"""The results of a campaign, printed for people."""

import math
import shlex

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from policyfuzz.core.settings import CampaignConfig, StopReason
from policyfuzz.report.commands import POLICY_OF_TARGET, code_of, replay_command
from policyfuzz.report.input_text import value_text
from policyfuzz.report.outside import outside_text, own_crashes_of, own_range_text, own_reset_of
from policyfuzz.report.quantities import format_rate, format_seconds
from policyfuzz.report.ranking import worst_and_most_different
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding, Progress

#: Findings that a summary shows.
_SHOWN = 8
#: Characters of a name in a table. A file from a stranger may hold a million, which take minutes to lay out.
_LONGEST_CELL = 80


def crash_rates(progress: Progress, of_solvable: bool) -> dict[str, str]:
    """Crash rate of the search, and the failure probability by its random draws, each under its label."""
    rows = {}
    if progress.mutants:
        rows["crash rate"] = f"search {progress.mutant_crash_rate:.3%} of {progress.mutants:,}"
    if progress.samples:
        left_out = " (errors left out)" if progress.failures else ""
        rows["failure probability"] = f"{FailureProbability.of_campaigns([progress], of_solvable)}{left_out}"
    return rows


def failures_text(progress: Progress) -> str:
    """How many episodes could not be run to their end, and in what way."""
    ways = {"hung": progress.hangs, "crashed their process": progress.simulator_crashes}
    counted = [f"{count:,} {way}" for way, count in ways.items() if count]
    details = f" ({', '.join(counted)})" if counted else ""
    return f"{progress.failures:,} episodes could not be run{details}"


def workers_text(progress: Progress, is_live: bool = False) -> str:
    """How many workers there are, how busy they have been, and how many were replaced."""
    parts = [f"{progress.workers:,}"]
    if is_live and progress.workers_ready < progress.workers:
        parts = [f"{progress.workers_ready:,} of {progress.workers:,} ready"]
    parts += [] if math.isnan(progress.utilisation) else [f"{progress.utilisation:.0%} busy"]
    parts += [f"{progress.restarts:,} replaced"] if progress.restarts else []
    return ", ".join(parts)


def found_text(progress: Progress) -> str:
    """How many findings there are, how many of them are distinct, and to how many draws they go back."""
    parts = [f"{progress.findings:,} confirmed findings, {progress.distinct_findings:,} distinct"]
    if progress.lineages:
        parts.append(f"from {progress.lineages:,} {'lineages' if progress.lineages > 1 else 'lineage'}")
    parts += [f"{progress.imported_findings:,} from other instances"] if progress.imported_findings else []
    parts += [f"{progress.unconfirmed:,} not confirmed yet"] if progress.unconfirmed else []
    return ", ".join(parts)


def _not_counted(campaign: CampaignReader, progress: Progress) -> dict[str, str]:
    """What else crashed, each kind under its label."""
    others = [f"{progress.repeats:,} repeats of known outcomes"] if progress.repeats else []
    others += [f"{progress.flaky:,} flaky"] if progress.flaky else []
    others += [f"{progress.unsolved:,} that no reference policy survives"] if progress.unsolved else []
    rows = {"not counted": ", ".join(others)} if others else {}
    if campaign.about.get("case_seed") == "noise":
        tried = progress.lucky + progress.distinct_findings
        waiting = f", {progress.in_trial:,} still on trial" if progress.in_trial else ""
        rows["luck"] = (
            f"of {tried:,} findings tried with other case seeds, {progress.lucky:,} need a lucky one"
            f" and are not distinct{waiting}"
        )
    if references := campaign.config.references.splitlines():
        rows["solvable"] = f"every finding is survived by {' or '.join(references)}"
    return rows


def luck_text(finding: Finding) -> str:
    """How often a finding crashes with other case seeds; empty if that was not tried."""
    share = FailureProbability.of(finding.reseeded_crashes or 0, finding.reseeded or 0)
    if not share.draws:
        return ""
    return (
        f"crashes with {share.crashes} of {share.draws} other case seeds"
        f" ({share.probability:.0%}, 95 %: {share.low:.0%} to {share.high:.0%})"
    )


def print_summary(
    console: Console, campaign: CampaignReader, progress: Progress, stop_reason: str | None
) -> None:
    """Print what was done and a few distinct findings, with the command that replays the worst."""
    config = campaign.config
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_row("target", f"{config.target}, strategy {config.strategy}, seed {config.seed}")
    grid.add_row("policy", config.policy or POLICY_OF_TARGET)
    grid.add_row(
        "ran",
        f"{progress.executions:,} episodes in {format_seconds(progress.seconds)}"
        f" ({format_rate(progress.executions_per_second)})"
        + (f", stopped by {stop_reason}" if stop_reason else "")
        + (
            "; all of it was sampling, give it more time"
            if _was_sampling(config, progress, stop_reason)
            else ""
        ),
    )
    if progress.workers > 1 or progress.restarts:
        grid.add_row("workers", workers_text(progress))
    if progress.failures:
        # an unhealthy start stores nothing
        where = f": policyfuzz show {shlex.quote(str(campaign.folder))} --errors" if progress.batch else ""
        grid.add_row("errors", f"{failures_text(progress)}{where}")
    grid.add_row("found", found_text(progress))
    for label, line in _not_counted(campaign, progress).items():
        grid.add_row(label, line)
    is_tested = campaign.is_solvability_tested
    if (own := own_crashes_of(campaign)) is not None:
        grid.add_row(
            "crashes",
            f"{own['crashes']:,} of {own['episodes']:,} from the environment's own reset,"
            f" {progress.sample_crashes:,} of {progress.samples:,} random draws within the bounds",
        )
    rates = crash_rates(progress, is_tested)
    if stop_reason == StopReason.EXHAUSTED.value and (starts := campaign.starts()):
        rates["failure probability"] = _of_all_starts(*starts)
    for label, line in rates.items():
        grid.add_row(label, line)
    good = "valid and solvable" if is_tested else "valid"
    grid.add_row("inputs", f"{progress.valid_rate:.1%} of {progress.drawn:,} drawn were {good}")
    grid.add_row("campaign", str(campaign.folder))
    console.print(grid)
    distinct = worst_and_most_different(campaign, _SHOWN) if progress.distinct_findings else []
    if distinct:
        console.print()
        if progress.distinct_findings > len(distinct):
            console.print("the worst finding, and others that are bad and most unlike it:")
        console.print(findings_table(campaign, distinct))
        console.print(
            *replay_lines(campaign, distinct[0].id, "replay one:"), sep="\n", style="bold", soft_wrap=True
        )
    if progress.findings > len(distinct):
        if not distinct and progress.lucky:
            console.print("no finding that was tried holds with other case seeds")
        console.print(
            f"see all:     policyfuzz show {shlex.quote(str(campaign.folder))} --all --sort severity",
            soft_wrap=True,
        )
    if progress.findings:
        trust = " --trust" if replay_lines(campaign, 1, "")[1:] else ""
        console.print(
            f"explain:     policyfuzz triage {shlex.quote(str(campaign.folder))}{trust}",
            style="bold",
            soft_wrap=True,
        )


def _of_all_starts(total: int, crashing: int) -> str:
    """How likely a failure is where all starts were tried, and the case seed changes nothing."""
    found = f"{crashing:,} of them crash" if crashing else "none of them crashes"
    return f"exactly {crashing / total:.1%}: all {total:,} starts were tried, {found}"


def _was_sampling(config: CampaignConfig, progress: Progress, stop_reason: str | None) -> bool:
    """True if the time limit came before the search had proposed anything."""
    is_cut = stop_reason == StopReason.MAX_TIME.value and config.strategy != "random"
    return is_cut and progress.executions > 0 and not progress.mutants and not progress.imports


def replay_lines(campaign: CampaignReader, number: int | str, label: str, options: str = "") -> list[str]:
    """The command that replays finding `number`, or mode M1, and the code that its --trust would run.

    A stranger may have named that code, so nobody should paste the one without having seen the other.
    """
    command = replay_command(campaign, number)
    return [f"{label:<11}  {command}{options}", *(f"{'':<13}runs code: {one}" for one in code_of(campaign))]


def input_lines(campaign: CampaignReader, row: NDArray[np.float64]) -> list[str]:
    """One input (d,) for a reader, a line for each of its values."""
    lines = []
    for dimension, value in zip(campaign.dimensions, row.tolist(), strict=True):
        line = f"    {dimension['name']:<18} {value_text(dimension, value)} {dimension['unit']}".rstrip()
        own = own_range_text(campaign, str(dimension["name"]), value)
        lines.append(f"{line}  ({own})" if own else line)
    return lines


def findings_table(campaign: CampaignReader, findings: list[Finding]) -> RenderableType:
    """A table of `findings`, inputs by name and unit."""
    shown = campaign.dimensions[:6]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("finding", "kind", "at step", "return"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    has_margin = any(not math.isnan(finding.margin) for finding in findings)
    if has_margin:
        table.add_column("margin", justify="right")
    # where the seed is unused, a few are tried all the same
    has_seeds = any(finding.reseeded and finding.reseeded_crashes != finding.reseeded for finding in findings)
    has_seeds |= campaign.about.get("case_seed") == "noise"
    if has_seeds:
        table.add_column("crashes with\nother seeds", justify="right")
    for dimension in shown:
        unit = f"\n[{dimension['unit']}]" if dimension["unit"] else ""
        name = dimension["name"][:_LONGEST_CELL]
        table.add_column(Text(f"{name}{unit[:_LONGEST_CELL]}"), justify="right")
    is_own_known = own_reset_of(campaign) is not None
    if is_own_known:
        table.add_column(Text("outside of\nown reset"))
    for finding in findings:
        mark = "" if finding.status == CONFIRMED else f" ({finding.status})"
        values = [value_text(*pair, ".6g") for pair in zip(shown, finding.input, strict=False)]
        table.add_row(
            str(finding.id),
            finding.kind[:_LONGEST_CELL] + mark,
            str(finding.crash_step),
            f"{finding.episode_return:.4g}",
            *([f"{finding.margin:.3g}"] if has_margin else []),
            *([f"{finding.reseeded_crashes} of {finding.reseeded}" if finding.reseeded else ""] * has_seeds),
            *values,
            *([Text(outside_text(campaign, finding.input))] if is_own_known else []),
        )
    if len(campaign.dimensions) > len(shown):
        hidden = len(campaign.dimensions) - len(shown)
        return Group(table, Text(f"({hidden} more input columns: show one finding to see them)"))
    return table
