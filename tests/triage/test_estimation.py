"""What an estimate says where the truth is known."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import InputSpace, UnhealthyTarget
from policyfuzz.core.errors import UsageError
from policyfuzz.triage.estimate import PLAIN, SUBSET, EstimateSettings, log_normal_interval
from policyfuzz.triage.estimation import Estimation

sys.path.insert(0, str(Path(__file__).parent))
from known_chances import LARGE, SMALL, constrained, corner, cube, finished, runs


def is_near(estimate, truth):
    """Within a factor that ten times as much bad luck would not reach; one interval in twenty may miss."""
    return truth / 4 < estimate.probability < 4 * truth and estimate.low <= 4 * truth <= 16 * estimate.high


@pytest.mark.parametrize("truth", [1e-4, 1e-6, 1e-8])
def test_rare_failures_are_estimated_from_their_margins(truth):
    estimate = finished(cube(), corner(np.sqrt(truth)), LARGE)
    assert estimate.method == SUBSET
    assert estimate.is_complete
    assert is_near(estimate, truth)
    assert estimate.episodes <= LARGE.limit
    assert estimate.plain_episodes > estimate.episodes
    assert "plain sampling would take about" in str(estimate)


def test_common_failures_are_counted():
    estimate = finished(cube(), corner(0.2))
    assert (estimate.method, estimate.replicates, estimate.notes) == (PLAIN, 0, ())
    assert is_near(estimate, 0.04)
    assert estimate.relative_error == pytest.approx(0.1, rel=0.3)


def test_failure_rate_is_exact_when_everything_fails():
    estimate = finished(cube(), corner(2.0))
    assert (estimate.probability, estimate.high) == (1.0, 1.0)


def test_steps_in_the_margin_cost_no_truth():
    run = runs(lambda inputs, _: inputs.max(axis=1) - 1e-3, shown=lambda m: np.ceil(np.log2(m + 1e-3) * 2))
    estimate = finished(cube(), run)
    assert estimate.method == SUBSET
    assert is_near(estimate, 1e-6)


def test_margin_that_is_flat_over_most_of_the_space_still_leads_to_failures():
    run = runs(lambda inputs, _: inputs.max(axis=1) - 1e-3, shown=lambda margins: np.minimum(margins, 0.5))
    estimate = finished(cube(), run)
    assert estimate.method == SUBSET
    assert is_near(estimate, 1e-6)


@pytest.mark.parametrize("flat", [0.0, 0.2])
def test_margin_that_leads_nowhere_is_said(flat):
    run = runs(lambda inputs, _: inputs.max(axis=1) - 0.01, shown=lambda margins: np.maximum(margins, flat))
    estimate = finished(cube(), run)
    if flat:
        assert estimate.method == PLAIN
        assert "does not grade the way to a failure" in estimate.notes[0]
        assert estimate.low <= 1e-4 <= estimate.high
        assert estimate.episodes == SMALL.limit
    else:  # right up to the failures it does
        assert estimate.method == SUBSET


def test_estimate_is_plain_when_the_oracle_tells_no_margin():
    run = runs(
        lambda inputs, _: inputs.max(axis=1) - 0.01, shown=lambda margins: np.full_like(margins, np.nan)
    )
    estimate = finished(cube(), run)
    assert estimate.method == PLAIN
    assert "tells no margin" in estimate.notes[0]
    assert estimate.low <= 1e-4 <= estimate.high


def test_estimate_is_plain_when_nobody_knows_how_inputs_are_drawn():
    space = InputSpace(cube().inputs.dimensions, sampler=lambda rng, count: rng.random((count, 2)))
    estimate = finished(cube(inputs=space), corner(0.1))
    assert estimate.method == PLAIN
    assert "no uniform_map" in estimate.notes[0]
    assert is_near(estimate, 0.01)


def test_estimate_is_plain_when_there_are_few_episodes():
    estimate = finished(cube(), corner(0.01), replace(SMALL, max_episodes=2000))
    assert (estimate.method, estimate.episodes) == (PLAIN, 2000)
    assert f"needs at least {SMALL.fewest_episodes:,}" in estimate.notes[0]


def test_only_valid_and_solvable_inputs_count():
    space = constrained(lambda inputs: inputs[:, 0] < 0.5)
    target = cube(inputs=space, solvable=lambda inputs: inputs[:, 1] < 0.5)
    estimate = finished(target, corner(1e-3))
    assert estimate.of_solvable
    assert is_near(estimate, 4e-6)


def test_episodes_that_cannot_be_run_do_not_count():
    run = runs(lambda inputs, _: inputs.max(axis=1) - 1e-3, cannot_run=lambda inputs: inputs[:, 0] > 0.5)
    assert is_near(finished(cube(), run), 2e-6)


def test_target_is_unhealthy_when_no_episode_can_be_run():
    run = runs(lambda inputs, _: inputs[:, 0], cannot_run=lambda inputs: np.ones(len(inputs), np.bool_))
    with pytest.raises(UnhealthyTarget, match=r"only 0 of 1,600 random episodes"):
        finished(cube(), run)


def test_case_seed_is_part_of_the_draw():
    def margins(inputs, seeds):
        luck = (seeds % np.uint64(2**20)).astype(np.float64) / 2**20
        return inputs[:, 0] + luck - 0.01

    assert is_near(finished(cube(), runs(margins), LARGE), 0.01**2 / 2)


def test_draws_follow_the_map_of_the_space():
    from policyfuzz import UniformMap

    dimensions = cube().inputs.dimensions
    squares = InputSpace(dimensions, uniform_map=UniformMap(2, np.square))
    estimate = finished(cube(inputs=squares), corner(1e-6))
    assert is_near(estimate, 1e-6)


def test_steps_that_change_nothing_run_no_episode():
    from policyfuzz import Integer

    space = InputSpace((Integer("a", 0, 999), Integer("b", 0, 999)))
    ran = []

    def margins(inputs, seeds):
        ran.append(len(inputs))
        return inputs.max(axis=1) - 0.5

    estimate = finished(cube(inputs=space), runs(margins))
    assert is_near(estimate, 1e-6)
    assert sum(ran) == estimate.episodes


def test_policy_that_never_fails_gets_a_bound():
    estimate = finished(cube(), runs(lambda inputs, _: inputs.max(axis=1) + 0.1))
    assert (estimate.probability, estimate.low) == (0.0, 0.0)
    assert estimate.high < 1e-8
    assert not estimate.is_complete
    assert "no failure was reached" in estimate.notes[0]


def test_stop_on_the_way_gives_a_bound():
    estimation = Estimation.begin(cube(), corner(1e-4), SMALL)
    for _ in range(150):
        estimation.advance()
    estimate = estimation.estimate
    assert (estimate.probability, estimate.is_complete) == (0.0, False)
    assert 1e-8 < estimate.high < 1e-3
    assert "a limit was reached on the way" in estimate.notes[0]


def test_same_seed_gives_the_same_estimate():
    first, second = (finished(cube(), corner(0.003)) for _ in range(2))
    assert first == second
    assert finished(cube(), corner(0.003), replace(SMALL, seed=2)) != first


@pytest.mark.parametrize("wrong", [{"replicates": 7}, {"max_episodes": 0}, {"seed": -1}])
def test_settings_are_refused_when_they_make_no_sense(wrong):
    with pytest.raises(UsageError, match="expected"):
        EstimateSettings(**wrong)


def test_log_normal_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    for spread in (0.3, 1.0):
        values = np.exp(rng.normal(0.0, spread, (2000, 10)) - 5)
        ends = [log_normal_interval(one) for one in values]
        covered = np.mean([low <= np.exp(-5 + spread**2 / 2) <= high for low, high in ends])
        assert 0.93 <= covered <= 0.99
