"""How the input of an episode becomes the first state of a Gymnasium environment."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.inputs import InputSpace

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
