"""Guides of the published method: reasons to keep an input in the corpus."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import DensitySettings, FreshnessSettings
from policyfuzz.core.timing import TimeSplit
from policyfuzz.density.published import PublishedDensity
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.search.state import State, prefixed, substate


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a guide says about n executions."""

    keep: NDArray[np.bool_]  #: (n,) True if there is a reason to keep the input
    log_density: NDArray[np.float64]  #: (n,) of the state sequence, NaN if the guide has none


class Guide(Protocol):
    """Sees every sample and mutant once, crashed ones too, and says which to keep."""

    def consider(
        self,
        executions: Executions,
        parent_returns: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Feedback:
        """Judge n executions, then learn from them.

        `parent_returns` (n,) are NaN for first samples, which are kept anyway, and -inf for later ones.
        """
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        ...

    def restore(self, state: State) -> None:
        """Continue from a `state`."""
        ...


@dataclass(frozen=True, slots=True)
class ReturnGuide:
    """Keeps executions that earned less than their parent."""

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Feedback:
        keep = executions.returns < parent_returns
        return Feedback(keep, np.full(len(executions), np.nan))

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, state: State) -> None: ...


@dataclass(slots=True)
class FreshnessGuide:
    """Keeps executions whose state sequence is unlikely under what was seen (paper, Algorithm 3)."""

    density_settings: DensitySettings = field(default_factory=DensitySettings)
    settings: FreshnessSettings = field(default_factory=FreshnessSettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: SequenceDensity = field(init=False)
    threshold: float = field(init=False)  #: log-density below which a sequence is fresh
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered
    _recent: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.density = SequenceDensity(self.density_settings)
        self._remember(np.empty(0))

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Feedback:
        with self.clock.activity("density"):
            states, lengths = executions.states, executions.lengths
            if not self.density.is_fitted:
                finite = np.asarray(np.isfinite(states).all(axis=(1, 2)))
                self.density.learn(states[finite], lengths[finite], rng)
                if not self.density.is_fitted:
                    return Feedback(np.zeros(len(states), np.bool_), np.full(len(states), np.nan))
                log_density = self._score(states, lengths)
                fresh = finite
            else:
                # a sequence that holds NaN has density NaN: it is neither fresh nor learnt
                log_density = self._score(states, lengths)
                fresh = log_density < self.threshold
                learnt = fresh | (np.isnan(parent_returns) & ~np.isnan(log_density))
                to_learn = executions[learnt]
                self.density.learn(to_learn.states, to_learn.lengths, rng)
            self._remember(np.concatenate([self._recent, log_density[~np.isnan(log_density)]]))
            self.fresh_share = float(fresh.mean()) if len(fresh) else np.nan
            return Feedback(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"recent": self._recent, "fresh_share": np.array([self.fresh_share]), **self.density.state()}

    def restore(self, state: State) -> None:
        density = {name: array for name, array in state.items() if name not in ("recent", "fresh_share")}
        self.density = SequenceDensity.from_state(density, self.density_settings)
        self._remember(state["recent"])
        self.fresh_share = float(state["fresh_share"][0])

    def _score(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) log-density of sequences `states` (n, t, d); the lower, the fresher."""
        if self.settings.score == "mean":
            return self.density.mean_log_density(states, lengths)
        return self.density.least_log_density(states, lengths)

    def _remember(self, log_density: NDArray[np.float64]) -> None:
        """Remember the latest of `log_density` (n,), and derive the threshold from them."""
        self._recent = log_density[-self.settings.memory :]
        if self.settings.threshold is not None:
            self.threshold = self.settings.threshold
        elif len(self._recent):
            self.threshold = float(np.quantile(self._recent, self.settings.quantile))
        else:
            self.threshold = np.inf


@dataclass(slots=True)
class PublishedFreshnessGuide:
    """Keeps executions whose state sequence has a density below tau, as the published code computes it."""

    threshold: float  #: tau: log-density of the whole sequence below which it is fresh
    learnt_below: float  #: log-density below which a sequence is learnt, samples too
    density_settings: DensitySettings = field(default_factory=DensitySettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: PublishedDensity = field(init=False)
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered

    def __post_init__(self) -> None:
        settings = self.density_settings
        self.density = PublishedDensity(settings.components, settings.forgetting)

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Feedback:
        with self.clock.activity("density"):
            sequences = zip(executions.states, executions.lengths, strict=True)
            considered = (self.density.consider(row[:length], self.learnt_below) for row, length in sequences)
            log_density = np.fromiter(considered, np.float64, len(executions))
            fresh = log_density < self.threshold
            self.fresh_share = float(fresh.mean()) if len(fresh) else np.nan
            return Feedback(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"fresh_share": np.array([self.fresh_share]), **prefixed("density.", self.density.state())}

    def restore(self, state: State) -> None:
        settings = self.density_settings
        density = substate("density.", state)
        self.density = PublishedDensity.from_state(density, settings.components, settings.forgetting)
        self.fresh_share = float(state["fresh_share"][0])


#: Guides that know a threshold of freshness.
FRESHNESS_GUIDES = (FreshnessGuide, PublishedFreshnessGuide)
