"""Some findings of a campaign, evenly spread over the order of discovery, as arrays for figures."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_file import Triage

#: Findings that a figure shows at most. More would hide each other, and take long to read.
MOST_FINDINGS = 4000
#: Rows that are looked up with one question.
_AT_ONCE = 500
#: Larger numbers are clipped: their squares could overflow.
_LARGEST = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class FindingSample:
    """n confirmed findings: all of them, or some."""

    numbers: NDArray[np.int64]  #: (n,)
    modes: NDArray[np.int64]  #: (n,) number of the failure mode, 0 where none is known
    inputs: NDArray[np.float64]  #: (n, d)
    behaviours: NDArray[np.float64]  #: (n, q) behaviour descriptors; NaN where there is none
    returns: NDArray[np.float64]  #: (n,) NaN where there is none
    margins: NDArray[np.float64]  #: (n,) NaN where the oracle knows none
    crash_steps: NDArray[np.int64]  #: (n,)
    total: int  #: confirmed findings of the campaign


def sample_findings(campaign: CampaignReader, triage: Triage, most: int = MOST_FINDINGS) -> FindingSample:
    """Up to about `most` confirmed findings; the representatives of failure modes are always among them."""
    modes = () if triage.modes is None else triage.modes.modes
    chosen = _chosen(campaign, most, {mode.representative for mode in modes})
    findings = [one for one in _findings(campaign, chosen) if one.status == CONFIRMED]
    mode_of = {number: mode.number for mode in modes for number in mode.members}
    return FindingSample(
        numbers=np.array([one.id for one in findings], np.int64),
        modes=np.array([mode_of.get(one.id, 0) for one in findings], np.int64),
        inputs=np.array([one.input for one in findings], np.float64).reshape(
            len(findings), len(campaign.input_columns)
        ),
        behaviours=_behaviours([campaign.descriptor(one) for one in findings]),
        returns=np.array([one.episode_return for one in findings], np.float64),
        margins=np.array([one.margin for one in findings], np.float64),
        crash_steps=np.array([one.crash_step for one in findings], np.int64),
        total=campaign.progress().findings,
    )


def sample_corpus(campaign: CampaignReader, most: int) -> tuple[NDArray[np.float64], int]:
    """(n, d) inputs of up to `most` seeds, evenly spread, and how many seeds there are."""
    last = campaign.last_number("seeds")
    total = 0 if last is None else last + 1
    rows = list(_rows(campaign, "seeds", _spread(0, total - 1, most)))
    inputs = [[row[name] for name in campaign.input_columns] for row in rows]
    return np.array(inputs, np.float64).reshape(len(rows), len(campaign.input_columns)), total


def _chosen(campaign: CampaignReader, most: int, always: set[int]) -> list[int]:
    """Numbers of findings, flaky ones included: which are confirmed shows when they are read."""
    last = campaign.last_number("findings") or 0
    return sorted({*_spread(1, last, most), *(number for number in always if 1 <= number <= last)})


def _spread(first: int, last: int, most: int) -> list[int]:
    """Whole numbers from `first` to `last`: all, or `most` of them at equal distances."""
    count = min(last - first + 1, most)
    return np.unique(np.linspace(first, last, count).round().astype(np.int64)).tolist() if count > 0 else []


def _findings(campaign: CampaignReader, numbers: list[int]) -> Iterator[Finding]:
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        yield from campaign.records(Finding, "findings", f"id IN ({', '.join('?' * len(part))})", part)


def _rows(campaign: CampaignReader, table: str, numbers: list[int]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        yield from campaign.select(table, f"id IN ({', '.join('?' * len(part))})", part)


def _behaviours(known: list[list[float] | None]) -> NDArray[np.float64]:
    """(n, q) descriptors of the most frequent length; a stranger's file may hold several."""
    sizes = Counter(len(one) for one in known if one)
    size = sizes.most_common(1)[0][0] if sizes else 0
    rows = [one if one is not None and len(one) == size else [np.nan] * size for one in known]
    values = np.array(rows, np.float64).reshape(len(known), size)
    return np.where(np.isfinite(values), np.clip(values, -_LARGEST, _LARGEST), np.nan)
