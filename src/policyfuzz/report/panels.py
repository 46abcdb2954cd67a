"""Which numbers of an episode are worth a look: those that leave the band of passing episodes first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.recording import Recordings
from policyfuzz.report.band import NEVER, Band

#: Panels in all, and numbers of an action among them, at most; the last panel is the reward.
MOST_PANELS, MOST_ACTIONS = 9, 2
#: More choices than this are not named at an axis.
_MOST_CHOICES = 7
#: Two columns that are correlated more than this are the same in other units.
_SAME = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class Panel:
    """One number over time: of the policy, of a witness, and where passing episodes stay."""

    name: str
    policy: NDArray[np.float64]  #: (t,)
    witness: NDArray[np.float64] | None = None  #: (t',)
    low: NDArray[np.float64] | None = None  #: (t'',) edges of the band
    high: NDArray[np.float64] | None = None
    left_at: int | None = None  #: step since when the policy is outside for good
    is_held: bool = False  #: an action, which is held from one step to the next
    choices: Mapping[int, str] = field(default_factory=dict)  #: what its values mean


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of all episodes: one of the policy, perhaps one of a witness, and n that pass."""

    names: tuple[str, ...]
    policy: NDArray[np.float64]  #: (t, q)
    witness: NDArray[np.float64] | None  #: (t', q)
    passing: NDArray[np.float64] | None  #: (n, t'', q)

    def __getitem__(self, columns: Sequence[int]) -> "Table":
        """The same with these columns only."""
        at = np.array(columns, np.int64)
        return Table(
            tuple(self.names[column] for column in columns),
            self.policy[:, at],
            None if self.witness is None else self.witness[:, at],
            None if self.passing is None else self.passing[:, :, at],
        )

    def panels(self, last: int, most: int) -> list[Panel]:
        """The `most` telling columns up to step `last`, the first to leave the band first."""
        if not self.names:
            return []
        if self.passing is None:
            order = np.argsort(-_recent_change(self.policy[: last + 1]), kind="stable")[:most]
            return [self._panel(column, None, NEVER) for column in order.tolist()]
        band = Band.of(self.passing)
        left = band.departures(self.policy, last)
        chosen = left.order[:most].tolist()
        return [self._panel(column, band, int(left.steps[column])) for column in chosen]

    def _panel(self, column: int, band: Band | None, left_at: int) -> Panel:
        return Panel(
            self.names[column],
            self.policy[:, column],
            None if self.witness is None else self.witness[:, column],
            None if band is None else band.low[:, column],
            None if band is None else band.high[:, column],
            None if left_at == NEVER else left_at,
        )


def measured(
    signal_names: Sequence[str],
    state_names: Sequence[str],
    policy: Recordings,
    witness: Recordings | None,
    passing: Recordings | None,
    last: int,
) -> Table:
    """Signals and states, without those that do not change up to step `last`, or say the same as another."""
    count = max(part.states.shape[2] for part in (policy, witness, passing) if part is not None)
    named = tuple(state_names) if len(state_names) == count else tuple(f"state {n}" for n in range(count))
    table = Table(
        (*signal_names, *named),
        _columns(policy, count)[0],
        None if witness is None else _columns(witness, count)[0],
        None if passing is None else _columns(passing, count),
    )
    return table[_different(table, last)]


def acted(
    space: ActionSpace, policy: Recordings, witness: Recordings | None, passing: Recordings | None
) -> Table:
    """The numbers of actions."""
    count = len(space.low)
    numbered = ("action",) if count == 1 else tuple(f"action {number}" for number in range(1, count + 1))
    return Table(
        space.names or numbered,
        policy.actions[0],
        None if witness is None else witness.actions[0],
        None if passing is None else passing.actions,
    )


def choices_of(space: ActionSpace, name: str) -> dict[int, str]:
    """What the values of the number called `name` mean, where it stands for one of a few choices."""
    number = space.names.index(name) if name in space.names else 0
    if not space.is_whole[number]:
        return {}
    alone = [macro for macro in space.macros if np.flatnonzero(~np.isnan(macro.numbers)).tolist() == [number]]
    choices = {int(macro.numbers[number]): macro.name.rpartition(": ")[2] for macro in alone}
    return choices if len(choices) <= _MOST_CHOICES else {}


def _columns(recordings: Recordings, count: int) -> NDArray[np.float64]:
    """(n, t, s + count) signals and states; an episode that failed at once has no states."""
    states = recordings.states
    missing = np.full((*states.shape[:2], count - states.shape[2]), np.nan)
    return np.concatenate([recordings.signals, states, missing], axis=2)


def _different(table: Table, last: int) -> list[int]:
    """Columns that change within some episode and are not another column in other units.

    A change at the very end does not count: flags that say that an episode is over tell nothing about why.
    Of two that are the same the first stays, or the one whose name gives a unit.
    """
    policy = table.policy[: last + 1]
    episodes = [policy, *(table.passing if table.passing is not None else ())]
    moves = np.any([_moves(_without_end(one)) for one in episodes], axis=0)
    if not moves.any():
        moves = _moves(policy)
    rows = np.concatenate(episodes)
    known = rows[np.isfinite(rows[:, moves]).all(axis=1)] if moves.any() else rows[:0]
    scaled = known - known.mean(axis=0) if len(known) else known
    length = np.sqrt((scaled**2).sum(axis=0))
    scaled = scaled / np.where(length > 0, length, 1.0)
    kept: list[int] = []
    for column in np.flatnonzero(moves).tolist():
        alike = [
            place for place, other in enumerate(kept) if abs(scaled[:, other] @ scaled[:, column]) > _SAME
        ]
        if not alike:
            kept.append(column)
        elif "[" in table.names[column] and "[" not in table.names[kept[alike[0]]]:
            kept[alike[0]] = column
    return kept


def _without_end(episode: NDArray[np.float64]) -> NDArray[np.float64]:
    """All of an episode (t, q) before its last step."""
    running = np.flatnonzero(np.isfinite(episode).any(axis=1))
    return episode[: running[-1]] if len(running) else episode


def _moves(episode: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(q,) True where a column of an episode (t, q) changes."""
    known = np.isfinite(episode)
    most = np.where(known, episode, -np.inf).max(axis=0, initial=-np.inf)
    least = np.where(known, episode, np.inf).min(axis=0, initial=np.inf)
    return np.asarray(most > least)


def _recent_change(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(q,) how far `values` (t, q) move in their last fifth, as a share of all that they move."""
    known = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    if len(known) < 2:
        return np.zeros(known.shape[1])
    late = np.ptp(known[-max(len(known) // 5, 2) :], axis=0)
    whole = np.ptp(known, axis=0)
    return np.asarray(late / np.where(whole > 0, whole, 1.0))
