"""policyfuzz status: how a campaign is doing, or several that share a folder."""

from pathlib import Path

import click

from policyfuzz.cli.options import FOLDER, as_json

EPILOG = """\
\b
Examples:
  policyfuzz status campaigns/acasxu-1
  policyfuzz status shared      all instances that were started with --sync shared"""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@as_json
def command(folder: Path, is_json: bool) -> None:
    """Say how the campaign in DIR is doing, or all campaigns in folders of DIR. They may be running."""
    from policyfuzz.report.instances import holds_instances

    if holds_instances(folder):
        _print_all(folder, is_json)
    else:
        _print_one(folder, is_json)


def _print_all(folder: Path, is_json: bool) -> None:
    from policyfuzz.cli.console import print_json, results
    from policyfuzz.cli.instances import instances_summary, print_instances

    if is_json:
        print_json(instances_summary(folder))
    else:
        print_instances(results(), folder)


def _print_one(folder: Path, is_json: bool) -> None:
    from policyfuzz.cli.console import print_json, results
    from policyfuzz.cli.summary import print_summary
    from policyfuzz.report.tables import totals
    from policyfuzz.store.database import is_being_written
    from policyfuzz.store.reader import CampaignReader

    campaign = CampaignReader(folder)
    running = is_being_written(folder)
    stopped = campaign.about.get("stop_reason")
    if is_json:
        summary = totals(campaign, campaign.progress(), None if running else stopped)
        print_json(summary | {"running": running})
        return
    console = results()
    if running:
        console.print("running", style="bold green")
    elif stopped is None:
        console.print(
            "not running, and it was not stopped in order: continue it with --resume", style="yellow"
        )
    print_summary(console, campaign, campaign.progress(), None if running else stopped)
