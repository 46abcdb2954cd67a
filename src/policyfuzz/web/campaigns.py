"""What pages show of several campaigns: a row for each, and what differs between them."""

from dataclasses import dataclass
from typing import Any

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.campaign_report.side_by_side import Contrast, Group, contrasts
from policyfuzz.report.commands import POLICY_OF_TARGET
from policyfuzz.report.figures.history import Discovery, discovery
from policyfuzz.report.instances import Instance
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress
from policyfuzz.web.words import NOTHING, numbers_of, short, state_text

#: Campaigns of a group whose counts are told.
_COUNTS_TOLD = 6


def campaign_rows(instances: list[tuple[str, Instance | str]]) -> list[dict[str, Any]]:
    """A row for each campaign: its slug, and the campaign or what is wrong with it."""
    rows: list[dict[str, Any]] = []
    for slug, one in instances:
        if isinstance(one, str):
            rows.append({"slug": slug, "problem": short(one, 300), "state": "gone"})
            continue
        failure = FailureProbability.of_campaigns([one.progress], one.is_solvability_tested)
        rows.append(
            {
                "slug": slug,
                "state": one.state,
                "state_text": state_text(one.state, one.stop_reason),
                "host": None if one.host is None else short(one.host, 60),
                "target": short(one.config.target),
                "policy": short(one.config.policy or POLICY_OF_TARGET),
                "strategy": short(one.config.strategy, 40),
                "seed": one.config.seed,
                "texts": numbers_of(one.progress, one.is_solvability_tested, one.seconds_since_finding),
                "failure": failure,
            }
        )
    return rows


@dataclass(frozen=True, slots=True)
class Compared:
    """One of several campaigns side by side."""

    config: CampaignConfig
    progress: Progress
    curve: Discovery

    @classmethod
    def of(cls, campaign: CampaignReader) -> "Compared":
        """What is compared of `campaign`."""
        return cls(campaign.config, campaign.progress(), discovery(campaign))


def contrast_rows(compared: list[Compared]) -> list[dict[str, str]]:
    """What differs between campaigns with other strategies or policies, and whether that is chance."""
    return [
        {
            "first": short(one.first.label),
            "second": short(one.second.label),
            "target": short(one.first.target),
            "episodes": f"{one.episodes:,}",
            "counts": f"{_counts(one.first)} against {_counts(one.second)}",
            "effect": f"{one.effect:.2f}",
            "p_value": NOTHING if one.p_value is None else f"{one.p_value:.3g}",
            "verdict": _contrast_text(one),
        }
        for one in contrasts(compared)
    ]


def _counts(group: Group) -> str:
    return ", ".join(f"{count:,}" for count in group.distinct[:_COUNTS_TOLD])


def _contrast_text(one: Contrast) -> str:
    if one.p_value is None:
        return "too few campaigns of each to tell"
    if not one.is_shown:
        return "no difference shown"
    return "the first finds more" if one.effect > 1 / 2 else "the second finds more"
