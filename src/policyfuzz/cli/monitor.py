"""policyfuzz monitor: warnings before a crash, fitted to campaigns and tested."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, asks_for_workers, trust
from policyfuzz.cli.process import user_prints_to_stderr

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.store.monitor_record import MonitorRecord

EPILOG = """\
\b
Examples:
  policyfuzz monitor fit campaigns/acasxu-1 campaigns/acasxu-2 -o monitor.npz --picture monitor.png
  policyfuzz monitor fit campaigns/acasxu-1 -o monitor.npz --method logistic --input observations
  policyfuzz monitor test monitor.npz campaigns/acasxu-3"""

_lead = click.option(
    "--lead", default=5, show_default=True, help="Steps before a crash at which an alarm is in time."
)
_episodes = click.option(
    "--episodes", default=400, show_default=True, help="Crashes, near-misses and nominal episodes, at most."
)
_draws = click.option(
    "--draws",
    type=int,
    help="Random episodes, to calibrate the alarm and to look for crashes that no search has touched."
    "  [default: 20 times the samples of the target]",
)
_seed = click.option("-s", "--seed", default=0, show_default=True, help="Seed of everything random.")
_picture = click.option(
    "--picture", metavar="FILE.png", type=FOLDER, help="Draw ROC curves and lead times into a PNG file."
)


@click.group(epilog=EPILOG)
def command() -> None:
    """Fit a monitor that warns before a crash, and say what it is worth."""


@command.command("fit")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@click.option("-o", "--out", metavar="FILE", required=True, type=FOLDER, help="The .npz file to write.")
@click.option(
    "--method", help="What to store: mean-shift, logistic, boosting or density.  [default: the best]"
)
@click.option(
    "--input", "given", help="What it looks at: activations or observations.  [default: the better]"
)
@_lead
@click.option("--window", default=20, show_default=True, help="Steps before a crash that count as abnormal.")
@click.option(
    "--false-alarms",
    "rate",
    default=0.01,
    show_default=True,
    help="Wanted per nominal episode, at most.",
)
@_episodes
@_draws
@_seed
@_picture
@asks_for_workers
@trust
@as_json
def fit(
    folders: tuple[Path, ...],
    out: Path,
    method: str | None,
    given: str | None,
    lead: int,
    window: int,
    rate: float,
    episodes: int,
    draws: int | None,
    seed: int,
    picture: Path | None,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Fit a monitor to the crashes of campaigns DIR... of one target and policy, and store it in FILE.

    All methods are fitted to activations and to observations, and tested on lineages that they have
    not seen. The one that holds up best inside the training part is stored. What it is worth is written
    beside it, to FILE.fit.json.
    """
    from policyfuzz.analysis.monitor_study import MonitorSettings, fit_monitor_to
    from policyfuzz.api.monitor import save_fitted, subject_of
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.report.png_files import check_png

    settings = MonitorSettings(method, given, lead, window, rate, episodes, draws, seed)
    check_png(picture)
    with showing_steps() as steps, user_prints_to_stderr():
        steps.say("loading")
        target, campaigns = subject_of(folders, trust, executor)
        steps.say(f"running {target.name}")
        run = executor.make_runner(target)
        fitted = fit_monitor_to(target, campaigns, run, settings, steps.count)
        save_fitted(fitted.monitor, fitted.record, out)
    return _shown(fitted.record, picture, is_json)


@command.command("test")
@click.argument("file", metavar="FILE", type=FOLDER)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@_lead
@_episodes
@_draws
@_seed
@_picture
@asks_for_workers
@trust
@as_json
def test(
    file: Path,
    folders: tuple[Path, ...],
    lead: int,
    episodes: int,
    draws: int | None,
    seed: int,
    picture: Path | None,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Test the monitor in FILE on other campaigns DIR... of its target and policy, at its own threshold.

    Lineages that it was fitted to are left out. The result is also written to FILE.test.json.
    """
    from policyfuzz.analysis.monitor_study import MonitorSettings, evaluate_monitor_on
    from policyfuzz.api.monitor import subject_of
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.monitors.monitor import Monitor
    from policyfuzz.report.png_files import check_png
    from policyfuzz.store.monitor_record import record_file, write_monitor_record

    settings = MonitorSettings(lead=lead, episodes=episodes, draws=draws, seed=seed)
    check_png(picture)
    monitor = Monitor.load(file)
    with showing_steps() as steps, user_prints_to_stderr():
        steps.say("loading")
        target, campaigns = subject_of(folders, trust, executor)
        steps.say(f"running {target.name}")
        run = executor.make_runner(target)
        record = evaluate_monitor_on(monitor, target, campaigns, run, settings, steps.count)
    write_monitor_record(record_file(file, "test"), record)
    return _shown(record, picture, is_json)


def _shown(record: "MonitorRecord", picture: Path | None, is_json: bool) -> int:
    from policyfuzz.api.monitor import draw_monitor
    from policyfuzz.cli.console import print_json
    from policyfuzz.report.monitor_text import monitor_lines
    from policyfuzz.store.plain_records import to_plain

    if picture is not None:
        draw_monitor(record, picture)
    if is_json:
        values: dict[str, Any] = to_plain(record)
        print_json(values)
    else:
        for line in monitor_lines(record):
            echo(line)
    return 0
