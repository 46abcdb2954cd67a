"""What environments of known families tell about how near they are to failing, for graded oracles."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from policyfuzz.core.oracle import Oracle
from policyfuzz.environments.find_start import family_module

#: What reading an environment raises whose class has changed what a family knows about it.
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Gauge:
    """Numbers to read from an environment after its reset and after every step."""

    signals: tuple[str, ...]  #: their names, as `oracles.graded` knows them
    read: Callable[[Any], tuple[float, ...]]  #: from the innermost environment, which it must not change
    failure: Oracle | None = None  #: what happens where there is no room left


def find_gauge(env: Any) -> Gauge | None:
    """The gauge of the family that `env` belongs to, None where there is none."""
    base = env.unwrapped
    find = getattr(family_module(base), "gauge", None)
    if find is not None:
        with suppress(*UNREADABLE):
            gauge: Gauge | None = find(base)
            return gauge
    return None
