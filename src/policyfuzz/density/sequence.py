"""How likely a whole state sequence is: a Markov ratio of two online mixtures (paper, Algorithm 3).

    log p = log s(S_0) + sum over t of (log c(S_t, S_t+1) - log s(S_t))

`s` is a mixture over states, `c` one over successive pairs. A pair is held as (S_t, S_t+1 - S_t): the
same density by a change of variables of determinant one, and well conditioned where steps are small.
Coordinates that have never moved within an episode (goals, constant speeds) are left out of the
increments: under every component they are zero with the regularising variance, so they factor out
exactly. The first learnt sequence in which one moves brings it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.dynem import OnlineMixture
from policyfuzz.density.gaussian import GaussianMixture

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
        self._moving = np.empty(0, np.int64)  #: coordinates that have moved within an episode
        self._states: OnlineMixture | None = None
        self._pairs: OnlineMixture | None = None

    @property
    def is_fitted(self) -> bool:
        """True once something has been learnt; before that there is no density."""
        return self._states is not None

    @property
    def mixtures(self) -> tuple[OnlineMixture, OnlineMixture]:
        """The mixtures over states and over pairs (state, increment), in units of their own spread."""
        if self._states is None or self._pairs is None:
            raise RuntimeError("the density has learnt nothing yet: call learn first")
        return self._states, self._pairs

    def mean_log_density(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n,) log-density per state of sequences `states` (n, t, d), of which `lengths` (n,) count. Pure."""
        singles, pairs = self._in_state_units()
        totals = np.empty(len(states))
        size = max(1, _CHUNK // states.shape[1])
        for start in range(0, len(states), size):
            part = slice(start, start + size)
            centred, has_next = self._centred(states[part]), _has_next(states[part], lengths[part])
            columns = _select(self._with_increments(centred), has_next)
            pair_logs, state_logs = np.zeros(has_next.shape), np.zeros(has_next.shape)
            pair_logs[has_next] = pairs.log_density(columns.T)
            state_logs[has_next] = singles.log_density(columns[: len(centred)].T)
            # log s(S_0) is in the sum once with each sign
            totals[part] = pair_logs.sum(axis=1) - state_logs[:, 1:].sum(axis=1)
            totals[part] -= self._surprise_of_resting(centred, has_next)
        totals -= (lengths - 1) * np.log(self._increment_scale).sum()
        is_single = lengths == 1
        if is_single.any():
            totals[is_single] = singles.log_density(self._centred(states[is_single])[:, :, 0].T)
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
        self._notice_movement(states, lengths)
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

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        if self._states is None or self._pairs is None:
            return {}
        return {
            "learnt_sequences": np.array([float(self.learnt_sequences)]),
            "location": self._location,
            "scale": self._scale,
            "increment_scale": self._increment_scale,
            "moving": self._moving,
            **{f"states.{name}": array for name, array in self._states.state().items()},
            **{f"pairs.{name}": array for name, array in self._pairs.state().items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: DensitySettings) -> "SequenceDensity":
        """The density that had this `state`; it continues identically."""
        density = cls(settings)
        if state:
            density.learnt_sequences = int(state["learnt_sequences"][0])
            density._location, density._scale = state["location"], state["scale"]
            density._increment_scale, density._moving = state["increment_scale"], state["moving"]
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

    def _centred(self, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d, n, t) the coordinates of `states` (n, t, d), their location taken off."""
        centred = np.subtract(states.transpose(2, 0, 1), self._location[:, None, None], order="C")
        limit = (_LIMIT * self._scale)[:, None, None]
        return np.clip(centred, -limit, limit, out=centred)

    def _with_increments(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d + moving, n, t - 1) all but the last of `values` (d, n, t), above their increments."""
        dimensions = len(values)
        now, after = values[:, :, :-1], values[:, :, 1:]
        both = np.empty((dimensions + len(self._moving), *now.shape[1:]))
        both[:dimensions] = now
        for row, axis in enumerate(self._moving, start=dimensions):
            np.subtract(after[axis], now[axis], out=both[row])
        return both

    def _points(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """All counted states and all counted pairs (m, ...) in their own units, both in column order."""
        scaled = self._centred(states) / self._scale[:, None, None]
        is_counted = np.arange(states.shape[1]) < lengths[:, None]
        pairs = _select(self._with_increments(scaled), _has_next(states, lengths))
        pairs[len(scaled) :] /= self._increment_scale[self._moving, None]
        return _select(scaled, is_counted).T, pairs.T

    def _in_state_units(self) -> tuple[GaussianMixture, GaussianMixture]:
        """Both mixtures as functions of states and increments whose location was taken off, no more."""
        singles, pairs = self.mixtures
        increments = (self._scale * self._increment_scale)[self._moving]
        return (
            singles.mixture.in_units(self._scale),
            pairs.mixture.in_units(np.concatenate([self._scale, increments])),
        )

    def _resting(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self._scale)), self._moving)

    def _surprise_of_resting(
        self, centred: NDArray[np.float64], has_next: NDArray[np.bool_]
    ) -> NDArray[np.float64] | float:
        """(n,) minus the log-density of the increments of coordinates that have never moved before."""
        resting, variance = self._resting(), self.settings.regularisation
        steps = has_next.sum(axis=1)
        surprise = np.asarray(0.5 * len(resting) * np.log(2 * np.pi * variance) * steps)
        for axis in resting:
            moved = np.where(has_next, np.diff(centred[axis], axis=1), 0.0)
            if moved.any():
                unit = self._scale[axis] * self._increment_scale[axis]
                surprise = surprise + 0.5 * ((moved / unit) ** 2).sum(axis=1) / variance
        return surprise

    def _notice_movement(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Bring in the coordinates that move for the first time."""
        moves = (np.diff(states, axis=1) != 0) & _has_next(states, lengths)[:, :, None]
        moving = np.union1d(self._moving, np.flatnonzero(moves.any(axis=(0, 1))))
        if self._pairs is not None and len(moving) > len(self._moving):
            dimensions = len(self._scale)
            places = np.concatenate(
                [np.arange(dimensions), dimensions + np.searchsorted(moving, self._moving)]
            )
            self._pairs = self._pairs.with_axes(places, dimensions + len(moving))
        self._moving = moving


def _has_next(states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n, t - 1) True where a state of `states` (n, t, d) is followed by another that counts."""
    return np.asarray(np.arange(1, states.shape[1]) < lengths[:, None])


def _select(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(d, m) the `chosen` (n, t) of `values` (d, n, t), without a copy where that is all of them."""
    return values.reshape(len(values), -1) if chosen.all() else values[:, chosen]


def _spread(values: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,) standard deviation of `values` (n, d), or 1 where it is nothing but rounding of `size` (d,)."""
    deviation = values.std(axis=0)
    return np.where(deviation > 1e-12 * np.maximum(size, 1e-300), deviation, 1.0)


def _under(state: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}
