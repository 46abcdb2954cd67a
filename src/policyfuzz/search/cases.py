"""Cases: inputs that the search wants to be run, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: `Cases.parents` of a case that comes from no corpus entry.
NO_PARENT = -1
_FIELDS = ("inputs", "seeds", "parents", "purposes", "emitters")


class Purpose(IntEnum):
    """Why a case is run."""

    SAMPLE = 0  #: a draw from the nominal distribution before anything is changed
    MUTANT = 1  #: a changed copy of a corpus entry
    PROBE = 2  #: a small step from a corpus entry, to measure its sensitivity
    CONFIRM = 3  #: a finding, run again to see whether it still crashes
    EXPLORE = 4  #: a later draw from the nominal distribution
    IMPORT = 5  #: what another instance has found worth keeping
    RESEED = 6  #: a finding with another case seed, to see whether it was luck
    COMPARE = 7  #: a finding with a reference policy


@dataclass(frozen=True, slots=True)
class Cases:
    """n cases in the order in which they are run."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,) feed all randomness of the episode
    #: (n,) corpus entry (of a CONFIRM or RESEED: finding; of an IMPORT: instance), NO_PARENT for none
    parents: NDArray[np.int64]
    purposes: NDArray[np.int64]  #: (n,) values of Purpose
    #: (n,) number of the emitter that proposed it; its meaning is up to the algorithm
    emitters: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.emitters) != len(self.purposes):
            object.__setattr__(self, "emitters", np.zeros(len(self.purposes), np.int64))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Cases":
        """The cases at `rows`: positions, a mask or a slice."""
        return Cases(*(getattr(self, name)[rows] for name in _FIELDS))

    @staticmethod
    def concatenate(parts: Sequence["Cases"]) -> "Cases":
        """All cases of `parts`, one after another."""
        return Cases(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))

    @staticmethod
    def of(
        purpose: Purpose,
        inputs: NDArray[np.float64],
        seeds: NDArray[np.uint64],
        parents: NDArray[np.int64],
    ) -> "Cases":
        """Cases of one purpose."""
        return Cases(inputs, seeds, parents, np.full(len(inputs), int(purpose), np.int64))

    def by(self, emitters: NDArray[np.int64]) -> "Cases":
        """The same, proposed by `emitters` (n,)."""
        return replace(self, emitters=emitters)

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """All of it as arrays whose names start with `prefix`."""
        return {f"{prefix}{name}": getattr(self, name) for name in _FIELDS}

    @staticmethod
    def from_state(state: Mapping[str, NDArray[Any]], prefix: str, dimensions: int) -> "Cases":
        """The cases, of inputs with this many `dimensions`, that `state` turned into arrays."""
        cases = Cases(*(state[f"{prefix}{name}"] for name in _FIELDS))
        model = Cases.none(dimensions)
        for name in _FIELDS:
            given, expected = getattr(cases, name), getattr(model, name)
            shape = (len(cases), *expected.shape[1:])
            if given.dtype != expected.dtype or given.shape != shape:
                is_not = f"{given.dtype} {given.shape}, not {expected.dtype} {shape}"
                raise ValueError(f"{prefix}{name} are {is_not}")
        if not np.isin(cases.purposes, [int(one) for one in Purpose]).all():
            raise ValueError(f"{prefix}purposes are not known")
        if not np.isfinite(cases.inputs).all():
            raise ValueError(f"{prefix}inputs are not all finite")
        return cases

    @staticmethod
    def none(dimensions: int) -> "Cases":
        """No cases, of inputs with this many dimensions."""
        empty = np.empty(0, np.int64)
        return Cases(np.empty((0, dimensions)), np.empty(0, np.uint64), empty, empty)
