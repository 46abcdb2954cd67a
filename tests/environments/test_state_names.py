"""Plots name what environments observe."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from policyfuzz.environments.simulator import GymSimulator  # noqa: E402
from policyfuzz.environments.starts import SeedStart  # noqa: E402


def names_of(make):
    simulator = GymSimulator(make, SeedStart())
    frame = simulator.reset(np.zeros((1, 1)), np.zeros(1, np.uint64))
    assert len(simulator.state_names) in (0, frame.states.shape[1])
    return simulator.state_names


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("CartPole-v1", "position", "angular velocity"),
        ("Pendulum-v1", "cos angle", "angular velocity"),
        ("Acrobot-v1", "cos angle 1", "angular velocity 2"),
        ("MountainCarContinuous-v0", "position", "velocity"),
    ],
)
def test_observations_of_known_environments_have_names(name, first, last):
    names = names_of(lambda: gymnasium.make(name))
    assert (names[0], names[-1]) == (first, last)


@pytest.mark.parametrize(
    ("name", "last"), [("LunarLander-v3", "right leg on ground"), ("BipedalWalker-v3", "lidar 9")]
)
def test_observations_of_box2d_environments_have_names(name, last):
    pytest.importorskip("Box2D")
    assert names_of(lambda: gymnasium.make(name))[-1] == last


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("Hopper-v5", "rootz", "foot_joint velocity"),
        ("Hopper-v4", "rootz", "foot_joint velocity"),
        ("InvertedPendulum-v5", "slider", "hinge velocity"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_observations_of_mujoco_are_named_by_joint(name, first, last, tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    names = names_of(lambda: gymnasium.make(name, disable_env_checker=True))
    assert (names[0], names[-1]) == (first, last)


class Sensors(gymnasium.Env):
    observation_space = gymnasium.spaces.Dict(
        {"speed": gymnasium.spaces.Box(-1, 1, ()), "rays": gymnasium.spaces.Box(-1, 1, (2,))}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return {"speed": np.float32(0), "rays": np.zeros(2, np.float32)}, {}


def test_keys_of_a_dictionary_are_the_names():
    assert sorted(names_of(Sensors)) == ["rays[0]", "rays[1]", "speed"]


def test_what_a_wrapper_has_changed_has_no_name():
    stacked = gymnasium.wrappers.FrameStackObservation
    assert names_of(lambda: stacked(gymnasium.make("CartPole-v1"), 2)) == ()
