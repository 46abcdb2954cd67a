"""The report for programs: everything that it says, as plain values that JSON knows."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from policyfuzz.report.campaign_report import side_by_side, words
from policyfuzz.report.campaign_report.view import CampaignView
from policyfuzz.report.commands import fuzz_command, replay_command
from policyfuzz.report.tables import totals
from policyfuzz.store.records import Finding

#: Raised when a name changes its meaning or goes.
FORMAT = 1


def report_values(views: Sequence[CampaignView]) -> dict[str, Any]:
    """Of all campaigns; numbers may be NaN."""
    return {
        "format": FORMAT,
        "campaigns": [_campaign_values(view) for view in views],
        "contrasts": [
            {
                "first": one.first.label,
                "second": one.second.label,
                "episodes": one.episodes,
                "distinct_findings": [list(one.first.distinct), list(one.second.distinct)],
                "effect": one.effect,
                "p_value": one.p_value,
            }
            for one in side_by_side.contrasts(views)
        ],
        "left_out_of_contrasts": [
            place for place, one in enumerate(views) if not side_by_side.is_independent(one)
        ],
    }


def _campaign_values(view: CampaignView) -> dict[str, Any]:
    verdict = words.verdict(view)
    return {
        "verdict": verdict.level,
        "sentence": verdict.sentence,
        "is_running": view.is_running,
        "totals": totals(view.campaign, view.progress, view.stop_reason),
        "estimate": None if view.estimate is None else asdict(view.estimate),
        "modes_are_stable": None if view.triage.modes is None else view.triage.modes.is_stable,
        "modes": [
            {
                **{name: value for name, value in asdict(one.mode).items() if name != "members"},
                "findings": len(one.mode.members),
                **one.counts,
                "avoidance": None if one.avoidance is None else asdict(one.avoidance),
                "replay": replay_command(view.campaign, f"M{one.mode.number}"),
            }
            for one in view.modes
        ],
        "examples": [_finding_values(view, one) for one in view.examples],
        "flaky": [one.id for one in view.flaky],
        "lucky": [one.id for one in view.lucky],
        "unsolved": [one.id for one in view.unsolved],
        "errors": [
            {"kind": one.kind, "summary": one.summary, "count": one.count, "first": one.first.id}
            for one in view.errors
        ],
        "discovery": asdict(view.curve),
        "command": fuzz_command(view.campaign),
        "about": {name: value for name, value in view.campaign.about.items() if name != "config"},
    }


def _finding_values(view: CampaignView, finding: Finding) -> dict[str, Any]:
    return {
        "finding": finding.id,
        "kind": finding.kind,
        "crash_step": finding.crash_step,
        "return": finding.episode_return,
        "margin": finding.margin,
        "replay": replay_command(view.campaign, finding.id),
    }
