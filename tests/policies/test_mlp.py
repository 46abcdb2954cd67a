from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.mlp import MlpBank

some_examples = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def random_network(rng, sizes):
    return [(rng.normal(size=(n_in, n_out)), rng.normal(size=n_out)) for n_in, n_out in pairwise(sizes)]


def plain_forward(network, values, hidden):
    for weights, bias in network[:-1]:
        values = hidden(values @ weights + bias)
    weights, bias = network[-1]
    return values @ weights + bias


@some_examples
@given(
    seeds,
    st.lists(st.integers(1, 20), min_size=2, max_size=5),
    st.integers(1, 4),
    st.integers(0, 150),
    st.sampled_from(
        [("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh), ("linear", lambda x: x)],
    ),
)
def test_bank_equals_a_plain_forward_pass(seed, sizes, networks, rows, activation):
    rng = np.random.default_rng(seed)
    name, function = activation
    bank = [random_network(rng, sizes) for _ in range(networks)]
    inputs, which = rng.normal(size=(rows, sizes[0])), rng.integers(0, networks, rows)
    expected = np.empty((rows, sizes[-1]))
    for row in range(rows):
        expected[row] = plain_forward(bank[which[row]], inputs[row], function)
    got = MlpBank.from_layers(bank, hidden=name)(inputs, which)
    np.testing.assert_allclose(
        got, expected, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(expected).max(initial=0))
    )


def test_output_layer_has_its_own_activation():
    rng = np.random.default_rng(0)
    network, inputs = random_network(rng, (3, 8, 2)), rng.normal(size=(10, 3))
    got = MlpBank.from_layers([network], hidden="relu", output="tanh")(inputs, np.zeros(10, np.int64))
    expected = np.tanh(plain_forward(network, inputs, lambda x: np.maximum(x, 0)))
    np.testing.assert_allclose(got, expected, rtol=1e-12)


SIZES = (5, 50, 50, 5)
BANK = MlpBank.from_layers([random_network(np.random.default_rng(i), SIZES) for i in range(3)])
INPUTS = np.random.default_rng(7).normal(size=(300, 5))
WHICH = np.random.default_rng(8).integers(0, 3, 300)
OUTPUTS = BANK(INPUTS, WHICH)


@some_examples
@given(st.lists(st.integers(0, 299), min_size=1, max_size=400))
def test_result_of_a_row_is_bitwise_the_same_when_the_batch_changes(rows):
    np.testing.assert_array_equal(BANK(INPUTS[rows], WHICH[rows]), OUTPUTS[rows])


@some_examples
@given(st.integers(0, 299), st.integers(0, 2**32 - 1), st.sampled_from([np.nan, np.inf, 1e300, 0.0]))
def test_result_of_a_row_is_bitwise_the_same_when_its_neighbours_are_wild(row, seed, wild):
    inputs, which = np.full((100, 5), wild), np.full(100, WHICH[row])
    place = np.random.default_rng(seed).integers(0, 100)
    inputs[place] = INPUTS[row]
    np.testing.assert_array_equal(BANK(inputs, which)[place], OUTPUTS[row])


def test_result_is_the_same_when_weights_are_stored_as_float32():
    network = [
        (weights.astype(np.float32), bias.astype(np.float32))
        for weights, bias in random_network(np.random.default_rng(0), (3, 8, 2))
    ]
    wide = [(weights.astype(np.float64), bias.astype(np.float64)) for weights, bias in network]
    inputs, which = np.random.default_rng(1).normal(size=(10, 3)), np.zeros(10, np.int64)
    np.testing.assert_array_equal(
        MlpBank.from_layers([network])(inputs, which), MlpBank.from_layers([wide])(inputs, which)
    )


def test_result_is_not_a_number_when_an_input_is_not():
    inputs = np.zeros((2, 5))
    inputs[0, 3] = np.nan
    outputs = BANK(inputs, np.zeros(2, np.int64))
    assert np.isnan(outputs[0]).all()
    assert np.isfinite(outputs[1]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", [0, 1])
def test_bank_is_refused_when_a_weight_is_not_finite(value, part):
    networks = [random_network(np.random.default_rng(0), (3, 4, 2)) for _ in range(2)]
    networks[1][1][part].flat[0] = value
    with pytest.raises(PolicyError, match="network 1 has weights that are NaN or infinite"):
        MlpBank.from_layers(networks)


@pytest.mark.parametrize(
    "network",
    [
        [(np.ones((3, 4)), np.ones(5))],
        [(np.ones((3, 4)), np.ones((4, 1)))],
        [(np.ones((3, 4)), np.ones(4)), (np.ones((5, 2)), np.ones(2))],
        [(np.ones(3), np.ones(3))],
    ],
    ids=["bias too long", "bias is a matrix", "layers do not join", "weights are a vector"],
)
def test_bank_is_refused_when_shapes_do_not_fit(network):
    with pytest.raises(PolicyError, match="layer"):
        MlpBank.from_layers([network])


def test_bank_is_refused_when_networks_differ_in_shape():
    networks = [random_network(np.random.default_rng(0), sizes) for sizes in ((3, 4, 2), (3, 5, 2))]
    with pytest.raises(PolicyError, match="one shape"):
        MlpBank.from_layers(networks)


def test_bank_is_refused_when_it_has_no_networks():
    with pytest.raises(PolicyError, match="one shape"):
        MlpBank.from_layers([])


@pytest.mark.parametrize("missing", [-1, 1, 7])
def test_bank_is_refused_when_the_number_of_parameters_does_not_fit_the_sizes(missing):
    needed = 3 * 4 + 4 + 4 * 2 + 2
    with pytest.raises(PolicyError):
        MlpBank.from_parameters(np.ones((1, needed - missing)), (3, 4, 2))


@pytest.mark.parametrize("columns", [4, 6])
def test_inputs_are_refused_when_they_have_another_width_than_the_networks(columns):
    with pytest.raises((PolicyError, ValueError)):
        BANK(np.zeros((2, columns)), np.zeros(2, np.int64))


def test_layers_are_the_ones_a_bank_was_made_of():
    rng = np.random.default_rng(0)
    networks = [[(rng.random((3, 4)), rng.random(4)), (rng.random((4, 2)), rng.random(2))] for _ in range(2)]
    bank = MlpBank.from_layers(networks)
    for number, network in enumerate(networks):
        for layer, held in zip(network, bank.layers(number), strict=True):
            assert all(np.array_equal(*pair) for pair in zip(layer, held, strict=True))


def test_unknown_activation_is_refused():
    with pytest.raises(PolicyError, match="activation 'swish' is not known"):
        MlpBank.from_parameters(np.zeros((1, 8)), (3, 2), "swish")
