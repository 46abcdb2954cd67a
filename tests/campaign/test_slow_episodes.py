"""Time limits where episodes are slow, by a clock that only episodes move."""

import io
import time
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from policyfuzz import Budget, load_target
from policyfuzz.campaign.health import Pace
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.summary import print_summary
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import CampaignOptions, StopReason
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.executor import InlineExecutor, TimeIsUp
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.store.reader import CampaignReader

RIPPLE = "ripple:dimensions=2,probability=0.05"


class Clock:
    """Stands still while nothing is simulated."""

    now = 1000.0

    def __call__(self):
        return self.now


class Slow:
    """A simulator whose episodes take some seconds each."""

    def __init__(self, simulator, clock, seconds):
        self._simulator, self._clock, self._seconds = simulator, clock, seconds
        self.signals, self.capacity = simulator.signals, simulator.capacity
        self.step = simulator.step

    def reset(self, inputs, seeds):
        self._clock.now += self._seconds * len(inputs)
        return self._simulator.reset(inputs, seeds)


@pytest.fixture
def slow(monkeypatch):
    """Makes a target whose episodes take so many seconds, and the clock that counts them."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    monkeypatch.setattr(time, "monotonic", clock)

    def make(seconds):
        target = load_target(RIPPLE)
        return replace(target, simulator=lambda: Slow(target.simulator(), clock, seconds)), clock

    return make


@pytest.mark.parametrize("seconds", [0.4, 1.0, 8.0])
def test_time_limit_holds_and_the_search_begins_within_it(slow, tmp_path, seconds):
    target, clock = slow(seconds)
    started = clock.now
    options = CampaignOptions(samples=256, batch=64)
    launched = launch(target, Budget(60.0), options, folder=tmp_path / "c", force=True)
    assert launched.reason is StopReason.MAX_TIME
    assert clock.now - started <= 63 + seconds  # the grace, and the episode that runs at its end
    assert launched.progress.mutants > 0
    assert launched.progress.samples < 256


@pytest.mark.parametrize(("limit", "is_said"), [(2.0, True), (60.0, False)])
def test_campaign_that_only_sampled_says_so(slow, tmp_path, limit, is_said):
    target, _ = slow(1.0)
    launched = launch(target, Budget(limit), folder=tmp_path / "c", force=True)
    said = io.StringIO()
    reader = CampaignReader(launched.folder)
    print_summary(Console(file=said, width=200), reader, launched.progress, launched.reason.value)
    assert ("all of it was sampling, give it more time" in said.getvalue()) is is_said


def test_campaign_that_had_no_time_for_its_samples_is_resumed(slow, tmp_path):
    target, _ = slow(1.0)
    options = CampaignOptions(samples=256, batch=64)
    first = launch(target, Budget(60.0), options, folder=tmp_path / "c", force=True)
    again = launch(target, Budget(90.0), options, folder=tmp_path / "c", resume=True)
    assert again.progress.executions > first.progress.executions
    assert again.progress.mutants > first.progress.mutants


def test_findings_do_not_depend_on_the_speed_where_episodes_are_the_limit(slow, tmp_path):
    options = CampaignOptions(samples=50, batch=64)
    found = []
    for seconds in (0.0, 2.0):
        target, _ = slow(seconds)
        folder = tmp_path / f"at{seconds}"
        for limit in (Budget(executions=200), Budget(1e6, 200)):
            launch(target, limit, options, folder=folder / str(limit.seconds))
            findings = CampaignReader(folder / str(limit.seconds)).findings()
            found.append([(one.crash_step, one.episode_return, *one.input) for one in findings])
    assert found[0] == found[1] == found[2] == found[3] != []


def cases_of(target, count):
    inputs = target.inputs.sample(np.random.default_rng(0), 4 * count)
    inputs = inputs[target.inputs.is_valid(inputs)][:count]
    return Cases.of(Purpose.SAMPLE, inputs, np.arange(count, dtype=np.uint64), np.full(count, NO_PARENT))


def test_batch_that_was_interrupted_continues_where_it_was(slow):
    target, clock = slow(1.0)
    cases = cases_of(target, 30)
    executor = InlineExecutor(target, TimeSplit())
    executor.submit(cases)
    with pytest.raises(TimeIsUp):
        executor.collect(10.0)
    assert clock.now - 1000.0 <= 11.0
    sliced = executor.collect(60.0)
    assert clock.now - 1000.0 == 30.0  # none of them was run twice
    whole = InlineExecutor(target, TimeSplit())
    whole.submit(cases)
    expected = whole.collect()
    for name in ("returns", "lengths", "states"):
        np.testing.assert_array_equal(getattr(sliced, name), getattr(expected, name))


def test_pace_runs_what_fits_and_the_least_in_any_case(slow):
    _, clock = slow(0.0)

    def run(rows):
        count = rows.stop - rows.start
        clock.now += 2.0 * count
        return Executions.of(np.arange(rows.start, rows.stop), np.zeros(count, np.bool_))

    assert Pace(20.0, least=3).run(50, run).returns.tolist() == list(range(10))
    assert len(Pace(1.0, least=3).run(50, run)) == 3
    assert len(Pace(1e3, least=3).run(50, run)) == 50
