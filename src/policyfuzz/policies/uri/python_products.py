"""What a function of the user's makes: other processes get what it made here, and need none of its files."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.protocol import Policy
from policyfuzz.policies.uri.python_calls import made


@dataclass(frozen=True, slots=True)
class Product:
    """Makes further things like `first`; in another process, copies of that."""

    factory: Callable[..., Any]
    spaces: Spaces
    first: Any

    def __call__(self) -> Any:
        return made(self.factory, self.spaces)

    def __reduce__(self) -> Any:
        return partial, (copy.deepcopy, self.first)


@dataclass(frozen=True, slots=True)
class MadePolicy:
    """Makes a policy. In another process it is made `again` where it cannot be pickled."""

    make: Callable[[], Policy]
    again: Callable[[], Callable[[], Policy]]

    def __call__(self) -> Policy:
        return self.make()

    def __reduce__(self) -> Any:
        import cloudpickle  # comes with gymnasium

        try:
            content = cloudpickle.dumps(self.make)
        except Exception:  # pickling runs methods of whatever is pickled
            return _called, (self.again,)
        return pickle.loads, (content,)


def _called(function: Callable[[], Any]) -> Any:
    return function()
