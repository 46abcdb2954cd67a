from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.acasxu.networks import read_onnx

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

some_examples = settings(max_examples=40, deadline=None, derandomize=True)

SIZES = (3, 4, 2)


def random_layers(seed=0):
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=(n_in, n_out)).astype(np.float32), rng.normal(size=n_out).astype(np.float32))
        for n_in, n_out in pairwise(SIZES)
    ]


def model_of(nodes, constants, shape=(1, 3)):
    """A model from x to y; `nodes` are (operator, inputs, output, attributes)."""
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [output], **options) for kind, inputs, output, options in nodes],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def matmul_model(layers):
    """y = x W + b as MatMul and Add, weights (in, out)."""
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("MatMul", ["x", "w0"], "a", {}),
        ("Add", ["a", "b0"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("MatMul", ["c", "w1"], "d", {}),
        ("Add", ["b1", "d"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def column_model(layers):
    """y = W x + b on column vectors, weights (out, in), behind a shift of nothing and a reshape."""
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Sub", ["x", "zero"], "s", {}),
        ("Reshape", ["s", "shape"], "r", {}),
        ("MatMul", ["w0", "r"], "a", {}),
        ("Add", ["a", "b0"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("MatMul", ["w1", "c"], "d", {}),
        ("Add", ["d", "b1"], "e", {}),
        ("Flatten", ["e"], "y", {"axis": 0}),
    ]
    constants = {"w0": w0.T.copy(), "b0": b0[:, None], "w1": w1.T.copy(), "b1": b1[:, None]}
    constants |= {"zero": np.zeros((1, 3), np.float32), "shape": np.array([3, 1])}
    return model_of(nodes, constants)


def gemm_model(layers):
    """Gemm with weights (in, out), then Gemm with weights (out, in)."""
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Gemm", ["x", "w0", "b0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "y", {"transB": 1}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1.T.copy(), "b1": b1})


def gemm_model_without_bias(layers):
    (w0, _), (w1, _) = layers
    nodes = [
        ("Gemm", ["x", "w0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "w1": w1})


def subtracting_model(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("MatMul", ["x", "w0"], "a", {}),
        ("Sub", ["a", "b0"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("Gemm", ["c", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


PLAIN = [matmul_model, column_model, gemm_model, gemm_model_without_bias, subtracting_model]


def evaluated(model, inputs):
    """(n, out) what the model's own semantics give, one row at a time."""
    run: Any = ReferenceEvaluator(model)
    return np.stack([np.ravel(run.run(None, {"x": row[None].astype(np.float32)})[0]) for row in inputs])


def read_and_run(model, path, inputs):
    onnx.save(model, str(path))
    return MlpBank.from_layers([read_onnx(path)])(inputs, np.zeros(len(inputs), np.int64))


@pytest.mark.parametrize("build", PLAIN)
def test_network_equals_the_model_when_it_is_plain(tmp_path, build):
    model, inputs = build(random_layers()), np.random.default_rng(1).normal(size=(20, 3))
    np.testing.assert_allclose(
        read_and_run(model, tmp_path / "a.onnx", inputs), evaluated(model, inputs), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("build", [matmul_model, column_model, gemm_model])
def test_layers_are_read_as_they_were_written(tmp_path, build):
    layers = random_layers()
    onnx.save(build(layers), str(tmp_path / "a.onnx"))
    for (weights, bias), (read_weights, read_bias) in zip(
        layers, read_onnx(tmp_path / "a.onnx"), strict=True
    ):
        np.testing.assert_array_equal(read_weights, weights)
        np.testing.assert_array_equal(read_bias, bias)


def scaled_gemm(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Gemm", ["x", "w0", "b0"], "a", {"alpha": 2.0, "beta": 0.5}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def no_relu_between(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [("Gemm", ["x", "w0", "b0"], "a", {}), ("Gemm", ["a", "w1", "b1"], "y", {})]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def relu_at_the_end(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Gemm", ["x", "w0", "b0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "c", {}),
        ("Relu", ["c"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1 - 2})


def relu_at_the_start(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Relu", ["x"], "r", {}),
        ("Gemm", ["r", "w0", "b0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def bias_behind_the_relu(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("MatMul", ["x", "w0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Add", ["b", "b0"], "c", {}),
        ("Gemm", ["c", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def subtracted_from_the_bias(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("MatMul", ["x", "w0"], "a", {}),
        ("Sub", ["b0", "a"], "b", {}),
        ("Relu", ["b"], "c", {}),
        ("Gemm", ["c", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def tanh_between(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Gemm", ["x", "w0", "b0"], "a", {}),
        ("Tanh", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def skip_connection(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Gemm", ["x", "w0", "b0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Add", ["a", "b"], "c", {}),
        ("Gemm", ["c", "w1", "b1"], "y", {}),
    ]
    return model_of(nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})


def shifted_input(layers):
    (w0, b0), (w1, b1) = layers
    nodes = [
        ("Sub", ["x", "mean"], "s", {}),
        ("Gemm", ["s", "w0", "b0"], "a", {}),
        ("Relu", ["a"], "b", {}),
        ("Gemm", ["b", "w1", "b1"], "y", {}),
    ]
    constants = {"w0": w0, "b0": b0, "w1": w1, "b1": b1, "mean": np.full((1, 3), 0.5, np.float32)}
    return model_of(nodes, constants)


OTHER = [
    scaled_gemm,
    no_relu_between,
    relu_at_the_end,
    relu_at_the_start,
    bias_behind_the_relu,
    subtracted_from_the_bias,
    tanh_between,
    skip_connection,
    shifted_input,
]


@pytest.mark.parametrize("build", OTHER)
def test_network_is_refused_or_right_when_it_is_not_plain(tmp_path, build):
    model, inputs = build(random_layers()), np.random.default_rng(1).normal(size=(20, 3))
    try:
        got = read_and_run(model, tmp_path / "a.onnx", inputs)
    except PolicyError:
        return
    np.testing.assert_allclose(got, evaluated(model, inputs), rtol=1e-4, atol=1e-5)


def test_network_is_refused_when_it_has_no_layers(tmp_path):
    onnx.save(model_of([("Relu", ["x"], "y", {})], {}), str(tmp_path / "a.onnx"))
    with pytest.raises(PolicyError, match="not a plain ReLU network"):
        read_onnx(tmp_path / "a.onnx")


@some_examples
@given(st.data())
def test_file_is_refused_or_complete_when_it_is_truncated(tmp_path_factory, data):
    layers = random_layers()
    content = gemm_model(layers).SerializeToString()
    path = tmp_path_factory.mktemp("onnx") / "a.onnx"
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    try:
        read = read_onnx(path)
    except PolicyError:
        return
    # only what lies behind the graph may be missing without notice
    np.testing.assert_array_equal(read[1][0], layers[1][0])


@pytest.mark.parametrize("content", [b"", b"not a network at all", b"\x00" * 100])
def test_file_is_refused_when_it_is_something_else(tmp_path, content):
    (tmp_path / "a.onnx").write_bytes(content)
    with pytest.raises(PolicyError):
        read_onnx(tmp_path / "a.onnx")


def test_file_is_refused_when_it_is_not_there(tmp_path):
    with pytest.raises(PolicyError):
        read_onnx(tmp_path / "missing.onnx")
