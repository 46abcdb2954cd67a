"""With workers, the code of a target and its policy is built in a process of its own."""

import gc
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.campaign.health import check_target
from policyfuzz.core.errors import PolicyFuzzError, TargetCodeError
from policyfuzz.core.target import Runner
from policyfuzz.execution.executor import ExecutorChoice, choose_executor
from policyfuzz.execution.shipping import pack
from policyfuzz.targets.isolated import load_isolated
from policyfuzz.targets.registry import load_for

FILE = """
import ctypes, os, signal, sys, time
import gymnasium
import numpy as np

def built(what):
    with open(os.environ["BUILT"], "a") as file:
        file.write(f"{os.getpid()} {what}\\n")

def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)

def hang():
    ctypes.PyDLL(None).sleep(1000)

DEATHS = {
    "": lambda: None,
    "segfault": segfault,
    "leave": lambda: os._exit(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": hang,
    "exit": lambda: sys.exit(0),
    "fork": lambda: os.fork() and os.wait(),
}

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, dies=""):
        built("environment")
        DEATHS[dies]()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level, self.time = self.np_random.uniform(0.0, 1.0, 1), 0
        return self.level, {}

    def step(self, action):
        self.time += 1
        self.level = self.level - 0.2
        return self.level, float(self.level[0]), bool(self.level[0] < -0.3), self.time == 5, {}

class Policy:
    def __init__(self, spaces=None):
        built("policy")
        DEATHS[os.environ.get("POLICY_DIES", "")]()

    def predict(self, observation, **_):
        return 0
"""
WORKERS = choose_executor(workers=1)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILT", str(tmp_path / "built"))
    path = tmp_path / "levels.py"
    path.write_text(FILE)
    return path


def load(file, options="", choice=WORKERS, **more):
    return load_for(choice, f"gym:{file}:Env{options}", f"py:{file}:Policy", **more)


def built_here(tmp_path):
    lines = (tmp_path / "built").read_text().splitlines()
    assert lines
    return [line for line in lines if line.startswith(f"{os.getpid()} ")]


@pytest.mark.slow
def test_coordinator_builds_nothing(file, tmp_path):
    target = load(file)
    run = WORKERS.make_runner(target)
    run(np.array([[1.0]]), np.zeros(1, np.uint64))
    assert check_target(target, 20, 0, make_runner=WORKERS.make_runner)
    assert built_here(tmp_path) == []
    assert not [name for name in sys.modules if name.startswith("policyfuzz_user_levels")]


@pytest.mark.slow
def test_target_and_checks_are_as_in_one_process(file):
    inline, isolated = load(file, choice=ExecutorChoice()), load(file)
    for part in ("name", "notes", "horizon", "policy_name", "policy_uri", "policy_sha256", "code_sha256"):
        assert getattr(isolated, part) == getattr(inline, part)
    assert "oracle=" in inline.name  # chosen from episodes
    assert isolated.inputs == inline.inputs
    assert isolated.oracle == inline.oracle
    told = [
        [one for one in check_target(target, 50, 0, make_runner=choice.make_runner) if one.name != "speed"]
        for target, choice in ((inline, ExecutorChoice()), (isolated, WORKERS))
    ]
    assert told[0] == told[1]
    inputs, seeds = np.arange(8.0)[:, None], np.arange(8, dtype=np.uint64)
    runs = [Runner(target)(inputs, seeds) for target in (inline, isolated)]  # handles can be called here too
    assert (runs[0].returns == runs[1].returns).all()
    assert pack(isolated) == isolated.simulator.shipment


@pytest.mark.slow
def test_checks_can_be_asked_for_later_and_again(file):
    target = load(file, ":oracle=terminated", will_check=False)
    sound = WORKERS.make_runner(target)(np.arange(8.0)[:, None], np.arange(8, dtype=np.uint64))
    first = target.further_checks(sound, WORKERS.make_runner)
    assert first
    assert target.further_checks(sound, WORKERS.make_runner) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("death", "said"),
    [
        ("segfault", "killed by SIGSEGV"),
        ("leave", "ended itself with exit code 0"),
        ("killed", "was it out of memory?"),
        ("exit", "raised SystemExit"),
        ("fork", "forked this process and returned in both"),
    ],
)
def test_constructor_of_environment_may_die(file, death, said):
    with pytest.raises(TargetCodeError) as caught:
        load(file, f":env.dies={death}")
    assert said in str(caught.value)
    assert f"{file}:Env" in str(caught.value)
    if death in ("segfault", "leave"):
        assert 'levels.py", line' in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("death", ["segfault", "leave"])
def test_constructor_of_policy_may_die(file, monkeypatch, death):
    monkeypatch.setenv("POLICY_DIES", death)
    with pytest.raises(TargetCodeError, match=f"the process that builds policy py:{file}:Policy did not"):
        load(file)


@pytest.mark.slow
def test_constructor_that_hangs_is_given_up(file):
    with pytest.raises(TargetCodeError, match="it was not done within 8 s") as caught:
        load_isolated(WORKERS, f"gym:{file}:Env:env.dies=hang", f"py:{file}:Policy", False, seconds=8)
    assert 'levels.py", line' in str(caught.value)


@pytest.mark.slow
def test_module_may_die_when_it_is_imported(tmp_path):
    (tmp_path / "deadly.py").write_text("import os\nos._exit(0)\n")
    with pytest.raises(TargetCodeError, match="ended itself with exit code 0"):
        load_for(WORKERS, f"{tmp_path / 'deadly.py'}:make")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("gym:CartPole-v9", "py:none.py:act"),
        ("gym:CartPole-v1", None),
        ("gym:CartPole-v1", "sb3:none.zip"),
        ("acasxuu", None),
        ("acasxu", "npz:none"),
        ("nothing.py:make", None),
        ("gym:CartPole-v1:horizont=3", "py:none.py:act"),
    ],
)
def test_errors_are_as_in_one_process(name, policy):
    with pytest.raises(PolicyFuzzError) as inline:
        load_target(name, policy)
    with pytest.raises(PolicyFuzzError) as isolated:
        load_for(WORKERS, name, policy)
    assert type(isolated.value) is type(inline.value)
    assert str(isolated.value) == str(inline.value)


UNCOPYABLE = """
import threading
import numpy as np
from policyfuzz import Target, load_target
from dataclasses import replace

def make():
    lock = threading.Lock()

    def solvable(inputs):
        with lock:
            return np.ones(len(inputs), bool)

    return replace(load_target("ripple"), solvable=solvable)
"""


@pytest.mark.slow
def test_target_that_judges_inputs_with_what_cannot_be_copied_still_works(tmp_path):
    (tmp_path / "locked.py").write_text(UNCOPYABLE)
    target = load_for(WORKERS, f"{tmp_path / 'locked.py'}:make")
    assert target.solvable is not None
    assert target.solvable(np.zeros((2, 4))).all()


@pytest.mark.slow
def test_environment_that_a_script_has_registered_is_known(tmp_path, file):
    script = f"""
import gymnasium, policyfuzz
from gymnasium.envs.classic_control import CartPoleEnv

class Mine(CartPoleEnv):
    pass

gymnasium.register("Mine-v0", Mine, max_episode_steps=20)
result = policyfuzz.fuzz(
    "gym:Mine-v0",
    "py:{file}:Policy",
    workers=1,
    max_execs=64,
    progress=False,
    force=True,
    oracle="terminated",
)
assert result.progress.executions == 64
assert result.replay(result.findings[0].id).crashes
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_loading_process_ends_with_its_target(file):
    target = load(file)
    process = target.further_checks.loader._process.group
    assert Path(f"/proc/{process}").exists()
    del target
    gc.collect()
    assert not Path(f"/proc/{process}").exists()


@pytest.mark.slow
def test_prolonged_episodes_run_in_workers_too(file, tmp_path):
    target = load(file)
    longer = target.prolonged(3)
    start = np.array([[1.0]]), np.zeros(1, np.uint64)
    usual = WORKERS.make_runner(target)(*start).lengths[0]
    assert usual <= target.horizon + 1
    assert WORKERS.make_runner(longer)(*start).lengths[0] == Runner(longer)(*start).lengths[0]
    # and where the simulator does not end its episodes by itself
    endless = replace(longer, simulator=target.simulator)
    assert pack(endless) != pack(target)
    assert built_here(tmp_path)  # by the runner of this process only
