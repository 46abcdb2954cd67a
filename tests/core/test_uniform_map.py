"""Maps from uniform numbers to the nominal distribution."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from policyfuzz import Angle, Choice, InputSpace, Integer, Real, UniformMap, load_target


def assert_same_distribution(space, draws):
    """The map draws what the sampler draws, among valid inputs: each dimension, and random sums of them."""
    rng = np.random.default_rng(5)
    uniform_map = space.from_uniform
    mapped = uniform_map(rng.random((draws, uniform_map.coordinates)))
    sampled = space.sample(rng, draws)
    mapped, sampled = (inputs[space.is_valid(inputs)] for inputs in (mapped, sampled))
    width = len(space.dimensions)
    for weights in [*np.eye(width), *rng.standard_normal((5, width))]:
        scaled = [space.to_unit(inputs) @ weights for inputs in (mapped, sampled)]
        assert ks_2samp(*scaled).pvalue > 1e-4


def test_space_without_sampler_is_uniform():
    space = InputSpace((Real("a", -1, 1), Angle("b"), Integer("c", 0, 3), Choice("d", ("x", "y", "z"))))
    numbers, uniform_map = np.random.default_rng(0).random((50, 4)), space.from_uniform
    assert uniform_map is not None
    np.testing.assert_array_equal(uniform_map(numbers), space.from_unit(numbers))
    np.testing.assert_array_equal(space.sample(np.random.default_rng(0), 50), space.from_unit(numbers))


def test_sample_follows_the_map_when_there_is_no_sampler():
    space = InputSpace((Real("a", 0, 1),), uniform_map=UniformMap(2, lambda u: u.mean(axis=1, keepdims=True)))
    drawn = space.sample(np.random.default_rng(0), 1000)
    assert drawn.shape == (1000, 1)
    assert drawn.std() == pytest.approx(np.sqrt(1 / 24), rel=0.1)


def test_space_that_only_a_sampler_knows_has_no_map():
    space = InputSpace((Real("a", 0, 1),), sampler=lambda rng, count: rng.random((count, 1)))
    assert space.from_uniform is None


@pytest.mark.parametrize("name", ["acasxu", "coopnavi"])
def test_map_of_a_built_in_target_draws_what_its_sampler_draws(name):
    assert_same_distribution(load_target(name).inputs, 4000)


@pytest.mark.parametrize("changes", [{}, {"direction": "left"}, {"layout": (3.0, 9.0)}])
def test_map_of_minigrid_draws_what_its_sampler_draws(changes):
    pytest.importorskip("minigrid", reason="minigrid is not installed")
    import gymnasium as gym

    from policyfuzz.environments.changed_start import changed
    from policyfuzz.environments.find_start import find_start

    start = find_start(gym.make("MiniGrid-SimpleCrossingS9N1-v0", disable_env_checker=True).unwrapped)
    assert_same_distribution(changed(start, changes).inputs if changes else start.inputs, 300)
