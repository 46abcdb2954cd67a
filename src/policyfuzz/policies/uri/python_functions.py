"""Functions of the user's as policies: of a batch, of one observation, with memory or without."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError, PolicyFuzzError, TargetCodeError, blamed_on
from policyfuzz.policies.actions import to_actions
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.protocol import Policy
from policyfuzz.policies.uri.network import Network, NetworkPolicy, settle
from policyfuzz.policies.uri.python_calls import Actor
from policyfuzz.policies.uri.views import made_up

Made = tuple[Callable[[], Policy], tuple[str, ...]]

#: Sizes of the batch that a function is tried with; one that is no size of anything else is taken.
_TRIAL_ROWS = (61, 59, 53, 47, 43)


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


def from_function(actor: Actor, spaces: Spaces, name: str, way: str | None) -> Made:
    """The policy of a function, after a trial; `way` is batch, single, or None to find out."""
    whose = f"policy {name}"
    if actor.needs_state or actor.is_own:
        return _single(actor, spaces, whose)
    if way == "single":
        return _single(actor, spaces, whose)
    network = _batched(actor.for_row(0), whose)
    try:
        if way is None:
            _try_batch(network, spaces)
    except PolicyFuzzError as error:  # made for one observation, or broken: the other trial tells
        return _single(actor, spaces, whose, error)
    network = settle(network, spaces, whose)
    if network.rows == 1 and way is None:
        return _single(actor, spaces, whose)
    return lambda: NetworkPolicy(network, spaces), ("takes a batch of observations", *network.notes)


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
        warnings.simplefilter("ignore")  # a function of one observation may well be astonished
        (result,) = network.run(made_up(spaces.observation, rows))
    to_actions(result, spaces.action)


def _single(actor: Actor, spaces: Spaces, whose: str, batch_error: PolicyFuzzError | None = None) -> Made:
    has_state = actor.needs_state or (actor.may_take_state and _gives_state(actor, spaces, whose))
    observations, rows = made_up(spaces.observation, 2), np.arange(2)
    policies = [SinglePolicy(actor, spaces, has_state, whose) for _ in range(2)]
    try:
        results = []
        for policy in policies:
            policy.begin(2)
            results.append([policy.results(observations, rows) for _ in range(2)])
            policy.act(observations, rows)
    except PolicyFuzzError as error:
        raise _neither(error, batch_error) from error
    again = results[0] if has_state or actor.is_own else [results[0][0]] * 2
    if not np.array_equal(again, results[1]):
        raise PolicyError(
            f"{whose} gives two different actions for the same observation",
            hint="it must be deterministic; what it remembers belongs into a state for each episode:"
            " a function of (observation, state) to (action, state), or an object with reset()",
        )
    note = "takes one observation at a time"
    return lambda: SinglePolicy(actor, spaces, has_state, whose), (
        note + (", and a state" if has_state else ""),
    )


def _gives_state(actor: Actor, spaces: Spaces, whose: str) -> bool:
    """True if a function whose state has a default returns one."""
    observation = next(_one_by_one(made_up(spaces.observation, 1)))
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
