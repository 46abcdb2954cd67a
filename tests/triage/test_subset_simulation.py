"""Thresholds and levels."""

import numpy as np
from scipy.stats import kstest

from policyfuzz.triage.subset_simulation import FAILED, FARTHEST, Particles, SubsetSimulation, next_threshold


def test_threshold_leaves_as_many_as_are_kept():
    assert next_threshold(np.array([5.0, 1.0, 3.0, 2.0, 4.0]), 2) == 3.0


def test_threshold_is_the_failure_when_as_many_fail():
    assert next_threshold(np.array([FAILED, FAILED, FAILED, 1.0]), 2) == FAILED


def test_equal_scores_all_stay_when_hardly_any_lies_below():
    assert next_threshold(np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0]), 3) == 2.0


def test_equal_scores_all_go_when_nothing_lies_above():
    assert next_threshold(np.array([0.5, 1.0, 1.0, 1.0]), 2) == 1.0


def draws(scores, seed=0):
    count = len(scores)
    uniform = np.random.default_rng(seed).random((count, 1))
    return Particles(uniform, np.arange(count, dtype=np.uint64), np.asarray(scores, np.float64))


def test_level_multiplies_by_the_share_that_was_kept():
    climb = SubsetSimulation.begin([draws([1.0] * 30 + [2.0] * 70)], 20, 0)
    np.testing.assert_allclose(climb.probabilities, [0.3])
    assert climb.thresholds.tolist() == [2.0]
    assert (climb.scores == 1.0).all()


def test_replicate_is_stuck_when_all_scores_are_equal():
    climb = SubsetSimulation.begin([draws([FARTHEST] * 50)], 20, 0)
    assert climb.is_stuck.all()
    assert climb.is_over


def test_replicate_is_stuck_when_no_step_is_accepted():
    climb = SubsetSimulation.begin([draws(np.arange(100.0))], 20, 0)
    while not climb.is_over:
        climb.advance(lambda uniform, seeds, before: (np.full(len(seeds), np.nan), len(seeds)), 0)
    assert climb.is_stuck.all()


def test_particles_stay_in_the_cube_and_below_the_threshold():
    climb = SubsetSimulation.begin([draws(np.linspace(0, 1, 100), seed) for seed in range(3)], 20, 0)
    for _ in range(40):
        if not climb.is_over:
            climb.advance(lambda uniform, seeds, before: (uniform[:, 0], len(seeds)), 0)
        assert ((climb.uniform >= 0) & (climb.uniform <= 1)).all()
        assert (climb.scores < climb.thresholds[:, None]).all()


def test_steps_keep_the_distribution_even():
    """Particles that are uniform below a level are so after many steps, whatever sizes these have."""
    rng, level = np.random.default_rng(3), 0.05
    climb = SubsetSimulation.empty(1, 2000, 1)
    climb.uniform[0, :, 0] = climb.scores[0] = rng.random(2000) * level
    climb.walks[:], climb.thresholds[:] = True, level
    for _ in range(11):  # the next step would begin a level
        climb.advance(lambda uniform, seeds, before: (uniform[:, 0], len(seeds)), 0)
    assert kstest(climb.uniform[0, :, 0] / level, "uniform").pvalue > 1e-3
