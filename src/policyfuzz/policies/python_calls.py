"""How to call the user's Python code: with one observation, with a batch, or as a policy."""

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError, PolicyFuzzError, TargetCodeError, blamed_on
from policyfuzz.core.interfaces import Policy
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.network import Network, NetworkPolicy, validated
from policyfuzz.policies.spaces import sample_observations, to_actions

#: Makes a policy, and notes about it.
Maker = tuple[Callable[[], Policy], tuple[str, ...]]

#: Names of a parameter that is what a policy remembers about an episode.
STATE_NAMES = {"state", "states", "hidden", "hidden_state", "memory", "carry"}
#: Parameters of a factory that get a space.
_SPACE_NAMES = ("observation_space", "action_space")
#: Methods that act, the most usual first.
_ACTING = ("predict", "act")
#: Sizes of the trial batch; the first that is no size in the spaces is used.
_TRIAL_ROWS = (61, 59, 53, 47, 43)
#: The parameters of a function that is built in and does not declare any.
_UNKNOWN: list[inspect.Parameter] = []


@dataclass(frozen=True, slots=True)
class FunctionPolicy:
    """A function without memory, of observations (m, ...) to actions (m, ...).

    The action of a row must not depend on the other rows, nor on how many there are.
    """

    function: Callable[[NDArray[Any]], Any]

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.asarray(self.function(observations))


@dataclass(frozen=True, slots=True)
class EachAlone:
    """A function without memory, of one observation to one action."""

    function: Callable[[Any], Any]

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([self.function(observation) for observation in observations])


@dataclass(frozen=True, slots=True)
class Actor:
    """A function that acts, and what is known about it before the first call."""

    for_row: Callable[[int], Callable[..., Any]]  #: the function for an episode that begins
    is_per_episode: bool  #: every episode has another one, which may remember something
    needs_state: bool  #: takes (observation, state)
    may_take_state: bool  #: the state has a default


def is_protocol(thing: Any) -> bool:
    """True for an object with begin(count) and act(observations, rows)."""
    return all(callable(getattr(thing, name, None)) for name in ("begin", "act"))


def is_factory(thing: Any) -> bool:
    """True for a class, and for a function that needs nothing but the spaces."""
    if inspect.isclass(thing):
        return True
    if not (inspect.isroutine(thing) or isinstance(thing, functools.partial)):
        return False
    parameters = _parameters(thing)
    if any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters):
        return False
    return parameters is not _UNKNOWN and all(
        parameter.name in _SPACE_NAMES or parameter.default is not parameter.empty
        for parameter in parameters
        if parameter.kind != parameter.VAR_KEYWORD
    )


def call_factory(factory: Callable[..., Any], spaces: Spaces) -> Any:
    """What `factory` makes from the spaces that it asks for."""
    offered = dict(zip(_SPACE_NAMES, (spaces.observation, spaces.action), strict=True))
    names = {parameter.name for parameter in _parameters(factory)}
    return factory(**{name: space for name, space in offered.items() if name in names})


def as_actor(thing: Any, make: Callable[[], Any]) -> Actor | None:
    """`thing` as a function that acts, None if it cannot be one; `make` gives another like it, or None."""
    method = next((name for name in _ACTING if callable(getattr(thing, name, None))), None)
    if method is None and not callable(thing):
        return None
    function = _deterministic(getattr(thing, method) if method else thing)
    required, names = positional(function)
    needs = required > 1
    may = not needs and len(names) > 1 and names[1] in STATE_NAMES
    if not callable(getattr(thing, "reset", None)):
        return Actor(lambda _: function, False, needs, may)
    return Actor(_copies(thing, method, make), True, needs, may)


def function_maker(actor: Actor, spaces: Spaces, name: str, way: str | None) -> Maker:
    """The policy of a function, after a trial; `way` is batch, single, or None to find out."""
    whose = f"policy {name}"
    if actor.needs_state or actor.is_per_episode or way == "single":
        return _single(actor, spaces, whose)
    network = _batched(actor.for_row(0), whose)
    try:
        if way is None:
            _try_batch(network, spaces)
    except PolicyFuzzError as error:  # made for one observation, or broken: the other trial shows which
        return _single(actor, spaces, whose, error)
    network = validated(network, spaces, whose)
    if network.rows == 1 and way is None:
        return _single(actor, spaces, whose)
    return lambda: NetworkPolicy(network, spaces), ("takes a batch of observations", *network.notes)


def positional(function: Callable[..., Any]) -> tuple[int, list[str]]:
    """How many parameters must be given, and the names of all that can be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [parameter for parameter in _parameters(function) if parameter.kind in kinds]
    return sum(parameter.default is parameter.empty for parameter in found), [item.name for item in found]


class SinglePolicy:
    """Calls a function for one episode after the other."""

    def __init__(self, actor: Actor, spaces: Spaces, has_state: bool, whose: str) -> None:
        self._actor, self._spaces, self._has_state, self._whose = actor, spaces, has_state, whose
        self._functions: list[Callable[..., Any]] = []
        self._states: list[Any] = []

    def begin(self, count: int) -> None:
        with blamed_on(self._whose):
            self._functions = [self._actor.for_row(row) for row in range(count)]
        self._states = [None] * count

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return to_actions(self.results(observations, rows), self._spaces.action)

    def results(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """What the function itself gave (m, ...)."""
        given = zip(rows.tolist(), _one_by_one(observations), strict=True)
        with blamed_on(self._whose):
            found = [self._call(row, observation) for row, observation in given]
        shapes = {result.shape for result in found}
        if len(shapes) > 1:
            raise PolicyError(f"{self._whose} gave actions of different shapes: {sorted(shapes)}")
        return np.stack(found)

    def _call(self, row: int, observation: Any) -> NDArray[Any]:
        if not self._has_state:
            return _numbers(self._functions[row](observation), self._whose)
        result = self._functions[row](observation, self._states[row])
        if not (isinstance(result, tuple) and len(result) == 2):
            raise PolicyError(
                f"{self._whose} takes a state and returned {type(result).__name__}, expected (action, state)"
            )
        action, self._states[row] = result
        return _numbers(action, self._whose)


def _batched(function: Callable[..., Any], whose: str) -> Network:
    """`function` as a network; it raises if it does not give an action for each row."""

    def run(block: NDArray[Any]) -> tuple[NDArray[Any]]:
        with blamed_on(whose):
            result = _numbers(function(_dictionary(block.copy())), whose)
        if result.shape[:1] != (len(block),):
            raise PolicyError(
                f"{whose} gave a result of shape {result.shape} for {len(block)} observations",
                hint=f"expected ({len(block)}, ...); for a function of one observation add ?single",
            )
        return (result,)

    return Network(run, (lambda observations: observations,), may_squash=False)


def _try_batch(network: Network, spaces: Spaces) -> None:
    """Raise unless a batch, of a size that nothing else has, comes back as that many actions."""
    taken = {*_sizes(spaces.observation), *_sizes(spaces.action)}
    rows = next(count for count in _TRIAL_ROWS if count not in taken)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a function of one observation may warn about a batch
        (result,) = network.run(sample_observations(spaces.observation, rows))
    to_actions(result, spaces.action)


def _single(actor: Actor, spaces: Spaces, whose: str, batch_error: PolicyFuzzError | None = None) -> Maker:
    has_state = actor.needs_state or (actor.may_take_state and _gives_state(actor, spaces, whose))
    observations, rows = sample_observations(spaces.observation, 2), np.arange(2)
    policies = [SinglePolicy(actor, spaces, has_state, whose) for _ in range(2)]
    try:
        results = []
        for policy in policies:
            policy.begin(2)
            results.append([policy.results(observations, rows) for _ in range(2)])
            policy.act(observations, rows)
    except PolicyFuzzError as error:
        raise _neither(error, batch_error) from error
    again = results[0] if has_state or actor.is_per_episode else [results[0][0]] * 2
    if not np.array_equal(again, results[1]):
        raise PolicyError(
            f"{whose} gives two different actions for the same observation",
            hint="it must be deterministic; what it remembers belongs into a state for each episode:"
            " a function of (observation, state) to (action, state), or an object with reset()",
        )
    note = "takes one observation at a time" + (", and a state" if has_state else "")
    return lambda: SinglePolicy(actor, spaces, has_state, whose), (note,)


def _gives_state(actor: Actor, spaces: Spaces, whose: str) -> bool:
    """True if a function whose state has a default returns one."""
    observation = next(_one_by_one(sample_observations(spaces.observation, 1)))
    with blamed_on(whose):
        result = actor.for_row(0)(observation)
    return isinstance(result, tuple) and len(result) == 2 and result[1] is not None


def _neither(error: PolicyFuzzError, batch_error: PolicyFuzzError | None) -> PolicyFuzzError:
    """The error of a function that can take neither one observation nor a batch."""
    if batch_error is None or batch_error.message == error.message:
        return error
    cause = batch_error.__cause__
    text = batch_error.message if cause is None else f"{type(cause).__name__}: {cause}"
    kind = TargetCodeError if isinstance(error, TargetCodeError) else PolicyError
    return kind(f"{error.message}; that was for one observation, and for a batch: {text}", error.hint)


def _numbers(result: Any, whose: str) -> NDArray[Any]:
    """The action in what a function returned: an array, a number, a tensor, or (action, None)."""
    if isinstance(result, tuple) and len(result) == 2 and result[1] is None:
        result = result[0]
    if hasattr(result, "detach"):  # a tensor may still hang on its gradients, or sit on another device
        result = result.detach().cpu()
    array = np.asarray(result)
    if array.dtype.kind not in "biuf":
        shown = "nothing" if result is None else type(result).__name__
        raise PolicyError(f"{whose} returned {shown}, expected an action: a number or an array of numbers")
    return array


def _one_by_one(observations: NDArray[Any]) -> Iterator[Any]:
    """Each of `observations` (m, ...), a copy that may be written to; dictionaries as such."""
    names = observations.dtype.names
    for row in range(len(observations)):
        if names is None:
            yield observations[row].copy() if isinstance(observations[row], np.ndarray) else observations[row]
        else:
            yield _dictionary(observations[row : row + 1].copy(), 0)


def _dictionary(batch: NDArray[Any], row: int | None = None) -> Any:
    """Records `batch` (m,) as a dictionary or tuple of arrays (m, ...), or that of one `row`."""
    names = batch.dtype.names
    if names is None:
        return batch if row is None else batch[row]
    parts = {key: _dictionary(batch[key], row) for key in names}
    # the fields of a Tuple space are called by their positions
    is_tuple = names == tuple(str(position) for position in range(len(names)))
    return tuple(parts.values()) if is_tuple else parts


def _sizes(space: Any) -> set[int]:
    """All numbers that could be mistaken for that of the rows."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        return {size for part in parts.values() for size in _sizes(part)}
    choices: Any = getattr(space, "n", 0)
    return {*(space.shape or ()), *np.ravel(choices).tolist()}


def _copies(thing: Any, method: str | None, make: Callable[[], Any]) -> Callable[[int], Callable[..., Any]]:
    """A function that gives the acting function of a copy of `thing` for each row, reset."""
    pool: list[Any] = []

    def for_row(row: int) -> Callable[..., Any]:
        while len(pool) <= row:
            another = make()
            pool.append(copy.deepcopy(thing) if another is None else another)
        pool[row].reset()
        return _deterministic(getattr(pool[row], method) if method else pool[row])

    return for_row


def _deterministic(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with `deterministic=True` if it has that parameter, as `predict` often does."""
    if any(parameter.name == "deterministic" for parameter in _parameters(function)):
        return functools.partial(function, deterministic=True)
    return function


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of `function`, or _UNKNOWN."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _UNKNOWN
