"""Boundaries of findings on targets whose crash region is known."""

import numpy as np
import pytest

from policyfuzz import Angle, Choice, Integer, Real, Runner, Seed, load_target
from policyfuzz.core.errors import UsageError
from policyfuzz.targets.ripple.target import Pond
from policyfuzz.triage.boundary import find_boundary
from tests.triage.box_targets import Recorder, target_of

SEED = 7


def boundary_of(target, row, budget=40):
    """The boundary, and all inputs that were run for it."""
    run = Recorder(Runner(target))
    found = find_boundary(target, run, np.array(row, float), SEED, budget)
    assert found.episodes == len(run.inputs) <= budget
    assert set(run.seeds) == {SEED}
    return found, run


def assert_pair_is_true(target, row, found):
    """Both sides were told right, and so were the changes of single dimensions."""
    runner = Runner(target)
    rows = [row, found.crashing, found.passing]
    for change in found.changes:
        changed = list(row)
        changed[target.inputs.names.index(change.dimension)] = change.value
        rows.append(changed)
    crashed = runner(np.array(rows, float), np.full(len(rows), SEED, np.uint64)).crashed
    assert crashed.tolist() == [True, True] + [False] * (1 + len(found.changes))


def ripple_finding(dimensions, seed):
    pond = Pond.make(dimensions, 1, 1e-3)
    active = pond.centres.shape[1]
    rng = np.random.default_rng(seed)
    row = rng.random(dimensions)
    row[:active] = pond.centres[0] + 0.95 * pond.half_width * rng.uniform(-1, 1, active)
    rooms = pond.half_width - np.abs(row[:active] - pond.centres[0])
    return row, float(rooms.min())


@pytest.mark.parametrize("seed", range(5))
def test_distance_is_that_of_the_nearest_side_of_the_region(seed):
    row, distance = ripple_finding(2, seed)
    target = load_target("ripple:dimensions=2")
    found, _ = boundary_of(target, row)
    assert_pair_is_true(target, row, found)
    assert distance <= found.distance <= 1.1 * distance
    assert found.gap <= 0.05 * found.distance
    assert [change.dimension for change in found.changes[:1]] == [
        name for name, one, other in zip(target.inputs.names, row, found.passing, strict=True) if one != other
    ]


@pytest.mark.parametrize("dimensions", [12, 50])
def test_dimensions_that_play_no_part_are_named_and_no_others(dimensions):
    row, _ = ripple_finding(dimensions, 0)
    target = load_target(f"ripple:dimensions={dimensions}")
    found, _ = boundary_of(target, row, budget=120)
    assert_pair_is_true(target, row, found)
    assert set(found.no_matter) == {f"x{place}" for place in range(10, dimensions)}


def test_every_dimension_is_a_change_or_plays_no_part_or_is_not_known():
    row, _ = ripple_finding(50, 1)
    found, _ = boundary_of(load_target("ripple:dimensions=50"), row, budget=20)
    names = [*(change.dimension for change in found.changes), *found.no_matter, *found.not_known]
    assert sorted(names) == sorted(f"x{place}" for place in range(50))
    assert found.not_known


def test_combination_of_dimensions_is_nearer_than_each_alone():
    target = target_of([Real("x", 0, 1), Real("y", 0, 1)], lambda rows: rows.sum(axis=1) > 1)
    found, _ = boundary_of(target, [0.6, 0.5])
    assert 0.1 / np.sqrt(2) <= found.distance <= 1.1 * 0.1 / np.sqrt(2)
    assert {change.dimension for change in found.changes} == {"x", "y"}
    for change in found.changes:
        assert change.amount <= -0.1 <= change.not_enough


@pytest.mark.parametrize("values", [("a", "b"), ("a", "b", "c"), tuple("abcdefghijkl")])
def test_other_options_are_tried_where_values_have_no_order(values):
    target = target_of([Choice("kind", values), Real("x", 0, 1)], lambda rows: rows[:, 0] == 1)
    found, _ = boundary_of(target, [1, 0.5])
    (change,) = found.changes
    assert change.dimension == "kind"
    assert change.value != 1
    assert found.no_matter == ("x",)


def test_whole_numbers_are_changed_by_the_least():
    target = target_of(
        [Integer("count", 0, 1000), Real("x", 0, 1)], lambda rows: (rows[:, 0] > 40) & (rows[:, 0] < 500)
    )
    found, _ = boundary_of(target, [45, 0.5])
    (change,) = found.changes
    assert (change.dimension, change.value, change.amount, change.not_enough) == ("count", 40, -5, -4)
    assert found.crashing == (41, 0.5)


def test_other_seeds_are_tried():
    target = target_of([Seed("world")], lambda rows: rows[:, 0] % 2 == 1)
    found, _ = boundary_of(target, [7])
    assert found.passing[0] % 2 == 0


@pytest.mark.parametrize(("start", "expected"), [(3.1, 0.2), (-3.1, 0.2 - 2 * (np.pi - 3.1)), (2.9, -0.1)])
def test_angles_go_both_ways_round(start, expected):
    """The region reaches from 2.8 across the end of the turn to 3.3."""
    target = target_of([Angle("heading")], lambda rows: (rows[:, 0] - 2.8) % (2 * np.pi) < 0.5)
    found, _ = boundary_of(target, [start])
    (change,) = found.changes
    assert change.amount == pytest.approx(expected, rel=0.1)
    assert abs(change.not_enough) < abs(expected) <= abs(change.amount)
    assert -np.pi <= change.value <= np.pi


def test_only_valid_and_solvable_inputs_are_run():
    target = target_of(
        [Real("x", 0, 1), Real("y", 0, 1)],
        lambda rows: rows[:, 0] < 0.5,
        constraint=lambda rows: (rows[:, 0] < 0.2) | (rows[:, 0] > 0.7),
        solvable=lambda rows: rows[:, 0] < 0.9,
    )
    found, run = boundary_of(target, [0.1, 0.5])
    x = np.array(run.inputs)[:, 0]
    assert ((x < 0.2) | ((x > 0.7) & (x < 0.9))).all()
    assert found.crashing[0] < 0.2
    assert found.passing[0] == pytest.approx(0.7, rel=0.05)


def test_no_pair_is_claimed_when_everything_crashes():
    target = target_of([Real("x", 0, 1), Angle("a")], lambda rows: rows[:, 0] >= 0)
    found, _ = boundary_of(target, [0.3, 0.1])
    assert found.crashes
    assert found.passing == found.changes == ()
    assert np.isnan(found.distance)
    assert found.no_matter == ("x", "a")


def test_corner_is_found_where_no_dimension_alone_helps():
    target = target_of([Real(name, 0, 1) for name in "xyz"], lambda rows: ~(rows[:, :2] > 0.6).all(axis=1))
    found, _ = boundary_of(target, [0.5, 0.5, 0.5])
    assert not found.changes
    assert {"x", "y"} <= set(found.not_known)
    assert min(found.passing[:2]) > 0.6


def test_finding_that_passes_now_takes_one_episode():
    target = target_of([Real("x", 0, 1)], lambda rows: rows[:, 0] < 0.5)
    found, _ = boundary_of(target, [0.6])
    assert (found.crashes, found.episodes) == (False, 1)


@pytest.mark.parametrize("budget", [1, 2, 3, 10, 39, 300])
@pytest.mark.parametrize("dimensions", [1, 4, 30])
def test_budget_is_never_exceeded(dimensions, budget):
    row, _ = ripple_finding(dimensions, 3)
    boundary_of(load_target(f"ripple:dimensions={dimensions}"), row, budget)


def test_budget_without_an_episode_is_refused():
    target = target_of([Real("x", 0, 1)], lambda rows: rows[:, 0] < 0.5)
    with pytest.raises(UsageError, match="0 episodes"):
        find_boundary(target, Runner(target), np.array([0.1]), SEED, 0)


def test_finding_right_beside_the_boundary_is_sharpened():
    target = target_of([Real("x", 0, 1), Real("y", 0, 1)], lambda rows: rows[:, 0] <= 0.5)
    found, _ = boundary_of(target, [0.5, 0.3])
    assert 0 < found.distance <= 1e-5
    assert found.no_matter == ("y",)


def test_inputs_of_a_round_are_run_together():
    row, _ = ripple_finding(4, 2)
    _, run = boundary_of(load_target("ripple:dimensions=4"), row)
    assert run.calls < len(run.inputs) / 1.5


@pytest.mark.parametrize("dimensions", [4, 30])
def test_same_case_gives_the_same_boundary(dimensions):
    row, _ = ripple_finding(dimensions, 4)
    target = load_target(f"ripple:dimensions={dimensions}")
    assert boundary_of(target, row)[0] == boundary_of(target, row)[0]


def test_episodes_that_cannot_be_run_are_neither_side():
    def region(rows):
        if ((rows[:, 0] > 0.5) & (rows[:, 0] < 0.7)).any():
            raise RuntimeError("no such world")
        return rows[:, 0] <= 0.5

    found, _ = boundary_of(target_of([Real("x", 0, 1)], region), [0.4])
    assert found.crashing[0] <= 0.5
    assert found.passing[0] >= 0.7
