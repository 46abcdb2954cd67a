from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real, Seed
from policyfuzz.search.mutation import Mutator

some_examples = settings(max_examples=40, deadline=None, derandomize=True)

KINDS: dict[str, Callable[[str], Any]] = {
    "real": lambda name: Real(name, -3.0, 7.0),
    "angle": Angle,
    "integer": lambda name: Integer(name, -2, 5),
    "choice": lambda name: Choice(name, ("a", "b", "c")),
    "seed": Seed,
}


def space_of(*kinds):
    return InputSpace(tuple(KINDS[kind](f"{kind}{place}") for place, kind in enumerate(kinds)))


def reals(dimensions):
    return InputSpace(tuple(Real(f"x{place}", 0.0, 1.0) for place in range(dimensions)))


def changed_in_every_way(mutator, unit, others, scale, rng):
    """The results of all mutations of `unit`."""
    yield mutator.jump(unit, np.full(len(unit), scale), rng)
    yield mutator.cross(unit, rng.permutation(unit), rng.permutation(unit), rng)
    yield mutator.span(unit, others, rng)


@some_examples
@given(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6),
    st.integers(1, 40),
    st.sampled_from([1e-4, 0.01, 0.3, 5.0]),
    st.integers(0, 2**32 - 1),
)
def test_results_are_valid_inputs(kinds, others, scale, seed):
    space, rng = space_of(*kinds), np.random.default_rng(seed)
    inputs = space.sample(rng, 50)
    unit, mutator = space.to_unit(inputs), Mutator(space)
    for changed in changed_in_every_way(mutator, unit, space.to_unit(space.sample(rng, others)), scale, rng):
        assert changed.shape == unit.shape
        assert ((changed >= 0) & (changed <= 1)).all()
        assert space.is_valid(mutator.inputs(changed, unit, inputs)).all()


@pytest.mark.parametrize("dimensions", [1, 120])
def test_all_mutations_work_in_one_dimension_and_in_many(dimensions):
    space, rng = reals(dimensions), np.random.default_rng(0)
    unit, others = rng.random((30, dimensions)), rng.random((32, dimensions))
    for changed in changed_in_every_way(Mutator(space), unit, others, 0.05, rng):
        assert ((changed >= 0) & (changed <= 1)).all()
        assert (changed != unit).any(axis=1).all()


def test_nothing_is_changed_in_place():
    space, rng = space_of("real", "angle", "integer", "choice"), np.random.default_rng(0)
    unit, others = (space.to_unit(space.sample(rng, 30)) for _ in range(2))
    before = unit.copy(), others.copy()
    list(changed_in_every_way(Mutator(space), unit, others, 0.3, rng))
    np.testing.assert_array_equal(unit, before[0])
    np.testing.assert_array_equal(others, before[1])


def test_unchanged_coordinates_keep_exactly_the_value_of_the_parent():
    space = InputSpace(tuple(Real(f"x{place}", -0.1, 0.2) for place in range(8)))
    rng, mutator = np.random.default_rng(0), Mutator(space)
    inputs = rng.normal(scale=0.02, size=(400, 8)).clip(-0.1, 0.2)
    unit = space.to_unit(inputs)
    assert (space.from_unit(unit) != inputs).any(), "the way there and back rounds"
    changed = mutator.jump(unit, np.full(400, 0.01), rng)
    made, same = mutator.inputs(changed, unit, inputs), changed == unit
    assert 0.2 < same.mean() < 0.7
    np.testing.assert_array_equal(made[same], inputs[same])
    assert (made != inputs).any(axis=1).all(), "at least one coordinate changes"


def test_some_jumps_change_one_coordinate_some_half_and_some_all():
    rng, unit = np.random.default_rng(0), np.full((3000, 10), 0.5)
    changes = (Mutator(reals(10)).jump(unit, np.full(3000, 0.01), rng) != unit).sum(axis=1)
    shares = np.bincount(changes, minlength=11) / 3000
    assert shares[1] == pytest.approx(1 / 3, abs=0.05)
    assert shares[10] == pytest.approx(1 / 3, abs=0.05)
    assert shares[3:9].sum() == pytest.approx(1 / 3, abs=0.05)


def test_jumps_are_as_wide_as_the_scale_says():
    rng, unit = np.random.default_rng(0), np.full((20_000, 1), 0.5)
    for scale in (0.001, 0.02):
        assert np.std(Mutator(reals(1)).jump(unit, np.full(20_000, scale), rng)) == pytest.approx(
            scale, rel=0.05
        )


def test_real_coordinates_are_reflected_at_the_wall_and_angles_wrap_round():
    space, rng = space_of("real", "angle"), np.random.default_rng(0)
    changed = Mutator(space).jump(np.full((1000, 2), 0.999), np.full(1000, 0.02), rng)
    assert changed[:, 0].min() > 0.85
    assert 0.2 < (changed[:, 1] < 0.1).mean() < 0.5


def test_differences_between_angles_go_the_short_way_round():
    space, rng = space_of("angle"), np.random.default_rng(0)
    mutator, near, far = Mutator(space), np.full((500, 1), 0.98), np.full((500, 1), 0.02)
    assert mutator.distances(near[:1], far[:1])[0, 0] == pytest.approx(0.04**2)
    crossed = mutator.cross(near, near, far, rng)
    assert np.minimum(np.abs(crossed - 0.98), 1 - np.abs(crossed - 0.98)).max() < 0.12


@pytest.mark.parametrize("value", [-2, 1, 5], ids=["lowest", "inside", "highest"])
def test_integer_moves_by_at_least_one_level(value):
    space, rng = space_of("integer"), np.random.default_rng(0)
    inputs = np.full((1000, 1), float(value))
    unit, mutator = space.to_unit(inputs), Mutator(space)
    made = mutator.inputs(mutator.jump(unit, np.full(1000, 1e-4), rng), unit, inputs)
    assert set(np.abs(made - value).ravel()) == {1.0}
    assert space.is_valid(made).all()


@pytest.mark.parametrize("kind", ["choice", "seed"])
def test_values_without_an_order_are_drawn_anew_whatever_the_scale(kind):
    space, rng = space_of(kind), np.random.default_rng(0)
    inputs = space.sample(rng, 3000)
    unit, mutator = space.to_unit(inputs), Mutator(space)
    made = mutator.inputs(mutator.jump(unit, np.full(3000, 1e-4), rng), unit, inputs)
    assert np.corrcoef(made.ravel(), inputs.ravel())[0, 1] == pytest.approx(0, abs=0.06)
    assert space.to_unit(made).mean() == pytest.approx(0.5, abs=0.03)


def test_a_small_jump_changes_few_of_many_values_without_an_order():
    space, rng = space_of(*["choice"] * 20), np.random.default_rng(0)
    unit = space.to_unit(space.sample(rng, 500))
    changed = [
        (Mutator(space).jump(unit, np.full(500, scale), rng) != unit).sum(axis=1) for scale in (1e-3, 0.3)
    ]
    assert changed[0].min() >= 1
    assert changed[0].mean() < 3
    assert changed[1].mean() > 8


def test_values_without_an_order_are_those_of_a_parent_when_crossed():
    space, rng = space_of("choice", "seed"), np.random.default_rng(0)
    unit, mates, third = (space.to_unit(space.sample(rng, 200)) for _ in range(3))
    crossed = Mutator(space).cross(unit, mates, third, rng)
    is_own, is_mates = crossed == unit, crossed == mates
    assert (is_own | is_mates).all()
    assert 0.3 < is_own[:, 1].mean() < 0.7


def test_span_stays_on_the_sheet_that_all_others_lie_on():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    sheet, normals = axes[:, :2].T, axes[:, 2:]
    others = 0.5 + rng.uniform(-0.1, 0.1, (60, 2)) @ sheet
    changed = Mutator(reals(6)).span(others, others, rng)
    off, along = (changed - 0.5) @ normals, (changed - others) @ sheet.T
    assert np.abs(off).max() < 0.006, "the tremble"
    assert np.abs(off).std() > 1e-4, "no dimension is ever lost"
    assert np.linalg.norm(along, axis=1).mean() > 0.02


def test_span_among_copies_of_oneself_only_trembles():
    unit = np.full((20, 3), 0.5)
    changed = Mutator(reals(3)).span(unit, unit[:5], np.random.default_rng(0))
    assert 0 < np.abs(changed - unit).max() < 0.01


def test_distances_are_squared_and_between_all_pairs():
    found = Mutator(reals(2)).distances(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.5]]))
    np.testing.assert_allclose(found, [[0.25], [1.25]])


def test_whole_numbers_settle_where_their_input_lies_and_real_ones_stay():
    mixed = Mutator(InputSpace((Real("x", 0, 2), Integer("n", 0, 3), Choice("c", ("a", "b")))))
    unit = np.array([[0.3, 0.26, 0.9], [0.3, 0.45, 0.6]])
    settled = mixed.settled(unit)
    np.testing.assert_allclose(settled[0], settled[1], atol=1e-12)
    np.testing.assert_allclose(settled[:, 0], 0.3)
    real = Mutator(InputSpace((Real("x", 0, 2),)))
    np.testing.assert_array_equal(real.settled(unit[:, :1]), unit[:, :1])
