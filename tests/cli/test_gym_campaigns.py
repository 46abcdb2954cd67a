"""From an environment's name and a policy's file to a replayed failure, with the packages that people use."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from policyfuzz.policies.mlp import MlpBank, write_npz

pytestmark = pytest.mark.slow

POLICIES = Path(__file__).parents[1] / "environments" / "gym_policies.py"
#: A linear policy of CartPole that does not look where the cart is: pushes right where this is positive.
GAINS = np.array([0.0, 0.05, 1.0, 0.4])
LAYER = np.stack([-GAINS, GAINS], axis=1).astype(np.float32)  # (4, 2)


def as_npz(path):
    write_npz(
        path.with_suffix(".npz"), MlpBank.from_layers([[(LAYER.astype(np.float64), np.zeros(2))]], "tanh")
    )
    return f"npz:{path}.npz"


def as_onnx(path):
    onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    from onnx import TensorProto, helper, numpy_helper

    shapes: dict[str, tuple[str | int, ...]] = {"obs": ("batch", 4), "logits": ("batch", 2)}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    node = helper.make_node("MatMul", ["obs", "W"], ["logits"])
    graph = helper.make_graph([node], "policy", ports[:1], ports[1:], [numpy_helper.from_array(LAYER, "W")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return f"onnx:{path}"


def as_torchscript(path):
    torch = pytest.importorskip("torch", reason="needs torch")
    layer = torch.nn.Linear(4, 2, bias=False)
    layer.weight.data = torch.tensor(LAYER.T.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would have us use its newer format
        torch.jit.trace(layer, torch.zeros(1, 4)).save(path)
    return f"torchscript:{path}"


def as_python(name, path):
    return f"py:{POLICIES}:{name}"


def ppo(path):
    """A model that has learnt for a second or two."""
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    options = {"n_steps": 256, "learning_rate": 3e-3, "policy_kwargs": {"net_arch": [32]}}
    model = sb3.PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu", **options)
    return saved(model.learn(1536), path)


def linear(package, algorithm, env, layer, weights, path):
    """A model without hidden units; those of `layer` are `weights`."""
    library = pytest.importorskip(package, reason=f"needs {package}")
    options = {"policy_kwargs": {"net_arch": []}, "buffer_size": 10}
    model = getattr(library, algorithm)("MlpPolicy", env, seed=1, device="cpu", **options)
    return saved(model, path, **{layer: weights})


def recurrent(path):
    """One unit of an LSTM leans as the pole does, and forgets slowly."""
    contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    options = {"net_arch": [], "lstm_hidden_size": 1}
    model = contrib.RecurrentPPO("MlpLstmPolicy", "CartPole-v1", policy_kwargs=options, seed=1, device="cpu")
    kept, forgotten, leaning, shown = [[9.0], [-1.0], [0.0], [9.0]]  # the gates, in the order of torch
    weights = np.zeros((4, 4))
    weights[2] = GAINS
    parts = {
        "weight_ih_l0": weights,
        "weight_hh_l0": np.zeros((4, 1)),
        "bias_ih_l0": np.concatenate([kept, forgotten, leaning, shown]),
        "bias_hh_l0": np.zeros(4),
    }
    head = {"action_net.weight": [[-1.0], [1.0]], "action_net.bias": [0.0, 0.0]}
    return saved(model, path, **{f"lstm_actor.{name}": part for name, part in parts.items()}, **head)


def saved(model, path, **weights):
    """The URI of `model`, in a file, with these weights and no biases beside them."""
    import torch

    state = model.policy.state_dict()
    for name, values in weights.items():
        state[name] = torch.as_tensor(np.array(values), dtype=torch.float32).reshape(state[name].shape)
        if name.endswith(".weight"):
            state[name.replace(".weight", ".bias")] *= 0
    model.policy.load_state_dict(state)
    model.save(path)
    return f"sb3:{path}.zip"


#: A linear policy of InvertedPendulum, as a share of the largest force.
PUSHES = np.array([0.1, 1.3, 0.0, 0.2])
QUANTILES = np.tile(LAYER.T, (200, 1))  # of the return of either action
POLE, PENDULUM = "CartPole-v1", "InvertedPendulum-v5"
dqn = partial(linear, "stable_baselines3", "DQN", POLE, "q_net.q_net.0.weight", LAYER.T)
qrdqn = partial(linear, "sb3_contrib", "QRDQN", POLE, "quantile_net.quantile_net.0.weight", QUANTILES)
td3 = partial(linear, "stable_baselines3", "TD3", PENDULUM, "actor.mu.0.weight", PUSHES)
tqc = partial(linear, "sb3_contrib", "TQC", PENDULUM, "actor.mu.weight", PUSHES)

#: Target, what makes the policy, packages that are needed.
CAMPAIGNS: dict[str, tuple[str, Callable[[Path], str], tuple[str, ...]]] = {
    "classic control": (f"gym:{POLE}:bounds=wide", partial(as_python, "nearsighted"), ()),
    "Box2D": ("gym:LunarLander-v3:bounds=wide,horizon=400", partial(as_python, "lander"), ("Box2D",)),
    "MuJoCo": (
        f"gym:{PENDULUM}:bounds=wide,horizon=150,render=no",  # pictures need a graphics driver
        partial(as_python, "pendulum_on_cart"),
        ("mujoco",),
    ),
    "toy text": ("gym:Taxi-v4:horizon=60", partial(as_python, "taxi"), ()),
    "MiniGrid": (
        "gym:MiniGrid-Empty-8x8-v0:wrap=minigrid.wrappers:ImgObsWrapper,horizon=60",
        partial(as_python, "minigrid"),
        ("minigrid",),
    ),
    "npz": (f"gym:{POLE}:bounds=wide", as_npz, ()),
    "ONNX": (f"gym:{POLE}:bounds=wide", as_onnx, ()),
    "TorchScript": (f"gym:{POLE}:bounds=wide", as_torchscript, ()),
    "PPO": (f"gym:{POLE}:bounds=wide", ppo, ()),
    "DQN": (f"gym:{POLE}:bounds=wide", dqn, ()),
    "QRDQN": (f"gym:{POLE}:bounds=wide", qrdqn, ()),
    "RecurrentPPO": (f"gym:{POLE}:bounds=wide", recurrent, ()),
    "TD3": (f"gym:{PENDULUM}:bounds=wide,horizon=150,render=no", td3, ("mujoco",)),
    "TQC": (f"gym:{PENDULUM}:bounds=wide,horizon=150,render=no", tqc, ("mujoco",)),
}
FAMILIES = ("classic control", "Box2D", "MuJoCo", "toy text", "MiniGrid")
FORMATS = ("npz", "ONNX", "TorchScript")


def command(campaign, folder):
    """Target, policy and trust, as on a command line."""
    name, make, packages = CAMPAIGNS[campaign]
    for package in packages:
        pytest.importorskip(package, reason=f"needs {package}")
    return [name, "--policy", make(folder / "policy"), "--trust"]


def fuzz(cli, chosen, folder="c", **options):
    """A short campaign: exit code and summary."""
    limits = {"max-execs": 90, "samples": 45, "batch": 30, "ui": "none", "out": folder} | options
    words = [word for name, value in limits.items() for word in (f"--{name}", value)]
    code, out, err = cli("fuzz", *chosen, *words, "--json")
    assert not err
    return code, json.loads(out)


def replay(cli, folder, *options):
    """Make sure that the first finding of the campaign in `folder` crashes again."""
    code, out, _ = cli("replay", folder, 1, "--trust", *options)
    assert code == 1
    assert "exactly as recorded" in out


@pytest.mark.parametrize("campaign", [name for name in CAMPAIGNS if name not in FAMILIES + FORMATS])
def test_a_policy_of_this_kind_fails_and_does_so_again(cli, tmp_path, campaign):
    code, summary = fuzz(cli, command(campaign, tmp_path))
    assert (code, summary["executions"], summary["errors"], summary["flaky_findings"]) == (1, 90, 0, 0)
    replay(cli, "c", "--no-picture")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_failure_in_this_family_is_found_replayed_and_filmed(cli, tmp_path, family):
    chosen = command(family, tmp_path)
    code, out, _ = cli("check", *chosen, "--episodes", 30, "--json")
    report = json.loads(out)
    assert code == 0
    assert {one["level"] for one in report["diagnoses"]} <= {"good", "weak"}, report  # they fail by design
    assert any(note.startswith("input: ") and "seed of reset" not in note for note in report["notes"])
    code, summary = fuzz(cli, chosen)
    assert (code, summary["executions"], summary["errors"], summary["flaky_findings"]) == (1, 90, 0, 0)
    replay(cli, "c")
    assert (tmp_path / "c/findings/1.png").read_bytes().startswith(b"\x89PNG")
    films = [path for path in (tmp_path / "c/findings").iterdir() if path.suffix in (".mp4", ".gif")]
    assert len(films) == ("render=no" not in chosen[0])
    assert all(film.stat().st_size > 1000 for film in films)


def test_one_policy_in_four_formats_has_the_same_findings(cli, tmp_path):
    found = []
    for campaign in ("classic control", *FORMATS):
        code, _ = fuzz(cli, command(campaign, tmp_path), campaign, **{"max-execs": 60, "samples": 30})
        assert code == 1
        _, out, _ = cli("show", campaign, "--all", "--json")
        found.append([(one["input"], one["crash_step"], one["return"]) for one in json.loads(out)])
        replay(cli, campaign, "--no-picture")
    assert found[0] == found[1] == found[2] == found[3] != []
