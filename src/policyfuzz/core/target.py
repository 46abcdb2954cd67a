"""What is fuzzed: data plus factories, so that every worker can build its own; options in its name."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.branches import Branches, Segment, SteeredPolicy
from policyfuzz.core.errors import PolicyError, UsageError, blamed_on, unknown_name
from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.inputs import Inputs, InputSpace
from policyfuzz.core.interfaces import Policy, Simulator
from policyfuzz.core.oracle import Oracle
from policyfuzz.core.own_reset import OwnReset
from policyfuzz.core.rollout import Observer, SimulatorRaised, not_run, rollout, shifted

#: Runs an episode for each row of inputs (n, d) with case seeds (n,).
Run = Callable[[NDArray[np.float64], NDArray[np.uint64]], Executions]
#: Gives what runs episodes of a target: a `Runner` in this process, or something safer.
MakeRunner = Callable[["Target"], Run]


class RunBranches(Protocol):
    """A `Run` that can also depart from what the policy does."""

    def __call__(
        self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *, branches: Branches | None = None
    ) -> Executions:
        """Run an episode for each row of `inputs` (n, d) with case seeds (n,), and with these `branches`."""
        ...


#: Gives what runs episodes of a target and branches of them.
MakeBranchRunner = Callable[["Target"], RunBranches]


@dataclass(frozen=True, slots=True)
class Target:
    """A policy in its environment, and what counts as a crash of it."""

    name: str  #: the string that rebuilds this target: built-in name with options, or module:function
    inputs: InputSpace
    simulator: Callable[[], Simulator]
    policy: Callable[[], Policy]
    oracle: Oracle
    horizon: int  #: steps of an episode at most (M in the paper)
    policy_name: str = "built in"  #: for readers
    policy_uri: str | None = None  #: loads the same policy from any folder; None for the target's own
    policy_sha256: str = ""  #: of the policy's content; a campaign is resumed only with the same one
    code_sha256: str = ""  #: of the user's own files that it is written in; as `policy_sha256`
    #: (n, d) -> (n,) True where a perfect policy would not crash; None if that is not known.
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    #: True: the case seed is part of the situation, such as a terrain. False: if it does anything, it makes
    #: noise, and a finding is tried with others.
    seed_is_situation: bool = False
    own_reset: OwnReset | None = None  #: what the environment's own reset draws; None if it has none
    decay: float = 1.0  #: the return follows r <- decay · r + reward
    #: What could be done instead of what the policy does; None if that cannot be written as numbers.
    actions: ActionSpace | None = None
    #: Gives a simulator whose episodes may last so many steps, where `simulator` would end them sooner.
    long_simulator: Callable[[int], Simulator] | None = None
    batch_size: int = 64  #: episodes per batch by default
    samples: int = 1000  #: random inputs before the first is changed by default; fewer if episodes are slow
    compiles: bool = False  #: the first episode of a new installation takes seconds, to compile what it runs
    max_workers: int | None = None  #: that may run it at the same time, None for any number
    film_steps_per_second: int = 20  #: if the simulator renders
    film_simulator: Callable[[], Simulator] | None = None  #: renders, if `simulator` should not
    notes: tuple[str, ...] = ()  #: what was detected or chosen for the user; `check` prints it
    #: Looks at random episodes that could be run, and runs some more, for `check` and for campaigns.
    further_checks: Callable[[Executions, MakeRunner], list["Diagnosis"]] | None = None
    #: Draws one replayed episode: target, input (d,), case seed, PNG file to write, what a witness does
    #: instead of the policy (nothing: there is none), and the step of the point of no return if it is known.
    draw: Callable[["Target", NDArray[np.float64], int, Path, Sequence[Segment], int | None], None] | None = (
        None
    )

    def __post_init__(self) -> None:
        for what in ("horizon", "batch_size", "samples", "film_steps_per_second"):
            if getattr(self, what) < 1:
                raise UsageError(f"target {self.name} has {what} {getattr(self, what)}, expected 1 or more")
        for text in map(str, (*self.inputs.texts, *self.oracle.kinds)):
            if not text.isprintable() and any("\ud800" <= one <= "\udfff" for one in text):
                raise UsageError(
                    f"target {self.name} calls something {text!r}, which is no text and cannot be stored",
                    "name dimensions, units, options and kinds of crashes in Unicode",
                )

    @property
    def is_identified(self) -> bool:
        """False for a policy of this process that cannot be told from another one of the same code."""
        is_content = bool(self.policy_sha256) and not self.policy_sha256.startswith(SOURCE_ONLY)
        return is_content or not self.name.startswith(f"{IN_MEMORY}:")

    def check_identified(self) -> None:
        """Refuse a policy whose results no file can keep."""
        if not self.is_identified:
            raise UsageError(
                f"what {self.policy_name} is made of cannot be told, so no file can say what it has done",
                "leave the file out, or save the policy and give its name: sb3:FILE.zip, onnx:FILE, ...",
            )

    def allows(self, inputs: Inputs) -> NDArray[np.bool_]:
        """(n,) True where one of `inputs` (n, d) is valid, and solvable if the target tests that."""
        allowed = self.inputs.is_valid(inputs)
        if self.solvable is not None and allowed.any():  # of invalid ones, nobody may ask it
            allowed[allowed] = self.solvable(inputs[allowed])
        return allowed

    def for_film(self) -> "Target":
        """The same target, with a simulator that renders if there is one."""
        return self if self.film_simulator is None else replace(self, simulator=self.film_simulator)

    def prolonged(self, factor: int) -> "Target":
        """The same target with episodes that may last `factor` times as long."""
        steps, make = factor * self.horizon, self.long_simulator
        return replace(
            self,
            horizon=steps,
            simulator=self.simulator if make is None else lambda: make(steps),
            film_simulator=None,
        )


class Runner:
    """A target's simulator and policy, built once and ready to run episodes."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.simulator = self._new_simulator()
        with blamed_on(f"the policy of target {target.name}"):
            self.policy = target.policy()

    def __call__(
        self,
        inputs: NDArray[np.float64],
        seeds: NDArray[np.uint64],
        observer: Observer | None = None,
        *,
        branches: Branches | None = None,
    ) -> Executions:
        """Run one episode for each row of `inputs` (n, d) with case seeds (n,), and with its `branches`.

        A simulator that raises gets each episode alone, so that one bad episode costs itself only.
        """
        policy = self.policy if branches is None else self._steered(branches)
        try:
            return rollout(
                self.simulator,
                policy,
                self.target.oracle,
                inputs,
                seeds,
                horizon=self.target.horizon,
                decay=self.target.decay,
                observer=observer,
            )
        except SimulatorRaised as raised:
            # its state after an exception is unknown
            self.simulator = self._new_simulator()
            if len(inputs) == 1:
                return not_run(raised.error, self.target.oracle, self.simulator.signals)
        rows = range(len(inputs))
        return concatenate([self._alone(row, inputs, seeds, observer, branches) for row in rows])

    def _alone(
        self,
        row: int,
        inputs: NDArray[np.float64],
        seeds: NDArray[np.uint64],
        observer: Observer | None,
        branches: Branches | None,
    ) -> Executions:
        """Run the episode of one `row` of a batch; `observer` sees all of it once more."""
        one = slice(row, row + 1)
        watch = None if observer is None else shifted(observer, row)
        return self(inputs[one], seeds[one], watch, branches=None if branches is None else branches[one])

    def _steered(self, branches: Branches) -> Policy:
        if self.target.actions is None:
            raise UsageError(
                f"the actions of {self.target.name} cannot be replaced by others",
                "its target has no action space: give it actions=ActionSpace.box(low, high)",
            )
        return SteeredPolicy(self.policy, branches, self.target.actions)

    def _new_simulator(self) -> Simulator:
        with blamed_on(f"the simulator of target {self.target.name}"):
            return self.target.simulator()


class Level(StrEnum):
    """How bad a diagnosis is."""

    GOOD = "good"
    WARNING = "warning"
    WEAK = "weak"  #: the policy fails anyway, so findings say little about it
    UNHEALTHY = "unhealthy"  #: the search would have no meaning


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one health check says about a target."""

    name: str
    level: Level
    message: str
    hint: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  #: the same for programs


#: Targets that were made in Python are called IN_MEMORY:SOMETHING, and cannot be rebuilt from that.
IN_MEMORY = "python"
#: Begins the digest of a policy of this process of which only the source is known, and not all its values.
SOURCE_ONLY = "source:"
#: What separates options from the name, which may hold colons itself, and from each other.
_BEFORE_OPTIONS, _BETWEEN_OPTIONS = re.compile(r":(?=[A-Za-z_][\w.]*=)"), re.compile(r",(?=[A-Za-z_][\w.]*=)")


def split_options(name: str) -> tuple[str, dict[str, str]]:
    """The name without its options, and the options."""
    base, *rest = _BEFORE_OPTIONS.split(name, maxsplit=1)
    items = _BETWEEN_OPTIONS.split(rest[0]) if rest else []
    options = dict(item.split("=", 1) for item in items)
    if len(options) < len(items):
        raise UsageError(f"target {name!r} gives an option twice")
    return base, options


def joined(base: str, options: Mapping[str, str]) -> str:
    """The name `base` with `options`, sorted."""
    for key, value in options.items():
        if _BETWEEN_OPTIONS.search(value):
            raise UsageError(f"{key} is {value!r}, which looks like two options", "rename the file, or use ;")
    text = ",".join(f"{key}={value}" for key, value in sorted(options.items()))
    return f"{base}:{text}" if text else base


def check_options(base: str, options: Mapping[str, str], known: Collection[str]) -> None:
    """Refuse an option that is not `known`. A known name that ends in a dot allows all that begin with it."""
    families = tuple(name for name in known if name.endswith("."))
    for key in options:
        if key not in known and not (families and key.startswith(families)):
            raise unknown_name(f"option of target {base}", key, known)


Number = TypeVar("Number", int, float)


def number(
    options: Mapping[str, str], name: str, default: Number, kind: type[Number], low: Number, high: Number
) -> Number:
    """The option called `name`, a number of this `kind` from `low` to `high`."""
    text = options.get(name, str(default))
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} is {text!r}, expected {what} from {low:g} to {high:g}")
    return value


def choice(options: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """The option called `name`, one of `known`; the first of them by default."""
    text = options.get(name, known[0])
    if text not in known:
        raise UsageError(f"{name} is {text!r}, expected {', '.join(known[:-1])} or {known[-1]}")
    return text


def policy_path(target: str, policy: str | None, scheme: str, expected: str) -> Path | None:
    """The absolute path in `policy`, scheme:PATH; None for the target's own. `expected` is for a hint."""
    if policy is None:
        return None
    if not policy.startswith(f"{scheme}:"):
        raise PolicyError(f"{target} cannot use policy {policy!r}", hint=f"give --policy {scheme}:{expected}")
    try:
        return Path(policy.removeprefix(f"{scheme}:")).expanduser().resolve()
    except (RuntimeError, OSError, ValueError) as error:  # a loop of links, an unknown user, NUL
        raise UsageError(f"policy {policy!r} names no file: {error}") from error
