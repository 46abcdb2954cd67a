"""Guides: reasons to keep an input that did not crash."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.sequence import DensitySettings, SequenceDensity
from policyfuzz.executions import Executions
from policyfuzz.timing import TimeSplit


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a guide says of n executions."""

    keep: NDArray[np.bool_]  #: (n,) True where there is a reason to keep the input
    log_density: NDArray[np.float64]  #: (n,) per state, NaN where the guide knows none


class Guide(Protocol):
    """Sees every sample and mutant once, crashed ones too, and says which are worth keeping."""

    def consider(
        self,
        executions: Executions,
        parent_returns: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Opinion:
        """Judge n executions, then learn from them.

        `parent_returns` (n,) are NaN for the samples that are kept anyway, and -inf for later ones.
        """
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
    memory: int = 2048  #: recent sequences whose densities place the quantile


@dataclass(slots=True)
class FreshnessGuide:
    """Keeps executions whose state sequence is unlikely under what was seen (paper, Algorithm 3)."""

    density_settings: DensitySettings = field(default_factory=DensitySettings)
    settings: FreshnessSettings = field(default_factory=FreshnessSettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: SequenceDensity = field(init=False)
    threshold: float = field(init=False)  #: log-density per state below which a sequence is fresh
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered
    _recent: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.density = SequenceDensity(self.density_settings)
        self._remember(np.empty(0))

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Opinion:
        with self.clock.activity("density"):
            states, lengths = executions.states, executions.lengths
            if not self.density.is_fitted:
                finite = np.asarray(np.isfinite(states).all(axis=(1, 2)))
                self.density.learn(states[finite], lengths[finite], rng)
                if not self.density.is_fitted:
                    return Opinion(np.zeros(len(states), np.bool_), np.full(len(states), np.nan))
                log_density = self.density.mean_log_density(states, lengths)
                fresh = finite
            else:
                # a sequence with NaN in it has density NaN: it is neither fresh nor learnt
                log_density = self.density.mean_log_density(states, lengths)
                fresh = log_density < self.threshold
                learnt = fresh | (np.isnan(parent_returns) & ~np.isnan(log_density))
                learnt_ones = executions[learnt]
                self.density.learn(learnt_ones.states, learnt_ones.lengths, rng)
            self._remember(np.concatenate([self._recent, log_density[~np.isnan(log_density)]]))
            self.fresh_share = float(fresh.mean()) if len(fresh) else np.nan
            return Opinion(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"recent": self._recent, "fresh_share": np.array([self.fresh_share]), **self.density.state()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        density = {name: array for name, array in state.items() if name not in ("recent", "fresh_share")}
        self.density = SequenceDensity.from_state(density, self.density_settings)
        self._remember(state["recent"])
        self.fresh_share = float(state["fresh_share"][0])

    def _remember(self, log_density: NDArray[np.float64]) -> None:
        """Keep the latest of `log_density` (n,), and place the threshold by them."""
        self._recent = log_density[-self.settings.memory :]
        if self.settings.threshold is not None:
            self.threshold = self.settings.threshold
        elif len(self._recent):
            self.threshold = float(np.quantile(self._recent, self.settings.quantile))
        else:
            self.threshold = np.inf
