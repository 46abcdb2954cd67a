"""What the totals of a campaign show: discoveries over its episodes, and where its time went."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.core.intervals import exact_interval
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress

#: Points of a curve at most; a screen shows no more.
_MOST_POINTS = 400
#: Batches that are looked up with one question.
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found over the episodes of a campaign, and what random draws alone would have found.

    All curves have one value for each of `episodes`. What random draws would have found is the rate of the
    campaign's own random draws times the episodes, so it counts every crash, however alike they are.
    """

    episodes: tuple[int, ...]
    seconds: tuple[float, ...]
    findings: tuple[int, ...]  #: confirmed
    distinct: tuple[int, ...]
    lineages: tuple[int, ...]
    random: tuple[float, ...]  #: expected crashes; empty if nothing was drawn at random
    random_low: tuple[float, ...]  #: 95 % interval
    random_high: tuple[float, ...]
    samples: int  #: random draws that the rate comes from
    sample_crashes: int  #: of these


def discovery(campaign: CampaignReader, most: int = _MOST_POINTS) -> Discovery:
    """The curves of `campaign` at up to `most` of its batches, evenly spread."""
    last = campaign.last_number("batches") or 0
    chosen = (
        np.unique(np.linspace(1, last, min(last, most)).round().astype(np.int64)).tolist() if last else []
    )
    rows = [
        row
        for start in range(0, len(chosen), _AT_ONCE)
        for row in _batches(campaign, chosen[start : start + _AT_ONCE])
    ]
    now = campaign.progress()
    episodes = tuple(int(row["executions"]) for row in rows)
    low, high = exact_interval(now.sample_crashes, now.samples)
    rates = (now.sample_crash_rate, low, high) if now.samples else ()
    expected = [tuple(rate * one for one in episodes) for rate in rates] or [(), (), ()]
    return Discovery(
        episodes=episodes,
        seconds=tuple(float(row["seconds"]) for row in rows),
        findings=tuple(int(row["findings"]) for row in rows),
        distinct=tuple(int(row["distinct_findings"]) for row in rows),
        lineages=tuple(int(row["lineages"]) for row in rows),
        random=expected[0],
        random_low=expected[1],
        random_high=expected[2],
        samples=now.samples,
        sample_crashes=now.sample_crashes,
    )


def _batches(campaign: CampaignReader, numbers: list[int]) -> list[dict[str, int | float]]:
    return list(campaign.select("batches", f"id IN ({', '.join('?' * len(numbers))})", numbers))


@dataclass(frozen=True, slots=True)
class ActivityTimes:
    """Where the time of a campaign went."""

    activities: tuple[str, ...]
    seconds: tuple[float, ...]  #: of each; they add up to the campaign's time


#: What a reader calls the activities of a campaign.
_WORDS = {
    "simulate": "running episodes",
    "validate": "drawing valid inputs",
    "density": "density",
    "search": "search",
    "store": "campaign file",
}


def time_split(progress: Progress) -> ActivityTimes:
    """Of a campaign with these totals; what no activity claims is "other"."""
    parts = {_WORDS[name]: max(seconds, 0.0) for name, seconds in progress.time_split.items()}
    parts["other"] = max(progress.seconds - sum(parts.values()), 0.0)
    known = {name: seconds for name, seconds in parts.items() if seconds > 0}
    return ActivityTimes(tuple(known), tuple(known.values()))
