"""Guides: reasons to keep an input that did not crash."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.sequence import DensitySettings, SequenceDensity
from policyfuzz.rollout import Executions
from policyfuzz.timing import TimeSplit


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a guide says of n executions."""

    keep: NDArray[np.bool_]  #: (n,) True where there is a reason to keep the input
    log_density: NDArray[np.float64]  #: (n,) per state, NaN where the guide knows none


class Guide(Protocol):
    """Sees every execution that did not crash, once, and says which are worth keeping."""

    def consider(
        self,
        executions: Executions,
        parent_returns: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Opinion:
        """Judge n executions, then learn from them. `parent_returns` (n,) are NaN for samples."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`."""
        ...


@dataclass(frozen=True, slots=True)
class ReturnGuide:
    """Keeps what earned less than its parent."""

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Opinion:
        keep = executions.returns < parent_returns
        return Opinion(keep, np.full(len(executions), np.nan))

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...


@dataclass(frozen=True, slots=True)
class FreshnessSettings:
    """When a state sequence counts as fresh."""

    quantile: float = 0.05  #: share of recent sequences that are called fresh
    threshold: float | None = None  #: tau in the paper: a fixed log-density per state instead
    memory: int = 4096  #: recent sequences whose densities place the quantile


@dataclass(slots=True)
class FreshnessGuide:
    """Keeps executions whose state sequence is unlikely under what was seen (paper, Algorithm 3)."""

    density_settings: DensitySettings = field(default_factory=DensitySettings)
    settings: FreshnessSettings = field(default_factory=FreshnessSettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: SequenceDensity = field(init=False)
    _recent: NDArray[np.float64] = field(init=False)
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered

    def __post_init__(self) -> None:
        self.density = SequenceDensity(self.density_settings)
        self._recent = np.empty(0)

    @property
    def threshold(self) -> float:
        """Log-density per state below which a sequence is fresh."""
        if self.settings.threshold is not None:
            return self.settings.threshold
        return float(np.quantile(self._recent, self.settings.quantile)) if len(self._recent) else np.inf

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Opinion:
        with self.clock.activity("density"):
            states, lengths = executions.states, executions.lengths
            if len(executions) == 0:
                return Opinion(np.zeros(0, np.bool_), np.empty(0))
            if not self.density.is_fitted:
                self.density.learn(states, lengths, rng)
                log_density = self.density.mean_log_density(states, lengths)
                fresh = np.ones(len(executions), np.bool_)
            else:
                log_density = self.density.mean_log_density(states, lengths)
                fresh = log_density < self.threshold
                learnt = fresh | np.isnan(parent_returns)
                self.density.learn(states[learnt], lengths[learnt], rng)
            self._recent = np.concatenate([self._recent, log_density])[-self.settings.memory :]
            self.fresh_share = float(fresh.mean())
            return Opinion(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"recent": self._recent, "fresh_share": np.array([self.fresh_share]), **self.density.state()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        density = {name: array for name, array in state.items() if name not in ("recent", "fresh_share")}
        self.density = SequenceDensity.from_state(density, self.density_settings)
        self._recent = state["recent"]
        self.fresh_share = float(state["fresh_share"][0])
