import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.density.dynem import OnlineMixture, statistics

some_examples = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def clusters(rng, count, dimensions, distance=6.0):
    """(count, d) points around three centres."""
    centres = distance * rng.normal(size=(3, dimensions))
    return centres[rng.integers(0, 3, count)] + rng.normal(size=(count, dimensions))


def fitted(points, components=3, regularisation=1e-6, seed=0):
    return OnlineMixture.fit(points, components, regularisation, np.random.default_rng(seed))


@some_examples
@given(seeds, st.integers(1, 40), st.integers(1, 5), st.integers(1, 4))
def test_statistics_equal_sums_over_points(seed, count, dimensions, components):
    rng = np.random.default_rng(seed)
    points, shares = rng.normal(size=(count, dimensions)), rng.dirichlet(np.ones(components), count)
    mass, first, second = statistics(points, shares)
    np.testing.assert_allclose(mass, shares.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(first, np.einsum("nk,ni->ki", shares, points) / count, atol=1e-12)
    np.testing.assert_allclose(second, np.einsum("nk,ni,nj->kij", shares, points, points) / count, atol=1e-12)


@some_examples
@given(seeds, st.integers(2, 30), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 4))
def test_learning_in_pieces_equals_one_batch_when_steps_match_the_counts(seed, first, more, dimensions):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(first + sum(more), dimensions))
    online = fitted(points[:first], components=1)
    seen = first
    for count in more:
        online.learn(points[seen : seen + count], step=count / (seen + count))
        seen += count
    everything = np.ones((len(points), 1))
    for got, expected in zip(
        (online.mass, online.first, online.second), statistics(points, everything), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@some_examples
@given(seeds, st.floats(0.01, 1.0))
def test_learning_moves_statistics_by_the_step_towards_those_of_the_batch(seed, step):
    rng = np.random.default_rng(seed)
    online = fitted(clusters(rng, 100, 2))
    points = clusters(rng, 50, 2)
    before = [online.mass, online.first, online.second]
    batch = statistics(points, online.mixture.responsibilities(points))
    online.learn(points, step)
    for got, old, new in zip((online.mass, online.first, online.second), before, batch, strict=True):
        np.testing.assert_allclose(got, (1 - step) * old + step * new, rtol=1e-9, atol=1e-9)


@some_examples
@given(seeds, st.integers(1, 3), st.integers(1, 6))
def test_likelihood_does_not_fall_when_batch_steps_are_repeated(seed, dimensions, components):
    rng = np.random.default_rng(seed)
    points = clusters(rng, 200, dimensions, distance=2.0)
    online = fitted(points, components)
    likelihoods = []
    for _ in range(15):
        likelihoods.append(online.log_density(points).mean())
        online.learn(points, step=1.0)
    # the regularisation of 1e-6 is no part of the maximisation
    assert np.diff(likelihoods).min() > -1e-5


def test_fit_finds_the_clusters_when_they_are_apart():
    rng = np.random.default_rng(0)
    centres = np.array([[-20.0, 0.0], [0.0, 20.0], [20.0, 0.0]])
    points = np.repeat(centres, 50, axis=0) + rng.normal(size=(150, 2))
    online = fitted(points)
    means = online.first / online.mass[:, None]
    np.testing.assert_allclose(means[means[:, 0].argsort()], centres, atol=0.6)
    np.testing.assert_allclose(online.mass, 1 / 3, atol=1e-9)


def test_fit_gives_finite_parameters_when_there_are_fewer_points_than_components():
    points = np.random.default_rng(0).normal(size=(3, 2))
    assert np.isfinite(fitted(points, components=10).log_density(points)).all()


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_fit_gives_finite_parameters_when_there_are_fewer_distinct_points_than_components(distinct):
    points = np.repeat(np.random.default_rng(0).normal(size=(distinct, 2)), 20, axis=0)
    assert np.isfinite(fitted(points, components=10).log_density(points)).all()


def test_fit_gives_finite_parameters_when_one_point_is_far_from_all_others():
    points = np.random.default_rng(0).normal(size=(100, 2))
    points[0] = 1e6
    assert np.isfinite(fitted(points, components=5, regularisation=1e-4).log_density(points)).all()


def test_log_density_is_finite_when_a_component_has_had_no_data_for_very_many_steps():
    rng = np.random.default_rng(0)
    online = fitted(np.concatenate([rng.normal(size=(50, 2)), 100 + rng.normal(size=(50, 2))]), components=2)
    points = rng.normal(size=(20, 2))
    for _ in range(5000):
        online.learn(points, step=0.1)
    everywhere = np.concatenate([points, 100 + points, 1e6 * points])
    assert np.isfinite(online.log_density(everywhere)).all()
    assert all(np.isfinite(array).all() for array in online.state().values())


def test_a_component_keeps_its_place_when_it_has_had_no_data_for_very_many_steps():
    rng = np.random.default_rng(0)
    online = fitted(np.concatenate([rng.normal(size=(50, 2)), 100 + rng.normal(size=(50, 2))]), components=2)
    forgotten = (online.first / online.mass[:, None]).mean(axis=1).argmax()
    before = online.first[forgotten] / online.mass[forgotten]
    for _ in range(2000):
        online.learn(rng.normal(size=(20, 2)), step=0.1)
    np.testing.assert_allclose(online.first[forgotten] / online.mass[forgotten], before, rtol=1e-6)


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_learning_gives_finite_parameters_when_all_points_are_far_from_a_component(step):
    rng = np.random.default_rng(0)
    online = fitted(np.concatenate([rng.normal(size=(50, 2)), 1e4 + rng.normal(size=(50, 2))]), components=2)
    points = rng.normal(size=(20, 2))
    for _ in range(50):
        online.learn(points, step)
    assert np.isfinite(online.log_density(points)).all()


def test_scoring_changes_nothing():
    rng = np.random.default_rng(0)
    points = clusters(rng, 100, 3)
    online = fitted(points)
    before = {name: array.copy() for name, array in online.state().items()}
    first, second = online.log_density(points), online.log_density(points)
    np.testing.assert_array_equal(first, second)
    for name, array in online.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_learning_leaves_its_argument_and_older_states_alone():
    rng = np.random.default_rng(0)
    points = clusters(rng, 100, 3)
    online, copy = fitted(points), points.copy()
    state = online.state()
    saved = {name: array.copy() for name, array in state.items()}
    online.learn(points, step=0.3)
    np.testing.assert_array_equal(points, copy)
    for name, array in state.items():
        np.testing.assert_array_equal(array, saved[name])


def test_a_restored_mixture_continues_bit_for_bit():
    rng = np.random.default_rng(0)
    original = fitted(clusters(rng, 100, 3))
    restored = OnlineMixture.from_state(original.state(), original.regularisation)
    for _ in range(5):
        points = clusters(rng, 30, 3)
        original.learn(points, step=0.2)
        restored.learn(points, step=0.2)
        np.testing.assert_array_equal(restored.log_density(points), original.log_density(points))


def test_new_axes_have_been_zero_when_a_mixture_gets_more():
    rng = np.random.default_rng(0)
    points = clusters(rng, 100, 2)
    narrow, with_zeros = fitted(points), np.insert(points, 1, 0.0, axis=1)
    wide = narrow.with_axes(np.array([0, 2]), 3)
    shares = narrow.mixture.responsibilities(points)
    old = OnlineMixture(*statistics(points, shares), narrow.regularisation)
    new = OnlineMixture(*statistics(with_zeros, shares), narrow.regularisation)
    alone = -0.5 * np.log(2 * np.pi * narrow.regularisation)  # of a zero with the regularising variance
    np.testing.assert_allclose(new.log_density(with_zeros), old.log_density(points) + alone, rtol=1e-6)
    np.testing.assert_allclose(wide.log_density(with_zeros), narrow.log_density(points) + alone, rtol=1e-6)
