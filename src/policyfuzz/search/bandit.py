"""The bandit that schedules emitters: those that lately found most propose most of the next cases."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.emitters import SEEKERS, WALKERS, Emitter
from policyfuzz.search.state import State

#: Walkers that need two findings.
_NEED_TWO = {Emitter.CROSS_FINDINGS, Emitter.SPAN_FINDINGS}

#: Share of random draws: an honest estimate of the failure probability, and a way out of every corner.
RANDOM_SHARE = 0.2
#: Least share of the rest for the seekers, and for the walkers.
LEAST_GROUP_SHARE = 0.35
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

    def shares(self, findings: int) -> NDArray[np.float64]:
        """(e,) chance of each emitter to propose the next case, given the number of `findings`."""
        rates = (self.rewards + _PRIOR_REWARD) / (self.trials + _PRIOR_TRIALS)
        walkers = [one for one in WALKERS if findings > (one in _NEED_TWO)]
        walking = 0.0
        if walkers:
            best = rates[walkers].max()
            share = best / (best + rates[SEEKERS].max())
            walking = float(np.clip(share, LEAST_GROUP_SHARE, 1 - LEAST_GROUP_SHARE))
        shares = np.zeros(len(Emitter))
        shares[Emitter.RANDOM] = RANDOM_SHARE
        shares[SEEKERS] = (1 - RANDOM_SHARE) * (1 - walking) * _by_success(rates[SEEKERS])
        if walkers:
            shares[walkers] = (1 - RANDOM_SHARE) * walking * _by_success(rates[walkers])
        return shares

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"trials": self.trials, "rewards": self.rewards}

    @classmethod
    def from_state(cls, state: State) -> "Bandit":
        """The bandit that had this `state`."""
        return cls(state["trials"], state["rewards"])


def _by_success(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares that add up to one; the best gets most."""
    shares = rates**2
    return np.asarray((1 - _EVEN_SHARE) * shares / shares.sum() + _EVEN_SHARE / len(rates))
