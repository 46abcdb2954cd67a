"""Oracles: which episodes are crashes, of what kind, and at which step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import unknown_name
from policyfuzz.core.interfaces import EpisodeError

#: `Verdicts.kinds` and `Verdicts.steps` of an episode that did not crash.
NONE = -1


@dataclass(frozen=True, slots=True)
class Trajectories:
    """What an oracle may look at: n episodes of at most t states, padded after their end."""

    signals: NDArray[np.float64]  #: (n, t, s)
    names: tuple[str, ...]  #: of the s signals
    rewards: NDArray[np.float64]  #: (n, t), the first column zero
    lengths: NDArray[np.int64]  #: (n,) states that count, the initial one included
    errors: Mapping[int, EpisodeError] = field(default_factory=dict)  #: row to why it could not be run

    @property
    def sound(self) -> NDArray[np.bool_]:
        """(n,) False where an error ended the episode: what it showed says nothing about the policy."""
        sound = np.ones(len(self.lengths), np.bool_)
        sound[list(self.errors)] = False
        return sound

    @property
    def counted(self) -> NDArray[np.bool_]:
        """(n, t) True where an episode was still running; nowhere in one that an error ended."""
        counted: NDArray[np.bool_] = np.arange(self.signals.shape[1]) < self.lengths[:, None]
        return counted & self.sound[:, None] if self.errors else counted

    def signal(self, name: str) -> NDArray[np.float64]:
        """(n, t) the signal of this name."""
        if name not in self.names:
            raise unknown_name("signal", name, self.names)
        return self.signals[:, :, self.names.index(name)]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The judgement of n episodes."""

    kinds: NDArray[np.int64]  #: (n,) position in `Oracle.kinds`, NONE where there is no crash
    steps: NDArray[np.int64]  #: (n,) first step of the crash, NONE where there is none
    #: (n,) how far each episode stayed from a crash, in the units of the oracle; NaN where it does not know
    margins: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if len(self.margins) != len(self.kinds):  # an oracle need not know any
            object.__setattr__(self, "margins", np.full(len(self.kinds), np.nan))

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Verdicts":
        """The verdicts at `rows`: positions, a mask or a slice."""
        return Verdicts(self.kinds[rows], self.steps[rows], self.margins[rows])

    @property
    def crashed(self) -> NDArray[np.bool_]:
        """(n,) True where the oracle fired."""
        return np.asarray(self.kinds != NONE)


class Oracle(Protocol):
    """Judges episodes by what they showed."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the kinds of crash it can find."""
        ...

    def judge(self, trajectories: Trajectories) -> Verdicts:
        """A verdict for each of n trajectories."""
        ...


class Composable:
    """Gives an oracle `|` (the first one to fire) and `&` (both fire)."""

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        """The kinds of crash that come from a sum or a count over steps, so that no single step decides."""
        return ()

    def __or__(self: Oracle, other: Oracle) -> "AnyOf":
        return AnyOf(self, other)

    def __and__(self: Oracle, other: Oracle) -> "AllOf":
        return AllOf(self, other)


@dataclass(frozen=True)
class Below(Composable):
    """Fires when a signal falls below a threshold, the initial state included."""

    signal: str
    threshold: float
    kind: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        counted, values = trajectories.counted, trajectories.signal(self.signal)
        return at_first(counted & (values < self.threshold), smallest(values - self.threshold, counted))


@dataclass(frozen=True)
class AnyOf(Composable):
    """Fires when either oracle does; the earlier one gives kind and step."""

    first: Oracle
    second: Oracle

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.first.kinds + self.second.kinds

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        return accumulated_kinds(self.first) + accumulated_kinds(self.second)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        one, two = self.first.judge(trajectories), self.second.judge(trajectories)
        takes_two = two.crashed & (~one.crashed | (two.steps < one.steps))
        return Verdicts(
            kinds=np.where(takes_two, two.kinds + len(self.first.kinds), one.kinds),
            steps=np.where(takes_two, two.steps, one.steps),
            margins=signed(np.fmin(one.margins, two.margins), one.crashed | two.crashed),
        )


@dataclass(frozen=True)
class AllOf(Composable):
    """Fires when both oracles do, at the step by which both have."""

    first: Oracle
    second: Oracle

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(f"{one} and {two}" for one in self.first.kinds for two in self.second.kinds)

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        summed = {*accumulated_kinds(self.first), *accumulated_kinds(self.second)}
        pairs = ((one, two) for one in self.first.kinds for two in self.second.kinds)
        return tuple(f"{one} and {two}" for one, two in pairs if {one, two} & summed)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        one, two = self.first.judge(trajectories), self.second.judge(trajectories)
        both = one.crashed & two.crashed
        return Verdicts(
            kinds=np.where(both, one.kinds * len(self.second.kinds) + two.kinds, NONE),
            steps=np.where(both, np.maximum(one.steps, two.steps), NONE),
            margins=signed(np.fmax(one.margins, two.margins), both),
        )


def accumulated_kinds(oracle: Oracle) -> tuple[str, ...]:
    """The kinds of crash of `oracle` that come from a sum or a count; none if it does not say so."""
    return tuple(getattr(oracle, "accumulated_kinds", ()))


def at_first(fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None) -> Verdicts:
    """The verdicts of an oracle with one kind that fires at the first True of each row of `fired` (n, t)."""
    crashed = fired.any(axis=1)
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, fired.argmax(axis=1), NONE),
        margins=np.empty(0) if margins is None else margins,
    )


def signed(margins: NDArray[np.float64], crashed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,) `margins`, but 0 for one above zero where an episode `crashed` (n,), or below where it did not.

    So a margin that was measured apart from the oracle cannot contradict it. NaN stays NaN.
    """
    return np.where(crashed, np.minimum(margins, 0.0), np.maximum(margins, 0.0))


def smallest(values: NDArray[np.float64], counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,) the smallest of `values` (n, t) that are `counted` (n, t) and known; NaN where none is."""
    least = np.where(counted & ~np.isnan(values), values, np.inf).min(axis=1)
    return np.where(np.isinf(least), np.nan, least)
