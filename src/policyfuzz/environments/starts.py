"""How the input of an episode becomes the first state of an environment."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.code_files import load_file
from policyfuzz.core.errors import UsageError, blamed_on
from policyfuzz.core.inputs import InputSpace, Seed

#: What `env.reset` returns: observation and info.
FirstObservation = tuple[Any, dict[str, Any]]


class Start(Protocol):
    """One way to start an environment from a row of numbers."""

    @property
    def way(self) -> str:
        """How it is done: "state", "options" or "seed"."""
        ...

    @property
    def label(self) -> str:
        """What the input is, for a reader: "position and speed of cart and pole"."""
        ...

    @property
    def inputs(self) -> InputSpace:
        """The dimensions of the input, and which of them fit together."""
        ...

    @property
    def oracle(self) -> str | None:
        """What usually counts as a crash here, in the words of `oracles.language`; None: nobody knows."""
        ...

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
        """Start an episode of `env` at `values` (d,), and return what its own reset would.

        `env` is the innermost environment, and `reset` its own method: wrappers are outside of this and
        see what is returned here. `seed` feeds whatever `values` do not determine.
        """
        ...

    def read(self, env: Any) -> NDArray[np.float64]:
        """(d,) the input as `env` holds it right after `begin`; NaN where it cannot be read back."""
        ...


@dataclass(frozen=True, slots=True)
class SeedStart:
    """Passes the input to `reset` as its seed; the seed of the case is not used."""

    way: ClassVar[str] = "seed"
    label: ClassVar[str] = "the seed of reset; a changed seed is a fresh draw, so mutation cannot climb"
    oracle: ClassVar[str | None] = None
    inputs: ClassVar[InputSpace] = InputSpace((Seed("seed"),))

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
        return reset(seed=int(values[0]))

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.full(1, np.nan)  # what became of a seed cannot be told from outside


_PARTS = ("inputs", "begin", "read")


@dataclass(frozen=True, slots=True)
class UsersStart:
    """What the user wrote, with an answer for whatever was left out."""

    file: Path
    written: Any  #: has inputs, begin and read

    @property
    def way(self) -> str:
        return str(getattr(self.written, "way", "state"))

    @property
    def label(self) -> str:
        return str(getattr(self.written, "label", f"as {self.file.name} says"))

    @property
    def inputs(self) -> InputSpace:
        inputs: InputSpace = self.written.inputs
        return inputs

    @property
    def oracle(self) -> str | None:
        oracle: str | None = getattr(self.written, "oracle", None)
        return oracle

    @property
    def solvable(self) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
        """(n, d) -> (n,), None where the user does not say."""
        solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None
        solvable = getattr(self.written, "solvable", None)
        return solvable

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
        first: FirstObservation = self.written.begin(env, reset, values, seed)
        return first

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.asarray(self.written.read(env), np.float64)


def start_from_file(file: Path, env: Any) -> Start:
    """The start that `file` describes for `env`.

    It holds a function `start(env)`, or one class that takes no arguments; either gives something that has
    `inputs`, `begin` and `read`, as `simulators.gym.start.Start` explains them.
    """
    with blamed_on(f"the input file {file}"):
        module = load_file(file, "input")
        written = _made(file, module, env)
        missing = [part for part in _PARTS if not hasattr(written, part)]
    if missing:
        raise UsageError(
            f"the start of {file} is a {type(written).__name__} without {', '.join(missing)}",
            "it needs inputs (an InputSpace), begin(env, reset, values, seed) and read(env)",
        )
    if not isinstance(written.inputs, InputSpace):
        raise UsageError(f"inputs in {file} is a {type(written.inputs).__name__}, expected an InputSpace")
    return UsersStart(file, written)


def _made(file: Path, module: ModuleType, env: Any) -> Any:
    make = getattr(module, "start", None)
    if make is not None and not inspect.isclass(make):
        return make(env)
    own = [cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__]
    starts = [cls for cls in own if hasattr(cls, "begin") and hasattr(cls, "read")]
    if len(starts) != 1:
        raise UsageError(
            f"{file} has no function start, and {len(starts)} classes with begin and read",
            "write def start(env): ... that returns an object with inputs, begin and read",
        )
    return starts[0]()
