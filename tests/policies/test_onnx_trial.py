"""Networks are tried in a process of their own, which can be ended."""

import signal

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
from onnx import TensorProto, helper, numpy_helper

from policyfuzz.policies import onnx_trial
from policyfuzz.policies.onnx_trial import BrokenNetwork, TrialEnded, TrialSession

pytestmark = pytest.mark.slow


def network(kind="MatMul"):
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "W")
    graph = helper.make_graph(
        [helper.make_node(kind, ["obs", "W"], ["action"])],
        "policy",
        [value("obs", TensorProto.FLOAT, ["n", 4])],
        [value("action", TensorProto.FLOAT, ["n", 2])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def test_trial_gives_what_the_network_gives():
    with TrialSession(network(), "p.onnx") as trial:
        (action,) = trial.run(["action"], {"obs": np.ones((3, 4), np.float32)})
        assert [port.name for port in trial.inputs] == ["obs"]
    np.testing.assert_array_equal(action, [[12, 16]] * 3)
    assert trial._process.poll() == -signal.SIGKILL, "nothing is left behind"


def test_network_that_cannot_be_built_is_told_in_the_words_of_the_runtime():
    with pytest.raises(BrokenNetwork, match="Nonsense"):
        TrialSession(network("Nonsense"), "p.onnx")


def test_process_that_dies_is_told():
    with TrialSession(network(), "p.onnx") as trial:
        trial._process.kill()
        with pytest.raises(TrialEnded, match=r"p\.onnx ended the process"):
            trial.run(["action"], {"obs": np.ones((3, 4), np.float32)})


def test_process_that_does_not_answer_is_ended(monkeypatch):
    monkeypatch.setattr(onnx_trial, "TRIAL_SECONDS", 0.1)
    with TrialSession.__new__(TrialSession) as trial:
        trial._name = "p.onnx"
        trial._process = onnx_trial.subprocess.Popen(
            ["sleep", "1000"], stdin=onnx_trial.subprocess.PIPE, stdout=onnx_trial.subprocess.PIPE
        )
        with pytest.raises(TrialEnded, match=r"within 0\.1 s"):
            trial._asked(b"content")
