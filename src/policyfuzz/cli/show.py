"""policyfuzz show: what was found."""

import dataclasses
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from policyfuzz.cli.console import format_seconds, print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.cli.summary import findings_table, input_lines, replay_command
from policyfuzz.report.outside import excesses, outside_text
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FailedEpisode, Finding

EPILOG = """\
\b
Examples:
  policyfuzz show campaigns/acasxu-1            the distinct findings
  policyfuzz show campaigns/acasxu-1 --all      every finding
  policyfuzz show campaigns/acasxu-1 3 --json   finding 3, for a program
  policyfuzz show campaigns/mine-1 --errors     episodes that the environment could not run
  policyfuzz show campaigns/mine-1 2 --errors   the second of them, with its traceback"""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("number", metavar="[FINDING]", type=int, required=False)
@click.option("--all", "show_all", is_flag=True, help="Also those that are not distinct or not confirmed.")
@click.option("--errors", is_flag=True, help="Episodes that could not be run, instead of findings.")
@as_json
def command(folder: Path, number: int | None, show_all: bool, errors: bool, is_json: bool) -> None:
    """List the findings of the campaign in DIR, or show FINDING in full."""
    campaign = CampaignReader(folder)
    if errors and number is None:
        _list_errors(campaign, is_json)
    elif errors and number is not None:
        _show_error(campaign, campaign.failed_episode(number), is_json)
    elif number is not None:
        _show_finding(campaign, campaign.finding(number), is_json)
    else:
        _list_findings(campaign, show_all, is_json)


def _list_findings(campaign: CampaignReader, show_all: bool, is_json: bool) -> None:
    findings = campaign.findings(distinct_only=not show_all)
    console = results()
    if is_json:
        print_json([_finding_values(campaign, one) for one in findings])
    elif findings:
        console.print(findings_table(campaign, findings))
        console.print(f"replay one:  {replay_command(campaign, findings[0].id)}", style="bold")
    else:
        console.print("no findings yet")


def _show_finding(campaign: CampaignReader, finding: Finding, is_json: bool) -> None:
    # the first of its errors: a finding is run before it is run again
    error = next(iter(campaign.failed_episodes(of_finding=finding.id)), None)
    if is_json:
        print_json(_finding_values(campaign, finding) | {"error": error and error.text})
        return
    origin = "a random sample" if finding.parent is None else f"a change of seed {finding.parent}"
    origin = origin if finding.origin is None else f"instance {finding.origin}"
    distinct = "distinct" if finding.is_distinct else "near an earlier finding"
    lines = [
        f"finding {finding.id}: {finding.kind} at step {finding.crash_step}, {finding.status}, {distinct}",
        f"  return     {finding.episode_return:.6g}",
        f"  found      after {finding.execution:,} episodes, {format_seconds(finding.seconds)}",
        f"  origin     {origin}",
        *([f"  outside    {outside}"] if (outside := outside_text(campaign, finding.input)) else []),
        "  input",
        *input_lines(campaign, finding.input),
    ]
    if error:
        when = "when it was run again, " if error.purpose == "confirm" else ""
        lines += [f"  error      {when}{error.kind} at step {error.step}", *error.text.splitlines()]
    lines.append(f"replay it:  {replay_command(campaign, finding.id)}")
    click.echo("\n".join(lines))


def _list_errors(campaign: CampaignReader, is_json: bool) -> None:
    failed = campaign.failed_episodes()
    if is_json:
        print_json([_error_values(campaign, one) for one in failed])
    elif failed:
        for one in failed:
            click.echo(f"{one.id:>7}  {one.kind:<8} at step {one.step:>4}  {one.summary}")
        click.echo(f"see one in full:  policyfuzz show {campaign.folder} {failed[0].id} --errors")
    else:
        click.echo("no episode has failed to run")


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
        f"run it again:  policyfuzz replay {campaign.folder} {failed.id} --error",
    ]
    click.echo("\n".join(lines))


def _finding_values(campaign: CampaignReader, finding: Finding) -> dict[str, Any]:
    return {
        "finding": finding.id,
        "status": finding.status,
        "is_distinct": finding.is_distinct,
        "kind": finding.kind,
        "crash_step": finding.crash_step,
        "return": finding.episode_return,
        "parent": finding.parent,
        "case_seed": finding.case_seed,
        "execution": finding.execution,
        "seconds": finding.seconds,
        "origin": finding.origin,
        "input": _input_values(campaign, finding.input),
        "outside_own_reset": excesses(campaign, finding.input),
    }


def _error_values(campaign: CampaignReader, failed: FailedEpisode) -> dict[str, Any]:
    return dataclasses.asdict(failed) | {"input": _input_values(campaign, failed.input)}


def _input_values(campaign: CampaignReader, row: NDArray[np.float64]) -> dict[str, float]:
    names = (str(dimension["name"]) for dimension in campaign.dimensions)
    return dict(zip(names, row.tolist(), strict=True))
