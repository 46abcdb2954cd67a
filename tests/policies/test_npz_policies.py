import io
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.mlp import MlpBank, read_npz, write_npz
from policyfuzz.policies.spaces import sample_observations
from policyfuzz.policies.uri import load_policy

CART = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Discrete(2))
ROOM = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (2, 2, 3), np.uint8),
        "direction": spaces.Discrete(4),
        "speed": spaces.Box(-1, 1, ()),
    }
)


@pytest.fixture
def layers():
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(4, 4)), rng.normal(size=4)), (rng.normal(size=(4, 2)), rng.normal(size=2))]


def reference(layers, observations, activation=np.tanh):
    (first, bias), (second, other) = layers
    return (activation(observations @ first + bias) @ second + other).argmax(axis=1)


def acts(loaded, observations):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


OBSERVATIONS = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)


def test_a_network_in_the_format_of_the_package_acts(tmp_path, layers):
    write_npz(tmp_path / "p.npz", MlpBank.from_layers([layers], "tanh"))
    loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", CART)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), reference(layers, OBSERVATIONS))
    assert loaded.uri == f"npz:{tmp_path / 'p.npz'}"


def test_rows_do_not_depend_on_their_batch(tmp_path, layers):
    write_npz(tmp_path / "p.npz", MlpBank.from_layers([layers], "tanh"))
    steering = Spaces(CART.observation, spaces.Box(-10, 10, (2,)))
    loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", steering)
    alone = np.concatenate([acts(loaded, OBSERVATIONS[i : i + 1]) for i in range(100)])
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), alone)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(
    "names", [("W{}", "b{}"), ("net.{}.weight", "net.{}.bias"), ("{}.weight", "{}.bias")]
)
def test_layers_written_by_hand_are_read_either_way_round(tmp_path, layers, names, is_turned):
    arrays = {}
    for number, (weights, bias) in enumerate(layers):
        arrays[names[0].format(2 * number)] = weights.T if is_turned else weights
        arrays[names[1].format(2 * number)] = bias
    np.savez(tmp_path / "p.npz", **arrays, activation="tanh")
    loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", CART)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), reference(layers, OBSERVATIONS))
    assert loaded.notes == ()


def test_numbered_layers_are_taken_in_the_order_of_their_numbers(tmp_path):
    rng = np.random.default_rng(2)
    weights = [rng.normal(size=(4, 4)) for _ in range(10)] + [rng.normal(size=(4, 2))]
    arrays: dict[str, Any] = {f"{i}.weight": weights[i] for i in sorted(range(11), key=str)}
    np.savez(tmp_path / "p.npz", **arrays, activation="linear")
    expected = np.linalg.multi_dot([OBSERVATIONS.astype(float), *weights]).argmax(axis=1)
    loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", CART)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), expected)


def test_a_square_layer_is_turned_only_under_the_name_of_pytorch(tmp_path):
    swap = np.array([[0.0, 1.0], [0.0, 0.0]])
    pair = Spaces(spaces.Box(-1, 1, (2,)), spaces.Box(-1, 1, (2,)))
    for name, expected in (("W0", [0.0, 0.5]), ("0.weight", [-0.5, 0.0])):
        arrays: dict[str, Any] = {name: swap}
        np.savez(tmp_path / "p.npz", **arrays)
        loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", pair)
        np.testing.assert_array_equal(acts(loaded, np.array([[0.5, -0.5]], np.float32))[0], expected)


def test_an_assumed_activation_is_told(tmp_path, layers):
    np.savez(tmp_path / "p.npz", W0=layers[0][0], b0=layers[0][1], W1=layers[1][0], b1=layers[1][1])
    loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", CART)
    assert any("relu" in note for note in loaded.notes)
    relu = reference(layers, OBSERVATIONS, lambda x: np.maximum(x, 0))
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), relu)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"W0": np.zeros((4, 3)), "W1": np.zeros((5, 2))}, "do not fit together"),
        ({"W0": np.zeros((4, 2)), "log_std": np.zeros(2)}, "'log_std' .* is no layer"),
        ({"b0": np.zeros(2)}, "without a weight matrix"),
        ({"W0": np.zeros((4, 2)), "b0": np.zeros(3)}, "do not fit together"),
        ({"W0": np.zeros((4, 3)), "W1": np.zeros((3, 2)), "activation": "swish"}, "'swish' is not known"),
        ({"W0": np.zeros((6, 2))}, r"takes 6 numbers, and an observation is Box\(-inf, inf, \(4,\)"),
        (
            {"W0": np.zeros((4, 3))},
            r"gives 3 number\(s\) for an observation, expected 1 or 2 for Discrete\(2\)",
        ),
        ({"W0": np.array([object()])}, "W0.npy is no array of numbers"),
    ],
)
def test_a_file_that_is_no_network_for_these_spaces_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(PolicyError, match=message):
        load_policy(f"npz:{tmp_path / 'p.npz'}", CART)


def test_a_width_that_does_not_fit_asks_for_the_wrapper(tmp_path):
    np.savez(tmp_path / "p.npz", W0=np.zeros((16, 2)))
    with pytest.raises(PolicyError) as caught:
        load_policy(f"npz:{tmp_path / 'p.npz'}", CART)
    assert "FlattenObservation" in caught.value.hint


def test_weights_that_diverged_are_refused_at_once(tmp_path):
    np.savez(tmp_path / "p.npz", W0=np.full((4, 2), np.nan))
    with pytest.raises(PolicyError, match="NaN"):
        load_policy(f"npz:{tmp_path / 'p.npz'}", CART)


def test_another_kind_of_file_is_named(tmp_path):
    (tmp_path / "p.npz").write_text("hello")
    with pytest.raises(PolicyError, match="cannot be read by npz:"):
        load_policy(f"npz:{tmp_path / 'p.npz'}", CART)


def test_pictures_and_dictionaries_are_flattened_and_numbers_one_hot(tmp_path):
    for space, width in ((ROOM["image"], 12), (spaces.Discrete(5, start=2), 5), (ROOM, 4 + 12 + 1)):
        np.savez(tmp_path / "p.npz", W0=np.eye(width))
        loaded = load_policy(f"npz:{tmp_path / 'p.npz'}", Spaces(space, spaces.Box(-999, 999, (width,))))
        observations = sample_observations(space, 3)
        np.testing.assert_array_equal(acts(loaded, observations), flat(space, observations))


def flat(space, observations):
    """What Gymnasium's own flattening gives."""
    rows = []
    for observation in observations:
        if isinstance(space, spaces.Dict):
            observation = {key: observation[key] for key in space.spaces}
        rows.append(spaces.flatten(space, observation))
    return np.array(rows)


def test_squashed_outputs_are_noticed_and_rescaled_on_demand(tmp_path):
    torque = Spaces(spaces.Box(-1, 1, (3,)), spaces.Box(-2, 2, (1,)))
    np.savez(tmp_path / "p.npz", W0=np.ones((3, 1)), output="tanh")
    uri = f"npz:{tmp_path / 'p.npz'}"
    plain, stretched = load_policy(uri, torque), load_policy(f"{uri}?rescale", torque)
    assert any("?rescale" in note for note in plain.notes)
    assert stretched.notes == ()
    assert stretched.uri == f"{uri}?rescale"
    assert stretched.sha256 != plain.sha256
    observations = sample_observations(torque.observation, 5)
    np.testing.assert_allclose(acts(stretched, observations), 2 * acts(plain, observations), rtol=1e-6)


# the format of write_npz


def test_bank_survives_its_file(tmp_path):
    bank = MlpBank.from_parameters(np.arange(8.0)[None], (3, 2), "tanh", "tanh")
    write_npz(tmp_path / "networks.npz", bank)
    assert read_npz(tmp_path / "networks.npz").sha256 == bank.sha256


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"parameters": np.zeros((1, 8))},
        {"parameters": np.zeros((1, 8)), "sizes": np.array(3)},
        {"parameters": np.zeros((1, 8)), "sizes": np.array([3.9, 2.0])},
        {"parameters": np.zeros((1, 8), complex), "sizes": np.array([3, 2])},
        {"parameters": np.array([["a"] * 8]), "sizes": np.array([3, 2])},
        {"parameters": np.zeros((1, 9)), "sizes": np.array([3, 2])},
        {"parameters": np.full((1, 8), np.nan), "sizes": np.array([3, 2])},
        {"parameters": np.zeros((1, 8)), "sizes": np.array([3, 2]), "output": np.array("swish")},
    ],
)
def test_file_that_holds_no_networks_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "networks.npz", **arrays)
    with pytest.raises(PolicyError):
        read_npz(tmp_path / "networks.npz")


@pytest.mark.parametrize("content", ["text", "array"])
def test_file_of_another_kind_is_refused(tmp_path, content):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    (tmp_path / "x.npz").write_bytes(b"hello" if content == "text" else buffer.getvalue())
    with pytest.raises(PolicyError, match=r"x\.npz holds no networks"):
        read_npz(tmp_path / "x.npz")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(PolicyError, match="no file"):
        read_npz(tmp_path / "nowhere.npz")
