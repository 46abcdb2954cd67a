"""Screening: which of many dimensions matter to a finding, by changing groups of them at once."""

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
        return self.inputs[[place for place, crashes in enumerate(self.answers) if crashes is False]]

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
        waiting = [[tuple(range(len(self.around.row)))]]
        quiet: list[int] = []
        # the halves of the smallest group first: it is better to know one dimension than many large groups
        while waiting and self.around.left >= keep + 2 * len(waiting[-1]) * _VALUES:
            groups = [self._group(dimensions, draws) for dimensions in waiting.pop()]
            self._try(groups)
            for one in groups:
                self.passing += list(one.passing)
                if one.is_quiet:
                    quiet += one.dimensions
                elif len(one.passing) and len(one.dimensions) == 1:
                    self.alone.add(one.dimensions[0])
                elif len(one.passing):
                    waiting.append(one.halves)
        # dimensions may matter together that do not matter in small groups
        every = [self._group(tuple(quiet), draws)] if quiet else []
        self._try(every)
        if all(one.is_quiet for one in every):
            self.no_matter |= set(quiet)

    def _group(self, dimensions: tuple[int, ...], draws: Inputs) -> _Group:
        """The finding with other values of `dimensions`, from `draws` (n, d), as different as there are."""
        rows = np.repeat(self.around.row[None], len(draws), axis=0)
        rows[:, dimensions] = draws[:, dimensions]
        rows = rows[self.around.allowed(rows) & (rows != self.around.row).any(axis=1)]
        distances, chosen = self.around.distances(rows), []
        for _ in range(min(_VALUES, len(rows))):
            chosen.append(int(np.argmax(distances)))
            same = np.repeat(rows[chosen[-1]][None], len(rows), axis=0)
            distances = np.minimum(distances, self.around.space.distance(rows, same))
        return _Group(dimensions, rows[chosen])

    def _try(self, groups: list[_Group]) -> None:
        """Run the inputs of `groups`, of each until one passes."""
        for number in range(_VALUES):
            some = [one for one in groups if len(one.inputs) > number and not len(one.passing)]
            if some:
                answers = self.around.crashes(np.array([one.inputs[number] for one in some]))
                for one, crashes in zip(some, answers, strict=True):
                    one.answers.append(crashes)
