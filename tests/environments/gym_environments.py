"""Environments of a user's own, healthy and faulty, and policies for them; named FILE.py:NAME."""

import itertools
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv


class Corridor(gymnasium.Env):
    """Walks along a corridor; beyond 3 there is a pit. The start is an option of reset."""

    metadata = {"render_modes": []}  # noqa: RUF012 (as gymnasium declares it)
    observation_space = spaces.Box(-10.0, 10.0, (1,), np.float64)
    action_space = spaces.Discrete(2)
    reset_options_space = spaces.Dict({"start": spaces.Box(-4.0, 2.0, (), np.float64)})
    steps = 30

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float((options or {}).get("start", 0.0)), 0
        return self.seen(), {"place": self.place}

    def step(self, action):
        self.place += 0.1 if action else -0.1
        self.time += 1
        return self.seen(), -abs(self.place), self.place > 3, self.time >= self.steps, {"place": self.place}

    def seen(self):
        return np.array([self.place])


def brave(observations):
    """Goes on where it should turn, from 0.5 on; takes anything that begins with the place."""
    return (np.asarray(observations)[:, 0] > 0.5).astype(np.int64)


def homesick(observations):
    """`Faraway`: the right way, but from the far left."""
    return (observations[:, 0] < 1000) & (observations[:, 0] > 998.5)


class Faulty(Corridor):
    """A corridor with a fault, beyond -3 at its far end."""

    def __init__(self, fault):
        self.fault = fault

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed, options=options)
        self.is_faulty = self.place < -3
        if self.is_faulty and self.fault == "reset":
            raise KeyError("no map of this place")
        return first

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if self.is_faulty and self.time >= 3:
            if self.fault == "step":
                reward /= self.time - 3
            if self.fault == "observation":
                observation[0] = np.nan
            if self.fault == "reward":
                reward = np.nan
            if self.fault == "flag":
                terminated = "no"
            if self.fault == "text":
                reward = "1.0"
            if self.fault == "shape":
                observation = np.array([self.place, 1.0])
            if self.fault == "quits":
                raise SystemExit("lost")
            if self.fault == "endless":
                truncated = False
            if self.fault == "hangs":
                for _ in itertools.count():
                    self.time += 0
        return observation, reward, terminated, truncated, info


class Restless(Corridor):
    """Takes its chance from numpy's global generator, which nobody seeds."""

    def step(self, action):
        self.place += 0.01 * np.random.standard_normal()  # noqa: NPY002
        return super().step(action)


class Forgetless(Corridor):
    """Is kinder in every further episode."""

    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes += 1
        return super().reset(seed=seed, options=options)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward + self.episodes, *rest


class Quiet(Corridor):
    """Says nothing but that it fell."""

    def step(self, action):
        *rest, terminated, truncated, _ = super().step(action)
        return *rest, terminated, truncated, {"fell": True} if terminated else {}


class Ancient(Corridor):
    """Its step is that of gym, not of gymnasium."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, info


class Quitter(Corridor):
    """Ends the whole program."""

    def step(self, action):
        raise SystemExit("enough")


class ThreeWayCartPole(CartPoleEnv):
    """A cart that can be left alone too."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        self.action_space = spaces.Discrete(3)  # type: ignore[assignment]  # a CartPole has two


class Deaf(Corridor):
    """Starts where it likes, not where its options say."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place = min(self.place, 1.0)
        return self.seen(), {"start": self.place}


class Faraway(gymnasium.Env):
    """Go back to 1000, which looks much like any place near it unless it is normalised."""

    observation_space = spaces.Box(0.0, 2000.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.off, self.time = float(self.np_random.uniform(-2, 2)), 0
        return self.seen(), {}

    def step(self, action):
        is_right = (self.off < 0) == bool(action)
        self.off += 0.2 if action else -0.2
        self.time += 1
        return self.seen(), 1.0 if is_right else -1.0, False, self.time >= 20, {}

    def seen(self):
        return np.array([1000 + self.off], np.float32)


class HeavyCartPole(CartPoleEnv):
    """A cart that can only begin far to the left."""

    def __setattr__(self, name, value):
        if name == "state" and value is not None:
            value = np.array(value)
            value[0] = min(value[0], -0.6)
        super().__setattr__(name, value)


class Shifted(gymnasium.ObservationWrapper):
    """Shows places one further than they are."""

    def observation(self, observation):
        return observation + 1.0


class Doubled(gymnasium.ObservationWrapper):
    """Shows places twice as far from the middle as they are."""

    def observation(self, observation):
        return 2.0 * observation


def corridor(length=30):
    """A function that makes an environment."""
    env = Corridor()
    env.steps = length
    return env


def nothing_much():
    return 3


class Spaceless(gymnasium.Env):
    """Does not say what it shows, nor what it takes."""


def lean(observations):
    """Pendulum: against the speed, and no more than that."""
    return -observations[:, 2:]


if "HouseOfTests/Corridor-v0" not in gymnasium.registry:  # this file may be loaded under two names
    entry_point: Any = Corridor  # takes no keyword arguments, and gets none
    gymnasium.register("HouseOfTests/Corridor-v0", entry_point, max_episode_steps=20)
