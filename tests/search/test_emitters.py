import numpy as np

from policyfuzz.search.emitters import _PATIENCE, CLIMBERS, Climbers


def started(entry=7):
    """Climbers that are all at `entry`."""
    climbers = Climbers()
    climbers.start(np.arange(CLIMBERS), np.full(CLIMBERS, entry), np.random.default_rng(0))
    return climbers


def is_current(climbers, climber, parent):
    return bool(climbers.is_current(np.array([climber]), np.array([parent]))[0])


def test_all_want_a_start_at_first_and_none_once_they_have_one():
    assert Climbers().stranded.tolist() == list(range(CLIMBERS))
    assert started().stranded.tolist() == []


def test_first_scales_vary():
    scales = started().scales
    assert len(np.unique(scales)) == CLIMBERS
    assert 0.001 < scales.min() < scales.max() < 1


def test_success_widens_the_steps_and_failure_narrows_them():
    climbers = started()
    before = climbers.scales.copy()
    climbers.move(2, 11)
    climbers.fail(3, 1)
    climbers.fail(4, 5)
    assert climbers.scales[2] > before[2]
    assert before[4] > 0
    assert climbers.scales[4] / before[4] < climbers.scales[3] / before[3] < 1
    np.testing.assert_array_equal(climbers.scales[5:], before[5:])


def test_scales_stay_within_bounds():
    climbers = started()
    for entry in range(50):
        climbers.move(0, entry)
        climbers.fail(1, 100)
    assert climbers.scales[0] <= 0.5
    assert climbers.scales[1] >= 1e-4


def test_one_success_makes_up_for_about_four_failures():
    climbers = started()
    before = climbers.scales[0]
    climbers.move(0, 8)
    climbers.fail(0, 4)
    assert 0.9 < climbers.scales[0] / before < 1.1


def test_climber_that_is_stuck_wants_a_new_start_unless_it_gets_on():
    climbers = started()
    climbers.fail(0, _PATIENCE)
    climbers.fail(1, _PATIENCE + 1)
    climbers.fail(2, _PATIENCE)
    climbers.move(2, 9)
    climbers.fail(2, _PATIENCE)
    assert climbers.stranded.tolist() == [1]


def test_climber_that_arrived_wants_a_new_start_and_forgets_its_children():
    climbers = started(7)
    climbers.arrive(3)
    assert climbers.stranded.tolist() == [3]
    assert not is_current(climbers, 3, 7)


def test_children_of_the_place_before_still_count_but_no_older_ones():
    climbers = started(7)
    climbers.move(0, 8)
    assert is_current(climbers, 0, 8)
    assert is_current(climbers, 0, 7)
    climbers.move(0, 9)
    assert not is_current(climbers, 0, 7)
    climbers.start(np.array([0]), np.array([20]), np.random.default_rng(0))
    assert not is_current(climbers, 0, 9), "it has left for elsewhere"


def test_climbers_are_the_same_after_a_round_trip_through_their_state():
    climbers = started()
    climbers.move(0, 8)
    climbers.fail(1, 3)
    again = Climbers.from_state({name: array.copy() for name, array in climbers.state().items()})
    for name in ("entries", "previous", "scales", "failures"):
        np.testing.assert_array_equal(getattr(again, name), getattr(climbers, name))
