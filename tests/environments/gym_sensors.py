"""An environment that shows and takes whatever kind of space is asked for, and policies for it."""

import numpy as np
from gym_environments import Corridor
from gymnasium import spaces


class Sensors(Corridor):
    """Shows the place among other things, in the space that is asked for; acts in any space too."""

    def __init__(self, seen="Box", acts="Discrete"):
        self.observation_space, self.action_space = OBSERVATIONS[seen], ACTIONS[acts]
        self.kind, self.acts = seen, acts

    def step(self, action):
        assert self.action_space.contains(action), (action, self.action_space)
        return super().step(int(np.ravel(action)[0] > (-1 if self.acts == "Shifted" else 0)))

    def seen(self):
        place, cell = np.array([self.place], np.float32), int(np.clip(self.place + 8, 0, 15))
        return {
            "Box": place,
            "Discrete": cell,
            "MultiDiscrete": np.array([cell, 1]),
            "MultiBinary": np.arange(16) == cell,
            "Picture": np.full((8, 8, 3), 10 * cell, np.uint8),
            "Dict": {"place": place, "inner": {"cell": cell}},
            "Tuple": (place, cell),
            "Text": {"place": place, "mission": "walk"},
        }[self.kind]


OBSERVATIONS = {
    "Box": spaces.Box(-10.0, 10.0, (1,), np.float32),
    "Discrete": spaces.Discrete(16),
    "MultiDiscrete": spaces.MultiDiscrete([16, 2]),
    "MultiBinary": spaces.MultiBinary(16),
    "Picture": spaces.Box(0, 255, (8, 8, 3), np.uint8),
    "Dict": spaces.Dict(
        {
            "place": spaces.Box(-10.0, 10.0, (1,), np.float32),
            "inner": spaces.Dict({"cell": spaces.Discrete(16)}),
        }
    ),
    "Tuple": spaces.Tuple((spaces.Box(-10.0, 10.0, (1,), np.float32), spaces.Discrete(16))),
    "Text": spaces.Dict({"place": spaces.Box(-10.0, 10.0, (1,), np.float32), "mission": spaces.Text(9)}),
}
ACTIONS = {
    "Discrete": spaces.Discrete(2),
    "Shifted": spaces.Discrete(2, start=-1),
    "Box": spaces.Box(-1.0, 1.0, (1,), np.float32),
    "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
    "MultiBinary": spaces.MultiBinary(2),
}


def goes_on(observation):
    """Whether to go on, as `brave` does, from any one observation of `Sensors`."""
    if isinstance(observation, dict):
        return bool(observation["place" if "place" in observation else "0"][0] > 0.5)
    if isinstance(observation, tuple):
        return bool(observation[0][0] > 0.5)
    if np.shape(observation) == (16,):
        return int(np.argmax(observation)) > 8
    first = np.ravel(observation)[0]
    if first.dtype.kind == "f":
        return bool(first > 0.5)
    return bool(first > 80 if np.ndim(observation) == 3 else first > 8)


def walk(observation):
    return int(goes_on(observation))


def walk_shifted(observation):
    return int(goes_on(observation)) - 1


def walk_lever(observation):
    return np.array([1.0 if goes_on(observation) else -1.0])


def walk_pair(observation):
    return np.array([int(goes_on(observation)), 1])
