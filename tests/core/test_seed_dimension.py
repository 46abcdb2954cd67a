import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import InputSpace, Real, Seed

SEED = Seed("seed")


def test_seed_comes_back_exactly_from_the_unit_interval():
    seeds = np.array([0, 1, 2**30, 2**31 - 2, 2**31 - 1], np.float64)
    unit = SEED.to_unit(seeds)
    assert ((unit > 0) & (unit < 1)).all()
    np.testing.assert_array_equal(SEED.from_unit(unit), seeds)
    np.testing.assert_array_equal(SEED.from_unit(np.array([0.0, 1.0])), [0, 2**31 - 1])
    few = Seed("layout", 5, 9)
    np.testing.assert_array_equal(few.from_unit(few.to_unit(np.arange(5.0, 10.0))), np.arange(5, 10))


def test_seed_is_a_whole_number_in_its_bounds():
    values = np.array([0, 2**31 - 1, -1, 2**31, 0.5, np.nan])
    assert SEED.contains(values).tolist() == [True, True, False, False, False, False]


def test_changed_seed_is_a_fresh_draw_whatever_it_was():
    one = SEED.perturb(np.full(2000, 7.0), np.random.default_rng(0))
    two = SEED.perturb(np.full(2000, 1e9), np.random.default_rng(0))
    np.testing.assert_array_equal(one, two)
    assert SEED.contains(one).all()
    assert len(np.unique(one)) == 2000
    assert one.mean() / 2**31 == pytest.approx(0.5, abs=0.03)


def test_seed_that_seldom_changes_is_kept_in_the_other_cases():
    kept = Seed("layout", 0, 999, change=0.1).perturb(np.full(5000, 7.0), np.random.default_rng(0)) == 7
    assert kept.mean() == pytest.approx(0.9, abs=0.02)


def test_fixed_seed_is_a_seed_too():
    assert Seed("seed", 3, 3).perturb(np.array([3.0]), np.random.default_rng(0)).tolist() == [3.0]


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(UsageError, match="goes from 2 to 1"):
        Seed("seed", 2, 1)


def test_seed_is_described_in_full_and_without_a_period():
    assert SEED.describe(2.0**31 - 1) == "2147483647"
    space = InputSpace((SEED, Real("x", 0.0, 1.0)))
    assert space.periods.tolist() == [0.0, 0.0]
    assert SEED.kind == "seed"
