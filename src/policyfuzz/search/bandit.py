"""Who proposes how many of the next cases: those who found most of late, and everybody a little."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Emitter(IntEnum):
    """Ways to propose a case."""

    RANDOM = 0  #: a draw from the nominal distribution
    CLIMB = 1  #: the next step of a climber
    JUMP = 2  #: noise on something that nearly crashed
    CROSS = 3  #: the same, along the difference of two others
    STEP = 4  #: little noise on a finding
    STRIDE = 5  #: more noise on a finding
    LEAP = 6  #: much noise on a finding
    CROSS_FINDINGS = 7  #: a finding, along the difference of two others
    SPAN_FINDINGS = 8  #: a finding, in the directions to its neighbours


_SEEKERS = [Emitter.CLIMB, Emitter.JUMP, Emitter.CROSS]
_WALKERS = [Emitter.STEP, Emitter.STRIDE, Emitter.LEAP, Emitter.CROSS_FINDINGS, Emitter.SPAN_FINDINGS]
#: Walkers that need two findings to go by.
_PAIRED = {Emitter.CROSS_FINDINGS, Emitter.SPAN_FINDINGS}

#: Share of random draws: an honest estimate of the failure probability, and a way out of every corner.
_RANDOM = 0.1
#: Least share of the rest for those who seek new regions, and for those who walk through known ones.
_LEAST = 0.35
#: Share of the climbers among the seekers, at least.
_CLIMBING = 0.2
#: Share of a group that is dealt out evenly.
_EVEN = 0.2
#: Episodes after which experience counts e times less.
_MEMORY = 8000.0
#: What is believed of an emitter that was never tried: so many trials, and reward.
_TRIALS, _REWARD = 10.0, 0.05


@dataclass(slots=True)
class Bandit:
    """Discounted trials and rewards of each emitter."""

    trials: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(Emitter)))
    rewards: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(Emitter)))

    def learn(self, emitters: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """Take in what n cases of `emitters` (n,) were worth."""
        fading = np.exp(-len(emitters) / _MEMORY)
        self.trials = fading * self.trials + np.bincount(emitters, minlength=len(Emitter))
        self.rewards = fading * self.rewards + np.bincount(emitters, rewards, minlength=len(Emitter))

    def shares(self, findings: int) -> NDArray[np.float64]:
        """(e,) chance of each emitter to propose the next case, where there are so many `findings`."""
        rates = (self.rewards + _REWARD) / (self.trials + _TRIALS)
        walkers = [one for one in _WALKERS if findings > (one in _PAIRED)]
        walking = 0.0
        if walkers:
            best = rates[walkers].max()
            walking = float(np.clip(best / (best + rates[_SEEKERS].max()), _LEAST, 1 - _LEAST))
        shares = np.zeros(len(Emitter))
        shares[Emitter.RANDOM] = _RANDOM
        shares[_SEEKERS] = (1 - _RANDOM) * (1 - walking) * _with_least(_dealt(rates[_SEEKERS]), _CLIMBING)
        if walkers:
            shares[walkers] = (1 - _RANDOM) * walking * _dealt(rates[walkers])
        return shares

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"trials": self.trials, "rewards": self.rewards}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "Bandit":
        """What `state` turned into arrays."""
        return cls(state["trials"], state["rewards"])


def _dealt(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares that add up to one: most of them go to the best."""
    shares = rates**2
    return np.asarray((1 - _EVEN) * shares / shares.sum() + _EVEN / len(rates))


def _with_least(shares: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """`shares` of which the first is at `least` so much."""
    if shares[0] >= least:
        return shares
    others = shares[1:] * (1 - least) / shares[1:].sum()
    return np.concatenate([[least], others])
