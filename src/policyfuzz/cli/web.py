"""policyfuzz web: campaigns in a browser, while they run."""

from pathlib import Path

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, trust
from policyfuzz.core import extras, variables
from policyfuzz.core.errors import UsageError

EPILOG = """\
\b
Examples:
  policyfuzz web campaigns/acasxu-1            look at a campaign, running or not
  policyfuzz web shared campaigns/acasxu-1     all instances in a sync folder, and one more
  policyfuzz web campaigns/acasxu-1 --allow-replay     films on demand: runs findings again
  policyfuzz web campaigns/acasxu-1 --host 0.0.0.0     for other machines, with a token

\b
Ctrl-C ends it. It reads campaigns and never writes them."""


@click.command(epilog=EPILOG)
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8347,
    show_default=True,
    help="Port to listen on; 0 takes any that is free.",
)
@click.option(
    "--token",
    metavar="TEXT",
    envvar=variables.WEB_TOKEN,
    help=f"Ask for this token; better set {variables.WEB_TOKEN}, which other users cannot see.  [default:"
    " none on loopback, elsewhere one is made]",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    metavar="NAME",
    multiple=True,
    help="Answer to this name, too, for example that of a proxy; may be repeated.",
)
@click.option(
    "--allow-replay", is_flag=True, help="Run findings again to film them, in a process of its own."
)
@trust
def command(
    folders: tuple[Path, ...],
    host: str,
    port: int,
    token: str | None,
    allowed_hosts: tuple[str, ...],
    allow_replay: bool,
    trust: bool,
) -> None:
    """Serve a page about the campaigns in DIR..., live while they run.

    DIR is a campaign, or a folder with campaigns in it, as --sync makes them. Only this machine can open the
    page, unless --host says otherwise; then it asks for a token.

    Without --allow-replay nothing is run: the page shows the films that replay has stored.
    """
    from policyfuzz.report.instances import holds_instances
    from policyfuzz.store.database import campaign_file

    extras.load("starlette", "web")
    extras.load("uvicorn", "web")
    from policyfuzz.web.server import ServerSettings, serve

    settings = ServerSettings(host, port, token, allowed_hosts, allow_replay, trust)
    for folder in folders:
        if not (folder.is_dir() and holds_instances(folder)):
            campaign_file(folder)  # or says what is missing
    if len({folder.absolute() for folder in folders}) < len(folders):
        raise UsageError("a folder is named twice", "name each once")
    serve(folders, settings, lambda address: echo(f"open {address}   (Ctrl-C ends it)"))
