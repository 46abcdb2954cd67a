"""Results of n episodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import RAISED, EpisodeError
from policyfuzz.core.oracle import NONE, Verdicts


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one episode. Two runs of the same case must agree in all of it, to the last bit."""

    kind: int  #: position in the oracle's kinds, NONE where there is no crash
    step: int  #: of the crash, NONE where there is none
    episode_return: float

    def is_same(self, other: "Outcome") -> bool:
        """True if nothing differs; NaN equals NaN."""
        same_return = self.episode_return == other.episode_return or (
            math.isnan(self.episode_return) and math.isnan(other.episode_return)
        )
        return same_return and (self.kind, self.step) == (other.kind, other.step)


@dataclass(frozen=True, slots=True)
class Executions:
    """Results of n episodes."""

    returns: NDArray[np.float64]  #: (n,)
    lengths: NDArray[np.int64]  #: (n,) states seen, the initial one included
    states: NDArray[np.float64]  #: (n, t, k) state sequences, zero after their end
    verdicts: Verdicts
    errors: Mapping[int, EpisodeError] = field(default_factory=dict)  #: row to why it could not be run

    @classmethod
    def of(
        cls,
        returns: Sequence[float] | NDArray[Any],
        crashed: Sequence[bool] | NDArray[Any],
        states: Sequence[NDArray[Any]] | NDArray[Any] | None = None,
        errors: Mapping[int, str] | None = None,
        margins: Sequence[float] | NDArray[Any] | None = None,
    ) -> "Executions":
        """Results of n episodes that were run elsewhere.

        `returns` (n,) are numbers and `crashed` (n,) truth values. `states` are n sequences (t, k) of any
        lengths, or (t,) of single numbers; without them no sequence can be fresh. `errors` maps rows that
        could not be run to their end to the reason. `margins` (n,) say how far each stayed from a crash, in
        any unit: with them the search knows where to go.
        """
        fired = np.asarray(crashed, np.bool_)
        sequences = [
            np.asarray(one, np.float64) for one in ([[0.0]] * len(fired) if states is None else states)
        ]
        known = np.full(len(fired), np.nan) if margins is None else np.asarray(margins, np.float64)
        if not len(returns) == len(fired) == len(sequences) == len(known):
            raise UsageError(
                f"{len(returns)} returns, {len(fired)} verdicts, {len(sequences)} sequences of states"
                f" and {len(known)} margins",
                "give one of each for every case, in their order",
            )
        tables = [one[:, None] if one.ndim == 1 else one for one in sequences]
        lengths = np.array([len(one) for one in tables], np.int64)
        return cls(
            np.array(returns, np.float64),
            lengths,
            _stacked([one[None] for one in tables]) if tables else np.empty((0, 1, 1)),
            Verdicts(np.where(fired, 0, NONE), np.where(fired, lengths - 1, NONE), known),
            {row: EpisodeError(RAISED, int(lengths[row]) - 1, text) for row, text in (errors or {}).items()},
        )

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def sound(self) -> NDArray[np.bool_]:
        """(n,) False where the episode could not be run to its end."""
        sound = np.ones(len(self), np.bool_)
        sound[list(self.errors)] = False
        return sound

    @property
    def counted(self) -> NDArray[np.bool_]:
        """(n, t) True where a state belongs to its episode, False behind the end."""
        return np.asarray(np.arange(self.states.shape[1]) < self.lengths[:, None])

    @property
    def crashed(self) -> NDArray[np.bool_]:
        """(n,) True where the oracle fired."""
        return self.verdicts.crashed

    @property
    def outcomes(self) -> list[Outcome]:
        """One for each episode."""
        verdicts = self.verdicts
        rows = zip(verdicts.kinds.tolist(), verdicts.steps.tolist(), self.returns.tolist(), strict=True)
        return [Outcome(*row) for row in rows]

    @property
    def until_crash(self) -> "Executions":
        """The same, where nothing is left of an episode after its crash."""
        lengths = np.where(self.crashed, np.minimum(self.verdicts.steps + 1, self.lengths), self.lengths)
        if (lengths == self.lengths).all():
            return self
        is_left = np.arange(self.states.shape[1])[:, None] < lengths
        states = np.where(is_left[:, :, None], self.states.swapaxes(0, 1), 0.0).swapaxes(0, 1)
        return replace(self, lengths=lengths, states=states)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Executions":
        """The executions at `rows`: positions, a mask or a slice."""
        # states lie in memory time first, and are copied that way round
        states = self.states.swapaxes(0, 1)[:, rows].swapaxes(0, 1)
        return Executions(
            self.returns[rows],
            self.lengths[rows],
            states,
            self.verdicts[rows],
            self._errors_at(rows) if self.errors else {},
        )

    def _errors_at(self, rows: NDArray[Any] | slice) -> dict[int, EpisodeError]:
        positions = np.arange(len(self))[rows].tolist()
        return {new: self.errors[old] for new, old in enumerate(positions) if old in self.errors}


def concatenate(parts: Sequence[Executions]) -> Executions:
    """All results of `parts`, one after another."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    return Executions(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        _stacked([part.states for part in parts]),
        Verdicts(
            np.concatenate([part.verdicts.kinds for part in parts]),
            np.concatenate([part.verdicts.steps for part in parts]),
            np.concatenate([part.verdicts.margins for part in parts]),
        ),
        {
            start + row: error
            for start, part in zip(starts, parts, strict=False)
            for row, error in part.errors.items()
        },
    )


def _stacked(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Sequences (m, t, k) of any lengths and widths one after another, zero after their end.

    Time lies first in memory, as a rollout leaves it, so that sums over the result round the same whether
    the episodes were run at once or in pieces.
    """
    longest, widest = (max(part.shape[axis] for part in parts) for axis in (1, 2))
    stacked = np.zeros((longest, sum(len(part) for part in parts), widest))
    start = 0
    for part in parts:
        count, length, width = part.shape
        stacked[:length, start : start + count, :width] = part.swapaxes(0, 1)
        start += count
    return stacked.swapaxes(0, 1)
