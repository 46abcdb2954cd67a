"""Rules on targets whose crash region is known."""

import numpy as np
import pytest

from policyfuzz import Angle, Choice, Integer, Real, Runner, load_target
from policyfuzz.targets.ripple.target import Pond
from policyfuzz.triage.rules import MOST_DIMENSIONS, conditions, covers, find_rule
from tests.triage.box_targets import Recorder, target_of


def search(target, row, others=None, budget=1000, seed=7):
    run = Recorder(Runner(target))
    row = np.array(row, float)
    others = np.empty((0, len(row))) if others is None else np.array(others, float)
    found = find_rule(target, run, row, seed, others, budget)
    assert found.episodes == len(run.inputs) <= budget
    return found, run


@pytest.mark.parametrize("dimensions", [2, 4, 6])
def test_box_is_found_and_its_precision_is_true(dimensions):
    target = load_target(f"ripple:dimensions={dimensions}")
    pond = Pond.make(dimensions, 1, 1e-3)
    found, run = search(target, pond.centres[0] + 0.3 * pond.half_width, others=pond.centres)
    rule = found.rule
    assert rule is not None
    low, high = np.array(rule.low), np.array(rule.high)
    assert ((high - low) >= pond.half_width).all()
    assert rule.coverage == 1.0
    # the share of the box that lies in the region, exactly
    centre, half = pond.centres[0], pond.half_width
    inside = (np.minimum(high, centre + half) - np.maximum(low, centre - half)) / (high - low)
    assert inside.prod() >= 0.8
    assert rule.precision_low <= inside.prod() <= rule.precision_high
    checked = np.array(run.inputs[-rule.draws :])
    assert ((checked >= low) & (checked <= high)).all()


def test_check_uses_draws_that_the_box_was_not_grown_from():
    target = load_target("ripple:dimensions=3")
    pond = Pond.make(3, 1, 1e-3)
    found, run = search(target, pond.centres[0])
    crashed = Runner(target)(np.array(run.inputs), np.array(run.seeds, np.uint64)).crashed
    assert found.rule.precision == crashed[-found.rule.draws :].mean()
    earlier = {tuple(row) for row in run.inputs[: -found.rule.draws]}
    assert not earlier & {tuple(row) for row in run.inputs[-found.rule.draws :]}


def test_no_rule_on_a_thin_slanted_sheet():
    target = target_of(
        [Real(name, 0, 1) for name in "xyz"], lambda rows: np.abs(rows.sum(axis=1) - 1.5) < 1e-5
    )
    found, _ = search(target, [0.5, 0.5, 0.5])
    assert found.rule is None
    assert "around it pass" in found.reason


def test_no_rule_where_a_third_of_the_inputs_pass():
    def region(rows):  # as good as random, and the finding is in it
        return (np.floor(rows[:, 0] * 1e7) % 3 > 0) | (rows[:, 0] == 0.5)

    found, _ = search(target_of([Real("x", 0, 1), Real("y", 0, 1)], region), [0.5, 0.5])
    assert found.rule is None


def test_no_rule_in_more_dimensions_than_it_can_work_in():
    dimensions = MOST_DIMENSIONS + 1
    found, _ = search(load_target(f"ripple:dimensions={dimensions}"), np.full(dimensions, 0.5))
    assert (found.rule, found.episodes) == (None, 0)
    assert str(dimensions) in found.reason


def test_every_kind_of_dimension_is_read_back():
    target = target_of(
        [
            Angle("heading"),
            Integer("count", 0, 9),
            Choice("kind", ("car", "bus")),
            Choice("sky", tuple("abc")),
        ],
        lambda rows: (
            ((rows[:, 0] - 2.8) % (2 * np.pi) < 0.8)
            & (rows[:, 1] >= 3)
            & (rows[:, 1] <= 5)
            & (rows[:, 2] == 1)
        ),
    )
    others = [[-3.0, 4, 1, 0], [3.1, 3, 1, 1], [0.0, 4, 1, 0], [3.1, 4, 0, 0]]
    found, _ = search(target, [3.1, 4, 1, 1], others)
    rule = found.rule
    assert rule.coverage == 0.5
    words = conditions(rule, target.inputs.dimensions)
    assert words[1:] == ["count 3 to 5", "kind bus"]
    assert words[0].startswith("heading 2.")
    assert rule.high[0] > np.pi
    assert covers(rule.low, rule.high, np.array(others), target.inputs.dimensions).tolist() == [1, 1, 0, 0]


def test_same_case_gives_the_same_rule():
    target = load_target("ripple:dimensions=3")
    centre = Pond.make(3, 1, 1e-3).centres[0]
    assert search(target, centre)[0] == search(target, centre)[0]


@pytest.mark.parametrize("budget", [1, 60, 200, 500])
def test_budget_is_never_exceeded(budget):
    search(load_target("ripple:dimensions=3"), Pond.make(3, 1, 1e-3).centres[0], budget=budget)


def test_only_valid_and_solvable_inputs_are_drawn():
    target = target_of(
        [Real("x", 0, 1), Real("y", 0, 1)],
        lambda rows: (rows < 0.3).all(axis=1),
        constraint=lambda rows: rows[:, 0] > rows[:, 1],
        solvable=lambda rows: rows[:, 0] > 0.1,
    )
    found, run = search(target, [0.2, 0.1])
    drawn = np.array(run.inputs)
    assert ((drawn[:, 0] > drawn[:, 1]) & (drawn[:, 0] > 0.1)).all()
    assert found.rule is not None
