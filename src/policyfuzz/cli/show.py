"""policyfuzz show: what was found."""

import dataclasses
import math
import shlex
import textwrap
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from policyfuzz.cli.console import json_text, print_json, results
from policyfuzz.cli.echo import echo
from policyfuzz.cli.modes_text import avoidance_lines, boundary_lines, mode_lines, mode_values, modes_lines
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.cli.summary import findings_table, input_lines, luck_text, replay_lines
from policyfuzz.core.errors import UsageError
from policyfuzz.report.mode_summaries import (
    error_number,
    find_mode,
    finding_named,
    mode_summaries,
    summary_of,
)
from policyfuzz.report.outside import excesses, outside_text
from policyfuzz.report.quantities import format_seconds
from policyfuzz.report.ranking import ORDERS, ranked
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, FailedEpisode, Finding
from policyfuzz.store.triage_file import Triage, triage_of

#: Rows of a table that are laid out together.
_ROWS_AT_ONCE = 1000
#: Purpose of an episode to what it was to a finding.
_ERROR_WHEN = {
    "confirm": "when it was run again, ",
    "reseed": "with another case seed, ",
    "compare": "with a reference policy, ",
}
#: Rows of a list by default.
_LIMIT = 50
#: SQLite knows no larger numbers.
_LARGEST_OFFSET = 2**62

EPILOG = """\
\b
Examples:
  policyfuzz show campaigns/acasxu-1            the failure modes, after policyfuzz triage
  policyfuzz show campaigns/acasxu-1 M2         the second of them, in full
  policyfuzz show campaigns/acasxu-1 --findings    the distinct findings, the first 50
  policyfuzz show campaigns/acasxu-1 --all      also those that are not distinct
  policyfuzz show campaigns/acasxu-1 --offset 50 --limit 100      and so on
  policyfuzz show campaigns/acasxu-1 --top 10       the worst ones
  policyfuzz show campaigns/acasxu-1 --sort distance --limit 10   the most different ones
  policyfuzz show campaigns/acasxu-1 3 --json   finding 3, for a program
  policyfuzz show campaigns/mine-1 --errors     episodes that the environment could not run
  policyfuzz show campaigns/mine-1 2 --errors   the second of them, with its traceback"""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("name", metavar="[MODE|FINDING]", required=False)
@click.option("--modes", "wants_modes", is_flag=True, help="The failure modes, which triage finds.")
@click.option("--findings", "wants_findings", is_flag=True, help="Findings, even if failure modes are known.")
@click.option("--all", "show_all", is_flag=True, help="Also those that are not distinct or not confirmed.")
@click.option("--errors", is_flag=True, help="Episodes that could not be run, instead of findings.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=_LIMIT,
    show_default=True,
    help="List at most this many; 0 lists all.",
)
@click.option(
    "--top", type=click.IntRange(min=1), metavar="N", help="The N worst: --sort severity --limit N."
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(ORDERS),
    help="found (default), severity: the farthest beyond the threshold of the oracle first, by return where"
    " it does not say; return: the lowest first, time: the earliest crash first, or distance: the worst one,"
    " then always the one farthest from those listed.",
)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many first.")
@as_json
def command(
    folder: Path,
    name: str | None,
    wants_modes: bool,
    wants_findings: bool,
    show_all: bool,
    errors: bool,
    limit: int,
    top: int | None,
    order: str | None,
    offset: int,
    is_json: bool,
) -> None:
    """Show what is wrong with the policy: the failure modes of the campaign in DIR, or its findings.

    Failure modes are there after `policyfuzz triage DIR`; before it, and with options that choose findings,
    findings are listed. MODE, such as M1, and FINDING, a number, are shown in full.
    """
    if (top or order) and (errors or name is not None):
        raise UsageError("--sort and --top are for lists of findings", "leave them out")
    campaign = CampaignReader(folder)
    part = _Part(top or limit or None, min(offset, _LARGEST_OFFSET))
    lists_findings = any((wants_findings, show_all, top, order, offset, limit != _LIMIT, is_json))
    if errors:
        if name is None:
            _list_errors(campaign, part, is_json)
        else:
            _show_error(campaign, campaign.failed_episode(error_number(name)), is_json)
        return
    triage = triage_of(campaign)
    if name is not None:
        _show_named(campaign, triage, name, is_json)
    elif wants_modes or (triage.modes is not None and not lists_findings):
        _list_modes(campaign, triage, is_json)
    else:
        chosen = order or ("severity" if top else "found")
        _list_findings(campaign, triage, show_all, part, chosen, is_json)


def _show_named(campaign: CampaignReader, triage: Triage, name: str, is_json: bool) -> None:
    mode = find_mode(triage, name)
    if mode is None:
        finding = finding_named(campaign, triage, name)
        known = triage.of(finding.id)
        _show_finding(campaign, known.added_to(finding), triage, is_json)
        return
    summary = summary_of(campaign, triage, mode)
    if is_json:
        print_json(mode_values(summary))
    else:
        echo("\n".join(mode_lines(campaign, summary, triage)))


def _list_modes(campaign: CampaignReader, triage: Triage, is_json: bool) -> None:
    if triage.modes is None:
        raise UsageError(
            "the failure modes are not known yet",
            f"run policyfuzz triage {shlex.quote(str(campaign.folder))}",
        )
    summaries = mode_summaries(campaign, triage)
    if is_json:
        about = {
            name: getattr(triage.modes, name)
            for name in ("is_stable", "agreement", "findings", "random_crashes", "random_draws", "reason")
        }
        print_json(about | {"modes": [mode_values(one) for one in summaries]})
    else:
        echo("\n".join(modes_lines(campaign, triage, summaries)))


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """Which part of a list is asked for."""

    most: int | None  #: rows; None for all
    skip: int  #: rows before the first

    def print_rest(self, shown: int, total: int, noun: str, is_json: bool) -> None:
        """Say how many there are after those `shown`; on stderr if the list is JSON."""
        left = total - self.skip - shown
        if left > 0:
            again = f"--offset {self.skip + shown}"
            echo(f"... and {left:,} more {noun}: {again}, or --limit 0 for all", err=is_json)


def _list_findings(
    campaign: CampaignReader, triage: Triage, show_all: bool, part: _Part, order: str, is_json: bool
) -> None:
    distinct = campaign.progress().distinct_findings
    total = (campaign.last_number("findings") or 0) if show_all else distinct
    # no more than there are, or the whole table would be searched for another one
    most = min(part.most or total, max(total - part.skip, 0))
    where = "1" if show_all else "is_distinct"
    findings = campaign.records(Finding, "findings", where, most=most, skip=part.skip)
    if order != "found":
        findings = ranked(campaign, order, not show_all, most, part.skip)
    if triage.findings:
        findings = (triage.of(one.id).added_to(one) for one in findings)
    console, shown = results(), 0
    if is_json:
        shown = _print_json_list(_finding_values(campaign, one) for one in findings)
    else:
        first = None
        while page := list(islice(findings, _ROWS_AT_ONCE)):
            console.print(findings_table(campaign, page))
            first, shown = first or page[0], shown + len(page)
        if first:
            console.print(
                *replay_lines(campaign, first.id, "replay one:"), sep="\n", style="bold", soft_wrap=True
            )
        else:
            others = campaign.progress().findings
            nothing = f"no distinct findings; --all lists {others:,} others" if others else "no findings yet"
            console.print("no more findings" if part.skip and total else nothing)
    part.print_rest(shown, total, "findings" if show_all else "distinct findings", is_json)


def _print_json_list(values: Iterable[dict[str, Any]]) -> int:
    """Print `values` as a JSON list, one by one; return how many there were."""
    count = 0
    for count, value in enumerate(values, start=1):
        text = textwrap.indent(json_text(value), "  ")
        echo(f"{'[' if count == 1 else ','}\n{text}", nl=False)
    echo("\n]" if count else "[]")
    return count


def _show_finding(campaign: CampaignReader, finding: Finding, triage: Triage, is_json: bool) -> None:
    # the first of its errors: a finding is run before it is run again
    error = next(iter(campaign.failed_episodes(of_finding=finding.id, most=1)), None)
    known, mode = triage.of(finding.id), triage.mode_of(finding.id)
    if is_json:
        print_json(
            _finding_values(campaign, finding)
            | {"error": error and error.text, "mode": mode and mode.number}
            | {"avoidance": known.avoidance and dataclasses.asdict(known.avoidance)}
            | {"boundary": known.boundary and dataclasses.asdict(known.boundary)}
        )
        return
    origin = "a random sample" if finding.parent is None else f"a change of seed {finding.parent}"
    origin = origin if finding.origin is None else f"instance {finding.origin}"
    lines = [
        f"finding {finding.id}: {finding.kind} at step {finding.crash_step}, {_standing(finding)}",
        f"  return     {finding.episode_return:.6g}",
        *(
            []
            if math.isnan(finding.margin)
            else [f"  severity   {-finding.margin:.6g} beyond the threshold of the oracle"]
        ),
        f"  found      in episode {finding.execution:,}, after {format_seconds(finding.seconds)}",
        f"  origin     {origin}{'' if finding.root is None else f', descends from draw {finding.root:,}'}",
        *(
            [f"  repeats    {finding.repeats:,} more crashes up to which all is the same"]
            * bool(finding.repeats)
        ),
        *([f"  seeds      {luck}"] if (luck := luck_text(finding)) else []),
        *([f"  solvable   {finding.survived_by} survives"] if finding.survived_by else []),
        *([f"  outside    {outside}"] if (outside := outside_text(campaign, finding.input)) else []),
        *([f"  mode       M{mode.number}: {mode.words or mode.kind}"] if mode else []),
        *(f"  {line}" for line in avoidance_lines(known.avoidance)),
        *(f"  {line}" for line in boundary_lines(known.boundary)),
        "  input",
        *input_lines(campaign, finding.input),
    ]
    if error:
        when = _ERROR_WHEN.get(error.purpose, "")
        lines += [f"  error      {when}{error.kind} at step {error.step}", *error.text.splitlines()]
    lines += replay_lines(campaign, finding.id, "replay it:")
    echo("\n".join(lines))


def _standing(finding: Finding) -> str:
    """What makes a finding count, or not."""
    if finding.status != CONFIRMED:
        return finding.status
    if finding.is_distinct:
        return "confirmed, distinct"
    if finding.needs_luck:
        return "confirmed, needs a lucky case seed"
    return f"confirmed, {'waits for other case seeds' if finding.is_novel else 'like an earlier finding'}"


def _list_errors(campaign: CampaignReader, part: _Part, is_json: bool) -> None:
    failed = campaign.records(FailedEpisode, "errors", most=part.most, skip=part.skip)
    total, shown, first = campaign.last_number("errors") or 0, 0, 0
    if is_json:
        shown = _print_json_list(_error_values(campaign, one) for one in failed)
    else:
        for one in failed:
            first, shown = first or one.id, shown + 1
            echo(f"{one.id:>7}  {one.kind:<8} at step {one.step:>4}  {one.summary}")
        if first:
            echo(f"see one in full:  policyfuzz show {shlex.quote(str(campaign.folder))} {first} --errors")
        else:
            echo("no more errors" if part.skip and total else "no episode has failed to run")
    part.print_rest(shown, total, "errors", is_json)


def _show_error(campaign: CampaignReader, failed: FailedEpisode, is_json: bool) -> None:
    if is_json:
        print_json(_error_values(campaign, failed))
        return
    lines = [
        f"error {failed.id}: {failed.kind} at step {failed.step}, episode of purpose {failed.purpose}",
        "  input",
        *input_lines(campaign, failed.input),
        f"  case seed          {failed.case_seed}",
        *failed.text.splitlines(),
        *replay_lines(campaign, failed.id, "run it again:", " --error"),
    ]
    echo("\n".join(lines))


def _finding_values(campaign: CampaignReader, finding: Finding) -> dict[str, Any]:
    return {
        "finding": finding.id,
        "status": finding.status,
        "is_distinct": finding.is_distinct,
        "kind": finding.kind,
        "crash_step": finding.crash_step,
        "return": finding.episode_return,
        "margin": finding.margin,
        "outcome": finding.outcome,
        "repeats": finding.repeats,
        "root": finding.root,
        "behaviour": campaign.descriptor(finding),
        "other_seeds": _other_seeds(finding),
        "needs_luck": finding.needs_luck,
        "survived_by": finding.survived_by,
        "parent": finding.parent,
        "case_seed": finding.case_seed,
        "execution": finding.execution,
        "seconds": finding.seconds,
        "origin": finding.origin,
        "input": _input_values(campaign, finding.input),
        "outside_own_reset": excesses(campaign, finding.input),
    }


def _other_seeds(finding: Finding) -> dict[str, Any] | None:
    """How often a finding crashes with other case seeds; None if that was not tried."""
    if not finding.reseeded:
        return None
    return dataclasses.asdict(FailureProbability.of(finding.reseeded_crashes or 0, finding.reseeded))


def _error_values(campaign: CampaignReader, failed: FailedEpisode) -> dict[str, Any]:
    return dataclasses.asdict(failed) | {"input": _input_values(campaign, failed.input)}


def _input_values(campaign: CampaignReader, row: NDArray[np.float64]) -> dict[str, float]:
    names = (str(dimension["name"]) for dimension in campaign.dimensions)
    return dict(zip(names, row.tolist(), strict=True))
