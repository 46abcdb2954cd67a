"""policyfuzz migrate: bring a campaign file of an earlier version up to date."""

from pathlib import Path

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER
from policyfuzz.store.database import FORMAT_VERSION
from policyfuzz.store.migration import migrate

EPILOG = """\
\b
Example:
  policyfuzz migrate campaigns/acasxu-1

\b
Findings, seeds and history stay as they are. Such a campaign can be shown, replayed and exported, but
not resumed: its search was another one."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
def command(folder: Path) -> None:
    """Bring the campaign file in DIR, which an earlier version wrote, to the present format."""
    version = migrate(folder)
    if version == FORMAT_VERSION:
        echo(f"{folder} has format {version} already")
    else:
        echo(f"{folder} had format {version} and now has {FORMAT_VERSION}")
