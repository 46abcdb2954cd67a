from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError
from policyfuzz.targets.acasxu.networks import read_nnet

some_examples = settings(max_examples=40, deadline=None, derandomize=True)

SIZES = (3, 4, 2)
MEANS, RANGES = [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]


def random_layers(seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)) for n_in, n_out in pairwise(SIZES)]


def line(values):
    return ",".join(repr(float(value)) for value in values) + ",\n"


def nnet_text(layers, trailing="\n"):
    """The text of a .nnet file: header, then for each layer rows of weights (out, in) and biases."""
    text = "// a comment\n// another\n"
    text += f"{len(layers)},{SIZES[0]},{SIZES[-1]},{max(SIZES)},\n"
    text += ",".join(str(size) for size in SIZES) + ",\n0,\n"
    text += line([-100.0] * 3) + line([100.0] * 3)
    text += line([*MEANS, 7.5]) + line([*RANGES, 373.9])
    for weights, bias in layers:
        text += "".join(line(row) for row in weights.T) + "".join(line([value]) for value in bias)
    return text.rstrip("\n") + trailing


def test_layers_and_normalisation_are_read(tmp_path):
    path, layers = tmp_path / "a.nnet", random_layers()
    path.write_text(nnet_text(layers))
    network = read_nnet(path)
    assert len(network.layers) == 2
    for (weights, bias), (read_weights, read_bias) in zip(layers, network.layers, strict=True):
        np.testing.assert_array_equal(read_weights, weights)
        np.testing.assert_array_equal(read_bias, bias)
    assert network.input_means.tolist() == MEANS
    assert network.input_ranges.tolist() == RANGES


def test_file_is_read_when_lines_end_as_on_windows(tmp_path):
    path, layers = tmp_path / "a.nnet", random_layers()
    path.write_bytes(nnet_text(layers).replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_nnet(path).layers[1][0], layers[1][0])


@some_examples
@given(st.data())
def test_file_is_refused_when_lines_are_missing_at_its_end(tmp_path_factory, data):
    lines = nnet_text(random_layers()).splitlines(keepends=True)
    path = tmp_path_factory.mktemp("nnet") / "a.nnet"
    path.write_text("".join(lines[: data.draw(st.integers(0, len(lines) - 1))]))
    with pytest.raises(PolicyError, match="truncated"):
        read_nnet(path)


def test_file_is_refused_when_a_row_of_weights_is_too_short(tmp_path):
    path = tmp_path / "a.nnet"
    text = nnet_text(random_layers()).splitlines()
    text[9] = text[9].rsplit(",", 2)[0] + ","
    path.write_text("\n".join(text))
    with pytest.raises(PolicyError):
        read_nnet(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xfe\x00\x01" * 100, b"1,2,3\nx,y,z\n"])
def test_file_is_refused_when_it_is_something_else(tmp_path, content):
    path = tmp_path / "a.nnet"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match=r"not a \.nnet file"):
        read_nnet(path)
