"""How likely a whole state sequence is: a Markov ratio of two online mixtures (paper, Algorithm 3).

    log p = log s(S_0) + sum over t of (log c(S_t, S_t+1) - log s(S_t))

`s` is a mixture over states, `c` one over successive pairs. A pair is held as (S_t, S_t+1 - S_t): the
same density by a change of variables of determinant one, and well conditioned where steps are small.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.dynem import OnlineMixture

#: Standardised coordinates are cut off here, so that squares of wild states stay finite.
_LIMIT = 1e6
#: States scored at a time: their pairs then fit the second-level cache.
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """What a user may choose about the density."""

    components: int = 10  #: K in the paper
    regularisation: float = 1e-4  #: added to variances, in units of the data's own variance
    forgetting: float = 0.0  #: gamma in the paper, per sequence; 0 weighs all learnt sequences equally


class SequenceDensity:
    """Log-density of state sequences, learnt online at constant cost and memory."""

    def __init__(self, settings: DensitySettings) -> None:
        self.settings = settings
        self.learnt_sequences = 0
        self._location = self._scale = self._increment_scale = np.empty(0)
        self._states: OnlineMixture | None = None
        self._pairs: OnlineMixture | None = None

    @property
    def is_fitted(self) -> bool:
        """True once something has been learnt; before that there is no density."""
        return self._states is not None

    def mean_log_density(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n,) log-density per state of sequences `states` (n, t, d), of which `lengths` (n,) count. Pure."""
        if self._states is None or self._pairs is None:
            raise RuntimeError("the density has learnt nothing yet: call learn first")
        scaled = self._scaled_columns(states, lengths)
        starts = np.cumsum(lengths) - lengths
        log_ratios = np.empty(scaled.shape[1])
        for start in range(0, len(log_ratios), _CHUNK):
            now = scaled[:, start : start + _CHUNK]
            after = scaled[:, start + 1 : start + 1 + now.shape[1]]
            pairs = self._pair_columns(now[:, : after.shape[1]], after)
            ratio = log_ratios[start : start + now.shape[1]]
            ratio[:] = -self._states.log_density(now.T)
            # S_0 counts once, as its own numerator: log s(S_0) - log s(S_0)
            ratio[starts[(starts >= start) & (starts < start + len(ratio))] - start] = 0.0
            ratio[: after.shape[1]] += self._pairs.log_density(pairs.T)
        # what follows the last state of a sequence is the next sequence's first: not a pair
        log_ratios[starts + lengths - 1] = 0.0
        totals = np.add.reduceat(log_ratios, starts)
        totals -= (lengths - 1) * np.log(self._increment_scale).sum()
        single = lengths == 1
        if single.any():
            totals[single] = self._states.log_density(scaled[:, starts[single]].T)
        return np.asarray(totals / lengths)

    def learn(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Learn sequences `states` (n, t, d), of which the first `lengths` (n,) states count.

        The first call fixes the units (location and spread of each coordinate) and fits the mixtures;
        `rng` is used only then.
        """
        if len(states) == 0:
            return
        if not self.is_fitted:
            self._set_units(states, lengths)
        singles, pairs = self._points(states, lengths)
        if self._states is None or self._pairs is None:
            fit = self.settings.components, self.settings.regularisation, rng
            self._states = OnlineMixture.fit(singles, *fit)
            self._pairs = OnlineMixture.fit(pairs, *fit)
        else:
            step = self._step(len(states))
            self._states.learn(singles, step)
            if len(pairs):
                self._pairs.learn(pairs, step)
        self.learnt_sequences += len(states)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Everything that learning has changed, as arrays."""
        if self._states is None or self._pairs is None:
            return {}
        return {
            "learnt_sequences": np.array([float(self.learnt_sequences)]),
            "location": self._location,
            "scale": self._scale,
            "increment_scale": self._increment_scale,
            **{f"states.{name}": array for name, array in self._states.state().items()},
            **{f"pairs.{name}": array for name, array in self._pairs.state().items()},
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, NDArray[np.float64]], settings: DensitySettings
    ) -> "SequenceDensity":
        """The density that had this `state`; it continues identically."""
        density = cls(settings)
        if state:
            density.learnt_sequences = int(state["learnt_sequences"][0])
            density._location, density._scale = state["location"], state["scale"]
            density._increment_scale = state["increment_scale"]
            density._states = OnlineMixture.from_state(_under(state, "states."), settings.regularisation)
            density._pairs = OnlineMixture.from_state(_under(state, "pairs."), settings.regularisation)
        return density

    def _step(self, count: int) -> float:
        if self.settings.forgetting > 0:
            return float(1 - (1 - self.settings.forgetting) ** count)
        return count / (self.learnt_sequences + count)

    def _set_units(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        counted = np.arange(states.shape[1]) < lengths[:, None]
        values = states[counted]
        self._location = values.mean(axis=0)
        self._scale = _spread(values, np.abs(self._location))
        scaled = (states - self._location) / self._scale
        increments = np.diff(scaled, axis=1)[counted[:, 1:]]
        self._increment_scale = (
            _spread(increments, np.ones_like(self._scale)) if len(increments) else np.ones_like(self._scale)
        )

    def _scaled_columns(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """(d, m) all counted states of all sequences, one after another, in units of their own spread."""
        counted = np.arange(states.shape[1]) < lengths[:, None]
        values = states.reshape(-1, states.shape[2]) if counted.all() else states[counted]
        columns = np.ascontiguousarray(values.T)
        columns -= self._location[:, None]
        columns /= self._scale[:, None]
        return np.clip(columns, -_LIMIT, _LIMIT, out=columns)

    def _pair_columns(self, now: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
        """(2 d, m) each state of `now` (d, m) above its scaled increment to `after` (d, m)."""
        pairs = np.empty((2 * len(now), now.shape[1]))
        pairs[: len(now)] = now
        np.subtract(after, now, out=pairs[len(now) :])
        pairs[len(now) :] /= self._increment_scale[:, None]
        return pairs

    def _points(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All counted states (m, d), and all counted pairs (m', 2 d), both in column order."""
        scaled = self._scaled_columns(states, lengths)
        pairs = self._pair_columns(scaled[:, :-1], scaled[:, 1:])
        ends = np.cumsum(lengths)[:-1] - 1
        return scaled.T, np.delete(pairs, ends, axis=1).T


def _spread(values: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,) standard deviation of `values` (n, d), or 1 where it is nothing but rounding of `size` (d,)."""
    deviation = values.std(axis=0)
    return np.where(deviation > 1e-12 * np.maximum(size, 1e-300), deviation, 1.0)


def _under(state: Mapping[str, NDArray[np.float64]], prefix: str) -> dict[str, NDArray[np.float64]]:
    return {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}
