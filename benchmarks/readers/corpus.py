"""Valid files of every kind that we read, made once: what the mutators start from."""

import io
import json
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np

from benchmarks.readers.sandbox import MARKER
from policyfuzz.cli.main import exit_code

RIPPLE = "ripple:dimensions=2,probability=0.05"
#: A module in the folder of every case; nothing that is only read may run it.
PLANTED = f"""\
import pathlib
pathlib.Path(__file__).with_name({MARKER!r}).touch()
def run(*_args, **_options):
    pathlib.Path({MARKER!r}).touch()
"""


def make_corpus(folder: Path) -> Path:
    """Make all seeds in `folder`, which is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    _campaigns(folder)
    _archives(folder)
    _texts(folder)
    _onnx(folder)
    return folder


def _campaigns(folder: Path) -> None:
    small = ["--max-execs", "120", "--batch", "16", "--samples", "32", "--ui", "none", "--json"]
    _quietly(["fuzz", RIPPLE, "-o", str(folder / "campaign"), *small])
    for seed in ("1", "2"):
        _quietly(["fuzz", RIPPLE, "--sync", str(folder / "shared"), "--seed", seed, *small])


def _quietly(arguments: list[str]) -> None:
    from contextlib import redirect_stderr, redirect_stdout

    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = exit_code(arguments)
    if code not in (0, 1):
        raise RuntimeError(f"a seed cannot be made: {said.getvalue()}")


def _archives(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        folder / "layers.npz",
        W0=rng.normal(size=(4, 8)),
        b0=np.zeros(8),
        W1=rng.normal(size=(8, 2)),
        b1=np.zeros(2),
        activation="tanh",
    )
    np.savez_compressed(folder / "bank.npz", parameters=rng.normal(size=(1, 58)), sizes=np.array([4, 8, 2]))
    np.savez_compressed(folder / "actors.npz", parameters=rng.normal(size=(3, 95)), sizes=np.array([18, 5]))
    data = {
        "policy_class": {":type:": "<class 'abc.ABCMeta'>", "__module__": "stable_baselines3.ppo"},
        "policy_kwargs": {}, "observation_space": {}, "action_space": {}, "use_sde": False, "clip_range": 0.2,
        "ep_info_buffer": [{"r": 1.0}], "n_envs": 1, "_last_obs": None,
    }  # fmt: skip
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        archive.writestr("data", json.dumps(data))
        archive.writestr("policy.pth", bytes(range(64)))
        archive.writestr("_stable_baselines3_version", "2.4.0")
        archive.writestr("system_info.txt", "- Python: 3.11\n")
    with zipfile.ZipFile(folder / "module.ts", "w") as archive:
        archive.writestr("m/constants.pkl", pickle.dumps(()))
        archive.writestr("m/data.pkl", pickle.dumps({}))
    (folder / "stats.pkl").write_bytes(pickle.dumps({"mean": [0.0] * 4}))


def _texts(folder: Path) -> None:
    rng = np.random.default_rng(1)
    walker = rng.normal(size=2 * 2 + 30 * 2 + 4).round(3).tolist()
    (folder / "walker.json").write_text(json.dumps([walker, 1.0]))
    rows = ["// a network", "1,5,5,5", "5,5", "0", "0,0,0,0,0", "1,1,1,1,1", "0,0,0,0,0,0", "1,1,1,1,1,1"]
    rows += [",".join(map(str, row)) for row in rng.normal(size=(5, 5)).round(3)] + ["0.1"] * 5
    (folder / "network.nnet").write_text("\n".join(rows))
    (folder / "input.toml").write_text('way = "state"\n[bounds]\nx = [-0.1, 0.1]\n[fixed]\ntheta = 0.0\n')
    (folder / "planted.py").write_text(PLANTED)


def _onnx(folder: Path) -> None:
    """Two networks, if the package is there: with their weights inside, and in a file."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.ones((4, 2), np.float32), "W")
    nodes = [helper.make_node("MatMul", ["obs", "W"], ["x"]), helper.make_node("Tanh", ["x"], ["action"])]
    ports = [value("obs", TensorProto.FLOAT, ["n", 4])], [value("action", TensorProto.FLOAT, ["n", 2])]
    model = helper.make_model(
        helper.make_graph(nodes, "policy", *ports, [weights]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    onnx.save(model, folder / "inside.onnx")
    onnx.save(
        model, folder / "outside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )


def copy(corpus: Path, name: str, folder: Path) -> Path:
    """The seed `name`, a file or a folder, in the `folder` of a case."""
    source, place = corpus / name, folder / name
    if source.is_dir():
        shutil.copytree(source, place)
    else:
        shutil.copy(source, place)
    return place
