"""The bandit that schedules emitters: those that lately found most propose most of the next cases."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.emitters import SEEKERS, WALKERS, Emitter
from policyfuzz.search.state import State

#: Findings that an emitter needs, if any.
_NEEDED = {
    **dict.fromkeys(WALKERS, 1),
    Emitter.CROSS_FINDINGS: 2,
    Emitter.SPAN_FINDINGS: 2,
    Emitter.SCREEN: 1,
}

#: Share of random draws: an honest estimate of the failure probability, and a way out of every corner.
RANDOM_SHARE = 0.2
#: Least share of the rest for the seekers, and for the walkers if there are lineages enough.
LEAST_GROUP_SHARE = 0.35
#: Lineages at which walkers may have half of the rest: few lineages are soon walked through, and each child
#: there is more of the same.
_FEW_LINEAGES = 4
#: Share of a group that all of its emitters get equally.
_EVEN_SHARE = 0.2
#: Episodes after which experience counts e times less.
_MEMORY = 8000.0
#: Prior of an emitter that was never tried.
_PRIOR_TRIALS, _PRIOR_REWARD = 10.0, 0.05


@dataclass(slots=True)
class Bandit:
    """Discounted trials and rewards of each emitter."""

    trials: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(Emitter)))
    rewards: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(Emitter)))

    def learn(self, emitters: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """Learn the `rewards` (n,) of n cases of `emitters` (n,)."""
        fading = np.exp(-len(emitters) / _MEMORY)
        self.trials = fading * self.trials + np.bincount(emitters, minlength=len(Emitter))
        self.rewards = fading * self.rewards + np.bincount(emitters, rewards, minlength=len(Emitter))

    def shares(self, findings: int, lineages: int, can_climb: bool = True) -> NDArray[np.float64]:
        """(e,) chance of each emitter to propose the next case.

        Walkers get more the more `lineages` the `findings` go back to. Nobody climbs unless they `can_climb`.
        """
        rates = (self.rewards + _PRIOR_REWARD) / (self.trials + _PRIOR_TRIALS)
        seekers, walkers = (
            [one for one in group if findings >= _NEEDED.get(one, 0)] for group in (SEEKERS, WALKERS)
        )
        if not can_climb:
            seekers.remove(Emitter.CLIMB)
        walking = 0.0
        if walkers:
            best = rates[walkers].max()
            share = best / (best + rates[seekers].max())
            walking = float(np.clip(share, LEAST_GROUP_SHARE, 1 - LEAST_GROUP_SHARE))
            walking = min(walking, lineages / (lineages + _FEW_LINEAGES))
        shares = np.zeros(len(Emitter))
        shares[Emitter.RANDOM] = RANDOM_SHARE
        shares[seekers] = (1 - RANDOM_SHARE) * (1 - walking) * _by_success(rates[seekers])
        if walkers:
            shares[walkers] = (1 - RANDOM_SHARE) * walking * _by_success(rates[walkers])
        return shares

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"trials": self.trials, "rewards": self.rewards}

    @classmethod
    def from_state(cls, state: State) -> "Bandit":
        """The bandit that had this `state`."""
        # earlier versions had fewer emitters
        padded = (np.pad(state[name], (0, len(Emitter) - len(state[name]))) for name in ("trials", "rewards"))
        return cls(*padded)


def _by_success(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares that add up to one; the best gets most."""
    shares = rates**2
    return np.asarray((1 - _EVEN_SHARE) * shares / shares.sum() + _EVEN_SHARE / len(rates))
