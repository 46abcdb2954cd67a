from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.core.interfaces import ENDLESS, NUMBERS, RAISED, STATE, EpisodeError
from policyfuzz.oracles import Trajectories

NAMES = ("terminated", "truncated", "out_of_space", "info.flag", "info.speed")


@pytest.fixture(scope="session")
def episodes():
    """Makes trajectories of a gym environment from one mapping each: signal or "rewards" to values."""

    def make(*rows, errors=None):
        lengths = np.array([max(len(values) for values in row.values()) for row in rows])
        signals = np.zeros((len(rows), lengths.max(), len(NAMES)))
        rewards = np.zeros((len(rows), lengths.max()))
        for row, columns in enumerate(rows):
            for name, values in columns.items():
                column = rewards[row] if name == "rewards" else signals[row, :, NAMES.index(name)]
                column[: len(values)] = values
        return Trajectories(signals, NAMES, rewards, lengths, errors or {})

    return make


@pytest.fixture(scope="session")
def random_episodes():
    """Makes many trajectories, some of them with errors, in which every oracle has something to find."""

    def make(seed, count=40, steps=8):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(1, steps + 1, count)
        signals = rng.choice([0.0, 1.0], (count, steps, len(NAMES)), p=[0.8, 0.2])
        signals[:, :, 3:] = rng.choice([np.nan, 0.0, 1.0, 5.0], (count, steps, 2), p=[0.3, 0.5, 0.1, 0.1])
        ends = rng.choice([0, 1, 2, 3], count)  # cut by the horizon, terminated, truncated, both at once
        signals[:, :, :2] = 0
        signals[np.arange(count), lengths - 1, 0] = ends & 1
        signals[np.arange(count), lengths - 1, 1] = ends >> 1
        rewards = np.round(rng.normal(0, 10, (count, steps)), 1)
        rewards[:, 0] = 0
        kinds = rng.choice(["", RAISED, NUMBERS, ENDLESS, STATE], count, p=[0.6, 0.1, 0.1, 0.1, 0.1])
        errors = {
            row: EpisodeError(str(kind), int(lengths[row]) - 1, "") for row, kind in enumerate(kinds) if kind
        }
        return Trajectories(signals, NAMES, rewards, lengths, errors)

    return make


@pytest.fixture(scope="session")
def with_padding():
    """Gives trajectories that differ only behind the end of their episodes."""

    def pad(trajectories, value, further_steps=0):
        further = ((0, 0), (0, further_steps))
        signals = np.pad(trajectories.signals, (*further, (0, 0)))
        rewards = np.pad(trajectories.rewards, further)
        behind = np.arange(signals.shape[1]) >= trajectories.lengths[:, None]
        signals[behind], rewards[behind] = value, value
        return replace(trajectories, signals=signals, rewards=rewards)

    return pad
