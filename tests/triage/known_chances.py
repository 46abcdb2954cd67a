"""Targets on the unit cube whose failure probability is known, run without stepping anything."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz import InputSpace, Target, load_target
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import RAISED, EpisodeError
from policyfuzz.core.oracle import NONE, Verdicts
from policyfuzz.core.target import Run
from policyfuzz.triage.estimate import Estimate, EstimateSettings
from policyfuzz.triage.estimation import Estimation

#: The smallest budget with which subset simulation begins, and a larger one.
SMALL = EstimateSettings(seed=1, replicates=8, max_episodes=EstimateSettings(replicates=8).fewest_episodes)
LARGE = EstimateSettings(seed=1, replicates=8)


def cube(dimensions: int = 2, **changes: object) -> Target:
    """A target on the unit cube, all of it valid and solvable unless `changes` say otherwise."""
    return replace(load_target(f"ripple:dimensions={dimensions}"), **changes)  # type: ignore[arg-type]


def constrained(constraint: Callable[[NDArray[np.float64]], NDArray[np.bool_]]) -> InputSpace:
    return InputSpace(cube().inputs.dimensions, constraint)


def runs(
    margins: Callable[[NDArray[np.float64], NDArray[np.uint64]], NDArray[np.float64]],
    cannot_run: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None,
    shown: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda margins: margins,
) -> Run:
    """Episodes that fail where `margins` are below zero, and tell what `shown` makes of them."""

    def run(inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Executions:
        count, true = len(inputs), margins(inputs, seeds)
        fails = true < 0
        errors = {}
        if cannot_run is not None:
            bad = cannot_run(inputs)
            errors = {row: EpisodeError(RAISED, 0, "broken") for row in np.flatnonzero(bad).tolist()}
            fails &= ~bad
        verdicts = Verdicts(np.where(fails, 0, NONE), np.where(fails, 0, NONE), shown(true))
        return Executions(
            np.zeros(count), np.ones(count, np.int64), np.zeros((count, 1, 1)), verdicts, errors
        )

    return run


def corner(side: float) -> Run:
    """Fails in the corner of the square with this `side`: with probability side²."""
    return runs(lambda inputs, _: inputs.max(axis=1) - side)


def finished(target: Target, run: Run, settings: EstimateSettings = SMALL) -> Estimate:
    estimation = Estimation.begin(target, run, settings)
    while not estimation.is_done:
        estimation.advance()
    return estimation.estimate
