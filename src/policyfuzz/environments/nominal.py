"""Episodes from the environment's own reset, and what they say about policy and oracle."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Frame, Policy, Simulator
from policyfuzz.core.target import Diagnosis, Level, MakeRunner, Target
from policyfuzz.environments.starts import SeedStart
from policyfuzz.oracles import NONE, Trajectories, Verdicts
from policyfuzz.oracles.defaults import NominalEpisodes
from policyfuzz.policies.loaded import LoadedPolicy

#: Episodes that nominal returns are taken from. Their seeds are fixed: the same policy has the same ones.
EPISODES = 50
#: Stands for a signal that is missing, since a state must not be NaN.
_MISSING = -np.inf
#: How far below the recorded return, as a share of it and in standard errors, is too far for chance.
_TOO_FAR, _STANDARD_ERRORS = 0.5, 3.0
#: Episodes with random actions that tell whether an oracle can fire at all.
_RANDOM_EPISODES = 50


class NominalRun:
    """Runs episodes from the environment's own reset when they are first asked for, and remembers them."""

    def __init__(
        self, make_simulator: Callable[[], Simulator], make_policy: Callable[[], Policy], horizon: int
    ) -> None:
        self._make_simulator, self._make_policy, self._horizon = make_simulator, make_policy, horizon
        self._episodes: NominalEpisodes | None = None

    def __call__(self, make_runner: MakeRunner) -> NominalEpisodes:
        """The episodes, run by what `make_runner` gives unless they are known already.

        Episodes that could not be run are left out.
        """
        if self._episodes is None:
            self._episodes = self._run(make_runner)
        return self._episodes

    def _run(self, make_runner: MakeRunner) -> NominalEpisodes:
        make_simulator = self._make_simulator
        names = make_simulator().signals
        target = Target(
            "nominal episodes",
            SeedStart.inputs,
            lambda: _SignalsAsStates(make_simulator()),
            self._make_policy,
            _NeverFires(),
            self._horizon,
        )
        seeds = np.arange(EPISODES, dtype=np.uint64)
        executions = make_runner(target)(seeds.astype(np.float64)[:, None], seeds)
        sound = executions[executions.sound]
        seen = sound.states if len(sound) else np.empty((0, 1, len(names) + 1))
        last = seen[np.arange(len(sound)), sound.lengths - 1]
        largest = np.where(sound.counted[:, :, None] & (seen != _MISSING), seen, -np.inf).max(axis=1)
        terminated = last[:, names.index("terminated")] > 0
        return NominalEpisodes(
            returns=sound.returns,
            lengths=sound.lengths,
            terminated=terminated,
            truncated=~terminated,
            info={
                name.removeprefix("info."): np.where(np.isneginf(column), np.nan, column)
                for name, column in zip(names, largest.T, strict=False)
                if "info." in name
            },
            last_rewards=last[:, -1],
            failure=next((error.summary for error in executions.errors.values()), ""),
        )


@dataclass(frozen=True, slots=True)
class NominalChecks:
    """Further checks of a target: what nominal episodes and random actions say about policy and oracle."""

    target: Target
    policy: LoadedPolicy
    nominal: NominalRun
    random_policy: Callable[[], Policy]
    at_random: NominalRun  #: what random actions earn
    info_keys: tuple[str, ...]  #: that the oracle looks at
    has_other_horizon: bool  #: than the environment's own, which the policy was trained with

    def __call__(self, sound: Executions, make_runner: MakeRunner) -> list[Diagnosis]:
        """The diagnoses, given random episodes that could be run."""
        nominal = self.nominal(make_runner)
        diagnoses = [
            _recorded_return(
                self.policy.recorded_return,
                nominal,
                self.has_other_horizon,
                lambda: self.at_random(make_runner),
            ),
            *_missing_keys(self.info_keys, nominal),
        ]
        if not sound.crashed.any():
            diagnoses.append(_can_fire(self.target, self.random_policy, make_runner))
        return diagnoses


class RandomActions:
    """Draws actions from their space: what any oracle of a control task should catch now and then."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, count: int) -> None:
        self._space.seed(0)

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([self._space.sample() for _ in rows])


class _SignalsAsStates:
    """A simulator whose states are what the oracle sees, and the reward: executions carry states."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.signals, self.capacity = simulator.signals, simulator.capacity

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        return self._with_signals(self._simulator.reset(inputs, seeds))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        return self._with_signals(self._simulator.step(actions, rows))

    def _with_signals(self, frame: Frame) -> Frame:
        seen = np.column_stack([frame.signals, frame.rewards])
        seen[np.isnan(seen)] = _MISSING  # info may lack a key, which is no error
        seen[np.isnan(frame.states).any(axis=1)] = np.nan  # and this is one
        return replace(frame, states=seen)


class _NeverFires:
    """An oracle that never fires."""

    kinds = ("never",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        none = np.full(len(trajectories.lengths), NONE)
        return Verdicts(none, none)


def _recorded_return(
    recorded: float | None,
    nominal: NominalEpisodes,
    has_other_horizon: bool,
    at_random: Callable[[], NominalEpisodes],
) -> Diagnosis:
    """Whether the policy earns what its file says it earned in training."""
    returns = nominal.returns[np.isfinite(nominal.returns)]
    if len(returns) == 0:
        said = "no episode from the environment's own reset could be run to a finite return"
        return Diagnosis("policy", Level.WARNING, said, "look at the errors first")
    mean, error = float(returns.mean()), float(returns.std() / np.sqrt(len(returns)))
    said = f"returns {mean:.4g} on average from the environment's own reset"
    if recorded is None:
        return Diagnosis("policy", Level.GOOD, f"{said}; its file records nothing to compare with")
    if has_other_horizon:
        return Diagnosis("policy", Level.GOOD, f"{said}; {recorded:.4g} in training, with another horizon")
    short = recorded - mean
    if short > _TOO_FAR * max(abs(recorded), float(returns.std())) and short > _STANDARD_ERRORS * error:
        # training samples actions, and the best ones alone may earn less: the policy need not be broken
        is_broken = mean < (float(at_random().returns.mean()) + recorded) / 2
        return Diagnosis(
            "policy",
            Level.UNHEALTHY if is_broken else Level.WARNING,
            f"{said}, and {recorded:.4g} when it was trained",
            "are VecNormalize statistics missing (sb3:FILE.zip?normalize=STATS.pkl), a wrapper"
            " (gym:ENVIRONMENT:wrap=module:Class), or arguments of it (gym:ENVIRONMENT:env.NAME=VALUE)?",
        )
    return Diagnosis("policy", Level.GOOD, f"{said}; {recorded:.4g} when it was trained")


def _missing_keys(keys: tuple[str, ...], nominal: NominalEpisodes) -> list[Diagnosis]:
    """A warning if the oracle looks at keys that `info` never has.

    Some environments have a key only in the step in which it is true, so a missing one may be well spelt.
    """
    missing = [key for key in keys if np.isnan(nominal.info[key]).all()]
    if not missing:
        return []
    said = f"info never has {' and '.join(missing)} as a number in {len(nominal)} nominal episodes"
    hint = "is the key in the oracle spelt as the environment spells it?"
    return [Diagnosis("oracle keys", Level.WARNING, said, hint)]


def _can_fire(target: Target, random_policy: Callable[[], Policy], make_runner: MakeRunner) -> Diagnosis:
    """Whether random actions crash if the policy does not."""
    run = make_runner(replace(target, policy=random_policy))
    rng = np.random.default_rng(0)
    inputs = target.inputs.sample(rng, 4 * _RANDOM_EPISODES)
    inputs = inputs[target.inputs.is_valid(inputs)][:_RANDOM_EPISODES]
    crashed = run(inputs, np.arange(len(inputs), dtype=np.uint64)).crashed
    if crashed.any():
        said = f"the policy has not crashed yet; random actions crash in {crashed.mean():.0%} of episodes"
        return Diagnosis("oracle can fire", Level.GOOD, said)
    return Diagnosis(
        "oracle can fire",
        Level.WARNING,
        f"neither the policy nor random actions crash in {len(inputs)} episodes:"
        f" can {' or '.join(target.oracle.kinds)} happen at all?",
        "try another --oracle, or wider bounds with --input",
    )
