"""policyfuzz report: campaigns as one file to send to somebody."""

import logging
import shlex
from pathlib import Path

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, trust
from policyfuzz.cli.process import user_prints_to_stderr
from policyfuzz.core.errors import UsageError

_FORMATS = ("html", "markdown", "junit", "json")

EPILOG = """\
\b
Examples:
  policyfuzz report campaigns/acasxu-1 -o report.html
  policyfuzz report campaigns/acasxu-1 campaigns/acasxu-2 -o both.html     side by side
  policyfuzz report campaigns/acasxu-1 --no-films        runs nothing, takes seconds
  policyfuzz report campaigns/acasxu-1 --format markdown -o /dev/stdout    for a CI summary
  policyfuzz report campaigns/acasxu-1 -o report.json    for a program

\b
Run policyfuzz triage first: it finds the failure modes that the report shows. It also shows
DIR/estimate.npz, from policyfuzz estimate -o, and DIR/compare*.json, from policyfuzz compare -o."""


@click.command(epilog=EPILOG)
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@click.option("-o", "--out", type=FOLDER, help="File to write.  [default: report.html, .md, .xml or .json]")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="What to write.  [default: the file's ending, or html]",
)
@click.option(
    "--films",
    type=click.IntRange(min=0),
    metavar="N",
    help="Films of each campaign at most, the worst failure modes first.  [default: 12]",
)
@click.option("--no-films", is_flag=True, help="Make no films, and run nothing.")
@trust
def command(
    folders: tuple[Path, ...],
    out: Path | None,
    form: str | None,
    films: int | None,
    no_films: bool,
    trust: bool,
) -> None:
    """Write what is known of the campaigns in DIR... as one file: no network, no script, films inside.

    Films are made by running findings again. Code that only a campaign names is not run without --trust; the
    report then says so in place of its films.
    """
    if no_films and films:
        raise UsageError("--no-films and --films exclude each other", "leave one of them out")
    # it would complain to a user without a home, and works without one
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from policyfuzz.cli.console import talk
    from policyfuzz.report.campaign_report.films import reasons
    from policyfuzz.report.campaign_report.words import verdict
    from policyfuzz.report.campaign_report.write import FORMATS, MOST_FILMS, format_of, write_report

    chosen = form or ("html" if out is None else format_of(out))
    path = out or Path(f"report{FORMATS[chosen]}")
    most = 0 if no_films else MOST_FILMS if films is None else films
    with talk().status("reading") as status, user_prints_to_stderr():
        views = write_report(
            folders, path, chosen, _again(folders, path, chosen, most, trust), most, trust, tell=status.update
        )
    for view in views:
        for reason in reasons(view) if most else []:
            echo(f"{view.name}: {reason}", err=True)
    if str(path) != "/dev/stdout":
        for view in views:
            echo(verdict(view).sentence)
        echo(f"report: {path}")


def _again(folders: tuple[Path, ...], path: Path, form: str, films: int, trust: bool) -> str:
    """The command line that makes the same report."""
    from policyfuzz.report.campaign_report.write import FORMATS, MOST_FILMS

    words = ["policyfuzz", "report", *map(str, folders), "-o", str(path)]
    words += ["--format", form] if path.suffix.lower() != FORMATS[form] else []
    words += (
        [] if films == MOST_FILMS or form != "html" else ["--films", str(films)] if films else ["--no-films"]
    )
    return shlex.join([*words, *(["--trust"] if trust else [])])
