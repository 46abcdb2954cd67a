"""Campaigns on Ray clusters, with machines, workers and coordinators that are killed."""

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter, load_target
from policyfuzz.campaign.events import BatchDone
from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import SearchSettings, StopReason
from policyfuzz.execution.executor import ExecutorChoice, InlineExecutor
from policyfuzz.execution.ray.ray_pool import RayPool

from .ray_machines import descendants, is_running, machines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="the executor ray needs the extra [ray]"),
]

#: A target in a file of the user, with a model in another. Its episodes wait while there is a file `gate`.
GATED = """
import os, signal, time
from functools import partial
from pathlib import Path

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target

FOLDER = Path({folder!r})


class Slide:
    signals, capacity = ("health",), None

    def reset(self, inputs, seeds):
        time.sleep(0.002 * len(inputs))  # so that it is worth while to have two workers
        until = time.monotonic() + 60
        while (FOLDER / "gate").exists() and time.monotonic() < until:
            (FOLDER / f"inside-{{os.getpid()}}").touch()
            time.sleep(0.01)
        self._inputs, self._time = inputs.copy(), 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._time += 1
        self._inputs[rows, 1] += actions
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows] + self._time
        health = np.where(self._inputs[rows, 0] < 0.1, -1.0, 1.0)
        return Frame(states, states, health[:, None], self._inputs[rows, 1], np.zeros(len(rows), bool))


class Fragile(Slide):
    def reset(self, inputs, seeds):
        if (inputs[:, 0] > 0.98).any():
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().reset(inputs, seeds)


class Drift:
    def __init__(self, weights):
        self._weights = weights

    def begin(self, count): ...

    def act(self, observations, rows):
        return observations @ self._weights


def target(simulator=Slide):
    return Target(
        name="gated:target",
        inputs=InputSpace((Real("x", 0, 1), Real("y", 0, 1))),
        simulator=simulator,
        policy=partial(Drift, np.load(FOLDER / "model.npy")),
        oracle=Below("health", 0, kind="ill"),
        horizon=5,
    )


def fragile():
    return target(Fragile)
"""


@pytest.fixture(scope="module", autouse=True)
def token():
    """Clusters of these tests are for nobody else, and nothing is written to the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield


@pytest.fixture(scope="module")
def started_machines(token):
    with machines() as cluster:
        yield cluster


@pytest.fixture
def cluster(started_machines):
    """Two machines with a core each; one may be killed."""
    yield started_machines
    started_machines.complete()


@pytest.fixture
def gated(tmp_path, monkeypatch):
    """Names of files and modules are those of the user."""
    np.save(tmp_path / "model.npy", np.array([0.25, -0.125]))
    (tmp_path / "gated.py").write_text(GATED.format(folder=str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("gated", None)


def run(folder, name, target, make_executor=InlineExecutor, listener=lambda event: None, executions=600):
    loaded = load_target(target) if isinstance(target, str) else target
    config = CampaignConfig(loaded.name, batch_size=32, search=SearchSettings(samples=100))
    store = CampaignWriter.create(folder / name, config, loaded.inputs)
    campaign = Campaign(loaded, store, Budget(executions=executions), listener, make_executor=make_executor)
    assert campaign.run() == StopReason.MAX_EXECS
    store.close()
    return CampaignReader(folder / name)


def results(campaign):
    """All that must be the same wherever the campaign ran."""
    findings = [
        (
            f.id,
            f.status,
            f.is_distinct,
            f.kind,
            f.crash_step,
            f.episode_return,
            f.parent,
            f.case_seed,
            *f.input,
        )
        for f in campaign.findings()
    ]
    seeds = [[value for name, value in row.items() if name != "seconds"] for row in campaign.iterate("seeds")]
    return findings, seeds, campaign.count("errors"), campaign.progress().executions


def until(condition, what, seconds=300):
    """Wait for `condition` to be true, and give its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
    return value


def inside(folder):
    """Numbers of worker processes that wait in an episode."""
    return {int(file.name.split("-")[1]) for file in folder.glob("inside-*")}


class Accident:
    """Closes the gate after a batch, does something while all workers are in an episode, and opens it."""

    def __init__(self, folder, what, workers=2):
        self._gate, self._what, self._workers = folder / "gate", what, workers
        self._thread = threading.Thread(target=self._happen)
        self._error = None
        self.has_happened = False
        self.workers = []

    def __call__(self, event):
        if isinstance(event, BatchDone):
            self.workers.append(event.progress.workers_ready)
            if event.progress.batch == 3:
                self._gate.touch()
                self._thread.start()

    def check(self):
        """Raise what went wrong in the thread."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self.has_happened

    def _happen(self):
        folder = self._gate.parent
        try:
            found = until(
                lambda: len(inside(folder)) >= self._workers and inside(folder), "workers in an episode"
            )
            self._what(found)
            self.has_happened = True
        except BaseException as error:
            self._error = error
        finally:
            self._gate.unlink()


def one_is_gone(workers):
    return until(lambda: [one for one in workers if not is_running(one)], "a worker to end")


def test_own_cluster_gives_the_same_findings(tmp_path):
    ripple = "ripple:dimensions=3,probability=0.05"
    inline = run(tmp_path, "inline", ripple)
    assert inline.findings(), "nothing to compare"
    assert results(run(tmp_path, "ray", ripple, ExecutorChoice("ray", 2).make_executor)) == results(inline)


def test_findings_are_the_same_when_a_machine_is_killed_in_an_episode(gated, cluster):
    inline = run(gated, "inline", "gated:target")
    assert inline.findings(), "nothing to compare"

    def fail(workers):
        cluster.kill()
        assert len(one_is_gone(workers)) == 1

    accident = Accident(gated, fail)
    ray = run(
        gated,
        "ray",
        "gated:target",
        ExecutorChoice("ray", 2, address=cluster.address).make_executor,
        accident,
    )
    accident.check()
    assert results(ray) == results(inline)
    assert ray.progress().restarts == 1
    assert accident.workers[2] == 2, "it did not begin with both"
    assert accident.workers[-1] == 1, "it did not go on with the one that was left"


def test_machine_that_joins_later_replaces_one_that_was_killed(gated, cluster):
    inline = run(gated, "inline", "gated:target")

    def fail_and_join(workers):
        cluster.kill()
        one_is_gone(workers)
        cluster.complete()
        until(lambda: inside(gated) - workers, "a worker on the new machine")

    accident = Accident(gated, fail_and_join)
    ray = run(
        gated,
        "ray",
        "gated:target",
        ExecutorChoice("ray", 2, address=cluster.address).make_executor,
        accident,
    )
    accident.check()
    assert results(ray) == results(inline)
    assert accident.workers[-1] == 2


def test_worker_is_replaced_when_the_files_of_the_target_are_gone(gated, cluster):
    inline = run(gated, "inline", "gated:target")
    target = load_target("gated:target")

    def lose_files_and_a_worker(workers):
        (gated / "gated.py").unlink()
        (gated / "model.npy").unlink()
        os.kill(min(workers), signal.SIGKILL)
        until(lambda: inside(gated) - workers, "the worker that replaces it")

    accident = Accident(gated, lose_files_and_a_worker)
    ray = run(gated, "ray", target, ExecutorChoice("ray", 2, address=cluster.address).make_executor, accident)
    accident.check()
    assert results(ray) == results(inline)
    assert ray.progress().restarts == 1


def test_simulator_that_segfaults_is_recorded_as_crashed(gated, cluster):
    executor = ExecutorChoice("ray", 2, address=cluster.address).make_executor
    campaign = run(gated, "ray", "gated:fragile", executor, executions=150)
    errors = list(campaign.iterate("errors"))
    assert errors, "nothing has segfaulted"
    assert {error["kind"] for error in errors} == {"crashed"}
    assert all("SIGSEGV" in error["text"] for error in errors)
    assert campaign.progress().executions == 150
    assert campaign.progress().simulator_crashes == len(errors)


def test_cluster_that_asks_for_another_token_says_so(cluster, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with pytest.raises(UsageError, match="RAY_AUTH_MODE"):
        RayPool(b"", cluster.address)


def start(folder):
    command = ["fuzz", "ripple:dimensions=3,probability=0.05", "-o", "c", "--executor", "ray", "-j", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "policyfuzz", *command, "--ui", "none"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that put the tests into the background has had them ignore it
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_of_an_own_cluster_is_left_when_the_coordinator_ends(tmp_path, how):
    process = start(tmp_path)
    store = tmp_path / "c" / "campaign.sqlite"
    until(lambda: store.exists() and CampaignReader(tmp_path / "c").progress().batch, "a batch")
    started = descendants(process.pid)
    assert len(started) > 5, "this is no cluster"
    process.send_signal(how)
    out, err = process.communicate(timeout=300)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "ray" not in out.lower()
    until(lambda: not any(map(is_running, started)), "the end of what it has started")
