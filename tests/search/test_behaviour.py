import numpy as np
import pytest

from policyfuzz.core.executions import Executions
from policyfuzz.oracles import NONE, Verdicts
from policyfuzz.search.behaviour import (
    BEHAVIOUR_CELLS,
    DESCRIPTOR_SIZE,
    BehaviourObserver,
    BehaviourSpace,
    behaviour_of,
)


def cells_of(space, behaviour):
    return space.cells(space.descriptors(behaviour))


def behaviours(count, dimensions, rank, seed=0):
    """(count, dimensions) that vary in `rank` directions only."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, rank)) @ rng.normal(size=(rank, dimensions))


def test_samples_are_spread_evenly_along_every_direction():
    samples = np.random.default_rng(0).normal(size=(6000, 8)) * np.arange(1, 9)
    found = cells_of(BehaviourSpace.fit(samples), samples)
    for digit in range(4):
        counts = np.bincount(found // 6**digit % 6, minlength=6)
        np.testing.assert_allclose(counts, 1000, atol=2)


@pytest.mark.parametrize(("dimensions", "rank"), [(1, 1), (2, 2), (4, 2), (6, 1), (6, 3), (30, 4)])
def test_only_directions_that_vary_are_cut(dimensions, rank):
    samples = behaviours(2000, dimensions, rank)
    found = cells_of(BehaviourSpace.fit(samples), samples)
    assert found.max() < BEHAVIOUR_CELLS
    assert 6**rank / 4 < len(np.unique(found)) <= 6**rank


def test_constant_coordinates_do_not_count():
    samples = behaviours(500, 3, 3)
    constant = np.full((500, 2), 0.1)
    space = BehaviourSpace.fit(np.concatenate([samples, constant], axis=1))
    here = cells_of(space, np.concatenate([samples, constant], axis=1))
    elsewhere = cells_of(space, np.concatenate([samples, constant + 7], axis=1))
    np.testing.assert_array_equal(here, elsewhere)


@pytest.mark.parametrize("samples", [np.zeros((80, 4)), np.empty((80, 0))], ids=["all alike", "none at all"])
def test_behaviour_that_never_varies_is_one_cell(samples):
    assert len(np.unique(cells_of(BehaviourSpace.fit(samples), samples))) == 1


def test_outlier_is_in_the_outermost_cells():
    samples = behaviours(500, 2, 1)
    space = BehaviourSpace.fit(samples)
    ends = cells_of(space, np.array([samples[0] * 1e9, -samples[0] * 1e9]))
    assert set((ends // 6**1).tolist()) == {0, 5}


def test_cells_are_the_same_after_a_round_trip_through_their_state():
    samples = behaviours(300, 6, 6)
    space = BehaviourSpace.fit(samples)
    again = BehaviourSpace.from_state(space.state())
    np.testing.assert_array_equal(cells_of(space, samples), cells_of(again, samples))


def test_behaviour_is_the_mean_state_and_the_last_of_what_counts():
    states = [np.array([[1.0, 10.0], [3.0, 20.0]]), np.array([[5.0, 50.0]])]
    behaviour = behaviour_of(Executions.of([0.0, 0.0], [False, False], states))
    np.testing.assert_array_equal(behaviour, [[2.0, 15.0, 3.0, 20.0], [5.0, 50.0, 5.0, 50.0]])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
def test_states_that_are_no_numbers_spoil_nothing(odd):
    states = np.random.default_rng(0).normal(size=(100, 3, 2))
    states[::7, 1, 0] = odd
    behaviour = behaviour_of(Executions.of(np.zeros(100), np.zeros(100, bool), states))
    found = cells_of(BehaviourSpace.fit(behaviour), behaviour)
    assert ((found >= 0) & (found < BEHAVIOUR_CELLS)).all()
    assert len(np.unique(found)) > 10


@pytest.mark.parametrize("copies", [1, 3, 20])
def test_distance_of_descriptors_is_a_root_mean_square_of_standard_deviations(copies):
    samples = np.repeat(np.random.default_rng(0).normal(size=(400, 4)) * [1, 5, 0.1, 9], copies, axis=1)
    space = BehaviourSpace.fit(samples)
    descriptors = space.descriptors(samples)
    standard = (samples - samples.mean(axis=0)) / samples.std(axis=0)
    expected = np.sqrt(((standard[1:] - standard[:-1]) ** 2).mean(axis=1))
    np.testing.assert_allclose(np.linalg.norm(np.diff(descriptors, axis=0), axis=1), expected)


def walks(count, seed=0, length=6):
    """Episodes of `length` random states, none of which crashes."""
    states = np.random.default_rng(seed).normal(size=(count, length, 2))
    return Executions.of(np.zeros(count), np.zeros(count, bool), states)


def crashed_at(states, step):
    """Episodes with `states` (n, t, k) that all crash at `step`, and go on."""
    count = len(states)
    steps = np.full(count, step)
    return Executions(
        np.zeros(count), np.full(count, states.shape[1]), states, Verdicts(np.zeros(count, np.int64), steps)
    )


def test_nothing_is_known_until_enough_episodes_were_seen():
    observer = BehaviourObserver()
    first, second = observer.observe(walks(40)), observer.observe(walks(40, seed=1))
    assert np.isnan(first.descriptors).all()
    assert (first.cells == 0).all()
    assert not np.isnan(second.descriptors).any()
    assert len(np.unique(second.cells)) > 10


def test_descriptors_have_one_size_however_little_varies():
    observer = BehaviourObserver()
    states = np.random.default_rng(0).normal(size=(80, 3, 1))
    found = observer.observe(Executions.of(np.zeros(80), np.zeros(80, bool), states)).descriptors
    assert found.shape == (80, DESCRIPTOR_SIZE)
    assert np.isfinite(found).all()


def test_what_comes_after_a_crash_is_no_behaviour():
    observer = BehaviourObserver()
    observer.observe(walks(100))
    states = np.random.default_rng(3).normal(size=(10, 6, 2))
    others = states.copy()
    others[:, 3:] += 100.0
    first, second = (observer.observe(crashed_at(each, 2)) for each in (states, others))
    np.testing.assert_array_equal(first.descriptors, second.descriptors)
    np.testing.assert_array_equal(first.cells, second.cells)
    earlier = observer.observe(crashed_at(others, 3))
    assert (np.abs(earlier.descriptors - second.descriptors).max(axis=1) > 0.1).all()


def test_behaviour_of_failed_episodes_is_not_known_and_changes_nothing():
    observer, twin = BehaviourObserver(), BehaviourObserver()
    good = walks(80)
    failed = Executions.of(np.zeros(80), np.zeros(80, bool), good.states, errors={3: "no", 70: "no"})
    found = observer.observe(failed)
    assert np.flatnonzero(np.isnan(found.descriptors).any(axis=1)).tolist() == [3, 70]
    sound = np.delete(np.arange(80), [3, 70])
    np.testing.assert_array_equal(twin.observe(good[sound]).descriptors, found.descriptors[sound])


@pytest.mark.parametrize("count", [0, 40, 100], ids=["nothing seen", "too little seen", "enough seen"])
def test_observer_goes_on_the_same_after_a_round_trip_through_its_state(count):
    observer = BehaviourObserver()
    if count:
        observer.observe(walks(count))
    again = BehaviourObserver.from_state(observer.state())
    for seed in (1, 2):
        first, second = (each.observe(walks(50, seed)) for each in (observer, again))
        np.testing.assert_array_equal(first.descriptors, second.descriptors)
        np.testing.assert_array_equal(first.cells, second.cells)


def test_executions_until_their_crash_end_with_it():
    states = np.arange(24.0).reshape(3, 4, 2)
    made = Executions(
        np.zeros(3), np.array([4, 4, 3]), states, Verdicts(np.array([0, NONE, 0]), np.array([1, NONE, 2]))
    )
    cut = made.until_crash
    assert cut.lengths.tolist() == [2, 4, 3]
    np.testing.assert_array_equal(cut.states[0], np.where([[True], [True], [False], [False]], states[0], 0))
    np.testing.assert_array_equal(cut.states[1], states[1])
    np.testing.assert_array_equal(made.states, np.arange(24.0).reshape(3, 4, 2))
