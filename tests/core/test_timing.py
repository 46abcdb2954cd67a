from types import SimpleNamespace

import pytest

from policyfuzz.core import timing
from policyfuzz.core.timing import TimeSplit


@pytest.fixture
def tick(monkeypatch):
    """A clock that stands still until it is told to go on by some seconds."""
    now = [100.0]

    def advance(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return advance


def test_seconds_are_added_up_when_an_activity_comes_again(tick):
    split = TimeSplit()
    for seconds in (2.0, 3.0):
        with split.activity("simulate"):
            tick(seconds)
        tick(50.0)
    assert split.seconds == {"simulate": 5.0}


def test_seconds_are_not_counted_twice_when_activities_are_nested(tick):
    split = TimeSplit()
    with split.activity("search"):
        tick(1.0)
        with split.activity("density"):
            tick(10.0)
            with split.activity("validate"):
                tick(100.0)
            tick(20.0)
        tick(2.0)
    assert split.seconds == {"search": 3.0, "density": 30.0, "validate": 100.0}


def test_seconds_go_to_one_name_when_an_activity_is_nested_in_itself(tick):
    split = TimeSplit()
    with split.activity("search"):
        tick(1.0)
        with split.activity("search"):
            tick(2.0)
        tick(4.0)
    assert split.seconds == {"search": 7.0}


def fail_after(seconds, tick):
    tick(seconds)
    raise KeyError


def test_seconds_are_counted_when_an_activity_fails(tick):
    split = TimeSplit()
    with split.activity("search"):
        with pytest.raises(KeyError), split.activity("simulate"):
            fail_after(3.0, tick)
        tick(1.0)
    assert split.seconds == {"simulate": 3.0, "search": 1.0}
