"""policyfuzz replay: run a finding again and draw it."""

from pathlib import Path

import click

from policyfuzz.cli.options import FOLDER, as_json

EPILOG = """\
\b
Examples:
  policyfuzz replay campaigns/acasxu-1 1
  policyfuzz replay campaigns/acasxu-1 1 --policy acasxu:repaired/   does the new policy still crash?

\b
Exit code 1 if it crashes, 0 if it does not."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("finding", type=int)
@click.option("--policy", metavar="URI", help="Use this policy instead of the one of the campaign.")
@click.option("--png", type=FOLDER, help="Picture to write.  [default: DIR/findings/N.png]")
@click.option("--no-picture", is_flag=True, help="Do not draw.")
@as_json
def command(
    folder: Path, finding: int, policy: str | None, png: Path | None, no_picture: bool, is_json: bool
) -> int:
    """Run FINDING of the campaign in DIR again, compare, and draw the episode."""
    from policyfuzz.campaign.reader import CampaignReader
    from policyfuzz.cli.console import print_json, talk
    from policyfuzz.report.episode_figure import draw_finding
    from policyfuzz.triage.replay import replay

    campaign = CampaignReader(folder)
    found = campaign.finding(finding)
    name = f"{finding}.png" if policy is None else f"{finding}-other-policy.png"
    picture = None if no_picture else png or folder / "findings" / name
    with talk().status("running the episode"):
        result = replay(campaign, found, policy)
        if picture is not None:
            draw_finding(result.target, found, picture)
    if is_json:
        report = {
            "finding": finding,
            "crashes": result.crashes,
            "is_identical": result.is_identical,
            "kind": result.kind,
            "crash_step": result.crash_step,
            "return": result.episode_return,
            "picture": None if picture is None else str(picture),
        }
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
    if picture is not None:
        click.echo(f"picture: {picture}")
    return int(result.crashes)


def _difference(recorded: int, now: int | None) -> str:
    if recorded == now:
        return "the same step as recorded, another return"
    return f"recorded was step {recorded}"
