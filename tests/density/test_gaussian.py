import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from policyfuzz.density.gaussian import GaussianMixture, cholesky

some_examples = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def random_moments(rng, components, dimensions):
    """Weights (k,), means (k, d) and well-conditioned covariances (k, d, d)."""
    roots = rng.normal(size=(components, dimensions, dimensions))
    covariances = roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(dimensions)
    return rng.dirichlet(np.ones(components)), rng.normal(size=(components, dimensions)), covariances


def scipy_log_joint(weights, means, covariances, *, points):
    """(n, k) log of weight times density, one component at a time."""
    parts = [
        np.log(weight) + np.atleast_1d(multivariate_normal(mean, covariance).logpdf(points))
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
    ]
    return np.stack(parts, axis=1)


@some_examples
@given(seeds, st.integers(1, 5), st.integers(1, 6), st.integers(1, 150))
def test_log_density_equals_scipy(seed, components, dimensions, count):
    rng = np.random.default_rng(seed)
    moments = random_moments(rng, components, dimensions)
    points = 3 * rng.normal(size=(count, dimensions))
    expected = logsumexp(scipy_log_joint(*moments, points=points), axis=1)
    got = GaussianMixture.from_moments(*moments).log_density(points)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@some_examples
@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_responsibilities_equal_scipy(seed, components, dimensions):
    rng = np.random.default_rng(seed)
    moments = random_moments(rng, components, dimensions)
    points = 3 * rng.normal(size=(20, dimensions))
    joint = scipy_log_joint(*moments, points=points)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    got = GaussianMixture.from_moments(*moments).responsibilities(points)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_log_density_equals_scipy_when_points_are_thousands_of_deviations_away():
    rng = np.random.default_rng(0)
    moments = random_moments(rng, 3, 4)
    points = 1e4 * rng.normal(size=(100, 4))
    expected = logsumexp(scipy_log_joint(*moments, points=points), axis=1)
    np.testing.assert_allclose(
        GaussianMixture.from_moments(*moments).log_density(points), expected, rtol=1e-9
    )


def test_log_density_is_the_same_when_points_are_in_column_order():
    rng = np.random.default_rng(0)
    mixture = GaussianMixture.from_moments(*random_moments(rng, 3, 4))
    points = rng.normal(size=(100, 4))
    np.testing.assert_array_equal(mixture.log_density(np.asfortranarray(points)), mixture.log_density(points))


@some_examples
@given(seeds, st.lists(st.integers(0, 199), min_size=1, max_size=200))
def test_log_density_of_a_point_is_bitwise_the_same_when_its_neighbours_change(seed, rows):
    rng = np.random.default_rng(seed)
    mixture = GaussianMixture.from_moments(*random_moments(rng, 3, 4))
    points = 10 * rng.normal(size=(200, 4))
    np.testing.assert_array_equal(mixture.log_density(points[rows]), mixture.log_density(points)[rows])


@some_examples
@given(seeds, st.integers(1, 40), st.sampled_from([1e-3, 1.0, 1e3, 1e6]))
def test_log_density_equals_scipy_when_components_lie_near_or_far(seed, components, distance):
    rng = np.random.default_rng(seed)
    weights, means = rng.dirichlet(np.ones(components)), distance * rng.normal(size=(components, 1))
    moments = weights, means, np.ones((components, 1, 1))
    points = distance * rng.normal(size=(50, 1))
    expected = logsumexp(scipy_log_joint(*moments, points=points), axis=1)
    got = GaussianMixture.from_moments(*moments).log_density(points)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@some_examples
@given(seeds, st.integers(1, 4))
def test_log_density_is_the_same_when_points_are_given_in_other_units(seed, dimensions):
    rng = np.random.default_rng(seed)
    mixture = GaussianMixture.from_moments(*random_moments(rng, 3, dimensions))
    points, units = rng.normal(size=(30, dimensions)), 10 ** rng.uniform(-6, 6, dimensions)
    np.testing.assert_allclose(
        mixture.in_units(units).log_density(points * units), mixture.log_density(points), rtol=1e-9
    )


def test_cholesky_reproduces_the_covariance_when_it_is_positive_definite():
    _, _, covariances = random_moments(np.random.default_rng(0), 4, 5)
    factors = cholesky(covariances, floor=0.1)
    np.testing.assert_allclose(factors @ factors.swapaxes(1, 2), covariances, rtol=1e-12, atol=1e-12)


def test_cholesky_raises_eigenvalues_to_the_floor_when_there_is_no_factor():
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    covariance = rotation @ np.diag([2.0, 1.0, -0.5]) @ rotation.T
    factors = cholesky(covariance[None], floor=0.01)
    lifted = rotation @ np.diag([2.0, 1.0, 0.01]) @ rotation.T
    np.testing.assert_allclose(factors[0] @ factors[0].T, lifted, atol=1e-12)


@pytest.mark.parametrize("largest", [1e6, 1e12, 1e18, 1e30])
def test_cholesky_exists_when_one_direction_is_huge_and_another_is_empty(largest):
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    covariance = rotation @ np.diag([largest, 1.0, 0.0]) @ rotation.T
    assert np.isfinite(cholesky(covariance[None], floor=1e-4)).all()
