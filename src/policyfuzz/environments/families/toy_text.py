"""Toy text: the cell (and the passenger) in which a table of states and transitions starts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Choice, InputSpace, Integer
from policyfuzz.environments.starts import FirstObservation, Reset, Values

_PLACES = ("red", "green", "yellow", "blue")

#: State to action to (probability, next state, reward, is the end) of everything that may happen.
Transitions = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


@dataclass(frozen=True, slots=True)
class TableStart:
    """Starts in a state of a table, which is numbered by whole dimensions that begin at zero."""

    label: str
    dimensions: tuple[Integer | Choice, ...]
    states: NDArray[np.int64]  #: one axis for each dimension: the number of each state
    allowed: NDArray[np.bool_]  #: same shape, True where an episode may start
    hopeful: NDArray[np.bool_]  #: same shape, True where some actions, and luck, lead to the goal
    oracle: str | None
    map: bytes  #: what the environment looks like, empty where it always looks the same

    way: ClassVar[str] = "state"

    @property
    def inputs(self) -> InputSpace:
        return InputSpace(self.dimensions, constraint=self._is_allowed)

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        if _map(env) != self.map:
            raise UsageError(
                f"two objects of {type(env).__name__} have different maps",
                hint="its map is drawn when it is made: give it one, as desc=[...] or map_name=...",
            )
        _, info = reset(seed=seed)
        env.s = int(self.states[tuple(values.astype(np.int64))])
        if "action_mask" in info:
            info["action_mask"] = env.action_mask(env.s)
        return env.s, info

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.array(np.argwhere(self.states == env.s)[0], np.float64)

    def solvable(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where the goal can be reached from `inputs` (n, d); on slippery ground, with luck."""
        return self._look_up(self.hopeful, inputs)

    def _is_allowed(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._look_up(self.allowed, inputs)

    @staticmethod
    def _look_up(table: NDArray[np.bool_], inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        inside = np.all((inputs >= 0) & (inputs < table.shape), axis=1)
        places = np.where(inside[:, np.newaxis], inputs, 0).astype(np.int64)
        return np.asarray(inside & table[tuple(places.T)])


def find(env: Any) -> TableStart | None:
    """How to start `env`, if it is a Taxi, a FrozenLake or a CliffWalking."""
    names = (cls.__name__ for cls in type(env).__mro__)
    known = next((_KNOWN[name] for name in names if name in _KNOWN), None)
    return None if known is None else known(env)


def _taxi(env: Any) -> TableStart:
    begins = np.asarray(env.initial_state_distrib) > 0
    rows, columns, passengers, destinations = (
        1 + np.max([tuple(env.decode(state)) for state in np.flatnonzero(begins)], axis=0)
    ).tolist()
    grid = np.indices((rows, columns, passengers, destinations))
    states = np.asarray(env.encode(*grid))
    return TableStart(
        label="cell of the taxi, place of the passenger, destination",
        dimensions=(
            Integer("row", 0, rows - 1),
            Integer("column", 0, columns - 1),
            Choice("passenger", _PLACES[:passengers]),
            Choice("destination", _PLACES[:destinations]),
        ),
        states=states,
        allowed=begins[states],
        hopeful=_can_arrive(env.P)[states],
        oracle="truncated",
        map=_map(env),
    )


def _frozen_lake(env: Any) -> TableStart:
    desc = np.asarray(env.desc)
    ice = (desc != b"H") & (desc != b"G")
    hopeful = _can_arrive(env.P, (desc == b"G").ravel())
    return _cell_start(env, ice, hopeful, _lake_oracle(env.P, desc.ravel()))


def _lake_oracle(transitions: Transitions, letters: NDArray[np.bytes_]) -> str | None:
    """A hole, or not at the goal in time; None where the rewards do not tell a hole from the goal."""
    into = {b"G": 0.0, b"H": 0.0, b"F": 0.0}
    for state, actions in transitions.items():
        if letters[state] in (b"G", b"H"):
            continue
        for outcomes in actions.values():
            for _, following, reward, _ in outcomes:
                letter = bytes(letters[following])
                into[letter if letter in (b"G", b"H") else b"F"] = float(reward)
    goal, hole, ice = into[b"G"], into[b"H"], into[b"F"]
    if hole < min(goal, ice):
        return f"reward<{(hole + min(goal, ice)) / 2:g} | truncated"
    if ice == 0 and hole < goal:
        return f"terminated & return<{(hole + goal) / 2:g} | truncated"
    return None


def _cliff_walking(env: Any) -> TableStart:
    ground = ~np.asarray(env._cliff, np.bool_)
    ground[-1, -1] = False  # the goal
    hopeful = _can_arrive(env.P)
    is_slippery = any(len(outcomes) > 1 for outcomes in env.P[0].values())
    # a fall costs 100 and takes back to the corner; on slippery ground it may be bad luck
    return _cell_start(env, ground, hopeful, "truncated" if is_slippery else "reward<-50 | truncated")


def _cell_start(
    env: Any, allowed: NDArray[np.bool_], hopeful: NDArray[np.bool_], oracle: str | None
) -> TableStart:
    rows, columns = allowed.shape
    return TableStart(
        label="start cell",
        dimensions=(Integer("row", 0, rows - 1), Integer("column", 0, columns - 1)),
        states=np.arange(rows * columns).reshape(rows, columns),
        allowed=allowed,
        hopeful=hopeful.reshape(rows, columns),
        oracle=oracle,
        map=_map(env),
    )


def _can_arrive(transitions: Transitions, is_goal: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """(states,) True where actions and luck can end an episode in a state that `is_goal`, by default any."""
    before: dict[int, set[int]] = defaultdict(set)
    found: set[int] = set()
    for state, actions in transitions.items():
        for outcomes in actions.values():
            for chance, following, _, is_end in outcomes:
                if chance > 0 and is_end and (is_goal is None or is_goal[following]):
                    found.add(state)
                elif chance > 0 and not is_end:
                    before[int(following)].add(state)
    waiting = list(found)
    while waiting:
        new = before[waiting.pop()] - found
        found |= new
        waiting += new
    return np.isin(np.arange(len(transitions)), list(found))


def _map(env: Any) -> bytes:
    return np.asarray(getattr(env, "desc", b"")).tobytes()


_KNOWN: Mapping[str, Callable[[Any], TableStart]] = {
    "TaxiEnv": _taxi,
    "FrozenLakeEnv": _frozen_lake,
    "CliffWalkingEnv": _cliff_walking,
}
