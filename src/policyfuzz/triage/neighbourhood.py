"""Inputs around a finding: which may be tried, and which of those crash, within a number of episodes."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Inputs, InputSpace
from policyfuzz.core.target import Run, Target

#: Random inputs that are drawn at once.
_DRAWS = 512


@dataclass(slots=True)
class Neighbourhood:
    """The inputs around a finding. Never more than `budget` of them are run."""

    target: Target
    run: Run
    row: NDArray[np.float64]  #: (d,) input of the finding
    seed: int  #: case seed of the finding
    budget: int
    episodes: int = field(default=0, init=False)  #: that were run so far

    @property
    def space(self) -> InputSpace:
        """The space of all inputs."""
        return self.target.inputs

    @property
    def left(self) -> int:
        """Episodes that may still be run."""
        return self.budget - self.episodes

    def generator(self) -> np.random.Generator:
        """The generator that belongs to the case."""
        return np.random.default_rng([self.seed, *np.array(self.row).view(np.uint64).tolist()])

    def allowed(self, inputs: Inputs) -> NDArray[np.bool_]:
        """(n,) True where an input (n, d) is valid, and solvable where the target tests that."""
        return self.target.allows(inputs)

    def distances(self, inputs: Inputs) -> NDArray[np.float64]:
        """(n,) of the finding to `inputs` (n, d), in the unit cube."""
        return self.space.distance(np.repeat(self.row[None], len(inputs), axis=0), inputs)

    def draws(self, rng: np.random.Generator) -> Inputs:
        """Some random inputs that may be tried, the nearest first."""
        rows = self.space.sample(rng, _DRAWS)
        rows = rows[self.allowed(rows)]
        return rows[np.argsort(self.distances(rows), kind="stable")]

    def crashes(self, inputs: Inputs, seeds: NDArray[np.uint64] | None = None) -> list[bool | None]:
        """Which `inputs` (n, d) crash, with the seed of the finding or with case `seeds` (n,).

        None for an episode that could not be run. Raises if there are not enough episodes left.
        """
        if len(inputs) > self.left:
            raise ValueError(f"{len(inputs)} episodes, and {self.left} are left")
        if len(inputs) == 0:
            return []
        self.episodes += len(inputs)
        executions = self.run(inputs, np.full(len(inputs), self.seed, np.uint64) if seeds is None else seeds)
        answers = zip(executions.sound.tolist(), executions.crashed.tolist(), strict=True)
        # oracles such as `exception` fire on episodes that could not be run to their end
        return [crashed if is_sound or crashed else None for is_sound, crashed in answers]
