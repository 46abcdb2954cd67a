"""Episodes that could not be run, for people and for programs."""

import dataclasses
from typing import Any

import click

from policyfuzz.cli.console import print_json
from policyfuzz.cli.summary import input_lines
from policyfuzz.search.cases import Purpose
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FailedEpisode, Finding


def show_failed(campaign: CampaignReader, number: int | None, is_json: bool) -> None:
    """List the failed episodes of `campaign`, or show one in full."""
    failed = campaign.failed_episodes() if number is None else [campaign.failed_episode(number)]
    if is_json:
        listing = [_as_dictionary(campaign, one) for one in failed]
        print_json(listing if number is None else listing[0])
    elif number is not None:
        click.echo("\n".join(_in_full(campaign, failed[0])))
    elif failed:
        for one in failed:
            click.echo(f"{one.id:>7}  {one.kind:<8} at step {one.step:>4}  {one.summary}")
        click.echo(f"see one in full:  policyfuzz show {campaign.folder} {failed[0].id} --errors")
    else:
        click.echo("no episode has failed to run")


def error_of(campaign: CampaignReader, finding: Finding) -> FailedEpisode | None:
    """The error that `finding` is, or that its second run ended in; None where both could be run."""
    failed = campaign.failed_episodes(where=f"finding = {int(finding.id)}")
    return next(iter(failed), None)  # the earliest: a finding is run before it is run again


def error_lines(failed: FailedEpisode) -> list[str]:
    """The error of a finding for a reader, with its traceback."""
    when = "when it was run again, " if failed.purpose == Purpose.CONFIRM.name.lower() else ""
    return [f"  error      {when}{failed.kind} at step {failed.step}", *failed.text.splitlines()]


def _in_full(campaign: CampaignReader, failed: FailedEpisode) -> list[str]:
    return [
        f"error {failed.id}: {failed.kind} at step {failed.step}, episode of purpose {failed.purpose}",
        "  input",
        *input_lines(campaign, failed.input),
        f"  case seed          {failed.case_seed}",
        *failed.text.splitlines(),
        f"run it again:  policyfuzz replay {campaign.folder} {failed.id} --error",
    ]


def _as_dictionary(campaign: CampaignReader, failed: FailedEpisode) -> dict[str, Any]:
    names = [str(dimension["name"]) for dimension in campaign.dimensions]
    values = {field.name: getattr(failed, field.name) for field in dataclasses.fields(failed)}
    return values | {"input": dict(zip(names, failed.input.tolist(), strict=True))}
