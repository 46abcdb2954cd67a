"""policyfuzz export: a campaign as a plain table."""

from dataclasses import replace
from pathlib import Path

import click

from policyfuzz.cli.console import progress_bar
from policyfuzz.cli.options import FOLDER
from policyfuzz.core.errors import UsageError
from policyfuzz.report.tables import table_of, write_table
from policyfuzz.store.reader import CampaignReader

EPILOG = """\
\b
Examples:
  policyfuzz export campaigns/acasxu-1 -o findings.csv
  policyfuzz export campaigns/acasxu-1 --what history --format json -o history.json
  policyfuzz export campaigns/acasxu-1 --what seeds --format npz -o corpus.npz"""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--what",
    type=click.Choice(["findings", "errors", "seeds", "history"]),
    default="findings",
    show_default=True,
    help="Findings, episodes that could not be run, the corpus, or the totals after each batch.",
)
@click.option(
    "--format", "form", type=click.Choice(["csv", "json", "npz"]), help="[default: the file's ending]"
)
@click.option("-o", "--out", type=FOLDER, required=True, help="File to write.")
def command(folder: Path, what: str, form: str | None, out: Path) -> None:
    """Write the findings, errors, seeds or history of the campaign in DIR to a file.

    Input columns are named after their dimension and unit, e.g. own_speed [ft/s].
    """
    form = form or out.suffix.removeprefix(".")
    if form not in ("csv", "json", "npz"):
        raise UsageError(f"cannot tell the format of {str(out)!r}", hint="add --format csv, json or npz")
    campaign = CampaignReader(folder)
    with progress_bar() as bar, campaign.snapshot():
        table = table_of(campaign, what)
        shown = replace(table, rows=bar.track(table.rows, total=table.count, description=f"writing {what}"))
        rows = write_table(shown, form, out)
    click.echo(f"wrote {rows:,} rows to {out}")
