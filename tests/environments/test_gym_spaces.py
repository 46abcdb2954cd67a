"""Environments whose observations and actions are of any kind of space."""

from pathlib import Path

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.target import Runner

SENSORS = Path(__file__).parent / "gym_sensors.py"


def run(target, *rows):
    """Executions of episodes that begin at `rows`."""
    inputs = np.array(rows, np.float64)
    return Runner(target)(inputs, np.arange(len(inputs), dtype=np.uint64))


SEEN = ["Box", "Discrete", "MultiDiscrete", "MultiBinary", "Picture", "Dict", "Tuple", "Text"]
ACTING = {
    "Discrete": "walk",
    "Shifted": "walk_shifted",
    "Box": "walk_lever",
    "MultiDiscrete": "walk_pair",
    "MultiBinary": "walk_pair",
}


@pytest.mark.parametrize(
    ("seen", "acts"), [(seen, "Discrete") for seen in SEEN] + [("Box", acts) for acts in ACTING]
)
def test_policy_sees_and_acts_in_spaces_of_any_kind(seen, acts):
    options = f"env.seen={seen},env.acts={acts},oracle=terminated | out_of_space"
    target = load_target(f"gym:{SENSORS}:Sensors:{options}", f"py:{SENSORS}:{ACTING[acts]}")
    found = run(target, [-3.0], [0.0], [1.75])
    assert not found.errors
    assert found.crashed.tolist() == [False, False, True]
    assert found.lengths.tolist() == [31, 31, 14]
    assert np.isfinite(found.states).all()
    assert (found.states[0, 0] != found.states[2, 0]).any()


@pytest.mark.parametrize("acts", ACTING)
def test_random_actions_are_in_their_space(acts):
    options = f"env.acts={acts},oracle=return<-1e9"
    target = load_target(f"gym:{SENSORS}:Sensors:{options}", f"py:{SENSORS}:{ACTING[acts]}")
    assert target.further_checks is not None
    found = target.further_checks(run(target, [0.0]), Runner)
    (can_fire,) = [one for one in found if one.name == "oracle can fire"]
    assert "neither the policy nor random actions crash in 50 episodes" in can_fire.message
