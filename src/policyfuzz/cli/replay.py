"""policyfuzz replay: run a finding again, draw it and film it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.errors import UsageError

if TYPE_CHECKING:
    from policyfuzz.triage.replay import Replay

EPILOG = """\
\b
Examples:
  policyfuzz replay campaigns/acasxu-1 1
  policyfuzz replay campaigns/coopnavi-1 3 --film crash.gif
  policyfuzz replay campaigns/acasxu-1 1 --policy acasxu:repaired/   does the new policy still crash?

\b
Exit code 1 if it crashes, 0 if it does not."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("finding", type=int)
@click.option("--policy", metavar="URI", help="Use this policy instead of the one of the campaign.")
@click.option("--png", type=FOLDER, help="Picture to write.  [default: DIR/findings/N.png]")
@click.option("--film", type=FOLDER, help="Film to write, .mp4 or .gif.  [default: DIR/findings/N.mp4]")
@click.option("--no-picture", is_flag=True, help="Neither draw nor film.")
@as_json
def command(
    folder: Path,
    finding: int,
    policy: str | None,
    png: Path | None,
    film: Path | None,
    no_picture: bool,
    is_json: bool,
) -> int:
    """Run FINDING of the campaign in DIR again, compare, draw the episode, and film it if it can be filmed.

    An .mp4 needs pip install 'policyfuzz[film]'; without it the film is a .gif.
    """
    from policyfuzz.campaign.reader import CampaignReader
    from policyfuzz.cli.console import print_json, talk
    from policyfuzz.triage.replay import replay

    campaign = CampaignReader(folder)
    found = campaign.finding(finding)
    with talk().status("running the episode") as status:
        result = replay(campaign, found, policy)
        written: dict[str, Path] = {}
        if not no_picture:
            name = f"{finding}" if policy is None else f"{finding}-other-policy"
            written = _show(result, folder / "findings" / name, png, film, status.update)
    if is_json:
        report = {
            "finding": finding,
            "crashes": result.crashes,
            "is_identical": result.is_identical,
            "kind": result.kind,
            "crash_step": result.crash_step,
            "return": result.episode_return,
        }
        report |= {what: str(path) for what, path in written.items()}
        print_json(report)
        return int(result.crashes)
    if not result.crashes:
        whose = "" if policy is None else f" with {policy}"
        click.echo(f"finding {finding} does not crash any more{whose}: return {result.episode_return:.6g}")
    else:
        same = (
            "exactly as recorded" if result.is_identical else _difference(found.crash_step, result.crash_step)
        )
        click.echo(f"finding {finding} crashes: {result.kind} at step {result.crash_step}, {same}")
    for what, path in written.items():
        click.echo(f"{what}: {path}")
    return int(result.crashes)


def _show(
    result: "Replay", stem: Path, png: Path | None, film: Path | None, say: Callable[[str], None]
) -> dict[str, Path]:
    """Draw and film; what was made, and where."""
    from policyfuzz.report.episode_figure import draw_replay
    from policyfuzz.report.film import can_film, film_replay
    from policyfuzz.report.film_files import best_format

    written = {"picture": png or stem.with_name(f"{stem.name}.png")}
    say("drawing")
    draw_replay(result, written["picture"])
    if can_film(result.target):
        written["film"] = film or stem.with_name(f"{stem.name}{best_format()}")
        say("filming")
        film_replay(result, written["film"])
    elif film is not None:
        raise UsageError(f"target {result.target.name} cannot be filmed", "its simulator has no render(row)")
    return written


def _difference(recorded: int, now: int | None) -> str:
    if recorded == now:
        return "the same step as recorded, another return"
    return f"recorded was step {recorded}"
