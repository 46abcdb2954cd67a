"""Which inputs and outputs of an ONNX graph are observations, actions and memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policyfuzz.core.errors import PolicyError, unknown_name
from policyfuzz.policies.spaces import ACTION_NAMES

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
}
_IN_TO_OUT = (
    ("_in", "_out"),
    ("in_", "out_"),
    ("_ins", "_outs"),
    ("input", "output"),
    ("0", "n"),
    ("_0", "_n"),
)


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output: its name, and of an input its type and shape (a name where any size fits)."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]

    @property
    def dtype(self) -> Any:
        """The numpy type of its numbers."""
        if self.type not in _TYPES:
            raise PolicyError(
                f"input {self.name!r} of the network takes {self.type}, expected numbers",
                hint="export the network without the steps that turn text or lists into numbers",
            )
        return _TYPES[self.type]

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """Its shape, None where any size fits."""
        return tuple(size if isinstance(size, int) else None for size in self.shape)

    @property
    def free_axes(self) -> list[int]:
        """Axes that may have any size."""
        return [axis for axis, size in enumerate(self.sizes) if size is None]

    def __str__(self) -> str:
        return f"{self.name} ({', '.join('any' if size is None else str(size) for size in self.sizes)})"


@dataclass(frozen=True, slots=True)
class Signature:
    """What an ONNX graph takes and gives, by its role."""

    observations: Mapping[str | None, Port]  #: key of a dictionary, or None for the whole observation
    states: tuple[tuple[Port, str], ...]  #: input and the output that is its next value
    action: str  #: output
    notes: tuple[str, ...]


def read_signature(
    inputs: Sequence[Port], outputs: Sequence[Port], keys: Sequence[str], options: Mapping[str, str]
) -> Signature:
    """The roles of `inputs` and `outputs`; `keys` are those of observations; `options` settle doubts."""
    named = {port.name: port for port in inputs}
    pairs = _given_pairs(options["state"], named, outputs) if "state" in options else {}
    pairs = pairs or _found_pairs(inputs, outputs, keys)
    rest = [port for port in inputs if port.name not in pairs]
    left = [port.name for port in outputs if port.name not in pairs.values()]
    action, notes = _action(left, options.get("output"))
    if pairs:
        notes = (*notes, "remembers for each episode: " + ", ".join(f"{a} <- {b}" for a, b in pairs.items()))
    states = tuple((named[name], output) for name, output in pairs.items())
    return Signature(_observations(rest, keys), states, action, notes)


def _observations(rest: Sequence[Port], keys: Sequence[str]) -> dict[str | None, Port]:
    if len(rest) == 1 and rest[0].name not in keys:
        return {None: rest[0]}
    if rest and all(port.name in keys for port in rest):
        return {port.name: port for port in rest}
    wanted = f"one for each of {', '.join(keys)}, or one for all" if keys else "one, for the observation"
    raise PolicyError(
        f"the network has inputs {', '.join(map(str, rest)) or 'for memory only'}; expected {wanted}",
        hint="if an input is memory, name it and the output with its next value: ?state=INPUT:OUTPUT",
    )


def _action(names: Sequence[str], chosen: str | None) -> tuple[str, tuple[str, ...]]:
    """The output with the actions among `names`, and what to say about it."""
    if not names:
        raise PolicyError("the network has no output for actions", hint="outputs for memory do not count")
    if chosen is not None:
        if chosen not in names:
            raise unknown_name("output of the network", chosen, names)
        return chosen, ()
    if len(names) == 1:
        return names[0], ()
    lower = {name.lower(): name for name in reversed(names)}
    known = [lower[name] for name in ACTION_NAMES if name in lower]
    action = known[0] if known else names[0]
    others = ", ".join(name for name in names if name != action)
    return action, (f"takes actions from output {action}, not {others}; ?output=NAME takes another",)


def _given_pairs(text: str, named: Mapping[str, Port], outputs: Sequence[Port]) -> dict[str, str]:
    pairs = {}
    for item in text.split(","):
        first, _, second = item.partition(":")
        if first not in named:
            raise unknown_name("input of the network", first, named)
        if second not in {port.name for port in outputs}:
            raise unknown_name("output of the network", second, [port.name for port in outputs])
        pairs[first] = second
    return pairs


def _found_pairs(inputs: Sequence[Port], outputs: Sequence[Port], keys: Sequence[str]) -> dict[str, str]:
    """Inputs with an output that is named like their next value."""
    if len(inputs) < 2 or len(outputs) < 2:
        return {}
    names = {port.name for port in outputs}
    pairs: dict[str, str] = {}
    for port in inputs:
        found = [name for name in _next_names(port.name) if name in names and name not in pairs.values()]
        if found and port.name not in keys:
            pairs[port.name] = found[0]
    return pairs


def _next_names(name: str) -> list[str]:
    """What the next value of the memory called `name` may be called."""
    replaced = [name.replace(old, new) for old, new in _IN_TO_OUT if old in name]
    added = [
        f"{name}_out",
        f"{name}_next",
        f"{name}_new",
        f"next_{name}",
        f"new_{name}",
        f"{name}_n",
        f"{name}n",
    ]
    return [*replaced, *added, f"{name}.1"]
