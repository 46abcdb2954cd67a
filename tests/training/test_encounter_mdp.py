import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

from acasxu.encounter_mdp import Costs, EncounterMdp, Table, best_values, look_ahead, value_iteration
from acasxu.grid import collision_course, make_grid
from acasxu.motion import MIRRORED, TURN_RATES, Speeds, States, advance

CLEAR = 0
STRONG = [3, 4]
SPEEDS = Speeds(700.0, 500.0)


@pytest.fixture(scope="module")
def mdp() -> EncounterMdp:
    return EncounterMdp(make_grid(SPEEDS, distances=24, offsets=16, headings=16))


@pytest.fixture(scope="module")
def values(mdp: EncounterMdp) -> Table:
    """Values (nodes, 5) at tau = 0."""
    _, stationary = next(value_iteration(mdp))
    return stationary


def states(*rows: tuple[float, float, float]) -> States:
    distance, bearing, heading = np.array(rows).T
    return States(distance, bearing, heading)


def scores(mdp: EncounterMdp, values: Table, where: States, tau: int = 0, before: int = CLEAR) -> Table:
    outlooks = look_ahead(mdp, where, values[:, :, None], [tau])[:, :, 0]
    return outlooks + mdp.costs.switching()[before]


def random_states(count: int) -> States:
    rng = np.random.default_rng(0)
    return States(
        rng.uniform(0, 20_000, count),
        rng.uniform(-np.pi, np.pi, count),
        rng.uniform(-np.pi, np.pi, count),
    )


def test_values_stand_still_when_iteration_has_converged(mdp: EncounterMdp, values: Table) -> None:
    nodes = mdp.grid.nodes()
    again = best_values(look_ahead(mdp, nodes, values[:, :, None], [0])[:, :, 0], mdp.costs.switching())
    assert np.abs(again - values).max() < 1e-3


def test_values_are_between_nothing_and_a_collision_with_every_alert(values: Table) -> None:
    assert values.min() >= 0
    assert values.max() <= 1 + 0.2


def test_mirrored_states_have_mirrored_scores(mdp: EncounterMdp, values: Table) -> None:
    where = random_states(500)
    here, there = scores(mdp, values, where), scores(mdp, values, where.mirrored())
    np.testing.assert_allclose(there, here[:, MIRRORED], atol=1e-4)


def test_clear_of_conflict_is_best_when_the_intruder_is_far_away_and_leaving(
    mdp: EncounterMdp, values: Table
) -> None:
    behind_and_slower = states((50_000.0, np.pi, np.pi), (40_000.0, 2.5, 2.5), (40_000.0, -2.5, -2.5))
    assert (scores(mdp, values, behind_and_slower).argmin(axis=1) == CLEAR).all()


def test_a_hard_turn_is_best_when_a_head_on_collision_is_near(mdp: EncounterMdp, values: Table) -> None:
    head_on = states((4_000.0, 0.0, np.pi), (5_000.0, 0.0, np.pi))
    assert np.isin(scores(mdp, values, head_on).argmin(axis=1), STRONG).all()


def test_the_turn_is_away_from_the_side_on_which_the_intruder_passes(
    mdp: EncounterMdp, values: Table
) -> None:
    passing = states((4_000.0, 0.06, np.pi), (4_000.0, -0.06, np.pi))
    assert scores(mdp, values, passing).argmin(axis=1).tolist() == [4, 3]


def test_danger_is_worth_less_when_vertical_separation_lasts_longer(mdp: EncounterMdp) -> None:
    near = states((3_000.0, 0.0, np.pi))
    danger = []
    for tau, at_tau in value_iteration(mdp):
        danger.append(float(scores(mdp, at_tau, near, tau + 1)[0, CLEAR]))
        if tau == 40:
            break
    assert danger[0] > 2 * danger[20] > 4 * danger[40]


def test_reversal_costs_more_than_keeping_the_side() -> None:
    switching = Costs().switching()
    assert switching[1, 2] > switching[1, 1]
    assert switching[3, 4] > switching[3, 1]
    np.testing.assert_allclose(switching, switching[MIRRORED][:, MIRRORED])


def test_interpolation_is_exact_at_nodes_and_weights_sum_to_one(mdp: EncounterMdp) -> None:
    numbers, weights = mdp.grid.corners(mdp.grid.nodes())
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)
    positive = mdp.grid.nodes().distance > 0
    own = (weights * (numbers == np.arange(mdp.grid.size)[:, None])).sum(axis=1)
    np.testing.assert_allclose(own[positive], 1.0, atol=1e-4)


def test_closest_approach_is_found_within_a_step() -> None:
    _, closest = advance(states((600.0, 0.0, np.pi)), SPEEDS, 0.0, 0.0, 1.0)
    assert closest[0] == pytest.approx(0.0, abs=1e-6)


def test_one_long_step_equals_many_short_ones() -> None:
    start = random_states(100)
    for rate in TURN_RATES:
        long, _ = advance(start, SPEEDS, rate, 0.01, 1.0)
        short = start
        for _ in range(10):
            short, _ = advance(short, SPEEDS, rate, 0.01, 0.1)
        np.testing.assert_allclose(short.distance, long.distance, atol=1e-6)
        np.testing.assert_allclose(np.cos(short.bearing - long.bearing), 1.0, atol=1e-9)


def test_straight_flight_from_the_collision_course_meets_the_intruder() -> None:
    heading = np.linspace(-3.0, 3.0, 7)
    start = States(np.full(7, 1_000.0), collision_course(SPEEDS, heading), heading)
    _, closest = advance(start, SPEEDS, 0.0, 0.0, 30.0)
    np.testing.assert_allclose(closest, 0.0, atol=1e-6)
