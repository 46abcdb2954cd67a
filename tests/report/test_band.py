import numpy as np
import pytest

from policyfuzz.report.band import NEVER, Band


@pytest.fixture
def passing():
    """(40, 60, 3) random walks."""
    return np.random.default_rng(1).normal(size=(40, 60, 3)).cumsum(axis=1)


def is_inside(band, episodes):
    return ((episodes >= band.low) & (episodes <= band.high)).all(axis=1)


def test_nine_of_ten_passing_episodes_stay_inside_throughout(passing):
    shares = is_inside(Band.of(passing), passing).mean(axis=0)
    assert (shares >= 0.9).all()
    assert (shares < 1).any(), "a band that holds everything tells nothing"


def test_edges_that_hold_nine_of_ten_at_each_time_would_be_left_by_more(passing):
    low, high = np.quantile(passing, [0.05, 0.95], axis=0)
    assert (is_inside(Band(low, high), passing).mean(axis=0) < 0.9).all()


def test_departure_is_the_step_since_when_a_number_is_outside():
    passing = np.random.default_rng(2).uniform(-1, 1, (40, 60, 3))
    values = np.zeros((60, 3))
    values[25:, 0] = 3.0
    values[10:15, 1] = 9.0  # comes back
    left = Band.of(passing).departures(values, last=50)
    assert left.steps.tolist() == [25, NEVER, NEVER]
    assert left.depths[1] > left.depths[0] > 0 > left.depths[2]


def test_what_leaves_first_comes_first_and_what_comes_back_after_it():
    passing = np.random.default_rng(2).uniform(-1, 1, (40, 60, 4))
    values = np.zeros((60, 4))
    values[10:15, 1], values[40:, 2], values[25:, 3] = 9.0, 5.0, 3.0
    assert Band.of(passing).departures(values, last=59).order.tolist() == [3, 2, 1, 0]


def test_what_happens_after_the_last_step_does_not_count():
    passing = np.random.default_rng(2).uniform(-1, 1, (40, 60, 1))
    values = np.zeros((60, 1))
    values[31:] = 5.0
    assert Band.of(passing).departures(values, last=30).steps.tolist() == [NEVER]


def test_there_is_no_band_where_most_passing_episodes_have_ended():
    passing = np.random.default_rng(3).uniform(-1, 1, (30, 60, 1))
    passing[5:, 20:] = np.nan
    band = Band.of(passing)
    assert np.isfinite(band.low[:20]).all()
    assert np.isnan(band.low[20:]).all()
    values = np.where(np.arange(60)[:, None] < 20, 0.0, 50.0)
    assert band.departures(values, last=59).steps.tolist() == [NEVER]


def test_numbers_that_are_missing_everywhere_have_no_band_and_do_no_harm():
    passing = np.random.default_rng(3).uniform(-1, 1, (30, 20, 2))
    passing[:, :, 1] = np.nan
    left = Band.of(passing).departures(np.full((20, 2), 7.0), last=19)
    assert left.steps.tolist() == [0, NEVER]


def test_a_number_that_never_changes_while_others_pass_is_outside_as_soon_as_it_does():
    values = np.ones((20, 1))
    values[12:] = 0.999
    assert Band.of(np.ones((30, 20, 1))).departures(values, last=19).steps.tolist() == [12]
