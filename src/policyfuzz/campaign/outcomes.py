"""Outcomes: what an episode did up to its crash. Crashes with one outcome are one finding, seen again."""

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions

#: New outcomes that are kept apart before they are sorted in.
_RECENT = 4096


def outcome_hashes(executions: Executions, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) a hash for each crash at `rows` (m,): of its kind and step, and of every state until then.

    Of an episode that an error ended, which may have no states, it is the error that counts.
    """
    return np.array([_hash(executions, row) for row in rows.tolist()], np.int64)


def _hash(executions: Executions, row: int) -> int:
    verdicts = executions.verdicts
    step = int(verdicts.steps[row])
    digest = hashlib.blake2b(digest_size=8)
    digest.update(np.array([verdicts.kinds[row], step], np.int64).tobytes())
    digest.update(np.ascontiguousarray(executions.states[row, : step + 1]).tobytes())
    if row in executions.errors:
        digest.update(executions.errors[row].text.encode())
    return int.from_bytes(digest.digest()) >> 1  # a campaign file stores integers with a sign


@dataclass(slots=True)
class OutcomeSet:
    """Hashes of all outcomes so far: eight bytes each, so that a million of them fit."""

    _sorted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    _recent: set[int] = field(default_factory=set)

    def add(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Add `hashes` (n,); return (n,) True for those that were known, or came earlier among these."""
        places = np.minimum(np.searchsorted(self._sorted, hashes), max(len(self._sorted) - 1, 0))
        is_known = self._sorted[places] == hashes if len(self._sorted) else np.zeros(len(hashes), np.bool_)
        for row, value in enumerate(hashes.tolist()):
            is_known[row] |= value in self._recent
            self._recent.add(value)
        if len(self._recent) > _RECENT:
            self._sorted = np.union1d(self._sorted, np.fromiter(self._recent, np.int64))
            self._recent = set()
        return is_known

    def discard(self, value: int) -> None:
        """Forget an outcome that did not happen again: who shows it next is no repeat."""
        self._recent.discard(value)
        self._sorted = self._sorted[self._sorted != value]

    def restore(self, hashes: NDArray[np.int64]) -> None:
        """Take over all `hashes` (n,) instead of what there was."""
        self._sorted, self._recent = np.unique(hashes), set()
