"""The package mdpfuzz of PyPI, unchanged, in both of its modes.

Its loop asks an executor for inputs, mutants and episodes, one at a time, and this is the executor that its
author leaves to the user. One seed input goes with five episodes, and the sensitivity of a mutant comes from
its parent (`local_sensitivity`), as in its own experiments. A seed input still costs a second episode for its
sensitivity. All episodes count, and all crashes are claimed, even those of these second ones, which it does
not list itself.
Its loop does not ask whether a mutant is valid or solvable, so that some of what it claims is not.

Its mixtures take a covariance apart for every point that they look at. Here that is remembered while the
covariance stays the same (`RememberedNormal`): the same numbers to the last bit, in a fraction of the time.
"""

import io
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from scipy.stats._multivariate import _LOG_2PI, _PSD

from benchmarks.versus.trial import Recorder, Trial, draw_samples, draw_seeds
from policyfuzz.core import extras
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator

#: K and tau of the paper; gamma of the replication, since the paper gives none.
_COMPONENTS, _THRESHOLD, _UPDATE_WEIGHT = 10, 0.01, 0.01
#: One in so many episodes is a seed input: 1,000 of 5,000.
_EPISODES_PER_SEED_INPUT = 5
#: It takes a single seed input for a list of numbers.
_FEWEST_SEED_INPUTS = 2
#: Draws of noise before an input is left as it is: the bounds may undo a change of a discrete value.
_TRIES_TO_CHANGE = 70
#: Tells the stream of case seeds of this peer from other uses of the trial's seed.
_STREAM = 0x6D6470
_DISCRETE = ("integer", "choice", "seed")
#: Covariances that are remembered at most. The mixtures have two for each component.
_MOST_COVARIANCES = 1024


class _Stopped(BaseException):
    """Ends the package's loop, which swallows everything that is an Exception."""


@dataclass(frozen=True, slots=True)
class MdpfuzzPackage:
    """Its fuzzer with the paper's settings, with mixtures (`fuzzing`) or without (`fuzzing_no_coverage`)."""

    coverage: bool = True

    def __post_init__(self) -> None:
        extras.load("mdpfuzz.mdpfuzz", "versus")  # asks for the package now, not after hours of others

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        package = extras.load("mdpfuzz.mdpfuzz", "versus")
        extras.load("mdpfuzz.gmm", "versus").multivariate_normal = RememberedNormal()
        recorder = Recorder(target, episodes)
        executor = _new_executor(package.Executor, recorder, _case_seed(seed))
        # mixtures start from K pairs of neighbouring states, which short episodes do not have
        components = min(_COMPONENTS, target.horizon)
        with _silenced():
            fuzzer = package.Fuzzer(seed, components, _THRESHOLD, _UPDATE_WEIGHT, executor)
            fuzz = fuzzer.fuzzing if self.coverage else fuzzer.fuzzing_no_coverage
            seed_inputs = max(episodes // _EPISODES_PER_SEED_INPUT, _FEWEST_SEED_INPUTS)
            try:
                fuzz(seed_inputs, test_budget=episodes, local_sensitivity=True)
            except _Stopped as stopped:
                if stopped.__cause__ is not None:
                    raise stopped.__cause__ from None
            except Exception:
                pass  # the package itself has failed, and its trial ends with fewer episodes
        return recorder.trial()


class RememberedNormal:
    """SciPy's normal density as the package calls it, for one point (d,) at a time."""

    random_state: object = None  #: which the package sets

    def __init__(self) -> None:
        #: By the bytes of a covariance: what whitens (d, d), and the logarithm of the constant factor.
        self._known: dict[bytes, tuple[NDArray[np.float64], np.float64] | None] = {}

    def pdf(
        self,
        point: NDArray[np.float64],
        mean: NDArray[np.float64],
        cov: NDArray[np.float64],
        allow_singular: bool,
    ) -> np.float64:
        """The same bits as `multivariate_normal.pdf`."""
        key = cov.tobytes()
        if key not in self._known:
            if len(self._known) >= _MOST_COVARIANCES:
                self._known.clear()
            self._known[key] = _taken_apart(cov, allow_singular)
        parts = self._known[key]
        if parts is None:
            return np.float64(multivariate_normal.pdf(point, mean, cov, allow_singular=allow_singular))
        whitening, constant = parts
        squares = np.square((point[None] - mean) @ whitening).sum(axis=-1)
        return np.float64(np.exp(-0.5 * (constant + squares))[0])


def _taken_apart(
    cov: NDArray[np.float64], allow_singular: bool
) -> tuple[NDArray[np.float64], np.float64] | None:
    """What SciPy works out of `cov` (d, d) for every point; None where more than that decides."""
    parts = _PSD(cov, allow_singular=allow_singular)
    if parts.rank < len(cov) or len(cov) < 2:
        return None
    return parts.U, np.float64(parts.rank * _LOG_2PI + parts.log_pdet)


class _TargetExecutor:
    """What the package asks of its user, for any target; its base class comes from the package.

    Sizes that it knows: `sim_steps` of an episode, and one `env_seed` for all of them.
    """

    def __init__(self, recorder: Recorder, case_seed: int) -> None:
        self._recorder = recorder
        self.sim_steps, self.env_seed = recorder.target.horizon, case_seed
        self._space = recorder.target.inputs
        self._validator = Validator(self._space, recorder.target.solvable)
        is_discrete = all(dimension.kind in _DISCRETE for dimension in self._space.dimensions)
        self._dtype: Any = np.int64 if is_discrete else np.float64
        self._state_width = 1

    def generate_input(self, rng: np.random.Generator) -> NDArray[Any]:
        """(d,) A valid and solvable input."""
        return np.asarray(self.generate_inputs(rng, 1)[0])

    def generate_inputs(self, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """(n, d) Valid and solvable inputs."""
        with _own_errors():
            return draw_samples(self._validator, rng, n).astype(self._dtype)

    def mutate(self, origin: NDArray[Any], rng: np.random.Generator, **_options: object) -> NDArray[Any]:
        """(d,) `origin` with the target's small noise, kept in the range of every dimension."""
        with _own_errors():
            row = origin[None].astype(np.float64)
            for _ in range(_TRIES_TO_CHANGE):
                mutant = _clipped(self._space, self._space.perturb(row, rng))
                if (mutant != row).any():
                    break
            return np.asarray(mutant[0], self._dtype)

    def load_policy(self, **_options: object) -> None:
        """Nothing: the target brings its policy."""

    def execute_policy(
        self, row: NDArray[Any], _policy: object
    ) -> tuple[float, bool, NDArray[np.float64], float]:
        """Return, whether it crashed, states (t, k) and seconds of one episode."""
        if self._recorder.left <= 0:
            raise _Stopped
        with _own_errors():
            start = time.perf_counter()
            seeds = np.array([self.env_seed], np.uint64)
            executions = self._recorder.run(row[None].astype(np.float64), seeds)
            seconds = time.perf_counter() - start
        if executions.errors:  # nothing is known about it; numbers keep the package going
            return 0.0, bool(executions.crashed[0]), np.zeros((1, self._state_width)), seconds
        states = executions.states[0, : int(executions.lengths[0])]
        self._state_width = states.shape[1]
        return float(executions.returns[0]), bool(executions.crashed[0]), states, seconds


def _new_executor(base: type, recorder: Recorder, case_seed: int) -> _TargetExecutor:
    """A `_TargetExecutor` that is one of the package's executors as well."""
    kind = type("TargetExecutor", (_TargetExecutor, base), {})
    executor: _TargetExecutor = kind(recorder, case_seed)
    return executor


def _case_seed(seed: int) -> int:
    """The case seed of all episodes of a trial: the package seeds its environments once."""
    return int(draw_seeds(np.random.default_rng([seed, _STREAM]), 1)[0])


def _clipped(space: InputSpace, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """`inputs` (n, d) with every value moved into the range of its dimension."""
    low = [dimension.low for dimension in space.dimensions]
    high = [dimension.high for dimension in space.dimensions]
    return np.clip(inputs, low, high)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Let errors of the target through to the caller of the trial: they are not the package's."""
    try:
        yield
    except Exception as error:
        raise _Stopped from error


@contextmanager
def _silenced() -> Iterator[None]:
    """No progress bars, prints, and warnings about numbers."""
    with (
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield
