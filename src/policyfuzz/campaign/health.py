"""Is this target worth fuzzing? Examines nominal episodes before the search starts."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.inputs import SEED_END
from policyfuzz.core.interfaces import CRASHED, ENDLESS, HUNG, NUMBERS, STATE, EpisodeError
from policyfuzz.core.target import Diagnosis, Level, MakeRunner, Run, Runner, Target
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.strategies import make_fuzzer

#: Episodes that are run twice, and once more with another case seed.
REPLAYS = 8
#: What the case seed does: it is part of the situation, makes noise while the episode runs, or nothing.
SITUATION, NOISE, UNUSED = "situation", "noise", "unused"
#: Episodes that a campaign begins with at least: fewer say too little about rare crashes.
MIN_FIRST_EPISODES = 20
#: Episodes that `check` runs by default, and seconds after which it begins no more of them.
_CHECKED_EPISODES, _CHECK_SECONDS = 1000, 20.0
#: Seconds for which episodes run before the time is looked at again.
_SLICE_SECONDS = 2.0
#: Crash rate of random inputs above which the oracle says nothing about the policy, if so many were run.
_UNHEALTHY_CRASH_RATE, _MIN_FOR_CRASH_RATE = 0.95, 10
#: The same above which crashing is what the policy usually does within the bounds.
_WEAK_CRASH_RATE = 0.5
#: Share of episodes that cannot be run above which a campaign makes no sense.
_UNHEALTHY_ERROR_SHARE = 0.5
#: Share of good draws below which the search wastes most of its time.
_LOW_VALID_RATE = 0.05
#: Share of episodes with the same margin that is worth a word.
_FLAT_SHARE = 0.1
#: Episodes per second below which a user should know what to expect.
_SLOW_RATE = 1.0


@dataclass(frozen=True, slots=True)
class Nominal:
    """Nominal episodes and what was measured while they ran."""

    executions: Executions
    replayed: Executions  #: the first few once more, with other neighbours
    reseeded: Executions | None  #: and with other case seeds; None where the seed is part of the situation
    valid_rate: float
    seconds: float  #: for `executions`

    @property
    def others(self) -> list[Executions]:
        """All episodes that were run besides `executions`."""
        return [self.replayed, *([] if self.reseeded is None else [self.reseeded])]

    @property
    def changed_by_seed(self) -> int:
        """How many of those that were run with another case seed went otherwise."""
        if self.reseeded is None:
            return 0
        first = self.executions[: len(self.reseeded)]
        pairs = zip(first.outcomes, self.reseeded.outcomes, strict=True)
        is_same = [one.is_same(other) for one, other in pairs]
        steps = min(first.states.shape[1], self.reseeded.states.shape[1])
        if first.states.shape[2] == self.reseeded.states.shape[2]:
            equal = np.equal(first.states[:, :steps], self.reseeded.states[:, :steps])
            is_same = np.logical_and(is_same, equal.all(axis=(1, 2))).tolist()
        return is_same.count(False)

    @property
    def case_seed(self) -> str:
        """What the case seed does: SITUATION, NOISE or UNUSED."""
        if self.reseeded is None:
            return SITUATION
        return NOISE if self.changed_by_seed else UNUSED


@dataclass(frozen=True, slots=True)
class Pace:
    """Runs as many episodes as fit into some time; how they are divided changes no result."""

    seconds: float  #: for all episodes of one call
    least: int  #: episodes that are run in any case
    most: int | None = None  #: episodes at once
    told: Callable[[int, int], None] | None = None  #: hears now and then how many of how many have been run

    def run(self, count: int, run: Callable[[slice], Executions]) -> Executions:
        """Results of the first of `count` episodes; `run` runs those at some positions."""
        started = now = time.perf_counter()
        parts: list[Executions] = []
        done, size = 0, self.least
        while not parts or (done < count and now - started < self.seconds):
            parts.append(run(slice(done, min(done + min(size, self.most or size), count))))
            done += len(parts[-1])
            before, now = now, time.perf_counter()
            rate = len(parts[-1]) / max(now - before, 1e-9)
            size = max(1, int(rate * min(started + self.seconds - now, _SLICE_SECONDS)))
            if self.told is not None:
                self.told(done, count)
        return concatenate(parts)

    def of_cases(self, run: Callable[[Cases], Executions]) -> Callable[[Cases], Executions]:
        """`run`, which stops in time."""
        return lambda cases: self.run(len(cases), lambda rows: run(cases[rows]))

    def of_runners(self, make_runner: MakeRunner) -> MakeRunner:
        """`make_runner`, whose runners stop in time."""

        def make(target: Target) -> Run:
            run = make_runner(target)
            return lambda inputs, seeds: self.run(len(inputs), lambda rows: run(inputs[rows], seeds[rows]))

        return make


def run_nominal(
    cases: Cases,
    run: Callable[[Cases], Executions],
    valid_rate: float,
    replays: int,
    target: Target,
) -> Nominal:
    """Run `cases`, or those that `run` has time for; the first few once more, and with other case seeds."""
    started = time.perf_counter()
    executions = run(cases)
    seconds = max(time.perf_counter() - started, 1e-9)
    first = cases[: min(replays, len(executions))]
    replayed, reseeded = run(first), None
    if not target.seed_is_situation:
        reseeded = run(with_other_seeds(first))
    return Nominal(executions, replayed, reseeded, valid_rate, seconds)


def with_other_seeds(cases: Cases) -> Cases:
    """The same inputs with other case seeds, whichever."""
    purposes = np.full(len(cases), int(Purpose.RESEED), np.int64)
    return replace(cases, seeds=(cases.seeds + np.uint64(1)) % np.uint64(SEED_END), purposes=purposes)


def check_target(
    target: Target,
    episodes: int | None,
    seed: int,
    told: Callable[[int, int], None] | None = None,
    make_runner: MakeRunner = Runner,
) -> list[Diagnosis]:
    """Diagnoses of `target` from random episodes, without a campaign.

    Without a number of `episodes`, it runs as many as fit into a short time. `told` hears how many of them
    have been run.
    """
    fuzzer, runner = make_fuzzer("random", target, seed=seed), make_runner(target)
    cases = fuzzer.ask(episodes or _CHECKED_EPISODES)
    runner(cases.inputs[:1], cases.seeds[:1])  # compiles what is to be timed
    seconds = _CHECK_SECONDS if episodes is None else math.inf
    pace = Pace(seconds, 1, target.batch_size, told)
    run = pace.of_cases(lambda some: runner(some.inputs, some.seeds))
    nominal = run_nominal(cases, run, fuzzer.validator.valid_rate, REPLAYS, target)
    return [*examine(target, nominal, make_runner), _estimate(target, nominal.executions)]


def examine(target: Target, nominal: Nominal, make_runner: MakeRunner = Runner) -> list[Diagnosis]:
    """All diagnoses, good ones included; `make_runner` runs the episodes of further checks."""
    sound = nominal.executions[nominal.executions.sound]
    diagnoses = [
        _errors(nominal.executions),
        _deterministic(nominal.executions, nominal.replayed),
        _case_seed(nominal),
        _draws(nominal.valid_rate, "valid" if target.solvable is None else "valid and solvable"),
        _speed(len(nominal.executions), nominal.seconds),
    ]
    if len(sound):
        diagnoses += [_finite(sound), _oracle(sound), _return_varies(sound)]
        diagnoses += target.further_checks(sound, make_runner) if target.further_checks else []
    return diagnoses


def is_unhealthy(diagnoses: list[Diagnosis]) -> bool:
    """True if a diagnosis forbids the search."""
    return any(diagnosis.level is Level.UNHEALTHY for diagnosis in diagnoses)


def verdict(diagnoses: list[Diagnosis]) -> Level:
    """The word for all of `diagnoses`: good, weak or unhealthy. Warnings are no reason not to search."""
    levels = {one.level for one in diagnoses}
    return next((level for level in (Level.UNHEALTHY, Level.WEAK) if level in levels), Level.GOOD)


def _errors(executions: Executions) -> Diagnosis:
    errors, count = [error for _, error in sorted(executions.errors.items())], len(executions)
    if not errors:
        return Diagnosis("errors", Level.GOOD, f"all of {count} random episodes could be run")
    share, first = len(errors) / count, errors[0]
    message = f"{share:.1%} of {count} random episodes end in an error, such as: {_described(first)}"
    level = Level.UNHEALTHY if share > _UNHEALTHY_ERROR_SHARE else Level.WARNING
    hints = {
        STATE: "the environment does not start in the state it is given; vary only its seed: --input seed",
        ENDLESS: "say how many steps an episode has at most: --horizon N",
        HUNG: "if the environment is only slow, be more patient: --timeout of workers, or within a process"
        " gym:ENVIRONMENT:patience=SECONDS",
        NUMBERS: "look for a division by zero, or steps that diverge, in the environment;"
        " where observations are infinite on purpose: gym:ENVIRONMENT:infinite=yes",
    }
    return Diagnosis("errors", level, message, hints.get(first.kind, "fix the environment"))


def _finite(executions: Executions) -> Diagnosis:
    finite = np.isfinite(executions.returns) & np.isfinite(executions.states).all(axis=(1, 2))
    if finite.all():
        return Diagnosis("numbers", Level.GOOD, "all returns and states are finite")
    share = 1 - finite.mean()
    return Diagnosis(
        "numbers",
        Level.UNHEALTHY,
        f"{share:.1%} of episodes have a NaN or infinite return or state",
        "look for a division by zero in the simulator or a diverged policy",
    )


def _described(error: EpisodeError) -> str:
    """`error` in one line, with where it happened."""
    lines = re.findall(r'^  File "(.+)", line (\d+)', error.text, re.MULTILINE)
    innermost = slice(1) if "most recent call first" in error.text else slice(-1, None)
    places = [f"{Path(file).name}:{line}" for file, line in lines[innermost]]
    return f"{error.summary} ({', '.join([*places, f'step {error.step}' if error.step else 'reset'])})"


def _deterministic(executions: Executions, replayed: Executions) -> Diagnosis:
    pairs = zip(executions[: len(replayed)].outcomes, replayed.outcomes, strict=True)
    same = np.array([first.is_same(second) for first, second in pairs], np.bool_)
    lost = _lost_once(executions, replayed)
    differs = [row for row in np.flatnonzero(~same).tolist() if row not in lost]
    if differs:
        return Diagnosis(
            "determinism",
            Level.UNHEALTHY,
            f"{len(differs)} of {len(replayed)} episodes gave another result when run again",
            "seed all randomness of simulator and policy from the case seed, and do not let rows of a batch"
            " mix (a plain matrix product does: it rounds by the number of its rows; policyfuzz.EachAlone"
            " does not); an environment that carries something over needs a new object each time:"
            " gym:ENVIRONMENT:fresh=yes",
        )
    if lost:
        first = next(iter(lost.values()))
        way = "hung" if first.kind == HUNG else "killed its worker"
        return Diagnosis(
            "determinism",
            Level.WARNING,
            f"{len(lost)} of {len(replayed)} episodes could be run only once, the other time one {way}:"
            f" {_described(first)}",
            "does something else stop the workers, such as a limit on memory? If not, the environment crashes"
            " or hangs by chance",
        )
    return Diagnosis("determinism", Level.GOOD, f"{len(replayed)} episodes run twice gave the same result")


def _case_seed(nominal: Nominal) -> Diagnosis:
    messages = {
        SITUATION: "the case seed is part of the situation, as the input is",
        UNUSED: f"another case seed changes none of {len(nominal.reseeded or ())} episodes",
        NOISE: f"another case seed changes {nominal.changed_by_seed} of {len(nominal.reseeded or ())}"
        " episodes: findings are tried with others, and luck does not count",
    }
    return Diagnosis("case seed", Level.GOOD, messages[nominal.case_seed])


def _lost_once(executions: Executions, replayed: Executions) -> dict[int, EpisodeError]:
    """Row to error of the episodes whose worker died or hung in one of both runs: they cannot be compared."""
    lost = {}
    for row in range(len(replayed)):
        runs = [run.errors.get(row) for run in (executions, replayed)]
        ends = [error for error in runs if error is not None and error.kind in (CRASHED, HUNG)]
        if len(ends) == 1:
            lost[row] = ends[0]
    return lost


def _oracle(executions: Executions) -> Diagnosis:
    rate = float(executions.crashed.mean())
    count = len(executions)
    if rate > _UNHEALTHY_CRASH_RATE and count >= _MIN_FOR_CRASH_RATE:
        return Diagnosis(
            "oracle",
            Level.UNHEALTHY,
            f"{rate:.1%} of {count} random episodes crash",
            "the policy does not do its task (wrong weights? missing normalisation?), the oracle is wrong, or"
            " the bounds are too wide",
        )
    if rate > _WEAK_CRASH_RATE and count >= _MIN_FOR_CRASH_RATE:
        return Diagnosis(
            "oracle",
            Level.WEAK,
            f"{rate:.1%} of {count} random episodes crash: a finding is no more than one of them",
            "choose narrower bounds (of an environment: --bounds own, or a smaller factor), or train it on",
        )
    if rate == 0:
        rare = ": crashes are rare" if count >= MIN_FIRST_EPISODES else ""
        return Diagnosis("oracle", Level.GOOD, f"none of {count} random episodes crashes{rare}")
    return Diagnosis("oracle", Level.GOOD, f"{rate:.2%} of {count} random episodes crash")


def _return_varies(executions: Executions) -> Diagnosis:
    returns = executions.returns[np.isfinite(executions.returns)]
    if len(returns) == 0:
        return Diagnosis("return", Level.WARNING, "no episode has a finite return", "fix the numbers first")
    if len(returns) < 2 or np.ptp(returns) > 1e-9 * max(1.0, float(np.abs(returns).max())):
        return Diagnosis("return", Level.GOOD, f"returns from {returns.min():.4g} to {returns.max():.4g}")
    return Diagnosis(
        "return",
        Level.WARNING,
        f"every episode returns {returns[0]:.4g}: return cannot guide the search",
        "give the simulator a reward that falls as a crash comes nearer",
    )


def _estimate(target: Target, executions: Executions) -> Diagnosis:
    """Whether `policyfuzz estimate` can do more than count failures among random draws."""
    passed = executions.verdicts.margins[executions.sound & ~executions.crashed]
    if target.inputs.from_uniform is None:
        problem = "the input space has a sampler and no uniform_map"
    elif not np.isfinite(passed).any():
        problem = "the oracle tells no margin"
    else:
        values, counts = np.unique(passed, return_counts=True)
        share, value = counts.max() / len(passed), values[counts.argmax()]
        flat = f"; {share:.0%} of random episodes have the margin {value:.4g}, where it leads nowhere"
        message = f"rare failures can be estimated{flat if share > _FLAT_SHARE else ''}"
        return Diagnosis("estimate", Level.GOOD, message)
    return Diagnosis("estimate", Level.GOOD, f"common failures only, by plain sampling: {problem}")


def _draws(valid_rate: float, good: str) -> Diagnosis:
    if valid_rate >= _LOW_VALID_RATE:
        return Diagnosis("inputs", Level.GOOD, f"{valid_rate:.1%} of drawn inputs are {good}")
    return Diagnosis(
        "inputs",
        Level.WARNING,
        f"only {valid_rate:.2%} of drawn inputs are {good}",
        "narrow the dimensions to where the constraint can hold",
    )


def _speed(count: int, seconds: float) -> Diagnosis:
    rate = count / max(seconds, 1e-9)
    if rate >= _SLOW_RATE:
        return Diagnosis("speed", Level.GOOD, f"{rate:,.0f} episodes per second")
    return Diagnosis(
        "speed",
        Level.WARNING,
        f"one episode takes {1 / rate:.1f} s",
        "shorten the horizon, or plan for a long campaign",
    )
