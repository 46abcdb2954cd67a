"""policyfuzz replay: run a finding again, draw it and film it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import DURATION, FOLDER, as_json, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands
from policyfuzz.core.errors import CannotRender, TargetCodeError, UsageError

if TYPE_CHECKING:
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.triage_records import Avoidance
    from policyfuzz.triage.replay import Replay

EPILOG = """\
\b
Examples:
  policyfuzz replay campaigns/acasxu-1 1
  policyfuzz replay campaigns/acasxu-1 M1    the finding that shows failure mode M1 best
  policyfuzz replay campaigns/coopnavi-1 3 --film crash.gif
  policyfuzz replay campaigns/acasxu-1 1 --policy acasxu:repaired/   does the new policy still crash?
  policyfuzz replay campaigns/mine-1 1 --target my_target.py:make   of a target in your own code
  policyfuzz replay campaigns/mine-1 2 --error   run an episode again that could not be run

\b
Exit code 1 if the policy crashes, 0 if it does not. With --error, 3 if the error happens again."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("finding", metavar="MODE|FINDING")
@click.option("--target", metavar="NAME", help="Use this target instead of the one that the campaign names.")
@click.option("--policy", metavar="URI", help="Use this policy instead of the one of the campaign.")
@click.option("--png", type=FOLDER, help="Picture to write.  [default: DIR/findings/N.png]")
@click.option("--film", type=FOLDER, help="Film to write, .mp4 or .gif.  [default: DIR/findings/N.mp4]")
@trust
@click.option(
    "--error", "is_error", is_flag=True, help="FINDING is the number of an error, see show --errors."
)
@click.option(
    "--timeout", type=DURATION, help="Time limit for an error that hangs or kills its worker.  [default: 5m]"
)
@click.option("--no-picture", is_flag=True, help="Neither draw nor film.")
@as_json
def command(
    folder: Path,
    finding: str,
    target: str | None,
    policy: str | None,
    png: Path | None,
    film: Path | None,
    trust: bool,
    is_error: bool,
    timeout: float | None,
    no_picture: bool,
    is_json: bool,
) -> int:
    """Run FINDING of the campaign in DIR again, compare, draw the episode, and film it if it can be filmed.

    If triage has found a witness, picture and film show it beside the policy, with the point of no return.

    Code that only the campaign names (a target, environment or policy that is not built in) is not run: see
    what it names, then give --trust, or name it yourself with --target and --policy.

    An .mp4 needs the extra film; without it the film is a .gif.
    """
    from policyfuzz.cli.console import print_json, talk
    from policyfuzz.report.film import check_name
    from policyfuzz.report.mode_summaries import error_number, finding_named
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.triage_file import triage_of
    from policyfuzz.triage.replay import has_other_code, replay

    if film is not None:
        check_name(film)
    if no_picture and (png or film):
        raise UsageError("--no-picture and a name for a picture or film exclude each other")
    campaign = CampaignReader(folder)
    if is_error:
        return _replay_error(campaign, error_number(finding), target, policy, trust, timeout, is_json)
    triage = triage_of(campaign)
    found = finding_named(campaign, triage, finding)
    # a witness departs from the policy of the campaign, and says nothing about another one
    avoidance = triage.of(found.id).avoidance if policy is None and target is None else None
    with talk().status("running the episode") as status:
        with user_prints_to_stderr():
            result = replay(campaign, found, policy, trust, target)
        if has_other_code(campaign, result.target):
            echo("note: the files that the target is written in have changed since", err=True)
        name = f"{found.id}" if policy is None else f"{found.id}-other-policy"
        written: dict[str, Path] = {}
        try:
            if not no_picture:
                with user_prints_to_stderr():
                    _show(result, campaign, name, png, film, avoidance, written, status.update)
        finally:  # the verdict is printed even if drawing fails
            status.stop()
            with verdict_stands():
                if is_json:
                    print_json(_as_dictionary(result) | {what: str(path) for what, path in written.items()})
                else:
                    _print(result, policy, written)
    return int(result.crashes)


def _replay_error(
    campaign: "CampaignReader",
    number: int,
    target: str | None,
    policy: str | None,
    trust: bool,
    timeout: float | None,
    is_json: bool,
) -> int:
    """Run an episode again that could not be run, and print how it ends now."""
    from policyfuzz.cli.console import print_json
    from policyfuzz.execution.executor import TIMEOUT
    from policyfuzz.triage.replay import replay_failed

    failed = campaign.failed_episode(number)
    with user_prints_to_stderr():
        error = replay_failed(campaign, failed, policy, trust, timeout or TIMEOUT, target)
    with verdict_stands():
        if is_json:
            kind, text = (error.kind, error.text) if error else (None, None)
            print_json({"error": number, "fails": error is not None, "kind": kind, "text": text})
        elif error is None:
            echo(f"error {number} does not happen any more")
        else:
            was = failed.kind
            again = "happens again" if error.kind == was else f"was {was}, and is {error.kind} now,"
            echo(f"error {number} {again} at step {error.step}:\n{error.text}")
    return 0 if error is None else TargetCodeError.exit_code


def _as_dictionary(result: "Replay") -> dict[str, Any]:
    return {
        "finding": result.finding.id,
        "crashes": result.crashes,
        "is_identical": result.is_identical,
        "kind": result.kind,
        "crash_step": result.crash_step,
        "return": result.episode_return,
    }


def _print(result: "Replay", policy: str | None, written: dict[str, Path]) -> None:
    number, recorded = result.finding.id, result.finding.crash_step
    if result.crashes:
        same = "exactly as recorded" if result.is_identical else _difference(recorded, result.crash_step)
        echo(f"finding {number} crashes: {result.kind} at step {result.crash_step}, {same}")
    else:
        whose = "" if policy is None else f" with {policy}"
        echo(f"finding {number} does not crash any more{whose}: return {result.episode_return:.6g}")
    for what, path in written.items():
        echo(f"{what}: {path}")


def _show(
    result: "Replay",
    campaign: "CampaignReader",
    name: str,
    png: Path | None,
    film: Path | None,
    avoidance: "Avoidance | None",
    written: dict[str, Path],
    say: Callable[[str], None],
) -> None:
    """Draw and film as `name` in the folder of `campaign`; adds the files to `written`, by what they are.

    What `avoidance` knows is shown beside the policy.
    """
    # it would complain to a user without a home, and works without one
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from policyfuzz.report.episode_figure import draw_replay
    from policyfuzz.report.film import best_format, can_film, film_replay
    from policyfuzz.store.database import picture_file
    from policyfuzz.triage.replay import is_safe_to_run

    say("drawing")
    picture = png or picture_file(campaign.folder, f"{name}.png")
    draw_replay(result, picture, avoidance, is_compared=is_safe_to_run(campaign))
    written["picture"] = picture
    if can_film(result.target):
        say("filming")
        path = film or picture_file(campaign.folder, f"{name}{best_format()}")
        try:
            film_replay(result, path, avoidance)
            written["film"] = path
        except CannotRender as error:
            if film is not None:
                raise
            echo(f"not filmed: {error}", err=True)
    elif film is not None:
        raise UsageError(f"target {result.target.name} cannot be filmed", "its simulator has no render(row)")


def _difference(recorded: int, now: int | None) -> str:
    if recorded == now:
        return "the same step as recorded, another return"
    return f"recorded was step {recorded}"
