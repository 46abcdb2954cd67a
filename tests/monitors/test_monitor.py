"""Monitor files: what they give back, what they refuse, and what they import."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from policyfuzz.analysis.monitor_fitting import _transitions_of
from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.monitors.detectors import Linear
from policyfuzz.monitors.monitor import OBSERVATIONS, Monitor, MonitorError, MonitorFacts

FACTS = MonitorFacts("logistic", OBSERVATIONS, "toy", "a policy", "abc", 1.5, 0.01, 500, 20)


@pytest.fixture
def monitor():
    return Monitor(FACTS, Linear(np.array([1.0, 2.0, 3.0]), np.array([-1.0])), np.array([7], np.uint64))


def test_one_observation_gives_a_number(monitor):
    assert monitor.score([1, 1, 1]) == 5.0
    assert monitor.alarm([1, 1, 1]) is True
    assert monitor.alarm([0, 0, 0]) is False


def test_several_observations_give_an_array(monitor):
    rows = np.array([[1.0, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(monitor.score(rows), [5.0, -1.0])
    np.testing.assert_array_equal(monitor.alarm(rows), [True, False])
    np.testing.assert_array_equal(monitor.score(rows[:, :, None]), [5.0, -1.0])


def test_what_is_not_a_number_is_an_alarm(monitor):
    assert monitor.alarm([np.nan, 0, 0]) is True


def test_other_numbers_are_refused_with_what_it_takes(monitor):
    with pytest.raises(UsageError, match="takes 3 observations"):
        monitor.score([1, 2])


def test_a_density_has_nothing_to_judge_at_first():
    density = SequenceDensity(DensitySettings(components=2))
    walks = np.random.default_rng(0).normal(size=(20, 5, 2)).cumsum(axis=1)
    density.learn(walks, np.full(20, 5), np.random.default_rng(0))
    monitor = Monitor(FACTS, _transitions_of(density, np.zeros(2), np.eye(2)))
    assert monitor.score([0.0, 0.0]) == -np.inf
    assert not monitor.alarm([0.0, 0.0])
    assert monitor.score([50.0, 0.0], [0.0, 0.0]) > monitor.score([0.5, 0.0], [0.0, 0.0])
    with pytest.raises(UsageError, match="previous"):
        monitor.score(np.zeros((3, 2)), np.zeros((2, 2)))


def test_a_watch_scores_an_episode_step_by_step(monitor):
    watch = monitor.watch()
    assert [watch.score(row) for row in ([0, 0, 0], [1, 1, 1], [0, 0, 0])] == [-1.0, 5.0, -1.0]
    assert watch.has_alarm
    watch.begin()
    assert not watch.has_alarm
    watch.score([0, np.nan, 0])
    assert watch.has_alarm


def test_a_watch_knows_the_observation_before_even_if_its_array_is_used_again():
    density = SequenceDensity(DensitySettings(components=2))
    walks = np.random.default_rng(0).normal(size=(20, 5, 2)).cumsum(axis=1)
    density.learn(walks, np.full(20, 5), np.random.default_rng(0))
    monitor = Monitor(FACTS, _transitions_of(density, np.zeros(2), np.eye(2)))
    watch, seen = monitor.watch(), np.zeros(2)
    assert watch.score(seen) == -np.inf
    seen[:] = 0.5, 1.0
    assert watch.score(seen) == monitor.score([0.5, 1.0], [0.0, 0.0])
    watch.begin()
    assert watch.score(seen) == -np.inf


def test_file_gives_the_same_monitor(monitor, tmp_path):
    path = monitor.save(tmp_path / "new" / "monitor.npz")
    again = Monitor.load(path)
    assert again.facts == monitor.facts
    np.testing.assert_array_equal(again.lineages, monitor.lineages)
    assert again.score([3, 2, 1]) == monitor.score([3, 2, 1])


def _facts(**changes):
    values = {"format": 2, "detector": "linear", **{n: getattr(FACTS, n) for n in FACTS.__slots__}}
    return np.frombuffer(json.dumps(values | changes).encode(), np.uint8)


GOOD: dict[str, Any] = {
    "lineages": np.empty(0, np.uint64),
    "detector_weights": np.ones(2),
    "detector_bias": np.ones(1),
}


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"facts": _facts()},
        {**GOOD, "facts": _facts(format=1)},
        {**GOOD, "facts": _facts(threshold=float("nan"))},
        {**GOOD, "facts": _facts(threshold="low")},
        {**GOOD, "facts": _facts(window=True)},
        {**GOOD, "facts": _facts(input="pictures")},
        {**GOOD, "facts": _facts(more=1)},
        {**GOOD, "facts": _facts(detector=["linear"])},
        {**GOOD, "facts": np.frombuffer(b"[" * 5000, np.uint8)},
        {**GOOD, "facts": _facts(), "detector_bias": np.array([np.inf])},
        {**GOOD, "facts": _facts(), "detector_code": np.ones(1)},
        {**GOOD, "facts": _facts(), "lineages": np.ones(2)},
    ],
)
def test_files_of_strangers_are_checked(arrays, tmp_path):
    np.savez(tmp_path / "monitor.npz", **arrays)
    with pytest.raises(MonitorError, match="holds no monitor"):
        Monitor.load(tmp_path / "monitor.npz")


def test_the_good_arrays_are_good(tmp_path):
    np.savez(tmp_path / "monitor.npz", facts=_facts(), **GOOD)
    assert Monitor.load(tmp_path / "monitor.npz").score([1, 1]) == 3.0


def test_pickles_are_not_loaded(tmp_path):
    np.savez(tmp_path / "monitor.npz", facts=np.array([{"a": 1}], object), **GOOD, allow_pickle=True)
    with pytest.raises(MonitorError, match="holds no monitor"):
        Monitor.load(tmp_path / "monitor.npz")


def test_scoring_imports_neither_the_search_nor_what_fitting_needs(monitor, tmp_path):
    path = monitor.save(tmp_path / "monitor.npz")
    code = (
        "import sys, policyfuzz as pf\n"
        f"assert pf.Monitor.load({str(path)!r}).alarm([1, 1, 1]) is True\n"
        "print(*sorted(sys.modules), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    ours = {name for name in modules if name.startswith("policyfuzz.")}
    assert {name.split(".")[1] for name in ours} <= {"core", "monitors"}
    assert not {name.split(".")[0] for name in modules} & {"sklearn", "torch", "gymnasium", "matplotlib"}
