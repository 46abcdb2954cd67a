"""Fits and tests runtime monitors from Python."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyfuzz.analysis.monitor_study import MonitorSettings, evaluate_monitor_on, fit_monitor_to
from policyfuzz.api.results import Result
from policyfuzz.api.shown import Shown
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import ExecutorChoice, choose_executor
from policyfuzz.monitors.monitor import Monitor
from policyfuzz.report.monitor_figure import monitor_figure
from policyfuzz.report.monitor_text import monitor_lines
from policyfuzz.report.png_files import write_png
from policyfuzz.store.monitor_record import MonitorRecord, record_file, write_monitor_record
from policyfuzz.store.reader import CampaignReader
from policyfuzz.triage.replay import check_safe_to_run, check_same_code, target_of

#: What a campaign may be given as.
Campaign = Result | str | os.PathLike[str]
_DOTS_PER_INCH = 120


@dataclass(frozen=True, slots=True, repr=False)
class MonitorReport:
    """What fitting or testing a monitor has shown."""

    record: MonitorRecord

    def picture(self, path: str | os.PathLike[str]) -> Shown:
        """Draw ROC curves and lead times into the PNG file `path`."""
        draw_monitor(self.record, Path(path))
        return Shown(Path(path))

    def __repr__(self) -> str:
        return "\n".join(monitor_lines(self.record))


@dataclass(frozen=True, slots=True, repr=False)
class FittedMonitor(MonitorReport):
    """A monitor, and what it is worth."""

    monitor: Monitor

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the monitor into the .npz file `path`, and what it is worth beside it."""
        return save_fitted(self.monitor, self.record, Path(path))


def fit_monitor(
    results: Campaign | Sequence[Campaign],
    *,
    method: str | None = None,
    input: str | None = None,  # noqa: A002 - as --input on the command line
    lead: int = 5,
    window: int = 20,
    false_alarms: float = 0.01,
    episodes: int = 400,
    draws: int | None = None,
    seed: int = 0,
    trust: bool = False,
    workers: int | None = None,
) -> FittedMonitor:
    """Fit a monitor to the crashes of one or several campaigns of the same target and policy.

    It warns `lead` steps before a crash, with at most so many `false_alarms` per nominal episode. All methods
    are fitted to activations and to observations; `method` and `input` say which is kept, by default the one
    that holds up best on held-out lineages inside the training part. See `MonitorSettings`.
    """
    settings = MonitorSettings(method, input, lead, window, false_alarms, episodes, draws, seed)
    choice = choose_executor(None, workers)
    target, campaigns = subject_of(_listed(results), trust, choice)
    fitted = fit_monitor_to(target, campaigns, choice.make_runner(target), settings)
    return FittedMonitor(fitted.record, fitted.monitor)


def evaluate_monitor(
    monitor: Monitor,
    results: Campaign | Sequence[Campaign],
    *,
    lead: int = 5,
    episodes: int = 400,
    draws: int | None = None,
    seed: int = 0,
    trust: bool = False,
    workers: int | None = None,
) -> MonitorReport:
    """Test a `monitor` on other campaigns of its target and policy, with the threshold that it has.

    Lineages that it was fitted to are left out.
    """
    settings = MonitorSettings(lead=lead, episodes=episodes, draws=draws, seed=seed)
    choice = choose_executor(None, workers)
    target, campaigns = subject_of(_listed(results), trust, choice)
    return MonitorReport(
        evaluate_monitor_on(monitor, target, campaigns, choice.make_runner(target), settings)
    )


def subject_of(
    results: Sequence[Campaign], trust: bool, choice: ExecutorChoice
) -> tuple[Target, list[CampaignReader]]:
    """The target that all `results` are of, and readers of their campaigns."""
    if not results:
        raise UsageError("no campaign was given", "name one folder or several")
    campaigns = [CampaignReader(one.folder if isinstance(one, Result) else Path(one)) for one in results]
    first = results[0]
    given = first.target if isinstance(first, Result) else None
    target = given or target_of(campaigns[0], None, trust, None, choice)
    for one in campaigns:
        config = one.config
        if config.target != campaigns[0].config.target or config.policy_sha256 != target.policy_sha256:
            raise UsageError(
                f"{one.folder} is a campaign of {config.target}, with another policy or target than"
                f" {campaigns[0].folder}",
                "give campaigns of the same target and policy",
            )
        check_safe_to_run(one)
        check_same_code(one, target)
    return target, campaigns


def save_fitted(monitor: Monitor, record: MonitorRecord, path: Path) -> Path:
    """Write `monitor` into the file `path`, and its `record` beside it."""
    file = monitor.save(path)
    record_file(file, "test").unlink(missing_ok=True)  # it was about an earlier monitor
    write_monitor_record(record_file(file, "fit"), record)
    return file


def draw_monitor(record: MonitorRecord, path: Path) -> None:
    """Draw `record` into the PNG file `path`."""
    write_png(lambda: monitor_figure(record), path, _DOTS_PER_INCH)


def _listed(results: Any) -> list[Any]:
    return [results] if isinstance(results, str | os.PathLike | Result) else list(results)
