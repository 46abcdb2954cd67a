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
from policyfuzz.oracles import NONE, Oracle, Trajectories, Verdicts
from policyfuzz.oracles.defaults import NominalEpisodes
from policyfuzz.policies.loaded import LoadedPolicy

#: Episodes that nominal returns are taken from. Their seeds are fixed: the same policy has the same ones.
EPISODES = 50
#: Stands for a signal that is missing, since a state must not be NaN.
_MISSING = -np.inf
#: Standard errors below the recorded return that are more than chance.
_STANDARD_ERRORS = 3.0
#: Share of what training had gained over random actions: with less the policy is weak, or broken.
_WEAK_SHARE, _BROKEN_SHARE = 0.8, 0.5
#: Crash rates from the environment's own reset. Up to the first one, a crash is an exception that is worth a
#: search. From the second one on, the policy fails more often than not, and a finding is an ordinary episode.
_WEAK_RATE, _UNHEALTHY_RATE = 0.05, 0.5
#: Normal episodes whose return is shown.
_SHOWN = 3
#: Episodes with random actions that tell whether an oracle can fire at all.
_RANDOM_EPISODES = 50
#: Episodes from the own reset that tell what random actions earn: a median needs no more.
EPISODES_AT_RANDOM = 10


class NominalRun:
    """Runs episodes from the environment's own reset when they are first asked for, and remembers them."""

    def __init__(
        self,
        make_simulator: Callable[[], Simulator],
        make_policy: Callable[[], Policy],
        horizon: int,
        count: int = EPISODES,
    ) -> None:
        self._make_simulator, self._make_policy = make_simulator, make_policy
        self._horizon, self._count = horizon, count
        self._episodes: NominalEpisodes | None = None
        self._trajectories: Trajectories | None = None

    def __call__(self, make_runner: MakeRunner) -> NominalEpisodes:
        """The episodes, run by what `make_runner` gives unless they are known already.

        Episodes that could not be run are left out.
        """
        if self._episodes is None:
            self._episodes = self._run(make_runner)
        return self._episodes

    def judged(self, oracle: Oracle, make_runner: MakeRunner) -> "JudgedEpisodes":
        """What `oracle` says of the episodes."""
        self(make_runner)
        seen = self._trajectories
        assert seen is not None
        crashed = oracle.judge(seen).crashed
        returns = np.where(seen.counted, seen.rewards, 0.0).sum(axis=1)
        kept = seen.sound | crashed
        return JudgedEpisodes(crashed[kept], returns[kept])

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
        seeds = np.arange(self._count, dtype=np.uint64)
        executions = make_runner(target)(seeds.astype(np.float64)[:, None], seeds)
        self._trajectories = _trajectories(executions, names)
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
class JudgedEpisodes:
    """n episodes from the environment's own reset, and which of them are crashes."""

    crashed: NDArray[np.bool_]  #: (n,)
    returns: NDArray[np.float64]  #: (n,)


def _trajectories(executions: Executions, names: tuple[str, ...]) -> Trajectories:
    """What the oracle sees of `executions` whose states are signals and reward."""
    if executions.states.shape[2] != len(names) + 1:  # no episode could be run
        nothing = np.zeros((len(executions), 1, len(names)))
        lengths = np.ones(len(executions), np.int64)
        return Trajectories(nothing, names, nothing[:, :, 0], lengths, executions.errors)
    signals, rewards = executions.states[:, :, :-1], executions.states[:, :, -1]
    signals = np.where(signals == _MISSING, np.nan, signals)
    return Trajectories(signals, names, rewards, executions.lengths, executions.errors)


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
        judged = self.nominal.judged(self.target.oracle, make_runner)
        diagnoses = [
            _crash_rates(judged, sound),
            _examples(judged, sound),
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


def _crash_rates(judged: JudgedEpisodes, sound: Executions) -> Diagnosis:
    """Crashes from the own reset and within the bounds, side by side.

    A policy that fails from its own reset, but not within bounds that the user gave, is made for these.
    """
    crashes, episodes = int(np.count_nonzero(judged.crashed)), len(judged.crashed)
    in_bounds, drawn = int(np.count_nonzero(sound.crashed)), len(sound)
    counts = {"crashes": crashes, "episodes": episodes, "crashes_in_bounds": in_bounds, "draws": drawn}
    own = f"{crashes} of {episodes} from the environment's own reset"
    said = f"{own}, {in_bounds} of {drawn} within the bounds"
    rate = crashes / episodes if episodes else 0.0
    if rate > _UNHEALTHY_RATE and in_bounds > _UNHEALTHY_RATE * drawn:
        return Diagnosis(
            "crash rate",
            Level.UNHEALTHY,
            f"{said}: the policy fails more often than not, and a finding would be an ordinary episode",
            "train it first (wrong weights? missing normalisation?), or say what a crash is: --oracle",
            counts,
        )
    if rate > _WEAK_RATE:
        return Diagnosis(
            "crash rate",
            Level.WEAK,
            f"{said}: the policy fails anyway",
            "train it on; or fuzz it to compare its failures, not to show that there are some",
            counts,
        )
    return Diagnosis("crash rate", Level.GOOD, said, counts=counts)


def _examples(judged: JudgedEpisodes, sound: Executions) -> Diagnosis:
    """Returns of a few normal episodes and of a failing one, so that the user sees what the oracle does."""
    normal = ", ".join(f"{one:.4g}" for one in judged.returns[~judged.crashed][:_SHOWN]) or "none"
    failing = [*sound.returns[sound.crashed], *judged.returns[judged.crashed]]
    worst = f"the worst failing one {min(failing):.4g}" if failing else "no failing one was seen"
    return Diagnosis("examples", Level.GOOD, f"returns of normal episodes: {normal}; {worst}")


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
    said = f"{said}; {recorded:.4g} when it was trained"
    if recorded - mean <= max(_STANDARD_ERRORS * error, (1 - _WEAK_SHARE) * abs(recorded)):
        return Diagnosis("policy", Level.GOOD, said)
    # training samples actions, and the best ones alone may earn less: the policy need not be broken
    chance = float(at_random().returns.mean())
    share = (mean - chance) / (recorded - chance) if recorded > chance else 1.0
    if share >= _WEAK_SHARE:
        return Diagnosis("policy", Level.GOOD, said)
    return Diagnosis(
        "policy",
        Level.UNHEALTHY if share < _BROKEN_SHARE else Level.WEAK,
        f"{said}, and random actions {chance:.4g}: {max(share, 0.0):.0%} of what it had learnt is left",
        "are VecNormalize statistics missing (sb3:FILE.zip?normalize=STATS.pkl), a wrapper"
        " (gym:ENVIRONMENT:wrap=module:Class), or arguments of it (gym:ENVIRONMENT:env.NAME=VALUE)?",
    )


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
