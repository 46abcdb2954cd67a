"""Runs every claim of a contestant again, outside of the budget, before it counts."""

import hashlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.courses import CourseWatch
from benchmarks.versus.diversity import BehaviourScale, random_episodes
from benchmarks.versus.trial import Trial
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE, BehaviourObserver, behaviour_of


class Verdict(IntEnum):
    """What a claim was worth."""

    FINDING = 0  #: valid, solvable, and it crashes
    INVALID = 1  #: out of range, or breaks the constraint of the inputs
    UNSOLVABLE = 2  #: a perfect policy would crash too
    NOT_REPRODUCED = 3  #: does not crash with this input and case seed
    REPEATED = 4  #: the same input and case seed as an earlier claim, or the same episode up to the crash
    LATE = 5  #: made after the episodes were used up


@dataclass(frozen=True, slots=True)
class Judged:
    """What f claims were worth."""

    verdicts: NDArray[np.int8]  #: (f,) values of Verdict
    behaviours: NDArray[np.float64]  #: (f, k) in standard deviations of random episodes, NaN for no finding
    descriptors: NDArray[np.float64]  #: (f, q) of the episode up to its crash, NaN for no finding
    outcomes: NDArray[np.uint64]  #: (f,) hash of the episode up to its crash, 0 for no finding
    courses: NDArray[np.uint64]  #: (f,) hash of the ground up to the fall, 0 where there is none

    @property
    def found(self) -> NDArray[np.bool_]:
        """(f,) True where a claim is a finding."""
        return np.asarray(self.verdicts == Verdict.FINDING)


class Judge:
    """Judges what is claimed about one target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._run = Runner(target)
        usual = random_episodes(target, self._run)
        self._scale = BehaviourScale.of(behaviour_of(usual[usual.sound]))
        self._observer = BehaviourObserver()
        self._observer.observe(usual)

    def __call__(self, trial: Trial, episodes: int) -> Judged:
        """Judge all claims of `trial`, which had so many `episodes` to make them."""
        self._check(trial)
        verdicts = self._cheap_verdicts(trial, episodes)
        behaviours = np.full((len(verdicts), self._scale.size), np.nan)
        descriptors = np.full((len(verdicts), DESCRIPTOR_SIZE), np.nan)
        outcomes, courses = np.zeros((2, len(verdicts)), np.uint64)
        rows = np.flatnonzero(verdicts == Verdict.FINDING)
        step = self._target.batch_size
        for part in (rows[start : start + step] for start in range(0, len(rows), step)):
            watch = CourseWatch.of(self._target, len(part))
            executions = self._run(trial.inputs[part], trial.seeds[part], watch)
            verdicts[part[~executions.crashed]] = Verdict.NOT_REPRODUCED
            behaviours[part] = self._scale(executions)
            descriptors[part] = self._observer.observe(executions).descriptors
            outcomes[part] = outcomes_of(executions)
            if watch is not None:
                courses[part] = watch.courses(trial.inputs[part], trial.seeds[part])
        found = np.flatnonzero(verdicts == Verdict.FINDING)
        verdicts[found[_is_repeated(outcomes[found])]] = Verdict.REPEATED
        is_refused = verdicts != Verdict.FINDING
        behaviours[is_refused], descriptors[is_refused] = np.nan, np.nan
        outcomes[is_refused], courses[is_refused] = 0, 0
        return Judged(verdicts, behaviours, descriptors, outcomes, courses)

    def _cheap_verdicts(self, trial: Trial, episodes: int) -> NDArray[np.int8]:
        """(f,) verdicts that need no episode; FINDING where one must tell."""
        verdicts = np.full(len(trial.numbers), int(Verdict.FINDING), np.int8)
        valid = self._target.inputs.is_valid(trial.inputs)
        verdicts[~valid] = Verdict.INVALID
        if self._target.solvable is not None and valid.any():
            solved = np.asarray(self._target.solvable(trial.inputs[valid]), np.bool_)
            verdicts[np.flatnonzero(valid)[~solved]] = Verdict.UNSOLVABLE
        cases = np.column_stack([np.ascontiguousarray(trial.inputs).view(np.uint64), trial.seeds])
        verdicts[_is_repeated(cases) & (verdicts == Verdict.FINDING)] = Verdict.REPEATED
        verdicts[trial.numbers > episodes] = Verdict.LATE
        return verdicts

    def _check(self, trial: Trial) -> None:
        shapes = trial.numbers.shape, trial.inputs.shape, trial.seeds.shape
        count = len(trial.numbers)
        if shapes != ((count,), (count, len(self._target.inputs.dimensions)), (count,)):
            raise TargetCodeError(
                f"claims about {self._target.name} have shapes {shapes[0]}, {shapes[1]} and {shapes[2]}",
                "a contestant gives numbers (f,), inputs (f, d) and seeds (f,)",
            )
        if (np.diff(trial.numbers) < 0).any():
            raise TargetCodeError(
                f"claims about {self._target.name} are not in the order of discovery", "sort them by number"
            )


def _is_repeated(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(n,) True where one of `values` (n, ...) was there before."""
    _, first = np.unique(values, axis=0, return_index=True)
    is_repeated = np.ones(len(values), np.bool_)
    is_repeated[first] = False
    return is_repeated


def outcomes_of(executions: Executions) -> NDArray[np.uint64]:
    """(n,) a hash of each episode up to its crash: kind, step and all states, to the last bit."""
    verdicts = executions.verdicts
    hashes = np.zeros(len(executions), np.uint64)
    for row in np.flatnonzero(executions.crashed).tolist():
        kind, step = int(verdicts.kinds[row]), int(verdicts.steps[row])
        # what follows the crash plays no part in it
        states = np.ascontiguousarray(executions.states[row, : step + 1])
        digest = hashlib.blake2b(f"{kind} {step}".encode(), digest_size=8)
        digest.update(states.tobytes())
        hashes[row] = int.from_bytes(digest.digest(), "little")
    return hashes
