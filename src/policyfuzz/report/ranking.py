"""The order in which findings are listed: as found, the worst first, or the most different first."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from policyfuzz.report.unit_inputs import unit_columns
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_file import triage_of

#: Order to the columns that findings are sorted by; what is missing comes last.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "found": ("id",),
    "severity": ("margin", "return", "crash_step"),
    "return": ("return", "crash_step"),
    "time": ("crash_step", "return"),
}
#: All orders.
ORDERS = (*_COLUMNS, "distance")
#: Findings among which the most different ones are looked for: the worst ones.
_MOST_COMPARED = 5000
#: Distinct findings, the first ones, from which a summary is chosen; and how many of them are compared.
_LOOKED_AT, _CANDIDATES = 20_000, 200


def ranked(
    campaign: CampaignReader, order: str, distinct_only: bool, most: int | None, skip: int
) -> Iterator[Finding]:
    """Findings in this `order`, at most `most` after the first `skip`.

    `severity` lists first what went farthest beyond the threshold of the oracle, and goes by the return where
    the oracle does not say; `return` the lowest return, `time` the earliest crash. `distance` begins with the
    worst finding, and each next one is the farthest from all before it. Findings that need a lucky case seed
    come after all others.
    """
    where = "is_distinct" if distinct_only else "1"
    if order == "distance":
        worst = campaign.ranking(where, _COLUMNS["severity"], _MOST_COMPARED)
        findings = [campaign.finding(number) for number in worst]
        end = len(findings) if most is None else skip + most
        yield from [findings[place] for place in farthest_first(_unit(campaign, findings), end)][skip:]
        return
    for number in campaign.ranking(where, _COLUMNS[order], most, skip):
        yield campaign.finding(number)


def representatives(campaign: CampaignReader, count: int) -> list[Finding]:
    """Up to `count` findings that stand for all: one of each failure mode, the worst mode first.

    Where triage has found no stable modes, or a single one, the worst findings that are unlike each other.
    """
    modes = triage_of(campaign).modes
    if modes is not None and modes.is_stable and len(modes.modes) > 1:
        return [campaign.finding(mode.representative) for mode in modes.modes[:count]]
    return worst_and_most_different(campaign, count)


def worst_and_most_different(campaign: CampaignReader, count: int) -> list[Finding]:
    """Up to `count` distinct findings for a summary: the worst one, and others that are bad and unlike it."""
    candidates = max(count, _CANDIDATES)
    numbers = campaign.ranking("is_distinct", _COLUMNS["severity"], candidates, of_first=_LOOKED_AT)
    findings = [campaign.finding(number) for number in numbers]
    return [findings[place] for place in farthest_first(_unit(campaign, findings), count)]


def farthest_first(points: NDArray[np.float64], count: int) -> list[int]:
    """Rows of `points` (n, d): the first, then always the one farthest from all that were taken."""
    if not len(points):
        return []
    taken, nearest = [0], np.linalg.norm(points - points[0], axis=1)
    while len(taken) < min(count, len(points)):
        nearest[taken] = -1.0
        taken.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(points - points[taken[-1]], axis=1))
    return taken


def _unit(campaign: CampaignReader, findings: list[Finding]) -> NDArray[np.float64]:
    """(n, k) inputs by their share of the range; an angle as a point on a circle, so that it wraps round."""
    columns = []
    for place, dimension in enumerate(campaign.dimensions):
        values = np.array([finding.input[place] for finding in findings], np.float64)
        columns += unit_columns(dimension, values)
    return np.stack(columns, axis=1) if findings else np.empty((0, 1))
