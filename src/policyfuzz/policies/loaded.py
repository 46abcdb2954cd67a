"""A policy that was named by a URI: how to make it, and where it came from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyfuzz.core.interfaces import Policy

if TYPE_CHECKING:
    from gymnasium import Space


@dataclass(frozen=True, slots=True)
class Spaces:
    """What a policy is given, and what it has to give."""

    observation: "Space[Any]"
    action: "Space[Any]"


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy and where it came from."""

    make: Callable[[], Policy]
    name: str  #: for readers
    uri: str  #: loads the same policy from any folder
    sha256: str  #: of its content
    recorded_return: float | None = None  #: mean return of its last episodes in training, if its file tells
    notes: tuple[str, ...] = ()  #: what was found beside it and is used: normalisation, number of threads
