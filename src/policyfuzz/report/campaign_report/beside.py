"""Sections of a report about what was worked out later, and lies in files beside the campaign."""

from collections.abc import Callable
from typing import Any, TypeVar

from markupsafe import Markup

from policyfuzz.core.errors import CampaignError
from policyfuzz.repairing.verdict import Verdict
from policyfuzz.repairing.verdict_file import FILE_NAME as VERDICT_NAME
from policyfuzz.repairing.verdict_file import read_verdict
from policyfuzz.report.activations_figure import activations_figure
from policyfuzz.report.campaign_report import markup
from policyfuzz.report.campaign_report.view import CampaignView
from policyfuzz.report.coverage_figure import coverage_figure
from policyfuzz.report.figures import drawing
from policyfuzz.report.monitor_figure import monitor_figure
from policyfuzz.report.monitor_text import monitor_lines
from policyfuzz.report.stored_comparisons import StoredComparison, stored_comparisons
from policyfuzz.report.tally import HEADS
from policyfuzz.store.activations_file import CLASSES, OBSERVATIONS, ActivationMap, activations_of
from policyfuzz.store.coverage_file import Coverage, coverage_of
from policyfuzz.store.monitor_record import MonitorRecord, read_monitor_record, record_file

Record = TypeVar("Record")

#: A monitor of this name in the folder of a campaign is shown in its report.
MONITOR_NAME = "monitor.npz"


def coverage(view: CampaignView) -> Markup | None:
    """Which states and behaviours the campaign covered, and those it was compared with."""
    return _section(lambda: coverage_of(view.campaign), _coverage)


def _coverage(found: Coverage) -> Markup:
    words = ", ".join(f"{one.name} {found.share(one):.0%}" for one in found.all)
    return markup.render(
        "coverage.html",
        found=found,
        figure=markup.wide_photograph(
            drawing.png_of(lambda: coverage_figure(found)),
            f"States that each campaign visited. Reference behaviours reached: {words}.",
        ),
    )


def activations(view: CampaignView) -> Markup | None:
    """How apart crashes are from other episodes inside the policy."""
    return _section(lambda: activations_of(view.campaign), _activations)


def _activations(found: ActivationMap) -> Markup:
    counts = ", ".join(f"{found.count(name)} {name}" for name in CLASSES)
    return markup.render(
        "activations.html",
        found=found,
        counts=counts,
        only_observations=found.of == OBSERVATIONS,
        figure=markup.wide_photograph(
            drawing.png_of(lambda: activations_figure(found)), f"Episodes by their {found.of}: {counts}."
        ),
    )


def monitor(view: CampaignView) -> Markup | None:
    """What a monitor is worth that was fitted to the campaign, and stored in its folder."""
    return _section(lambda: _monitor_record(view), _monitor)


def _monitor_record(view: CampaignView) -> MonitorRecord | None:
    """Of the last test of DIR/monitor.npz, or of its fit, if it is about the same target."""
    for what in ("test", "fit"):
        path = record_file(view.campaign.folder / MONITOR_NAME, what)
        if path.is_file():
            record = read_monitor_record(path)
            return record if record.target == view.campaign.config.target else None
    return None


def _monitor(record: MonitorRecord) -> Markup:
    chosen = f"{record.chosen_method} on {record.chosen_input}"
    return markup.render(
        "monitor.html",
        lines="\n".join(monitor_lines(record)),
        figure=markup.wide_photograph(
            drawing.png_of(lambda: monitor_figure(record)),
            f"What a monitor is worth, {chosen}: curves of detected crashes against false alarms, and how"
            " long before a crash it warns. The numbers stand in the text.",
        ),
    )


def policies(view: CampaignView) -> Markup | None:
    """What comparisons with other policies have shown."""
    found = stored_comparisons(view.campaign.folder, view.config)
    return (
        markup.render("policies.html", found=list(map(_compared, found)), heads=HEADS[1:]) if found else None
    )


def _compared(stored: StoredComparison) -> dict[str, Any]:
    tally = stored.tally
    of_both = () if tally is None or not tally.pool.counted else tally.failure_probabilities
    marks = [
        (name, markup.interval_mark(one.low, one.probability, one.high))
        for name, one in zip("AB", of_both, strict=False)
    ]
    return {"name": stored.name, "problem": stored.problem, "tally": tally, "marks": marks}


def repair(view: CampaignView) -> Markup | None:
    """What tests have shown of a repair that began with the campaign."""
    return _section(lambda: _verdict(view), _repair)


def _verdict(view: CampaignView) -> Verdict | None:
    path = view.campaign.folder / VERDICT_NAME
    found = read_verdict(path) if path.is_file() else None
    return found if found is not None and found.target == view.campaign.config.target else None


def _repair(verdict: Verdict) -> Markup:
    return markup.render("repair.html", verdict=verdict, lines=verdict.all_lines)


def _section(read: Callable[[], Record | None], write: Callable[[Record], Markup]) -> Markup | None:
    """What `write` makes of what `read` finds; why it cannot be read, if a file is damaged."""
    try:
        found = read()
    except CampaignError as error:
        return Markup('<p class="warning">{}</p>').format(error.message)
    return None if found is None else write(found)
