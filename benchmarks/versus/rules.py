"""What decides whether a claim counts, as a fingerprint: what was judged by other rules is never mixed in."""

import hashlib
import re
from dataclasses import dataclass

import numpy as np

from policyfuzz.core.target import Target

#: Draws from the nominal distribution that show what is valid and solvable, and the key that they come from.
_DRAWS, _KEY = 2048, (20_240_301, 0x72756C65)
#: Where an object lies in memory, which says nothing about it.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """How a target judges inputs and episodes. The policy is no part of it."""

    oracle: str  #: with its thresholds
    horizon: int
    solvable: str  #: name of the solvability test, empty if there is none
    valid_share: float  #: of draws from the nominal distribution
    solvable_share: float  #: of these; 1 if nothing is tested
    sha256: str  #: of oracle, horizon, and which draws are valid and solvable

    @classmethod
    def of(cls, target: Target) -> "Rules":
        """The rules of `target`.

        Solvability is told by its verdicts and not by its code: a test that was only rewritten is the same.
        """
        inputs = target.inputs.sample(np.random.default_rng(_KEY), _DRAWS)
        valid = target.inputs.is_valid(inputs)
        solvable = valid.copy()
        if target.solvable is not None and valid.any():
            solvable[valid] = target.solvable(inputs[valid])
        oracle = _ADDRESS.sub("", repr(target.oracle))
        digest = hashlib.sha256(f"{oracle} {target.horizon}".encode())
        for verdicts in (valid, solvable):
            digest.update(np.packbits(verdicts).tobytes())
        return cls(
            oracle=oracle,
            horizon=target.horizon,
            solvable="" if target.solvable is None else _name(target.solvable),
            valid_share=float(valid.mean()),
            solvable_share=float(solvable.sum() / max(int(valid.sum()), 1)),
            sha256=digest.hexdigest(),
        )


def _name(function: object) -> str:
    """Where `function` is written."""
    function = getattr(function, "func", function)  # of a functools.partial
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
