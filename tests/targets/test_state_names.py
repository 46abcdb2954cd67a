import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import MissingExtra
from policyfuzz.core.target import Runner

SLOW = pytest.param("driving-rl", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["acasxu", "coopnavi", "bipedal", SLOW, "ripple:dimensions=3"])
def test_every_number_of_a_state_has_a_name(name):
    try:
        runner = Runner(load_target(name))
    except MissingExtra as error:
        pytest.skip(str(error))
    inputs = runner.target.inputs
    drawn = inputs.sample(np.random.default_rng(0), 1000)
    frame = runner.simulator.reset(drawn[inputs.is_valid(drawn)][:1], np.zeros(1, np.uint64))
    names = runner.simulator.state_names
    assert len(names) == len(set(names)) == frame.states.shape[1]
