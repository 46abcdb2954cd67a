"""A real one: the kernel kills a worker that wants more memory than there is."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LIMIT = 600_000_000
GREEDY = """
import gymnasium
import numpy as np


class Greedy(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1, 1, 1)
        self.steps = 0
        return self.x, {}

    def step(self, action):
        self.steps += 1
        if self.x[0] > 0.95 and self.steps == 2:
            self.hoard = [np.ones(10_000_000) for _ in range(100)]  # 8 GB
        return self.x, float(self.x[0]), bool(self.x[0] < -0.9), self.steps >= 4, {}


def act(observation):
    return 0
"""


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A group of processes that gets so much memory and no more."""
    version_1, version_2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    parent, limit = (version_1, "memory.limit_in_bytes") if version_1.is_dir() else (version_2, "memory.max")
    group = parent / f"policyfuzz-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"memory can only be limited by an administrator of control groups: {error}")
    yield group
    group.rmdir()


@pytest.mark.slow
def test_an_episode_that_runs_out_of_memory_costs_itself_only(tmp_path: Path, memory_group: Path) -> None:
    (tmp_path / "greedy.py").write_text(GREEDY)
    fuzz = (
        "import os, sys; from policyfuzz.cli.main import run;"
        f" open({str(memory_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()));"
        " sys.argv[0] = 'policyfuzz'; sys.exit(run())"
    )
    arguments = ["fuzz", "gym:greedy.py:Greedy", "--policy", "py:greedy.py:act", "--oracle", "terminated"]
    limits = ["-j", "1", "--max-execs", "90", "-o", "campaign", "--ui", "none", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", fuzz, *arguments, *limits], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    totals = json.loads(done.stdout)
    assert totals["simulator_crashes"] > 0
    assert totals["executions"] == 90 == totals["completed"] + totals["simulator_crashes"]
    errors = subprocess.run(
        [sys.executable, "-m", "policyfuzz", "show", "campaign", "--errors", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    failed = json.loads(errors.stdout)
    assert {one["kind"] for one in failed} == {"crashed"}
    assert all("SIGKILL" in one["text"] and one["step"] == 2 for one in failed)
