"""Targets of many kinds whose files can be deleted, and the comparison of what became of them elsewhere."""

import pickle
import shutil
import subprocess
import sys
from typing import Any

import numpy as np

from policyfuzz.core.target import Runner
from policyfuzz.execution.shipping import pack

#: Runs the cases of shipments in a process that knows nothing else.
WORKER = """
import pickle, sys
from pathlib import Path
from policyfuzz.execution.shipping import unpack
from policyfuzz.core.target import Runner

for file in sorted(Path(sys.argv[1]).glob("*.shipment")):
    inputs, seeds = pickle.loads(file.with_suffix(".cases").read_bytes())
    found = Runner(unpack(file.read_bytes()))(inputs, seeds)
    file.with_suffix(".executions").write_bytes(pickle.dumps(found))
"""

HELPER = "GAIN = 0.3\n"
LATE_HELPER = "GAIN = 0.1\n"
CONTROLLER = """
import threading

from helper_beside_controller import GAIN

LOCK = threading.Lock()


def act(observation):
    return int(observation[2] + GAIN * observation[3] > 0)


def locked(observation):
    with LOCK:
        return act(observation)


def imports_late(observation):
    from helper_imported_late import GAIN
    return int(observation[2] + GAIN * observation[3] > 0)


def cautious(observation):
    return int(observation[0] < 2)


class Weights:
    \"\"\"Reads its weights from the disk whenever it is made.\"\"\"

    def __init__(self):
        import numpy
        self.weights = numpy.load(__file__.replace("controller.py", "weights.npy"))

    def begin(self, count):
        pass

    def act(self, observations, rows):
        return (observations @ self.weights > 0).astype(int)


class Counts:
    \"\"\"Has a lock, and a memory.\"\"\"

    def __init__(self):
        self.lock, self.calls = threading.Lock(), 0

    def reset(self):
        self.calls = 0

    def predict(self, observation):
        self.calls += 1
        return int(observation[2] > 0.01 * (self.calls % 3))
"""
CART = """
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Cart(CartPoleEnv):
    def step(self, action):
        if self.state[1] > 0.5:
            raise RuntimeError("the wheels came off")
        return super().step(action)


class Heavy(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        return observation, 2.0 * reward, *rest


if "ShippedCart-v0" not in gymnasium.registry:  # other tests may have run another copy of this file
    gymnasium.register("ShippedCart-v0", entry_point=Cart, max_episode_steps=40)
"""
PUSH = """
import numpy as np
from policyfuzz import InputSpace, Real


class Push:
    inputs = InputSpace((Real("push", -3.0, 3.0),))

    def begin(self, env, reset, values, seed):
        observation, info = reset(seed=seed)
        env.state[1] = values[0]
        return np.array(env.state, np.float32), info

    def read(self, env):
        return np.array([env.state[1]])
"""
OPTIONS = """
import numpy as np
import gymnasium
from gymnasium import spaces


class Slide(gymnasium.Env):
    observation_space = spaces.Box(-100, 100, (1,))
    action_space = spaces.Discrete(2)
    metadata = {"reset_options": {"start": (0.0, 3.0)}}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.start = self.x = (options or {}).get("start", 0.0)
        return np.array([self.x], np.float32), {"start": self.start}

    def step(self, action):
        self.x += 0.3 if action else -0.1
        return np.array([self.x], np.float32), self.x, self.x > 4, False, {}
"""
VAN = """
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from .weights import MASS
from . import weights


class Van(CartPoleEnv):
    def __init__(self, **rest):
        super().__init__(**rest)
        self.masspole = MASS
        assert weights.MASS == MASS
"""
POND = """
from policyfuzz import Target
from policyfuzz.oracles import Below
from policyfuzz.targets.ripple.target import Pond, RippleSimulator, FleePolicy
from policyfuzz.core.inputs import InputSpace, Real


class Slow(FleePolicy):
    def act(self, observations, rows):
        return 0.9 * super().act(observations, rows)


def make():
    pond = Pond.make(2, 1, 0.2)
    inputs = InputSpace((Real("a", 0.0, 1.0), Real("b", 0.0, 1.0)))
    return Target("pond", inputs, lambda: RippleSimulator(pond), Slow, Below("gap", 0.0, kind="caught"), 50)
"""
TOML = "[bounds]\ntheta = [-0.2, 0.2]\n[fixed]\nx = 0.0\n"


def write_files(folder):
    """What targets below are made of."""
    texts = {
        "helper_beside_controller.py": HELPER,
        "helper_imported_late.py": LATE_HELPER,
        "controller.py": CONTROLLER,
        "cart.py": CART,
        "push.py": PUSH,
        "slide.py": OPTIONS,
        "bounds.toml": TOML,
        "pond.py": POND,
        "shipped_package/__init__.py": "",
        "shipped_package/cars.py": VAN,
        "shipped_package/weights.py": "MASS = 0.3\n",
    }
    (folder / "shipped_package").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    np.save(folder / "weights.npy", np.array([0.05, 0.15, 1.0, 0.3]))
    rng = np.random.default_rng(0)
    layers: dict[str, Any] = {
        "W0": rng.normal(size=(4, 16)),
        "b0": np.zeros(16),
        "W1": rng.normal(size=(16, 2)),
        "b1": [0, 0],
    }
    np.savez(folder / "network.npz", **layers)


def cases(target, count=8):
    """Valid inputs (n, d) and seeds (n,)."""
    inputs = target.inputs.sample(np.random.default_rng(0), 8 * count)
    inputs = inputs[target.inputs.is_valid(inputs)][:count]
    return inputs, np.arange(len(inputs), dtype=np.uint64)


def run_elsewhere(folder, shipments):
    """Executions of `shipments`, name to (data, cases), by a fresh interpreter in an empty folder."""
    empty, waiting = folder / "empty", folder / "shipments"
    empty.mkdir()
    waiting.mkdir()
    files = {name: waiting / f"{number:02}.shipment" for number, name in enumerate(shipments)}
    for name, (data, given) in shipments.items():
        files[name].write_bytes(data)
        files[name].with_suffix(".cases").write_bytes(pickle.dumps(given))
    command = [sys.executable, "-c", WORKER, str(waiting)]
    done = subprocess.run(command, cwd=empty, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {name: pickle.loads(file.with_suffix(".executions").read_bytes()) for name, file in files.items()}


def here_and_elsewhere(folder, targets):
    """Executions by name, run here and elsewhere; `targets` are name to target, of files in folder/files."""
    shipments = {name: (pack(target), cases(target)) for name, target in targets.items()}
    here = {name: Runner(target)(*shipments[name][1]) for name, target in targets.items()}
    shutil.rmtree(folder / "files")
    elsewhere = run_elsewhere(folder, shipments)
    return {name: (here[name], elsewhere[name]) for name in targets}


def assert_same(pair):
    """Both have the same in all that executions are made of, to the last bit, and not just nothing."""
    here, elsewhere = pair
    assert len(here) == 8
    for name in ("returns", "lengths", "states"):
        np.testing.assert_array_equal(getattr(elsewhere, name), getattr(here, name))
    np.testing.assert_array_equal(elsewhere.verdicts.kinds, here.verdicts.kinds)
    np.testing.assert_array_equal(elsewhere.verdicts.steps, here.verdicts.steps)
    assert elsewhere.errors == here.errors
