import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from policyfuzz.density.published import FadingMixture, PublishedDensity

some_examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def walk(rng, steps=30, dimensions=2, start=0.0):
    return start + np.cumsum(0.1 * rng.normal(size=(steps, dimensions)), axis=0)


def moments(mixture):
    """Weights, means and covariances: unit ones at first, then with eigenvalues of at least 1e-3."""
    means = mixture.first / mixture.mass[:, None]
    if not mixture.has_learnt:
        return mixture.mass, means, [np.eye(means.shape[1])] * len(means)
    covariances = []
    for mass, mean, second in zip(mixture.mass, means, mixture.second, strict=True):
        values, vectors = np.linalg.eigh(second / mass - np.outer(mean, mean))
        covariances.append(vectors @ np.diag(np.maximum(values, 1e-3)) @ vectors.T)
    return mixture.mass, means, covariances


def direct_parts(mixture, points):
    """(n, k) weight times density of each component, plus 1e-5, without any logarithm."""
    columns = [
        weight * np.atleast_1d(multivariate_normal.pdf(points, mean, covariance))
        for weight, mean, covariance in zip(*moments(mixture), strict=True)
    ]
    return np.stack(columns, axis=1) + 1e-5


def direct_density(density, states):
    """The product of densities and capped ratios, as it is published."""
    singles = direct_parts(density._singles, states).sum(axis=1)
    pairs = direct_parts(density._pairs, np.hstack([states[:-1], states[1:]])).sum(axis=1)
    return singles[0] * np.minimum(pairs / singles[:-1], 1.0).prod()


@some_examples
@given(seeds, st.integers(1, 3), st.integers(1, 4), st.integers(2, 12))
def test_log_density_is_that_of_the_published_product(seed, dimensions, components, steps):
    rng = np.random.default_rng(seed)
    density = PublishedDensity(components, 0.1)
    for _ in range(4):
        density.consider(walk(rng, dimensions=dimensions), np.inf)
    states = walk(rng, steps, dimensions)
    assert np.exp(density.log_density(states)) == pytest.approx(direct_density(density, states), rel=1e-6)


@some_examples
@given(seeds, st.integers(1, 6), st.sampled_from([0.01, 0.1, 0.5]))
def test_points_are_learnt_one_after_another(seed, count, rate):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(20, 2))
    at_once, one_by_one = (FadingMixture.begin(points, 3, rate) for _ in range(2))
    log_parts = at_once.log_parts(points[:count])
    at_once.learn(points[:count], log_parts)
    for row in range(count):
        one_by_one.learn(points[row : row + 1], log_parts[:, row : row + 1])
    for name, array in at_once.state().items():
        np.testing.assert_allclose(array, one_by_one.state()[name], rtol=1e-12, atol=1e-15)


def test_a_learnt_point_takes_its_share_of_the_statistics():
    mixture = FadingMixture.begin(np.array([[1.0, 0.0]]), 1, 0.1)
    point = np.array([[3.0, 4.0]])
    mixture.learn(point, mixture.log_parts(point))
    assert mixture.mass == pytest.approx([1.0])
    np.testing.assert_allclose(mixture.first, [[0.9 * 1 + 0.1 * 3, 0.1 * 4]])
    np.testing.assert_allclose(mixture.second[0], [[0.9 * 1 + 0.1 * 9, 0.1 * 12], [0.1 * 12, 0.1 * 16]])


def test_only_the_first_state_and_a_tenth_of_the_pairs_are_learnt():
    rng = np.random.default_rng(0)
    density = PublishedDensity(2, 0.1)
    density.log_density(walk(rng))
    before = density.state()
    states = walk(rng, steps=41)
    pairs = np.hstack([states[:-1], states[1:]])
    density.consider(states, np.inf)
    expected_singles = FadingMixture.from_state(
        {name.removeprefix("singles."): array for name, array in before.items() if "singles" in name}, 0.1
    )
    expected_singles.learn(states[:1], expected_singles.log_parts(states[:1]))
    np.testing.assert_array_equal(density.state()["singles.first"], expected_singles.first)
    expected_pairs = FadingMixture.from_state(
        {name.removeprefix("pairs."): array for name, array in before.items() if "pairs" in name}, 0.1
    )
    parts = expected_pairs.log_parts(pairs)
    least = np.argsort(np.logaddexp.reduce(parts, axis=0), kind="stable")[:4]
    expected_pairs.learn(pairs[least], parts[:, least])
    np.testing.assert_array_equal(density.state()["pairs.first"], expected_pairs.first)


def test_only_what_is_below_the_threshold_is_learnt():
    rng = np.random.default_rng(0)
    density = PublishedDensity(3, 0.1)
    density.log_density(walk(rng))
    states = walk(rng)
    log_density = density.consider(states, -np.inf)
    assert density.learnt_sequences == 0
    assert density.consider(states, log_density) == log_density, "not below itself"
    assert density.learnt_sequences == 0
    density.consider(states, np.nextafter(log_density, np.inf))
    assert density.learnt_sequences == 1


def test_scoring_twice_gives_the_same_bits():
    rng = np.random.default_rng(0)
    density, states = PublishedDensity(3, 0.1), walk(rng)
    density.consider(walk(rng), np.inf)
    assert density.log_density(states) == density.log_density(states)


@pytest.mark.parametrize("steps", [1, 2, 3, 1000])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12, 1e300])
def test_scores_are_finite_whatever_the_units_and_lengths(steps, scale):
    rng, density = np.random.default_rng(0), PublishedDensity(5, 0.1)
    for _ in range(20):
        assert np.isfinite(density.consider(scale * walk(rng, steps), np.inf))


def test_a_sequence_with_a_nan_has_no_density_and_is_not_learnt():
    rng, density = np.random.default_rng(0), PublishedDensity(2, 0.1)
    broken = walk(rng)
    broken[3, 0] = np.nan
    assert np.isnan(density.consider(broken, np.inf)), "nor does it place the components"
    assert density.state() == {}
    density.consider(walk(rng), np.inf)
    assert np.isnan(density.consider(broken, np.inf))
    assert density.learnt_sequences == 1


@pytest.mark.parametrize("learnt", [0, 1, 5])
def test_a_restored_density_continues_bit_for_bit(learnt):
    rng, original = np.random.default_rng(0), PublishedDensity(3, 0.1)
    for _ in range(learnt):
        original.consider(walk(rng), np.inf)
    restored = PublishedDensity.from_state(original.state(), 3, 0.1)
    for _ in range(4):
        states = walk(rng)
        assert restored.consider(states, np.inf) == original.consider(states, np.inf)
    assert restored.learnt_sequences == original.learnt_sequences


def test_what_was_learnt_fades_when_others_are_learnt():
    """The published rate forgets: the reason why our own density weighs all sequences equally."""
    rng, density = np.random.default_rng(0), PublishedDensity(1, 0.1)
    first = walk(rng)
    for _ in range(30):
        density.consider(first, np.inf)
    known = density.log_density(first)
    for _ in range(100):
        density.consider(walk(rng, start=20.0), np.inf)
    assert density.log_density(first) < known - 5
