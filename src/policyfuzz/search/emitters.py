"""Emitters of the portfolio: where their parents come from, and how they change them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.algorithm import Workshop
from policyfuzz.search.archive import Archive
from policyfuzz.search.bandit import Emitter
from policyfuzz.search.mutation import Mutator

#: Climbers at a time.
CLIMBERS = 16
#: Children without progress after which a climber starts anew elsewhere.
_PATIENCE = 48
#: Scale of the first steps, and its range; it grows with success and shrinks without (one-fifth rule).
_FIRST, _SMALLEST, _LARGEST = 0.05, 1e-4, 0.5
_GROWTH, _SHRINKAGE = 1.5, 0.9
_NOWHERE = -1


@dataclass(slots=True)
class Climbers:
    """Where each climber is: always at an entry of the corpus."""

    entries: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    #: Where it was before; children of that may still be under way.
    previous: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    scales: NDArray[np.float64] = field(default_factory=lambda: np.full(CLIMBERS, _FIRST))
    failures: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CLIMBERS, np.int64))

    @property
    def stranded(self) -> NDArray[np.int64]:
        """(m,) climbers that want a new start: they have none, have arrived or are stuck."""
        return np.flatnonzero((self.entries == _NOWHERE) | (self.failures > _PATIENCE))

    def start(
        self, climbers: NDArray[np.int64], entries: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Let `climbers` (m,) start at `entries` (m,)."""
        self.entries[climbers], self.previous[climbers] = entries, _NOWHERE
        self.scales[climbers] = _FIRST * np.exp(rng.normal(size=len(climbers)))
        self.failures[climbers] = 0

    def is_current(self, climbers: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) True where a child of `parents` (n,) still concerns its climber, which may have left."""
        here, before = self.entries[climbers], self.previous[climbers]
        return np.asarray((parents == here) | (parents == before))

    def arrive(self, climber: int) -> None:
        """It has found a crash, and starts anew elsewhere."""
        self.entries[climber] = self.previous[climber] = _NOWHERE

    def move(self, climber: int, entry: int) -> None:
        """It goes on from a better `entry`."""
        self.previous[climber], self.entries[climber] = self.entries[climber], entry
        self.scales[climber] = min(self.scales[climber] * _GROWTH, _LARGEST)
        self.failures[climber] = 0

    def fail(self, climber: int, children: int) -> None:
        """None of its latest `children` was any better."""
        self.failures[climber] += children
        self.scales[climber] = max(self.scales[climber] * _SHRINKAGE**children, _SMALLEST)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("entries", "previous", "scales", "failures")}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "Climbers":
        """What `state` turned into arrays."""
        return cls(state["entries"], state["previous"], state["scales"], state["failures"])


#: Entries of which the one nearest to a crash becomes the parent; of starts for climbers, twice as many.
_TOURNAMENT = 16
#: Scales of noise on findings, and the logarithmic range of those on other entries.
_SCALES = {Emitter.STEP: 0.01, Emitter.STRIDE: 0.05, Emitter.LEAP: 0.2}
_NARROWEST, _WIDEST = 0.001, 0.5
#: Spread of a scale around its value, as a logarithm.
_SPREAD = 0.5
#: Coordinates of findings that others are compared with at a time; and the range of findings.
_COMPARED, _FEWEST, _MOST = 1024, 32, 256

#: A parent and who changed it, as one number: parent times this, plus an emitter, or as many plus a climber.
CODES = len(Emitter) + CLIMBERS

#: Parents (n,) and inputs (n, d).
Children = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Emission:
    """Draws children; they may be invalid."""

    shop: Workshop
    archive: Archive
    mutator: Mutator
    rng: np.random.Generator

    def children(self, emitter: Emitter, count: int) -> Children:
        """`count` children of parents that the `emitter` prefers."""
        if emitter == Emitter.JUMP:
            parents = self.promising(count)
            scales = _NARROWEST * (_WIDEST / _NARROWEST) ** self.rng.random(count)
            return self._made(parents, self.mutator.jump(self._unit(parents), scales, self.rng))
        if emitter == Emitter.CROSS:
            parents, first, second = self.promising(count), self.promising(count), self.promising(count)
            return self._crossed(parents, first, second)
        findings = self.archive.crashed
        parents = self._weighted(findings, count)
        if emitter == Emitter.CROSS_FINDINGS:
            return self._crossed(parents, self._weighted(findings, count), self._weighted(findings, count))
        if emitter == Emitter.SPAN_FINDINGS:
            return self._made(
                parents, self.mutator.span(self._unit(parents), self._some_findings(), self.rng)
            )
        scales = _SCALES[emitter] * np.exp(_SPREAD * self.rng.normal(size=count))
        return self._made(parents, self.mutator.jump(self._unit(parents), scales, self.rng))

    def all_children(
        self, climbers: Climbers, counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Codes (n,) of parents and emitters, and inputs (n, d): `counts` (e,) of each emitter, shuffled."""
        chosen, steps = self._steps(climbers, int(counts[Emitter.CLIMB]))
        codes, inputs = [climbers.entries[chosen] * CODES + len(Emitter) + chosen], [steps]
        for emitter in [one for one in list(Emitter)[Emitter.JUMP :] if counts[one]]:
            parents, children = self.children(emitter, int(counts[emitter]))
            codes.append(parents * CODES + emitter)
            inputs.append(children)
        order = self.rng.permutation(int(counts.sum()))  # who is taken must not depend on the emitter
        return np.concatenate(codes)[order], np.concatenate(inputs)[order]

    def _steps(self, climbers: Climbers, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Climbers (n,) and where they might go next: inputs (n, d)."""
        chosen = self.rng.integers(0, CLIMBERS, count)
        scales = climbers.scales[chosen] * np.exp(_SPREAD * self.rng.normal(size=count))
        parents = climbers.entries[chosen]
        return chosen, self._made(parents, self.mutator.jump(self._unit(parents), scales, self.rng))[1]

    def promising(self, count: int) -> NDArray[np.int64]:
        """(n,) entries, each the nearest to a crash of a few that are drawn by energy."""
        drawn = self._weighted(self.archive.safe, count * _TOURNAMENT)
        return self._nearest_to_crash(drawn.reshape(count, _TOURNAMENT))

    def starts(self, count: int) -> NDArray[np.int64]:
        """(n,) entries to climb from: promising ones, far from what was found before."""
        drawn = self._weighted(self.archive.safe, count * 2 * _TOURNAMENT).reshape(count, 2 * _TOURNAMENT)
        if len(self.archive.crashed):
            distances = self.mutator.distances(self._unit(drawn.ravel()), self._some_findings()).min(axis=1)
            farthest = np.argsort(-distances.reshape(drawn.shape), axis=1, kind="stable")[:, :_TOURNAMENT]
            drawn = np.take_along_axis(drawn, farthest, axis=1)
        return self._nearest_to_crash(drawn)

    def _nearest_to_crash(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) of each row of `entries` (n, k) the one that came nearest to a crash."""
        distances = self.shop.corpus.column("distance")[entries]
        tie_breaks = self.shop.corpus.column("tie_break")[entries]
        is_least = distances == distances.min(axis=1, keepdims=True)
        best = np.where(is_least, tie_breaks, np.inf).argmin(axis=1)
        return np.asarray(entries[np.arange(len(entries)), best])

    def _weighted(self, entries: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """(count,) of `entries` (m,), drawn by energy."""
        sums = np.cumsum(self.shop.corpus.column("energy")[entries])
        places = np.searchsorted(sums, self.rng.random(count) * sums[-1], side="right")
        return np.asarray(entries[np.minimum(places, len(entries) - 1)])

    def _some_findings(self) -> NDArray[np.float64]:
        """(m, d) where some findings are in the unit cube."""
        findings, dimensions = self.archive.crashed, len(self.shop.space.dimensions)
        count = min(len(findings), max(_FEWEST, min(_COMPARED // dimensions, _MOST)))
        return self._unit(self.rng.choice(findings, count, replace=False))

    def _crossed(
        self, parents: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> Children:
        unit = self.mutator.cross(self._unit(parents), self._unit(first), self._unit(second), self.rng)
        return self._made(parents, unit)

    def _made(self, parents: NDArray[np.int64], unit: NDArray[np.float64]) -> Children:
        own = self.shop.corpus.inputs[parents]
        return parents, self.mutator.inputs(unit, self.shop.space.to_unit(own), own)

    def _unit(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.shop.space.to_unit(self.shop.corpus.inputs[entries])
