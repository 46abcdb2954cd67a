"""The benchmark of workers measures what it says; how fast they are is not tested here."""

import pytest

from benchmarks.speed import workers
from benchmarks.speed.apart import speed_up
from policyfuzz import load_target
from policyfuzz.execution.executor import WorkerStats


def in_order(items, description):
    return iter(items)


@pytest.mark.slow
def test_bench_reports_all_it_promises(monkeypatch):
    sizes = {"_EPISODES": 200, "_SAMPLES": 64, "_ROUNDS": 1, "_SHORT_BATCHES": 5, "_WARM_UP": 3}
    for name, value in (sizes | {"_LONG_BATCHES": 1, "_UNIT_SECONDS": 0.0001}).items():
        monkeypatch.setattr(workers, name, value)
    monkeypatch.setattr(workers, "load_target", lambda _name: load_target("ripple"))
    monkeypatch.setattr(workers, "speed_up", lambda _name: speed_up("ripple", 0.2))
    monkeypatch.setattr(workers, "find_spec", lambda _name: None)
    lines = workers.run(in_order)
    goals = {line.what: line.goal for line in lines if line.goal}
    assert list(goals.values()) == [">= 1.8 x", ">= 95%", "<= 1 ms", "2"]
    assert all(line.is_met is not None for line in lines if line.goal)
    assert 0 < next(line.value for line in lines if "never talk" in line.what) < 10
    assert lines[-1].value == 2, "each of two workers loads the model once"


def test_busy_share_counts_from_the_second_look():
    before = WorkerStats(worker_seconds=10.0, busy_seconds=2.0)
    after = WorkerStats(worker_seconds=30.0, busy_seconds=21.0)
    assert workers._busy_share(before, after) == pytest.approx(0.95)
