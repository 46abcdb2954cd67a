"""The text of a target file: with a simulator to replace, or for an environment that has a name."""

import json
from collections.abc import Iterator
from importlib import resources
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.api.subjects import as_target
from policyfuzz.core.code_files import absolute_name
from policyfuzz.core.inputs import Angle, Choice, Dimension, Integer, Seed
from policyfuzz.core.target import Target, joined, split_options

_COMMENT: dict[str, Any] = {"width": 100, "initial_indent": "# ", "subsequent_indent": "# "}
#: Options of an environment that the file spells out.
_SPELT_OUT = ("oracle", "input", "horizon")

_ENVIRONMENT = '''\
"""A target: an environment, and what PolicyFuzz detected about it. Change it as you like."""

{imports}

# Arguments of the environment, wrappers and so on follow after a colon: "{kind}:NAME:env.ARGUMENT=VALUE"
ENVIRONMENT = {environment}

{label}
# A pair gives the bounds, one value fixes it; what you leave out stays as detected.
{input}

# What counts as a crash; | is or, & is and: "terminated | return < 100"
ORACLE = {oracle}

# Maximum number of steps of an episode.
HORIZON = {horizon}

{policy}
# True: load files that can run code while they are loaded (sb3 zips, pickles).
TRUST = {trust}


def make_target(policy=POLICY):
    """The target. `policyfuzz` calls this, with the URI of --policy if it is given."""
    return pf.as_target(ENVIRONMENT, policy, oracle=ORACLE, input=INPUT, horizon=HORIZON, trust=TRUST)
'''

_POLICY_TO_WRITE = '''
def act(observation):
    """An action for one observation. This one does nothing: put your policy here."""
    return {action}


# Or a file: "sb3:model.zip", "onnx:model.onnx", "torchscript:model.pt", "npz:weights.npz"
POLICY = act
'''


def own_simulator() -> str:
    """A target file with a small simulator in it."""
    return resources.files("policyfuzz.cli").joinpath("templates/own_simulator.py.txt").read_text("utf-8")


def environment_file(name: str, policy: str | None, trust: bool) -> str:
    """A target file for the environment called `name`, such as gym:CartPole-v1."""
    idle = _Idle()
    target = as_target(name, policy or idle.policy, trust=trust)
    base, options = split_options(name)
    kind, _, environment_id = base.partition(":")
    kept = {key: value for key, value in options.items() if key not in _SPELT_OUT}
    environment = joined(f"{kind}:{absolute_name(environment_id)}", kept)  # the same from any folder
    notes = dict(note.split(": ", 1) for note in target.notes if ": " in note)
    uri = f"POLICY = {json.dumps(target.policy_uri)}\n"
    written = uri if policy else _POLICY_TO_WRITE.format(action=idle.action)
    return _ENVIRONMENT.format(
        kind=kind,
        environment=json.dumps(environment),
        imports=("import numpy as np\n" if "np." in written else "") + "import policyfuzz as pf",
        label=fill(f"What is varied: {notes.get('input', 'the start of an episode')}", **_COMMENT),
        input="\n".join(_input_lines(target, options.get("input"))),
        # the text of an oracle has no comma, and the reason for it follows after one
        oracle=json.dumps(notes["oracle"].partition(",")[0]),
        horizon=target.horizon,
        policy=written,
        trust=trust,
    )


def _input_lines(target: Target, given: str | None) -> Iterator[str]:
    if given is not None:
        yield f"INPUT = {json.dumps(given)}"
        return
    yield "INPUT = {"
    for dimension in target.inputs.dimensions:
        yield f"    {_entry(dimension)}"
    yield "}"


def _entry(dimension: Dimension) -> str:
    """One line of a dictionary; commented out if leaving it out means the same."""
    name = json.dumps(dimension.name)
    if isinstance(dimension, Choice):
        options = ", ".join(dimension.options)
        return f"# {name}: {json.dumps(dimension.options[0])},  # fixes it; one of {options}"
    number = int if isinstance(dimension, Integer | Seed) else float  # and none of numpy's
    bounds = f"{name}: ({number(dimension.low)!r}, {number(dimension.high)!r}),"
    if isinstance(dimension, Angle):
        return f"# {bounds}  # rad, all the way round"
    if isinstance(dimension, Seed):
        return f"# {bounds}  # chance: no seed is near another one"
    return f"{bounds}  # {dimension.unit}" if dimension.unit else bounds


class _Idle:
    """A policy that does nothing, and how to write it down."""

    def __init__(self) -> None:
        self.action = ""
        self._actions: NDArray[Any] = np.empty(0)

    def policy(self, action_space: Any) -> "_Idle":
        """The policy for environments with this space of actions."""
        low, high = getattr(action_space, "low", None), getattr(action_space, "high", None)
        if low is not None and high is not None:
            action = np.clip(np.zeros(action_space.shape), low, high).astype(action_space.dtype)
            zeros = f"np.zeros({action_space.shape})"
            self.action = zeros if not action.any() else f"np.array({action.tolist()})"
        elif hasattr(action_space, "start") and not action_space.shape:
            action = np.asarray(action_space.start)
            self.action = str(int(action))
        else:
            action = np.zeros(action_space.shape, action_space.dtype)
            self.action = f"np.zeros({action_space.shape}, int)"
        self._actions = action
        return self

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.stack([self._actions] * len(rows))
