"""policyfuzz show: what was found."""

from pathlib import Path
from typing import Any

import click

from policyfuzz.cli.options import FOLDER, as_json, format_seconds

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
    from policyfuzz.cli.console import print_json, results
    from policyfuzz.cli.failed import error_of, show_failed
    from policyfuzz.cli.summary import findings_table, replay_command
    from policyfuzz.store.reader import CampaignReader

    campaign = CampaignReader(folder)
    console = results()
    if errors:
        show_failed(campaign, number, is_json)
        return
    if number is not None:
        found = campaign.finding(number)
        if is_json:
            error = error_of(campaign, found)
            print_json(_as_dictionary(campaign, found) | {"error": error and error.text})
        else:
            _print_one(campaign, found)
        return
    findings = [one for one in campaign.findings() if show_all or one.is_distinct]
    if is_json:
        print_json([_as_dictionary(campaign, one) for one in findings])
    elif findings:
        console.print(findings_table(campaign, findings))
        console.print(f"replay one:  {replay_command(campaign, findings[0].id)}", style="bold")
    else:
        console.print("no findings yet")


def _as_dictionary(campaign: Any, finding: Any) -> dict[str, Any]:
    names = [str(dimension["name"]) for dimension in campaign.dimensions]
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
        "input": dict(zip(names, finding.input.tolist(), strict=True)),
    }


def _print_one(campaign: Any, finding: Any) -> None:
    from policyfuzz.cli.failed import error_lines, error_of
    from policyfuzz.cli.summary import input_lines, replay_command

    origin = "a random sample" if finding.parent is None else f"a change of seed {finding.parent}"
    origin = origin if finding.origin is None else f"instance {finding.origin}"
    distinct = "distinct" if finding.is_distinct else "near an earlier finding"
    lines = [
        f"finding {finding.id}: {finding.kind} at step {finding.crash_step}, {finding.status}, {distinct}",
        f"  return     {finding.episode_return:.6g}",
        f"  found      after {finding.execution:,} episodes, {format_seconds(finding.seconds)}",
        f"  origin     {origin}",
        "  input",
    ]
    lines += input_lines(campaign, finding.input)
    error = error_of(campaign, finding)
    lines += error_lines(error) if error else []
    lines.append(f"replay it:  {replay_command(campaign, finding.id)}")
    click.echo("\n".join(lines))
