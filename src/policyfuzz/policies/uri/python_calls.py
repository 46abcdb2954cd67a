"""What a piece of the user's code is: something that makes policies, a policy, or a function that acts."""

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policyfuzz.policies.loaded import Spaces

_GIVEN = ("observation_space", "action_space")
#: Names of a parameter that is what a policy remembers about an episode.
STATE_NAMES = {"state", "states", "hidden", "hidden_state", "memory", "carry"}
_ACTING = ("predict", "act")


@dataclass(frozen=True, slots=True)
class Actor:
    """A function that acts, and what is known about it before the first call."""

    for_row: Callable[[int], Callable[..., Any]]  #: the function for an episode that begins
    is_own: bool  #: every episode has another one, which may remember something
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
        parameter.name in _GIVEN or parameter.default is not parameter.empty
        for parameter in parameters
        if parameter.kind != parameter.VAR_KEYWORD
    )


def made(factory: Callable[..., Any], spaces: Spaces) -> Any:
    """What `factory` makes, given the spaces that it asks for."""
    offered = dict(zip(_GIVEN, (spaces.observation, spaces.action), strict=True))
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


_UNKNOWN: list[inspect.Parameter] = []


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of `function`; _UNKNOWN for one that is built in and does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _UNKNOWN


def positional(function: Callable[..., Any]) -> tuple[int, list[str]]:
    """How many parameters must be given, and the names of all that can be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [parameter for parameter in _parameters(function) if parameter.kind in kinds]
    return sum(parameter.default is parameter.empty for parameter in found), [item.name for item in found]
