"""The sections of a report on one campaign, in order: a title, and what writes it or has nothing to say.

Each is a function from the view of a campaign to HTML. A section about something that is stored beside the
campaign reads it there, by `view.campaign.folder`, and returns None if it is not there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from policyfuzz.report import commands
from policyfuzz.report.campaign_report import beside, markup, words
from policyfuzz.report.campaign_report.view import CampaignView, Film
from policyfuzz.report.figures import drawing
from policyfuzz.report.figures.distributions import histograms
from policyfuzz.report.figures.history import time_split
from policyfuzz.report.figures.maps import behaviour_map, input_map
from policyfuzz.report.input_text import value_text
from policyfuzz.report.outside import own_crashes_of, own_range_text
from policyfuzz.report.quantities import format_rate, format_seconds
from policyfuzz.report.statistics import percentage
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_records import Boundary
from policyfuzz.triage.stored_estimate import estimate_path

#: Dimensions of an input that are shown.
_MOST_DIMENSIONS = 16
#: Changes that avoid a crash that are shown.
_MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report on a campaign."""

    title: str
    write: Callable[[CampaignView], Markup | None]  #: None: there is nothing to say, and no title
    shows_films: bool = False  #: it is written again when the films are made


def failure_probability(view: CampaignView) -> Markup | None:
    """How likely a failure is: the estimate beside the campaign, or the rate of its random draws."""
    source = view.estimate or (view.probability if view.probability.draws else None)
    return markup.render(
        "probability.html",
        view=view,
        estimate_lines=[] if view.estimate is None else str(view.estimate).splitlines(),
        command=commands.estimate_command(view.campaign, str(estimate_path(view.campaign.folder))),
        own=own_crashes_of(view.campaign),
        mark=None if source is None else markup.interval_mark(source.low, source.probability, source.high),
    )


def failure_modes(view: CampaignView) -> Markup | None:
    """Every failure mode with its film; findings that stand for all where modes are not known."""
    if not view.progress.findings:
        return None
    return markup.render(
        "modes.html",
        view=view,
        modes=[_mode_values(view, place) for place in range(len(view.modes))],
        examples=[_finding_values(view, one) for one in view.examples],
        newer=0 if view.triage.modes is None else view.progress.findings - view.triage.modes.findings,
        triage=commands.triage_command(view.campaign),
        code=commands.code_of(view.campaign),
    )


def _mode_values(view: CampaignView, place: int) -> dict[str, Any]:
    summary = view.modes[place]
    return _finding_values(view, summary.representative) | {
        "summary": summary,
        "mode": summary.mode,
        "command": commands.replay_command(view.campaign, f"M{summary.mode.number}"),
    }


def _finding_values(view: CampaignView, finding: Finding) -> dict[str, Any]:
    known = view.triage.of(finding.id)
    return {
        "finding": finding,
        "film": view.films.get(finding.id, Film()),
        "avoidance": known.avoidance,
        "boundary": known.boundary,
        "boundary_rows": _boundary_rows(view, known.boundary),
        "changes": () if known.boundary is None else known.boundary.changes[:_MOST_CHANGES],
        "inputs": _input_rows(view, finding),
        "more_inputs": max(len(view.campaign.dimensions) - _MOST_DIMENSIONS, 0),
        "command": commands.replay_command(view.campaign, finding.id),
    }


def _input_rows(view: CampaignView, finding: Finding) -> list[dict[str, str]]:
    return [
        {
            "name": str(dimension["name"]),
            "value": value_text(dimension, value, ".6g"),
            "unit": str(dimension["unit"]),
            "own": own_range_text(view.campaign, str(dimension["name"]), value),
        }
        for dimension, value in zip(view.campaign.dimensions, finding.input.tolist(), strict=True)
    ][:_MOST_DIMENSIONS]


def _boundary_rows(view: CampaignView, boundary: Boundary | None) -> list[dict[str, str]]:
    """Dimensions in which both sides of a boundary differ, as far as the file makes sense."""
    dimensions = view.campaign.dimensions
    if boundary is None or not len(boundary.passing) == len(boundary.crashing) == len(dimensions):
        return []
    return [
        {
            "name": str(dimension["name"]),
            "crashing": _side_text(dimension, crashing),
            "passing": _side_text(dimension, passing),
            "unit": str(dimension["unit"]),
        }
        for dimension, crashing, passing in zip(dimensions, boundary.crashing, boundary.passing, strict=True)
        if crashing != passing
    ][:_MOST_DIMENSIONS]


def _side_text(dimension: dict[str, Any], value: float) -> str:
    """A value of a file that a stranger may have written: it may be no choice at all."""
    is_choice = bool(dimension.get("options")) or dimension["kind"] in ("integer", "seed")
    if is_choice and not (math.isfinite(value) and dimension["low"] <= value <= dimension["high"]):
        return f"{value:.6g}"
    return value_text(dimension, value, ".6g")


def discovery(view: CampaignView) -> Markup | None:
    """What was found over the episodes, against random draws."""
    if not view.curve.episodes:
        return None
    return markup.render(
        "discovery.html",
        view=view,
        figure=markup.wide_picture(
            drawing.svg_of(lambda: drawing.draw_discovery(view.curve)), _discovery_words(view)
        ),
    )


def _discovery_words(view: CampaignView) -> str:
    now, curve = view.progress, view.curve
    said = (
        f"After {now.executions:,} episodes: {now.findings:,} findings, {now.distinct_findings:,} distinct,"
        f" {now.lineages:,} lineages."
    )
    if not curve.random:
        return said
    expected = f"{curve.random[-1]:,.1f} ({curve.random_low[-1]:,.1f} to {curve.random_high[-1]:,.1f})"
    return f"{said} Random draws alone would have given {expected} crashes."


def maps(view: CampaignView) -> Markup | None:
    """Where the findings lie among inputs and behaviours, and how they are spread."""
    sample = view.sample
    if not len(sample.numbers):
        return None
    inputs, behaviours, spread = input_map(view.campaign, sample), behaviour_map(sample), histograms(sample)
    pictures = [
        markup.picture(
            drawing.svg_of(lambda one=one: drawing.draw_map(one)),  # type: ignore[misc]
            f"Map of {one.what}: {len(one.numbers):,} of {one.findings:,} findings, by failure mode.",
        )
        for one in (inputs, behaviours)
        if one is not None
    ]
    return markup.render(
        "maps.html",
        inputs=inputs,
        shown=len(sample.numbers),
        total=max(sample.total, len(sample.numbers)),
        pictures=pictures,
        spread=markup.wide_picture(
            drawing.svg_of(lambda: drawing.draw_histograms(spread)),
            f"Histograms of the findings: {', '.join(one.label for one in spread)}.",
        )
        if spread
        else None,
    )


def health(view: CampaignView) -> Markup | None:
    """What stands against the findings: flaky and rejected ones, shown and never hidden."""
    now, of_inputs = view.progress, "valid and solvable" if view.probability.of_solvable else "valid"
    rejected = [
        ("Flaky", now.flaky, "crashed once, and ended otherwise when they were run again", view.flaky),
        ("Lucky", now.lucky, "crash with too few other case seeds to count as distinct", view.lucky),
        ("Unsolved", now.unsolved, "no reference policy survives them either", view.unsolved),
        ("Unconfirmed", now.unconfirmed, "have not been run a second time yet", ()),
        ("On trial", now.in_trial, "are being run with other case seeds", ()),
        ("Repeats", now.repeats, "crashed exactly like a known finding, and are counted there", ()),
    ]
    return markup.render(
        "health.html",
        view=view,
        state=words.state_text(view),
        inputs=f"{percentage(now.valid_rate)} of {now.drawn:,} inputs drawn were {of_inputs}"
        if now.drawn
        else "",
        rejected=[one for one in rejected if one[1]],
        absent=[name.lower() for name, count, _, _ in rejected[:3] if not count],
        references=view.campaign.config.references.splitlines(),
    )


def errors(view: CampaignView) -> Markup | None:
    """Episodes that could not be run to their end."""
    return markup.render("errors.html", view=view, now=view.progress)


def time(view: CampaignView) -> Markup | None:
    """Where the time of the campaign went."""
    split = time_split(view.progress)
    if not split.seconds:
        return None
    now, total = view.progress, sum(split.seconds)
    said = ", ".join(
        f"{name} {seconds / total:.0%}" for name, seconds in zip(split.activities, split.seconds, strict=True)
    )
    return markup.render(
        "time.html",
        now=now,
        seconds=format_seconds(now.seconds),
        rate=format_rate(now.executions_per_second),
        figure=markup.wide_picture(drawing.svg_of(lambda: drawing.draw_time_split(split)), f"{said}."),
    )


#: In the order of the report. A further section stands where a reader looks for it, and is one line here.
SECTIONS = (
    Section("How likely is a failure?", failure_probability),
    Section("Failure modes", failure_modes, shows_films=True),
    Section("Discovery", discovery),
    Section("Map of inputs and behaviours", maps),
    Section("Coverage", beside.coverage),
    Section("Inside the policy", beside.activations),
    Section("A monitor that warns", beside.monitor),
    Section("Against other policies", beside.policies),
    Section("Repair", beside.repair),
    Section("Health, flaky and rejected findings", health),
    Section("Errors and hangs", errors),
    Section("Where the time went", time),
)


def reproduce(view: CampaignView) -> Markup:
    """Versions, hashes, and the command lines that lead to the same campaign and to this report."""
    config, about = view.campaign.config, view.campaign.about
    versions = {
        name.removeprefix("version."): value for name, value in about.items() if name.startswith("version.")
    }
    return markup.render(
        "reproduce.html",
        view=view,
        policy=words.policy_text(view),
        config=config,
        versions=versions | ({"machine": about["machine"]} if "machine" in about else {}),
        instance=about.get("instance", ""),
        fuzz=commands.fuzz_command(view.campaign),
        is_exact=view.stop_reason in ("max-execs", "exhausted", "search-ended"),
        code=commands.code_of(view.campaign),
        folder=Path(view.name).absolute(),
    )
