"""The shipped policies of Gymnasium environments: they load as any file does, and are good at their task."""

import hashlib

import numpy as np
import pytest

from policyfuzz.core.target import Runner
from policyfuzz.policies.mlp import shipped
from policyfuzz.targets.registry import load_target

pytest.importorskip("gymnasium", reason="needs the extra gym")

HELD_OUT = 99


def target_of(name, environment):
    if name == "lunarlander":
        pytest.importorskip("Box2D", reason="needs the extra box2d")
    file = shipped(f"{name}/networks.npz")
    return load_target(f"gym:{environment}:bounds=wide", policy=f"npz:{file}"), file


def episodes_of(target, count):
    rng = np.random.default_rng(HELD_OUT)
    seeds = rng.integers(2**63, size=count, dtype=np.uint64)
    return Runner(target)(target.inputs.sample(rng, count), seeds)


def test_cartpole_policy_keeps_the_pole_up():
    target, _ = target_of("cartpole", "CartPole-v1")
    executions = episodes_of(target, 64)
    assert executions.verdicts.crashed.mean() < 0.1
    assert executions.returns.mean() > 450


@pytest.mark.slow
def test_lunarlander_policy_lands():
    target, _ = target_of("lunarlander", "LunarLander-v3")
    executions = episodes_of(target, 64)
    assert executions.verdicts.crashed.mean() < 0.1
    assert executions.returns.mean() > 200


@pytest.mark.parametrize(
    ("name", "environment"), [("cartpole", "CartPole-v1"), ("lunarlander", "LunarLander-v3")]
)
def test_policy_is_known_by_the_digest_of_its_file(name, environment):
    target, file = target_of(name, environment)
    assert target.policy_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert target.policy_name == "npz:networks.npz"
