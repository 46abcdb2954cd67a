"""Models of every format, and simulators of every kind, run alike elsewhere when their files are gone."""

import inspect
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from policyfuzz import Runner, as_target, load_target
from policyfuzz.core.code_files import load_file
from policyfuzz.execution.shipping import decode_content, pack

kinds = load_file(Path(__file__).parent / "shipped_kinds.py", "test")
TESTS = Path(__file__).parents[1]
networks = load_file(TESTS / "targets" / "test_acasxu_networks.py", "test")
CARTPOLE = "gym:CartPole-v1:horizon=60"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.* is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
]

MODULES = """
import torch


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))

    def forward(self, obs):
        return self.layers(obs)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.head = torch.nn.GRUCell(4, 8), torch.nn.Linear(8, 2)

    def forward(self, obs: torch.Tensor, state: torch.Tensor):
        state = self.cell(obs, state)
        return self.head(state), state

    @torch.jit.export
    def initial_state(self, batch: int):
        return torch.ones(batch, 8)
"""
BY_HAND = """
from pathlib import Path

HERE = Path(__file__).parent


def zipped():
    from stable_baselines3 import PPO
    return PPO.load(HERE / "ppo.zip", device="cpu")


def session():
    import onnxruntime
    network = onnxruntime.InferenceSession(HERE / "mlp.onnx")
    return lambda observations: network.run(None, {"obs": observations})[0].argmax(axis=1)
"""


def torch_files(folder):
    torch = pytest.importorskip("torch", reason="needs torch")
    (folder / "modules.py").write_text(MODULES)
    modules = load_file(folder / "modules.py", "test")
    mlp = modules.Mlp().eval()
    torch.jit.save(torch.jit.script(mlp), folder / "mlp.pt")
    torch.jit.save(torch.jit.script(modules.Recurrent().eval()), folder / "recurrent.pt")
    program = torch.export.export(mlp, (torch.zeros(8, 4),))
    torch.export.save(program, folder / "mlp.pt2")
    return {
        "torchscript": load_target(CARTPOLE, f"torchscript:{folder / 'mlp.pt'}", True),
        "recurrent torchscript": load_target(CARTPOLE, f"torchscript:{folder / 'recurrent.pt'}", True),
        "torch.export": load_target(CARTPOLE, f"torchscript:{folder / 'mlp.pt2'}", True),
        "module of a file": load_target(CARTPOLE, f"py:{folder / 'modules.py'}:Mlp"),
        "module in hand": as_target(CARTPOLE, mlp),
    }


def onnx_files(folder):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    rng = np.random.default_rng(0)
    weights = {"W0": rng.normal(size=(4, 300)), "W1": rng.normal(size=(300, 2))}
    tensors = [onnx.numpy_helper.from_array(value.astype("f"), name) for name, value in weights.items()]
    make = onnx.helper
    nodes = [
        make.make_node("MatMul", ["obs", "W0"], ["h"]),
        make.make_node("MatMul", ["h", "W1"], ["action"]),
    ]
    ports = [make.make_tensor_value_info(name, 1, ["n", size]) for name, size in (("obs", 4), ("action", 2))]
    graph = make.make_graph(nodes, "policy", ports[:1], ports[1:], tensors)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "mlp.onnx")
    onnx.save(model, folder / "split.onnx", save_as_external_data=True, location="rest", size_threshold=0)
    assert (folder / "rest").stat().st_size > 4000
    return {
        "onnx": load_target(CARTPOLE, f"onnx:{folder / 'mlp.onnx'}"),
        "onnx of two files": load_target(CARTPOLE, f"onnx:{folder / 'split.onnx'}"),
    }


def sb3_files(folder):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    venv = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    model = sb3.PPO("MlpPolicy", venv, n_steps=64, batch_size=64, seed=0, device="cpu").learn(256)
    model.save(folder / "ppo.zip")
    venv.save(str(folder / "vecnormalize.pkl"))
    return {
        "sb3 with statistics": load_target(CARTPOLE, f"sb3:{folder / 'ppo.zip'}", True),
        "model in hand": as_target(CARTPOLE, model),
    }


def by_hand(folder):
    """A function that reads a model by itself."""
    (folder / "by_hand.py").write_text(BY_HAND)
    return {"zipped by hand": load_target(CARTPOLE, f"py:{folder / 'by_hand.py'}:zipped")}


MODELS = [
    *("torchscript", "recurrent torchscript", "torch.export", "module of a file", "module in hand"),
    *("onnx", "onnx of two files", "sb3 with statistics", "model in hand"),
    "zipped by hand",
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Executions with models of all formats."""
    folder = tmp_path_factory.mktemp("models")
    files = folder / "files"
    files.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        targets = torch_files(files) | onnx_files(files) | sb3_files(files) | by_hand(files)
        return kinds.here_and_elsewhere(folder, targets)


@pytest.mark.parametrize("kind", MODELS)
def test_models_act_alike_elsewhere(models, kind):
    kinds.assert_same(models[kind])


def test_what_cannot_be_copied_is_made_again_from_its_file(tmp_path):
    (tmp_path / "files").mkdir()
    onnx_files(tmp_path / "files")
    (tmp_path / "files" / "by_hand.py").write_text(BY_HAND)
    target = load_target(CARTPOLE, f"py:{tmp_path / 'files' / 'by_hand.py'}:session")
    data, given = pack(target), kinds.cases(target)
    here = Runner(target)(*given)
    kinds.assert_same((here, kinds.run_elsewhere(tmp_path, {"session": (data, given)})["session"]))
    (tmp_path / "files" / "mlp.onnx").unlink()
    (tmp_path / "again").mkdir()
    with pytest.raises(AssertionError, match=r"the code of policy .*by_hand.py:session raised .*mlp.onnx"):
        kinds.run_elsewhere(tmp_path / "again", {"session": (data, given)})


SIMULATORS = {
    "acasxu": ("acasxu", None),
    "acasxu of a folder": ("acasxu", "acasxu:networks"),
    "coopnavi": ("coopnavi:starts=valid", None),
    "bipedal": ("bipedal:horizon=60", None),
    "driving-rl": ("driving-rl:horizon=20", None),
    "driving-il": ("driving-il:horizon=20", None),
    "lunar lander": ("gym:LunarLander-v3:horizon=60", "py:gym_policies.py:lander"),
    "mujoco": ("gym:InvertedPendulum-v5:horizon=60", "py:gym_policies.py:pendulum_on_cart"),
    "taxi": ("gym:Taxi-v4:horizon=40", "py:gym_policies.py:taxi"),
    "minigrid": (
        "gym:MiniGrid-Empty-8x8-v0:horizon=40,wrap=minigrid.wrappers:ImgObsWrapper",
        "py:gym_policies.py:minigrid",
    ),
    "particles": (
        "pettingzoo:mpe2.simple_spread_v3:horizon=20,oracle=info.collisions>1",
        "py:pettingzoo_policies.py:spread",
    ),
    "particles of two kinds": (
        "pettingzoo:mpe2.simple_tag_v3:horizon=20,oracle=return<0",
        "adversary=py:pettingzoo_policies.py:hunt;agent=py:pettingzoo_policies.py:flee",
    ),
    "agents of a file": (
        "pettingzoo:pettingzoo_mortals.py:wrap=pettingzoo_mortals.py:twice_the_reward,oracle=terminated",
        "py:pettingzoo_policies.py:wait",
    ),
}


#: Packs a target and runs it; in a process of its own, since some simulators cannot share one.
COORDINATOR = """
import pickle, sys
from pathlib import Path
import numpy as np
from policyfuzz import Runner, load_target
from policyfuzz.core.errors import MissingExtra
from policyfuzz.execution.shipping import pack

try:
    target = load_target(*sys.argv[2:])
except MissingExtra as missing:
    sys.exit(f"SKIP {missing.message}")
inputs = target.inputs.sample(np.random.default_rng(0), 64)
given = inputs[target.inputs.is_valid(inputs)][:8], np.arange(8, dtype=np.uint64)
Path(sys.argv[1]).write_bytes(pickle.dumps((pack(target), given, Runner(target)(*given))))
"""


@pytest.mark.parametrize("kind", SIMULATORS)
def test_simulators_run_alike_elsewhere(tmp_path, kind):
    files = tmp_path / "files"
    files.mkdir()
    for name in ("gym_policies", "pettingzoo_policies", "pettingzoo_mortals"):
        shutil.copy(TESTS / "environments" / f"{name}.py", files)
    (files / "networks").mkdir()
    for advisory in range(1, 6):
        networks.write_network(files / "networks" / f"net_{advisory}_2.nnet", np.random.default_rng(advisory))
    words = [word for word in SIMULATORS[kind] if word is not None]
    command = [sys.executable, "-c", COORDINATOR, str(tmp_path / "done"), *words]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True, timeout=300, check=False)
    if done.stderr.startswith("SKIP"):
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(files)
    data, given, here = pickle.loads((tmp_path / "done").read_bytes())
    elsewhere = kinds.run_elsewhere(tmp_path, {kind: (data, given)})[kind]
    kinds.assert_same((here, elsewhere))


def test_a_carla_target_is_packed_without_a_server(tmp_path):
    pytest.importorskip("carla", reason="needs the package carla")
    roads = load_file(TESTS / "targets" / "test_carla_simulator.py", "test").ROAD
    (tmp_path / "road.xodr").write_text(roads)
    target = load_target(f"carla:vehicles=2,map={tmp_path / 'road.xodr'}", "carla:autopilot")
    (tmp_path / "road.xodr").unlink()
    there = pickle.loads(decode_content(pack(target))["target"])
    given, sent = (inspect.getclosurevars(one.simulator).nonlocals["roads"] for one in (target, there))
    np.testing.assert_array_equal(sent.spots, given.spots)
    assert sent.height(10.0, 1.75) == given.height(10.0, 1.75)
