from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.parent_pool import ParentPool

some_examples = settings(max_examples=50, deadline=None, derandomize=True)


def pool_of(count, children=3):
    pool = ParentPool(children)
    pool.add(np.arange(count))
    return pool


def take(pool, count, seed=0, energy=None):
    return pool.take(np.random.default_rng(seed), np.ones(1000) if energy is None else energy, count)


@some_examples
@given(st.integers(1, 60), st.integers(1, 5), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_every_parent_has_all_of_its_children_and_no_more(parents, children, counts):
    pool, born = pool_of(parents, children), Counter[int]()
    turn = 0
    while len(pool):
        taken = take(pool, counts[turn % len(counts)], turn)
        assert 0 < len(taken) <= counts[turn % len(counts)]
        assert len(set(taken.tolist())) == len(taken)
        born.update(taken.tolist())
        pool.settle(taken, np.zeros(len(taken), np.bool_))
        turn += 1
    assert born == dict.fromkeys(range(parents), children)


def test_a_parent_waits_for_its_child_before_it_has_the_next_one():
    pool = pool_of(1)
    assert take(pool, 5).tolist() == [0]
    assert take(pool, 5).tolist() == []
    assert len(pool) == 1
    pool.settle(np.array([0]), np.array([False]))
    assert take(pool, 5).tolist() == [0]


def test_a_parent_that_leaves_has_no_further_children():
    pool = pool_of(2)
    taken = np.concatenate([take(pool, 1), take(pool, 1)])
    pool.settle(taken, np.array([True, False]))
    assert len(pool) == 1
    assert take(pool, 5).tolist() == [taken[1]]


def test_few_parents_have_a_child_at_the_same_time():
    assert len(take(pool_of(320), 1000)) == 20


@pytest.mark.parametrize("seed", range(3))
def test_parents_are_drawn_by_their_energy(seed):
    energy = np.array([1.0, 2.0, 7.0])
    rng = np.random.default_rng(seed)
    drawn = Counter(int(pool_of(3).take(rng, energy, 1)[0]) for _ in range(3000))
    np.testing.assert_allclose([drawn[entry] / 3000 for entry in range(3)], energy / 10, atol=0.04)


def test_parents_without_energy_come_last_and_in_random_order():
    energy = np.array([0.0, np.nan, 1e-300, 0.0])
    firsts = set()
    for seed in range(30):
        pool, rng = pool_of(4), np.random.default_rng(seed)
        order = [int(pool.take(rng, energy, 1)[0]) for _ in range(4)]
        assert order[0] == 2
        firsts.add(order[1])
    assert firsts == {0, 1, 3}


def test_a_restored_pool_continues_identically():
    original, restored = pool_of(100), ParentPool(3)
    take(original, 4)
    restored.restore({name: array.copy() for name, array in original.state().items()})
    for pool in (original, restored):
        pool.add(np.array([500, 501]))
    for seed in range(5):
        first, second = take(original, 3, seed), take(restored, 3, seed)
        np.testing.assert_array_equal(first, second)
        for pool in (original, restored):
            pool.settle(first, np.array([seed % 2 == 0] * len(first)))
    assert len(original) == len(restored)
