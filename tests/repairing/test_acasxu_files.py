from pathlib import Path

import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner
from policyfuzz.policies.mlp import read_npz, shipped
from policyfuzz.repairing.files import policy_file
from policyfuzz.repairing.states import States, random_cases
from policyfuzz.repairing.training import outputs_of
from policyfuzz.targets.registry import load_target

torch = pytest.importorskip("torch")

SEEN = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 5))
PREVIOUS = np.where(np.arange(200) < 40, np.nan, np.arange(200) % 5.0)[:, None]


def states():
    return States(SEEN, PREVIOUS, np.zeros((200, 1)))


def advisories(target):
    policy = target.policy()
    policy.begin(200)
    policy.executed(np.nan_to_num(PREVIOUS[:, 0]).astype(np.int64), np.arange(200))
    return policy.act(SEEN, np.arange(200))


def shifted(file):
    """Networks of `file` after a change of all weights."""
    networks = file.load()
    with torch.no_grad():
        for one in networks.parameters():
            one.add_(0.05 * torch.randn(one.shape, generator=torch.Generator().manual_seed(1)))
    return networks


def folder_of_networks(folder: Path):
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(2)
    for advisory in range(1, 6):
        shapes = [(7, 5), (7,), (5, 7), (5,)]
        parts = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        names = ["W0", "B0", "W1", "B1"]
        nodes = [
            onnx.helper.make_node("MatMul", ["W0", "x"], ["m"]),
            onnx.helper.make_node("Add", ["m", "B0"], ["h"]),
            onnx.helper.make_node("Relu", ["h"], ["r"]),
            onnx.helper.make_node("Gemm", ["r", "W1", "B1"], ["y"], transB=1),
        ]
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [5]) for name in ("x", "y")]
        stored = [onnx.numpy_helper.from_array(one, name) for one, name in zip(parts, names, strict=True)]
        graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], stored)
        onnx.save_model(onnx.helper.make_model(graph), folder / f"net_{advisory}_2.onnx")
    return f"acasxu:{folder}"


def test_the_previous_advisory_chooses_the_network():
    target = load_target("acasxu")
    networks = policy_file(target).load()

    scores = outputs_of(networks, networks.examples(states()))

    np.testing.assert_array_equal(scores.argmin(axis=1), advisories(target))


def test_only_the_networks_of_the_time_bucket_are_changed(tmp_path):
    file = policy_file(load_target("acasxu"))
    file.load().write(tmp_path / "same.npz")
    shifted(file).write(tmp_path / "new.npz")

    old = read_npz(shipped("acasxu/networks.npz"))
    same, new = read_npz(tmp_path / "same.npz"), read_npz(tmp_path / "new.npz")
    changed = (old.parameters != new.parameters).any(axis=1)
    assert same.sha256 == old.sha256
    assert np.flatnonzero(changed).tolist() == [1, 10, 19, 28, 37]


@pytest.mark.parametrize("is_folder", [False, True])
def test_networks_that_were_written_act_as_they_do_in_training(is_folder, tmp_path):
    uri = None
    if is_folder:
        (tmp_path / "old").mkdir()
        uri = folder_of_networks(tmp_path / "old")
    file = policy_file(load_target("acasxu", uri))
    networks, out = shifted(file), tmp_path / f"new{file.suffix}"
    networks.write(out)

    target = load_target("acasxu", file.uri(out))

    scores = outputs_of(networks, networks.examples(states()))
    np.testing.assert_array_equal(advisories(target), scores.argmin(axis=1))
    cases = random_cases(target, 20, 0)
    assert Runner(target)(cases.inputs, cases.seeds).sound.all()


def test_nnet_files_are_refused_before_any_work(tmp_path):
    for advisory in range(1, 6):
        (tmp_path / f"net_{advisory}_2.nnet").write_text("")
    from dataclasses import replace

    target = replace(load_target("acasxu"), policy_uri=f"acasxu:{tmp_path}")

    with pytest.raises(UsageError, match=r"\.nnet files are read, and not written"):
        policy_file(target)
