"""Policies for particle worlds, simple enough to fail now and then."""

import numpy as np


def spread(observations):
    """Each agent heads for the landmark nearest to it, whoever else does."""
    marks = observations[:, 4:10].reshape(len(observations), 3, 2)
    nearest = np.hypot(marks[..., 0], marks[..., 1]).argmin(axis=1)
    return _towards(marks[np.arange(len(marks)), nearest])


def hunt(observations):
    """Straight to the prey of simple_tag."""
    return _towards(observations[:, 12:14])


def flee(observation):
    """Away from the nearest hunter; one observation at a time."""
    gaps = observation[8:14].reshape(3, 2)
    nearest = np.hypot(gaps[:, 0], gaps[:, 1]).argmin()
    return int(_towards(-gaps[[nearest]])[0])


def wait(observations):
    return np.zeros(len(observations), np.int64)


def _towards(gaps):
    across = np.abs(gaps[:, 0]) > np.abs(gaps[:, 1])
    return np.where(across, np.where(gaps[:, 0] > 0, 2, 1), np.where(gaps[:, 1] > 0, 4, 3))
