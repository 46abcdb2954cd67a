"""Screening: which of many dimensions matter to a finding, by changing groups of them at once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Inputs
from policyfuzz.triage.neighbourhood import Neighbourhood

#: Other values that a group gets, from random inputs.
_VALUES = 2


@dataclass(slots=True)
class _Group:
    """Dimensions that are changed together."""

    dimensions: tuple[int, ...]
    inputs: Inputs  #: (n, d) the finding with other values there
    answers: list[bool | None] = field(default_factory=list)

    @property
    def passing(self) -> Inputs:
        """Those of its inputs that pass."""
        return self.inputs[[crashes is False for crashes in self.answers]]

    @property
    def is_quiet(self) -> bool:
        """True if its change never avoided the crash."""
        return [crashes for crashes in self.answers if crashes is not None] == [True] * _VALUES

    @property
    def halves(self) -> list[tuple[int, ...]]:
        """The two halves of its dimensions; neighbours in an input often belong together."""
        middle = len(self.dimensions) // 2
        return [self.dimensions[:middle], self.dimensions[middle:]]


@dataclass(slots=True)
class Screening:
    """Halves groups of dimensions whose change avoids the crash, and leaves those whose change never does."""

    around: Neighbourhood
    rng: np.random.Generator
    alone: set[int] = field(default_factory=set)  #: dimensions that avoid the crash by themselves
    no_matter: set[int] = field(default_factory=set)  #: dimensions whose change never avoids it
    passing: list[NDArray[np.float64]] = field(default_factory=list)  #: (d,) inputs that pass

    def run(self, keep: int) -> None:
        """Screen all dimensions, and keep this many episodes."""
        draws = self.around.draws(self.rng)
        keep += _VALUES  # for the last question
        waiting = [tuple(range(len(self.around.row)))]
        quiet: list[int] = []
        while waiting:
            groups = list(self._groups(waiting, draws))
            self._try(groups, keep)
            waiting = []
            for one in groups:
                self.passing += list(one.passing)
                if one.is_quiet:
                    quiet += one.dimensions
                elif len(one.passing) and len(one.dimensions) == 1:
                    self.alone.add(one.dimensions[0])
                elif len(one.passing):
                    waiting += one.halves
        # dimensions may matter together that do not matter in small groups
        every = list(self._groups([tuple(quiet)], draws)) if quiet else []
        self._try(every, keep - _VALUES)
        if all(one.is_quiet for one in every):
            self.no_matter |= set(quiet)

    def _groups(self, parts: list[tuple[int, ...]], draws: Inputs) -> Iterator[_Group]:
        """A group for each of `parts`, with values of its own from `draws` (n, d)."""
        for dimensions in parts:
            rows = np.repeat(self.around.row[None], len(draws), axis=0)
            rows[:, dimensions] = draws[:, dimensions]
            rows = rows[self.around.allowed(rows) & (rows != self.around.row).any(axis=1)]
            yield _Group(dimensions, self.rng.permutation(rows)[:_VALUES])

    def _try(self, groups: list[_Group], keep: int) -> None:
        """Run as many of `groups` as there are episodes, the first ones first."""
        sizes = np.cumsum([len(one.inputs) for one in groups])
        some = groups[: int(np.searchsorted(sizes, self.around.left - keep, side="right"))]
        answers = iter(self.around.crashes(np.concatenate([one.inputs for one in some])) if some else [])
        for one in some:
            one.answers = [next(answers) for _ in one.inputs]
