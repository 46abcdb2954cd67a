"""Terrains on which a student has fallen: they come again until it has got over them a few times."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bipedal.walks import Cases, Walks

#: Successful walks after which a terrain is no longer hard.
ENOUGH = 3
#: Steps that a walk goes on behind the place of the last fall; the rest of the terrain teaches little.
BEHIND = 150
#: Terrains that are remembered, the latest ones.
MOST = 1024


def _no_cases() -> Cases:
    return Cases(np.empty((0, 15)), np.empty(0, np.uint64))


@dataclass(slots=True)
class HardTerrains:
    """n terrains, how far to walk them, and how often that has worked."""

    cases: Cases = field(default_factory=_no_cases)
    limits: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  #: (n,) steps
    passed: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  #: (n,) walks

    def __len__(self) -> int:
        return len(self.cases)

    def draw(self, rng: np.random.Generator, count: int, horizon: int) -> tuple[Cases, NDArray[np.int64]]:
        """`count` terrains and their limits: hard ones first, at most half, then new ones up to `horizon`."""
        again = rng.permutation(len(self))[: count // 2]
        cases = Cases.concatenate(self.cases[again], Cases.random(rng, count - len(again)))
        return cases, np.concatenate([self.limits[again], np.full(count - len(again), horizon)])

    def remember(self, walked: Cases, walks: Walks) -> None:
        """What has felled is hard; what was hard and has not, is so a little less."""
        fallen, stood = walks.has_fallen, walked.seeds[~walks.has_fallen]
        passed = self.passed + np.isin(self.cases.seeds, stood)
        stays = (passed < ENOUGH) & ~np.isin(self.cases.seeds, walked.seeds[fallen])
        limits = np.minimum(walks.lengths[fallen] + BEHIND, walks.rewards.shape[1])
        self.cases = Cases.concatenate(self.cases[stays], walked[fallen])[-MOST:]
        self.limits = np.concatenate([self.limits[stays], limits])[-MOST:]
        self.passed = np.concatenate([passed[stays], np.zeros(len(limits), np.int64)])[-MOST:]

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on."""
        seeds = self.cases.seeds.astype(np.int64)
        arrays = {"inputs": self.cases.inputs, "seeds": seeds, "limits": self.limits, "passed": self.passed}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        self.cases = Cases(arrays["inputs"], arrays["seeds"].astype(np.uint64))
        self.limits, self.passed = arrays["limits"], arrays["passed"]
