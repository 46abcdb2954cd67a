"""Sections of a report about what was worked out later, and lies in files beside the campaign."""

from collections.abc import Callable
from typing import TypeVar

from markupsafe import Markup

from policyfuzz.core.errors import CampaignError
from policyfuzz.report.activations_figure import activations_figure
from policyfuzz.report.campaign_report import markup
from policyfuzz.report.campaign_report.view import CampaignView
from policyfuzz.report.coverage_figure import coverage_figure
from policyfuzz.report.figures import drawing
from policyfuzz.store.activations_file import CLASSES, OBSERVATIONS, ActivationMap, activations_of
from policyfuzz.store.coverage_file import Coverage, coverage_of

Record = TypeVar("Record")


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


def _section(read: Callable[[], Record | None], write: Callable[[Record], Markup]) -> Markup | None:
    """What `write` makes of what `read` finds; why it cannot be read, if a file is damaged."""
    try:
        found = read()
    except CampaignError as error:
        return Markup('<p class="warning">{}</p>').format(error.message)
    return None if found is None else write(found)
