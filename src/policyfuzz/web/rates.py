"""What pages show of how likely a failure is: with this policy, and with others beside it."""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.commands import next_commands
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.stored_comparisons import StoredComparison, comparison_names, stored_comparisons
from policyfuzz.report.tally import HEADS
from policyfuzz.store.reader import CampaignReader
from policyfuzz.triage.estimate import Estimate
from policyfuzz.triage.estimate import short as short_share
from policyfuzz.triage.stored_estimate import estimate_or_problem
from policyfuzz.web.catalogue import Stamp
from policyfuzz.web.words import share_text, short


def estimate(campaign: CampaignReader) -> dict[str, Any]:
    """How likely a failure is."""
    progress, (known, problem) = campaign.progress(), estimate_or_problem(campaign)
    failure = FailureProbability.of_campaigns([progress], campaign.is_solvability_tested)
    shown: dict[str, FailureProbability | Estimate] = {"random draws": failure} if failure.draws else {}
    return {
        "sentence": str(failure),
        "probability": failure,
        "low": share_text(failure.low),
        "high": share_text(failure.high),
        "value": share_text(failure.probability),
        "commands": next_commands(campaign),
        "starts": campaign.starts(),
        "stored": None if known is None else [short(line, 400) for line in str(known).splitlines()],
        "problem": short(problem, 400),
        "is_complete": known is not None and known.is_complete,
        "intervals": _intervals(shown | ({} if known is None else {"estimate": known})),
    }


def compared_policies(campaign: CampaignReader) -> dict[str, Any]:
    """What comparisons of this policy with others have shown, as far as they lie beside the campaign."""
    names = comparison_names(campaign.folder)
    found = _comparisons(campaign.folder, campaign.config, Stamp.of(campaign.folder, names))
    return {
        "comparisons": [_comparison_values(one) for one in found],
        "heads": HEADS[1:],
        "commands": next_commands(campaign),
    }


@lru_cache(maxsize=16)
def _comparisons(folder: Path, config: CampaignConfig, _: Stamp) -> list[StoredComparison]:
    """Large files are read again only if one of them has changed."""
    return stored_comparisons(folder, config)


def _comparison_values(stored: StoredComparison) -> dict[str, Any]:
    """One comparison, or why there is none in its file."""
    tally, name = stored.tally, short(stored.name)
    if tally is None:
        return {"file": name, "problem": short(stored.problem, 300)}
    of_a, of_b = tally.failure_probabilities
    same = ", the same policy" if tally.is_same_policy else ""
    return {
        "file": name,
        "problem": "",
        "verdict": tally.verdict_text,
        "policies": {"A": short(tally.a, 300), "B": f"{short(tally.b, 300)}{same}"},
        "rows": [(group, *(f"{count:,}" for count in counts)) for group, *counts in tally.table],
        "numbers": tally.numbers,
        "intervals": _intervals({"A": of_a, "B": of_b}) if of_a.draws else None,
        "campaigns": [short(line, 400) for line in tally.campaigns],
        "warnings": tally.warnings,
    }


def _intervals(shown: Mapping[str, FailureProbability | Estimate]) -> dict[str, Any] | None:
    """The 95 % intervals as places from 0 to 100 on a logarithmic scale, for a picture."""
    if not shown:
        return None
    # down to a decade below what matters: an interval may begin at 0
    least = min(one.low if one.low > 0 else one.high / 10 for one in shown.values())
    floor = max(math.floor(math.log10(max(least, 1e-12))), -12)

    def place(share: float) -> float:
        return round(100 * (1 - math.log10(max(share, 10.0**floor)) / floor), 3) if floor else 100.0

    rows = [
        {
            "name": name,
            "left": place(one.low),
            "width": max(round(place(one.high) - place(one.low), 3), 0.3),
            "at": place(one.probability) if one.probability > 0 else None,
            "text": f"{short_share(one.low)} to {short_share(one.high)}",
        }
        for name, one in shown.items()
    ]
    ticks = [{"at": place(10.0**power), "text": short_share(10.0**power)} for power in range(floor, 1)]
    return {"rows": rows, "ticks": ticks[:: max(1, len(ticks) // 5)]}
