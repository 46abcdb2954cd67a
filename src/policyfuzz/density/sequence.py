"""How likely a whole state sequence is, as a Markov chain under an online mixture (paper, Algorithm 3).

    log p = log s(S_0) + sum over t of (log c(S_t, S_t+1) - log s(S_t))

`c` is a mixture over successive pairs, and `s` its marginal over the first state of a pair, so c / s is a
true conditional density. (The paper fits `s` separately. Far from the data the two then fall off at
unrelated rates, and their ratio calls the most unusual sequences likely.)

A pair is stored as (S_t, S_t+1 - S_t): a change of variables of determinant one keeps the density, and
small steps stay well conditioned. The increments leave out coordinates that have never moved within an
episode (goals, constant speeds): under every component they are zero with the regularising variance, so
they factor out exactly. A coordinate joins with the first learnt sequence in which it moves.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.dynem import OnlineMixture

#: Standardised coordinates are clipped to this, so that squares of extreme states stay finite.
_LIMIT = 1e6
#: States scored at a time: their pairs fit the second-level cache.
_CHUNK = 8192


class SequenceDensity:
    """Log-density of state sequences, learnt online at constant cost and memory."""

    def __init__(self, settings: DensitySettings) -> None:
        self.settings = settings
        self.learnt_sequences = 0
        self._location = self._scale = self._increment_scale = np.empty(0)
        self._moving = np.empty(0, np.int64)  #: coordinates that have moved within an episode
        self._pairs: OnlineMixture | None = None

    @property
    def is_fitted(self) -> bool:
        """True once something has been learnt; before that there is no density."""
        return self._pairs is not None

    @property
    def pairs(self) -> OnlineMixture:
        """The mixture over states and their increments, in units of their spread."""
        if self._pairs is None:
            raise RuntimeError("the density has learnt nothing yet: call learn first")
        return self._pairs

    def mean_log_density(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n,) log-density per state of sequences `states` (n, t, d), of which `lengths` (n,) count. Pure."""
        return self._scores(states, lengths, np.add) / lengths

    def least_log_density(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n,) log-density of the least likely transition of each sequence, arguments as above. Pure.

        A sequence of one state has no transition: it gets the log-density of that state.
        """
        return self._scores(states, lengths, np.minimum)

    def _scores(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64], combine: np.ufunc
    ) -> NDArray[np.float64]:
        """(n,) the log-densities of the transitions of each sequence, added up or their minimum.

        A sum begins with the log-density of the first state.
        """
        increments = (self._scale * self._increment_scale)[self._moving]
        mixture = self.pairs.mixture.in_units(np.concatenate([self._scale, increments]))
        limits = _LIMIT * self._scale
        resting = self._resting()
        log_unit = np.log(self._increment_scale).sum()
        log_rest = -0.5 * len(resting) * np.log(2 * np.pi * self.settings.regularisation)
        scores = np.empty(len(states))
        size = max(1, _CHUNK // states.shape[1])
        for start in range(0, len(states), size):
            part = slice(start, start + size)
            centred, counted = self._centred(states[part]), _counted(states[part], lengths[part])
            # all states of all sequences, one after another
            pair_logs, state_logs = mixture.chain_log_density(
                _select(centred, counted).T, self._moving, limits
            )
            ends = np.cumsum(lengths[part])
            starts = ends - lengths[part]
            first_logs = state_logs[starts]
            logs = pair_logs - state_logs + (log_rest - log_unit)
            logs -= self._movement_penalty(centred, counted, resting)
            # behind the last state is another sequence; a sum begins with the first state instead
            logs[ends - 1] = first_logs if combine is np.add else np.inf
            scores[part] = combine.reduceat(logs, starts)
            scores[part] = np.where(lengths[part] == 1, first_logs, scores[part])
        return scores

    def learn(
        self, states: NDArray[np.float64], lengths: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Learn sequences `states` (n, t, d), of which the first `lengths` (n,) states count.

        The first call fixes the units (location and spread of each coordinate) and fits the mixture;
        `rng` is used only then.
        """
        if len(states) == 0:
            return
        if not self.is_fitted:
            self._set_units(states, lengths)
        self._notice_movement(states, lengths)
        points = self._points(states, lengths)
        if self._pairs is None:
            settings = self.settings
            self._pairs = OnlineMixture.fit(points, settings.components, settings.regularisation, rng)
        elif len(points):
            self._pairs.learn_new(points, self._step(len(states)))
        self.learnt_sequences += len(states)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        if self._pairs is None:
            return {}
        return {
            "learnt_sequences": np.array([self.learnt_sequences]),
            "location": self._location,
            "scale": self._scale,
            "increment_scale": self._increment_scale,
            "moving": self._moving,
            **self._pairs.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: DensitySettings) -> "SequenceDensity":
        """The density that had this `state`; it continues identically."""
        density = cls(settings)
        if state:
            density.learnt_sequences = int(state["learnt_sequences"][0])
            density._location, density._scale = state["location"], state["scale"]
            density._increment_scale, density._moving = state["increment_scale"], state["moving"]
            density._pairs = OnlineMixture.from_state(state, settings.regularisation)
        return density

    def _step(self, count: int) -> float:
        if self.settings.forgetting > 0:
            return float(1 - (1 - self.settings.forgetting) ** count)
        return count / (self.learnt_sequences + count)

    def _set_units(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        counted = _counted(states, lengths)
        values = states[counted]
        self._location = values.mean(axis=0)
        self._scale = _spread(values, np.abs(self._location))
        scaled = (states - self._location) / self._scale
        increments = np.diff(scaled, axis=1)[counted[:, 1:]]
        self._increment_scale = (
            _spread(increments, np.ones_like(self._scale)) if len(increments) else np.ones_like(self._scale)
        )

    def _notice_movement(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> None:
        """Add the coordinates that move for the first time to the increments."""
        has_next = _counted(states, lengths)[:, 1:]
        newly_moving = [
            axis
            for axis in self._resting()
            if ((states[:, 1:, axis] != states[:, :-1, axis]) & has_next).any()
        ]
        moving = np.union1d(self._moving, np.array(newly_moving, np.int64))
        if self._pairs is not None and len(moving) > len(self._moving):
            dimensions = len(self._scale)
            places = dimensions + np.searchsorted(moving, self._moving)
            axes = np.concatenate([np.arange(dimensions), places])
            self._pairs = self._pairs.with_axes(axes, dimensions + len(moving))
        self._moving = moving

    def _resting(self) -> NDArray[np.int64]:
        """Coordinates that have never moved within a learnt episode."""
        return np.setdiff1d(np.arange(len(self._scale)), self._moving)

    def _centred(self, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d, n, t) the coordinates of `states` (n, t, d) minus their location."""
        return np.subtract(states.transpose(2, 0, 1), self._location[:, None, None], order="C")

    def _with_increments(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d + moving, n, t - 1) all but the last of `values` (d, n, t), above their increments."""
        dimensions = len(values)
        now, after = values[:, :, :-1], values[:, :, 1:]
        both = np.empty((dimensions + len(self._moving), *now.shape[1:]))
        both[:dimensions] = now
        for row, axis in enumerate(self._moving, start=dimensions):
            np.subtract(after[axis], now[axis], out=both[row])
        return both

    def _points(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """(m, d + moving) all counted pairs in units of their spread, in column order.

        If the first batch has no pairs, its single states count as pairs without movement.
        """
        scaled = np.clip(self._centred(states) / self._scale[:, None, None], -_LIMIT, _LIMIT)
        pairs = _select(self._with_increments(scaled), _counted(states, lengths)[:, 1:])
        if pairs.shape[1] == 0 and not self.is_fitted:
            return scaled[:, :, 0].T
        pairs[len(scaled) :] /= self._increment_scale[self._moving, None]
        return pairs.T

    def _movement_penalty(
        self, centred: NDArray[np.float64], counted: NDArray[np.bool_], resting: NDArray[np.int64]
    ) -> NDArray[np.float64] | float:
        """(m,) loss of log-density by movement of `resting` coordinates to the next state; 0 if none moves.

        One for each `counted` (n, t) state of `centred` (d, n, t); 0 behind the last state.
        """
        penalty: NDArray[np.float64] | float = 0.0
        for axis in resting:
            values = centred[axis]
            if (values[:, 1:] != values[:, :-1]).any():
                limit = _LIMIT * self._scale[axis]
                moved = np.zeros_like(values)
                moved[:, :-1] = np.diff(np.clip(values, -limit, limit), axis=1)
                moved[:, :-1][~counted[:, 1:]] = 0.0
                unit = self._scale[axis] * self._increment_scale[axis]
                penalty += 0.5 * (moved / unit)[counted] ** 2 / self.settings.regularisation
        return penalty


def _counted(states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n, t) True where a state of `states` (n, t, d) is one of the first `lengths` (n,) of its sequence."""
    return np.asarray(np.arange(states.shape[1]) < lengths[:, None])


def _select(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(d, m) the `chosen` (n, t) of `values` (d, n, t), without a copy if all are chosen."""
    return values.reshape(len(values), -1) if chosen.all() else values[:, chosen]


def _spread(values: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,) standard deviation of `values` (n, d), or 1 if it is only rounding of `size` (d,)."""
    deviation = values.std(axis=0)
    return np.where(deviation > 1e-12 * np.maximum(size, 1e-300), deviation, 1.0)
