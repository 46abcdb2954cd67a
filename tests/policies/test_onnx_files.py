"""ONNX files whose weights lie beside them, as their makers and as strangers write them."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the extra onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.onnx_file import OnnxFile

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def write(tmp_path):
    """Write a network whose weights are said to be at a `place`, and what lies there."""
    (tmp_path / "below").mkdir()
    for name in ("w.bin", "below/w.bin"):
        (tmp_path / name).write_bytes(b"head" + WEIGHTS.tobytes())

    def write(**place):
        tensor = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=WEIGHTS.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "W"], ["y"])],
            "g",
            [value("x", TensorProto.FLOAT, [None, 2])],
            [value("y", TensorProto.FLOAT, [None, 3])],
            [tensor],
        )
        path = tmp_path / "net.onnx"
        path.write_bytes(helper.make_model(graph).SerializeToString())
        return path

    return write


@pytest.mark.parametrize("location", ["w.bin", "below/w.bin"])
def test_weights_beside_the_file_or_below_are_taken_in(write, location):
    file = OnnxFile.read(write(location=location, offset=4, length=24))
    (tensor,) = file.model.graph.initializer
    assert (numpy_helper.to_array(tensor) == WEIGHTS).all()
    assert onnx.load_model_from_string(file.content) == file.model
    assert len(file.parts) == 2  # both are hashed


@pytest.mark.parametrize(
    "location", ["", "../w.bin", "/dev/zero", "below/../../w.bin", "C:\\w.bin", "\\w.bin", "\\\\host\\w.bin"]
)
def test_weights_elsewhere_are_refused(write, location):
    with pytest.raises(PolicyError, match="outside of its folder"):
        OnnxFile.read(write(location=location))


@pytest.mark.parametrize(
    "place", [{"offset": 5, "length": 24}, {"offset": -4}, {"length": 10**18}, {"offset": "many"}]
)
def test_bytes_that_are_not_there_are_refused(write, place):
    with pytest.raises(PolicyError, match=r"bytes of 'w\.bin' that are not there"):
        OnnxFile.read(write(location="w.bin", **place))


def test_file_that_is_missing_is_refused(write):
    with pytest.raises(PolicyError, match=r"gone\.bin"):
        OnnxFile.read(write(location="gone.bin"))


def test_graphs_nested_without_end_are_refused(tmp_path):
    graph = helper.make_graph([], "innermost", [], [], [numpy_helper.from_array(WEIGHTS, "W")])
    for _ in range(20):
        graph = helper.make_graph([helper.make_node("If", [], [], then_branch=graph)], "g", [], [])
    path = tmp_path / "net.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(PolicyError, match="nested more than 16 deep"):
        OnnxFile.read(path)
