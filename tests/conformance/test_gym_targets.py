"""Gymnasium environments of every family keep to what any target must."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from policyfuzz.conformance.suite import TargetConformance
from policyfuzz.policies.mlp import shipped

FOLDER = Path(__file__).parents[1] / "environments"
POLICIES = f"py:{FOLDER / 'gym_policies.py'}"
ENVIRONMENTS = FOLDER / "gym_environments.py"


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra {extra}")


@pytest.mark.slow
class TestCartPole(TargetConformance):
    target = "gym:CartPole-v1:bounds=wide,horizon=200"
    policy = f"{POLICIES}:nearsighted"
    executions = 36


@pytest.mark.slow
@needs("Box2D", "box2d")
class TestLunarLander(TargetConformance):
    target = "gym:LunarLander-v3:horizon=250,env.enable_wind=true"
    policy = f"npz:{shipped('lunarlander/networks.npz')}"  # most simpler ones crash in the wind
    episodes = 4


@pytest.mark.slow
@needs("mujoco", "mujoco")
class TestInvertedPendulum(TargetConformance):
    target = "gym:InvertedPendulum-v5:bounds=wide,horizon=60,render=no"  # pictures need a graphics driver
    policy = f"{POLICIES}:pendulum_on_cart"
    executions = 36


@pytest.mark.slow
class TestTaxi(TargetConformance):
    target = "gym:Taxi-v4:horizon=50,env.is_rainy=true"
    policy = f"{POLICIES}:taxi"
    executions = 36


@pytest.mark.slow
@needs("minigrid", "minigrid")
class TestMiniGrid(TargetConformance):
    target = "gym:MiniGrid-Empty-8x8-v0:wrap=minigrid.wrappers:ImgObsWrapper,horizon=60"
    policy = f"{POLICIES}:minigrid"
    executions = 60


class TestOptionsOfReset(TargetConformance):
    target = f"gym:{ENVIRONMENTS}:Corridor:oracle=terminated"
    policy = f"py:{ENVIRONMENTS}:brave"
    executions = 90


class TestSeedOnly(TargetConformance):
    target = f"gym:{ENVIRONMENTS}:Faraway:oracle=return<0"
    policy = f"py:{ENVIRONMENTS}:homesick"
    executions = 90


class TestEpisodesThatFail(TargetConformance):
    target = f"gym:{ENVIRONMENTS}:Faulty:env.fault=step,oracle=terminated"
    policy = f"py:{ENVIRONMENTS}:brave"
    executions = 90
