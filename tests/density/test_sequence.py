import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from policyfuzz.core.settings import DensitySettings
from policyfuzz.density import sequence
from policyfuzz.density.sequence import SequenceDensity

some_examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def walks(rng, count, steps, dimensions, start=0.0):
    """(count, steps, d) random walks that begin around `start`."""
    begin = start + rng.normal(size=(count, 1, dimensions))
    return begin + np.cumsum(0.2 * rng.normal(size=(count, steps, dimensions)), axis=1)


def whole(states):
    """(n,) lengths of sequences that all go on to the end."""
    return np.full(len(states), states.shape[1])


def learnt(states, lengths=None, seed=0, **options):
    density = SequenceDensity(DensitySettings(**options))
    density.learn(states, whole(states) if lengths is None else lengths, np.random.default_rng(seed))
    return density


def scipy_log_density(weights, means, covariances, *, points):
    parts = [
        np.log(weight) + np.atleast_1d(multivariate_normal(mean, covariance).logpdf(points))
        for weight, mean, covariance in zip(weights, means, covariances, strict=True)
    ]
    return logsumexp(np.stack(parts, axis=1), axis=1)


def pair_moments(density, dimensions):
    """Moments of the learnt mixture over [S_t, S_t+1] in standardised units.

    It is held over (S_t, scaled increment), without increments of coordinates that have never moved:
    those are zero with the regularising variance.
    """
    state, pairs = density.state(), density.pairs
    weights, held_means, held_covariances = pairs.moments()
    held = np.concatenate([np.arange(dimensions), dimensions + state["moving"]])
    means = np.zeros((len(weights), 2 * dimensions))
    means[:, held] = held_means
    covariances = np.tile(pairs.regularisation * np.eye(2 * dimensions), (len(weights), 1, 1))
    covariances[:, held[:, None], held] = held_covariances
    identity, zero = np.eye(dimensions), np.zeros((dimensions, dimensions))
    to_pair = np.block([[identity, zero], [identity, np.diag(state["increment_scale"])]])
    return weights, means @ to_pair.T, to_pair @ covariances @ to_pair.T


def direct_log_densities(density, states, lengths):
    """For each sequence log s(S_0), and all log c([S_t, S_t+1]) - log s(S_t), in standardised units."""
    units, dimensions = density.state(), states.shape[2]
    pairs = weights, means, covariances = pair_moments(density, dimensions)
    singles = weights, means[:, :dimensions], covariances[:, :dimensions, :dimensions]
    for row, length in zip(states, lengths, strict=True):
        path = (row[:length] - units["location"]) / units["scale"]
        transitions = np.empty(0)
        if length > 1:
            transitions = scipy_log_density(*pairs, points=np.hstack([path[:-1], path[1:]]))
            transitions -= scipy_log_density(*singles, points=path[:-1])
        yield scipy_log_density(*singles, points=path[:1])[0], transitions


def direct_mean_log_density(density, states, lengths):
    parts = direct_log_densities(density, states, lengths)
    return np.array([first + transitions.sum() for first, transitions in parts]) / lengths


def direct_least_log_density(density, states, lengths):
    parts = direct_log_densities(density, states, lengths)
    return np.array([transitions.min() if len(transitions) else first for first, transitions in parts])


DIRECT = {
    SequenceDensity.mean_log_density: direct_mean_log_density,
    SequenceDensity.least_log_density: direct_least_log_density,
}
every_score = pytest.mark.parametrize("score", DIRECT, ids=["mean", "least"])


@every_score
@some_examples
@given(seeds, st.integers(1, 3), st.integers(1, 4), st.integers(1, 20))
def test_log_density_equals_the_direct_formula(score, seed, dimensions, components, count):
    rng = np.random.default_rng(seed)
    density = learnt(walks(rng, 30, 8, dimensions), components=components)
    states, lengths = walks(rng, count, 8, dimensions), rng.integers(1, 9, count)
    np.testing.assert_allclose(
        score(density, states, lengths),
        DIRECT[score](density, states, lengths),
        rtol=1e-9,
        atol=1e-9,
    )


@every_score
def test_log_density_equals_the_direct_formula_when_a_batch_is_larger_than_a_chunk(score):
    rng = np.random.default_rng(0)
    density = learnt(walks(rng, 30, 64, 2), components=2)
    whole_chunk = sequence._CHUNK // 64  # sequences that fill the first chunk exactly
    states = walks(rng, whole_chunk + 76, 64, 2)
    lengths = np.concatenate([np.full(whole_chunk, 64), rng.integers(1, 65, 76)])
    np.testing.assert_allclose(
        score(density, states, lengths),
        DIRECT[score](density, states, lengths),
        rtol=1e-9,
        atol=1e-9,
    )


@every_score
def test_log_density_equals_the_direct_formula_when_a_coordinate_rests_and_later_moves(score):
    rng = np.random.default_rng(0)
    resting = walks(rng, 40, 8, 3)
    resting[:, :, 1] = resting[:, :1, 1]
    density, moving = learnt(resting, components=2), walks(rng, 10, 8, 3)
    for _ in range(2):
        for states in (resting, moving):
            lengths = rng.integers(1, 9, len(states))
            np.testing.assert_allclose(
                score(density, states, lengths),
                DIRECT[score](density, states, lengths),
                rtol=1e-9,
                atol=1e-9,
            )
        density.learn(moving, whole(moving), rng)


@every_score
@some_examples
@given(seeds, st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 60))
def test_log_density_does_not_depend_on_where_chunks_end(score, seed, lengths, chunk):
    rng = np.random.default_rng(seed)
    density = learnt(walks(rng, 20, 9, 2), components=2)
    states, lengths = walks(rng, len(lengths), 9, 2), np.array(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence, "_CHUNK", chunk)
        chunked = score(density, states, lengths)
    np.testing.assert_allclose(chunked, score(density, states, lengths), rtol=1e-12, atol=1e-12)


@every_score
def test_log_density_of_a_sequence_is_the_same_when_it_is_scored_alone(score):
    rng = np.random.default_rng(0)
    density = learnt(walks(rng, 30, 12, 3))
    states, lengths = walks(rng, 20, 12, 3), rng.integers(1, 13, 20)
    alone = [score(density, states[i : i + 1], lengths[i : i + 1])[0] for i in range(len(states))]
    np.testing.assert_allclose(score(density, states, lengths), alone, rtol=1e-12)


@every_score
def test_log_density_of_no_sequences_is_empty(score):
    density = learnt(walks(np.random.default_rng(0), 30, 5, 2))
    assert score(density, np.empty((0, 5, 2)), np.empty(0, np.int64)).shape == (0,)


@every_score
def test_what_lies_behind_the_end_of_a_sequence_does_not_matter(score):
    rng = np.random.default_rng(0)
    states, lengths = walks(rng, 20, 9, 2), rng.integers(1, 10, 20)
    padded = np.where(np.arange(9)[None, :, None] < lengths[:, None, None], states, np.nan)
    first, second = learnt(states, lengths), learnt(padded, lengths)
    first.learn(states, lengths, np.random.default_rng(1))
    second.learn(padded, lengths, np.random.default_rng(1))
    np.testing.assert_array_equal(score(first, states, lengths), score(second, padded, lengths))


@every_score
def test_units_of_the_states_do_not_matter(score):
    rng = np.random.default_rng(0)
    states = walks(rng, 30, 10, 3)
    units = np.array([2.0**-20, 1.0, 2.0**20])  # powers of two change no bits
    np.testing.assert_allclose(
        score(learnt(states * units), states * units, whole(states)),
        score(learnt(states), states, whole(states)),
        rtol=1e-9,
    )


@every_score
def test_scoring_twice_gives_the_same_bits_and_changes_nothing(score):
    rng = np.random.default_rng(0)
    density, states = learnt(walks(rng, 30, 10, 3)), walks(rng, 10, 10, 3)
    before, copy = {name: array.copy() for name, array in density.state().items()}, states.copy()
    first = score(density, states, whole(states))
    second = score(density, states, whole(states))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(states, copy)
    for name, array in density.state().items():
        np.testing.assert_array_equal(array, before[name])


@every_score
def test_scoring_is_refused_when_nothing_was_learnt(score):
    with pytest.raises(RuntimeError, match="learnt nothing"):
        score(SequenceDensity(DensitySettings()), np.zeros((1, 2, 3)), np.array([2]))


def test_learning_no_sequences_changes_nothing():
    density = learnt(walks(np.random.default_rng(0), 20, 5, 2))
    before = {name: array.copy() for name, array in density.state().items()}
    density.learn(np.empty((0, 5, 2)), np.empty(0, np.int64), np.random.default_rng(0))
    for name, array in density.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_online_statistics_equal_those_of_one_batch_when_nothing_is_forgotten():
    rng = np.random.default_rng(0)
    states = walks(rng, 60, 10, 2)
    density = learnt(states[:20], components=1)
    for start, end in ((20, 25), (25, 26), (26, 60)):
        density.learn(states[start:end], np.full(end - start, 10), rng)
    units, mixture = density.state(), density.pairs
    scaled = (states - units["location"]) / units["scale"]
    steps = np.diff(scaled, axis=1) / units["increment_scale"]
    expected = np.concatenate([scaled[:, :-1], steps], axis=2).reshape(-1, 4)
    np.testing.assert_allclose(mixture.first[0], expected.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(mixture.second[0], expected.T @ expected / len(expected), atol=1e-12)


@every_score
@pytest.mark.parametrize(
    ("count", "steps", "dimensions"),
    [(4, 1000, 2), (20, 30, 1), (4, 20, 100), (1, 1, 3), (1, 2, 1), (2, 1, 2)],
)
def test_scores_are_finite_when_sequences_have_an_extreme_shape(score, count, steps, dimensions):
    states = walks(np.random.default_rng(0), count, steps, dimensions)
    density = learnt(states)
    for _ in range(3):
        assert np.isfinite(score(density, states, whole(states))).all()
        density.learn(states, whole(states), np.random.default_rng(1))


@every_score
def test_scores_are_finite_when_every_state_is_the_same(score):
    states = np.full((5, 10, 3), 7.0)
    density = learnt(states)
    density.learn(states, whole(states), np.random.default_rng(1))
    assert np.isfinite(score(density, states, whole(states))).all()
    assert np.isfinite(score(density, states + 1, whole(states))).all()


@every_score
def test_scores_are_finite_when_every_sequence_stands_still(score):
    states = np.repeat(np.random.default_rng(0).normal(size=(5, 1, 3)), 10, axis=1)
    density = learnt(states)
    density.learn(states, whole(states), np.random.default_rng(1))
    assert np.isfinite(score(density, states, whole(states))).all()


@every_score
def test_scores_are_finite_when_one_coordinate_never_changes(score):
    states = walks(np.random.default_rng(0), 20, 10, 3)
    states[:, :, 1] = 1234.5
    density = learnt(states)
    changed = states.copy()
    changed[:, :, 1] += 1.0
    assert np.isfinite(score(density, states, whole(states))).all()
    assert np.isfinite(score(density, changed, whole(states))).all()


def outliers(dimensions, kind):
    """(2, 10, d) the wildest numbers."""
    states = np.full((2, 10, dimensions), 1e300)
    if kind == "alternating":
        states[:, ::2] *= -1
    if kind == "infinite":
        states[:] = np.inf
    return states


@every_score
@pytest.mark.parametrize("kind", ["constant", "alternating", "infinite"])
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_scores_are_finite_when_states_are_wild_outliers(score, dimensions, unit, kind):
    density = learnt(unit * walks(np.random.default_rng(0), 30, 10, dimensions))
    states = outliers(dimensions, kind)
    assert np.isfinite(score(density, states, whole(states))).all()


@every_score
@pytest.mark.parametrize("kind", ["constant", "alternating"])
@pytest.mark.parametrize("dimensions", [1, 3, 20])
def test_scores_are_finite_when_wild_outliers_were_learnt(score, dimensions, kind):
    states = walks(np.random.default_rng(0), 30, 10, dimensions)
    density, far = learnt(states), outliers(dimensions, kind)
    for _ in range(5):
        density.learn(far, whole(far), np.random.default_rng(1))
    assert np.isfinite(score(density, far, whole(far))).all()
    assert np.isfinite(score(density, states, whole(states))).all()


@every_score
@pytest.mark.parametrize("deviations", [10.0, 1e3, 1e300])
@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_a_sequence_is_fresher_than_all_learnt_ones_when_it_is_far_from_them(score, dimensions, deviations):
    states = walks(np.random.default_rng(0), 50, 20, dimensions)
    density = learnt(states)
    far = states[:10] + deviations * states.std()
    least = score(density, states, whole(states)).min()
    assert score(density, far, whole(far)).max() < least


@every_score
@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_sequence_becomes_less_fresh_when_it_is_learnt(score, seed):
    rng = np.random.default_rng(seed)
    density = learnt(walks(rng, 100, 20, 2), seed=seed)
    fresh = walks(rng, 1, 20, 2, start=[6.0, -6.0])
    before = score(density, fresh, whole(fresh))
    density.learn(fresh, whole(fresh), rng)
    assert score(density, fresh, whole(fresh)) > before


@every_score
@pytest.mark.parametrize("seed", range(5))
def test_a_learnt_sequence_stays_less_fresh_when_many_others_far_away_are_learnt(score, seed):
    rng = np.random.default_rng(seed)
    density = learnt(walks(rng, 100, 20, 2), seed=seed)
    fresh = walks(rng, 1, 20, 2, start=[6.0, -6.0])
    before = score(density, fresh, whole(fresh))
    density.learn(fresh, whole(fresh), rng)
    for _ in range(20):
        others = walks(rng, 500, 20, 2, start=[-8.0, 8.0])
        density.learn(others, whole(others), rng)
    assert density.learnt_sequences > 10_000
    assert score(density, fresh, whole(fresh)) > before


@every_score
def test_a_restored_density_continues_bit_for_bit(score):
    rng = np.random.default_rng(0)
    settings = DensitySettings(forgetting=0.01)
    original = SequenceDensity(settings)
    states, lengths = walks(rng, 30, 10, 3), rng.integers(1, 11, 30)
    original.learn(states, lengths, rng)
    restored = SequenceDensity.from_state(original.state(), settings)
    for _ in range(4):
        states, lengths = walks(rng, 30, 10, 3), rng.integers(1, 11, 30)
        original.learn(states, lengths, np.random.default_rng(1))
        restored.learn(states, lengths, np.random.default_rng(1))
        np.testing.assert_array_equal(score(restored, states, lengths), score(original, states, lengths))
    assert restored.learnt_sequences == original.learnt_sequences


def test_a_density_restored_from_nothing_has_learnt_nothing():
    settings = DensitySettings()
    restored = SequenceDensity.from_state(SequenceDensity(settings).state(), settings)
    assert not restored.is_fitted


def test_state_does_not_grow_when_more_is_learnt():
    rng = np.random.default_rng(0)
    density = learnt(walks(rng, 30, 10, 2))
    sizes = {name: array.nbytes for name, array in density.state().items()}
    for _ in range(20):
        states = walks(rng, 50, 10, 2, start=rng.normal(size=2) * 10)
        density.learn(states, whole(states), rng)
    assert {name: array.nbytes for name, array in density.state().items()} == sizes


@every_score
def test_scores_are_finite_when_components_are_forgotten_for_very_many_steps(score):
    rng = np.random.default_rng(0)
    first = np.concatenate([walks(rng, 20, 5, 2), walks(rng, 20, 5, 2, start=50.0)])
    density = learnt(first, components=4, forgetting=0.05)
    states = walks(rng, 20, 5, 2)
    for _ in range(2000):
        density.learn(states, whole(states), rng)
    assert np.isfinite(score(density, first, whole(first))).all()
    assert all(np.isfinite(array).all() for array in density.state().values())


def test_a_quiet_end_hides_a_strange_transition_from_the_mean_but_not_from_the_least():
    rng = np.random.default_rng(0)
    states = walks(rng, 50, 20, 2)
    density = learnt(np.concatenate([states, np.repeat(states[:, -1:], 20, axis=1)], axis=1))
    strange = states[:1].copy()
    strange[:, 10:] += 3.0  # one jump
    quiet = np.concatenate([strange, np.repeat(strange[:, -1:], 60, axis=1)], axis=1)
    short, long = (
        (density.mean_log_density(one, whole(one)), density.least_log_density(one, whole(one)))
        for one in (strange, quiet)
    )
    assert long[0] > short[0]
    assert long[1] == pytest.approx(short[1], rel=1e-12)
