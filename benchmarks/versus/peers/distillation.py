"""Random network distillation (Burda et al. 2018): what a network has not learnt to predict is new.

One small network is random and stays so; another learns to predict it from the states that were seen. Its
error is the novelty of a state, and the mean error of a sequence that of an episode.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions

_HIDDEN, _OUTPUTS = 64, 32
#: Of Adam.
_LEARNING_RATE, _MEAN_DECAY, _SQUARE_DECAY, _TINY = 1e-3, 0.9, 0.999, 1e-8
#: States of a sequence that are looked at, evenly spaced: neighbours are much alike.
_STATES = 32
#: Standardised states are cut here, so that one that diverges does not drown the others.
_FARTHEST = 5.0

Layers = list[NDArray[np.float64]]


def thin(executions: Executions) -> NDArray[np.float64]:
    """(n, _STATES, k) Evenly spaced states of each episode, first and last among them."""
    shares = np.linspace(0.0, 1.0, _STATES)
    steps = np.rint(shares * (executions.lengths[:, None] - 1)).astype(np.int64)
    return executions.states[np.arange(len(executions))[:, None], steps]


def _new_layers(rng: np.random.Generator, inputs: int) -> Layers:
    """Weights and biases of two layers."""
    first = rng.normal(0.0, np.sqrt(2 / inputs), (inputs, _HIDDEN))
    second = rng.normal(0.0, np.sqrt(1 / _HIDDEN), (_HIDDEN, _OUTPUTS))
    # biases that are not zero let the fixed network tell states of one direction apart
    return [first, rng.normal(0.0, 1.0, _HIDDEN), second, np.zeros(_OUTPUTS)]


def _forward(layers: Layers, states: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hidden units (n, hidden) and outputs (n, outputs)."""
    hidden = np.maximum(states @ layers[0] + layers[1], 0.0)
    return hidden, hidden @ layers[2] + layers[3]


@dataclass(slots=True)
class Distillation:
    """Novelty of state sequences; `fit_scale` comes first, with states to standardise by."""

    rng: np.random.Generator
    _fixed: Layers = field(init=False, default_factory=list)
    _layers: Layers = field(init=False, default_factory=list)  #: the predictor
    _means: Layers = field(init=False, default_factory=list)
    _squares: Layers = field(init=False, default_factory=list)
    _steps: int = field(init=False, default=0)
    _centre: NDArray[np.float64] = field(init=False)
    _deviation: NDArray[np.float64] = field(init=False)

    def fit_scale(self, sequences: NDArray[np.float64]) -> None:
        """Standardise states by those of `sequences` (n, t, k) from now on, and make the networks."""
        width = sequences.shape[2]
        states = sequences.reshape(-1, width)
        states = states[np.isfinite(states).all(axis=1)]
        self._centre, deviation = states.mean(axis=0), states.std(axis=0)
        self._deviation = np.where(deviation > 0, deviation, 1.0)
        self._fixed, self._layers = _new_layers(self.rng, width), _new_layers(self.rng, width)
        self._means = [np.zeros_like(layer) for layer in self._layers]
        self._squares = [np.zeros_like(layer) for layer in self._layers]

    def novelty(self, sequences: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) Mean squared error of the predictor over the states of each of `sequences` (n, t, k)."""
        states = self._scaled(sequences).reshape(-1, sequences.shape[2])
        error = ((_forward(self._layers, states)[1] - _forward(self._fixed, states)[1]) ** 2).mean(axis=1)
        return np.asarray(error.reshape(sequences.shape[:2]).mean(axis=1))

    def learn(self, sequences: NDArray[np.float64]) -> None:
        """One step of Adam for each of `sequences` (n, t, k)."""
        for states in self._scaled(sequences):
            self._descend(self._gradients(states))

    def _scaled(self, sequences: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = np.nan_to_num((sequences - self._centre) / self._deviation)
        return np.clip(scaled, -_FARTHEST, _FARTHEST)

    def _gradients(self, states: NDArray[np.float64]) -> Layers:
        """Of the mean squared error at `states` (t, k)."""
        hidden, outputs = _forward(self._layers, states)
        slope = 2.0 * (outputs - _forward(self._fixed, states)[1]) / outputs.size
        hidden_slope = (slope @ self._layers[2].T) * (hidden > 0)
        return [states.T @ hidden_slope, hidden_slope.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)]

    def _descend(self, gradients: Layers) -> None:
        self._steps += 1
        rate = _LEARNING_RATE * np.sqrt(1 - _SQUARE_DECAY**self._steps) / (1 - _MEAN_DECAY**self._steps)
        for layer, mean, square, gradient in zip(
            self._layers, self._means, self._squares, gradients, strict=True
        ):
            mean += (1 - _MEAN_DECAY) * (gradient - mean)
            square += (1 - _SQUARE_DECAY) * (gradient**2 - square)
            layer -= rate * mean / (np.sqrt(square) + _TINY)
