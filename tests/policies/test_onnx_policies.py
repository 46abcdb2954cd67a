from contextlib import nullcontext

import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.spaces import sample_observations
from policyfuzz.policies.uri import load_policy

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from policyfuzz.policies import onnx as adapter  # noqa: E402

CART = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Discrete(2))
STEER = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Box(-100, 100, (2,)))
RNG = np.random.default_rng(0)
HIDDEN, OUT = RNG.normal(size=(4, 300)).astype(np.float32), RNG.normal(size=(300, 2)).astype(np.float32)
OBSERVATIONS = RNG.normal(size=(100, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def tried_in_this_process(monkeypatch):
    """These networks end; tests/readers tries others in a process that can be ended."""
    monkeypatch.setattr(adapter, "TrialSession", lambda content, _name: nullcontext(adapter.Session(content)))


def port(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, **constants):
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return f"onnx:{path}"


def mlp(path, shape=("batch", 4), kind=TensorProto.FLOAT, outputs=("action",)):
    """A network with a hidden layer; further outputs repeat the hidden units."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    nodes = [
        helper.make_node("MatMul", ["obs", "W0"], ["x"]),
        helper.make_node("Tanh", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "W1"], [outputs[0]]),
        *(helper.make_node("Identity", ["h"], [name]) for name in outputs[1:]),
    ]
    ports = [port(name, None, kind) for name in outputs]
    return save(path, nodes, [port("obs", shape, kind)], ports, W0=HIDDEN.astype(dtype), W1=OUT.astype(dtype))


def expected(observations):
    return np.tanh(observations @ HIDDEN) @ OUT


def acts(loaded, observations, steps=1):
    policy = loaded.make()
    policy.begin(len(observations))
    for _ in range(steps):
        actions = policy.act(observations, np.arange(len(observations)))
    return actions


def test_a_network_gives_the_best_action(tmp_path):
    loaded = load_policy(mlp(tmp_path / "p.onnx"), CART)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), expected(OBSERVATIONS).argmax(axis=1))
    assert loaded.name == "onnx:p.onnx"
    assert loaded.notes == ()


def test_the_uri_is_absolute_and_the_digest_that_of_the_file(tmp_path, monkeypatch):
    mlp(tmp_path / "p.onnx")
    monkeypatch.chdir(tmp_path)
    loaded = load_policy("onnx:p.onnx", CART)
    assert loaded.uri == f"onnx:{tmp_path / 'p.onnx'}"
    assert loaded.sha256 == load_policy(loaded.uri, CART).sha256
    before = loaded.sha256
    mlp(tmp_path / "p.onnx", outputs=("act",))
    assert load_policy("onnx:p.onnx", CART).sha256 != before


@pytest.mark.parametrize("shape", [("batch", 4), (1, 4), (8, 4), (4,), (1, 1, 1, 4), (None, None, 4), None])
def test_rows_do_not_depend_on_their_batch_however_it_was_exported(tmp_path, shape):
    loaded = load_policy(mlp(tmp_path / "p.onnx", shape), STEER)
    together = acts(loaded, OBSERVATIONS)
    np.testing.assert_allclose(together, expected(OBSERVATIONS), rtol=1e-5, atol=1e-5)
    alone = np.concatenate([acts(loaded, OBSERVATIONS[row : row + 1]) for row in range(100)])
    np.testing.assert_array_equal(together, alone)
    some = RNG.permutation(100)[:37]
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS[some]), together[some])


def test_numbers_are_given_in_the_type_of_the_network(tmp_path):
    loaded = load_policy(mlp(tmp_path / "p.onnx", kind=TensorProto.DOUBLE), STEER)
    np.testing.assert_allclose(acts(loaded, OBSERVATIONS), expected(OBSERVATIONS.astype(float)), rtol=1e-6)


def test_a_table_takes_whole_numbers(tmp_path):
    nodes = [helper.make_node("Gather", ["table", "obs"], ["action"])]
    inputs, outputs = [port("obs", ["n"], TensorProto.INT64)], [port("action", ["n"], TensorProto.INT64)]
    uri = save(tmp_path / "p.onnx", nodes, inputs, outputs, table=np.array([3, 1, 0, 2, 1]))
    loaded = load_policy(uri, Spaces(spaces.Discrete(5), spaces.Discrete(4)))
    np.testing.assert_array_equal(acts(loaded, np.array([4, 0, 2])), [1, 3, 0])


def test_whole_numbers_are_given_one_hot_where_the_network_is_as_wide(tmp_path):
    nodes = [helper.make_node("MatMul", ["obs", "W"], ["q"])]
    uri = save(
        tmp_path / "p.onnx", nodes, [port("obs", ["n", 3])], [port("q", ["n", 3])], W=np.eye(3, dtype="f4")
    )
    loaded = load_policy(uri, Spaces(spaces.Discrete(3, start=1), spaces.Discrete(3)))
    np.testing.assert_array_equal(acts(loaded, np.array([1, 3, 2])), [0, 2, 1])
    assert any("one-hot" in note for note in loaded.notes)


def test_pictures_are_given_channels_first_where_the_network_wants_them_so(tmp_path):
    nodes = [helper.make_node("ReduceMax", ["obs"], ["q"], axes=[2, 3], keepdims=0)]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 3, 4, 5])], [port("q", ["n", 3])])
    space = spaces.Box(0, 255, (4, 5, 3), np.uint8)
    loaded = load_policy(uri, Spaces(space, spaces.Discrete(3)))
    pictures = sample_observations(space, 20)
    np.testing.assert_array_equal(acts(loaded, pictures), pictures.max(axis=(1, 2)).argmax(axis=1))


ROOM = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "goal": spaces.Box(-1, 1, (4,))})


def test_inputs_are_matched_with_the_keys_of_a_dictionary(tmp_path):
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Cast", ["flat"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["pixels", "goal"], ["action"]),
    ]
    inputs = [port("goal", ["n", 4]), port("image", ["n", 2, 2], TensorProto.UINT8)]
    uri = save(tmp_path / "p.onnx", nodes, inputs, [port("action", ["n", 4])])
    loaded = load_policy(uri, Spaces(ROOM, spaces.Box(-999, 999, (4,))))
    seen = sample_observations(ROOM, 5)
    np.testing.assert_array_equal(acts(loaded, seen), seen["image"].reshape(5, 4) + seen["goal"])


def test_one_input_for_a_dictionary_gets_it_flattened(tmp_path):
    nodes = [helper.make_node("Identity", ["obs"], ["action"])]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 8])], [port("action", ["n", 8])])
    loaded = load_policy(uri, Spaces(ROOM, spaces.Box(-999, 999, (8,))))
    seen = sample_observations(ROOM, 5)
    flat = np.concatenate([seen[key].reshape(5, 4) for key in ROOM.spaces], axis=1)
    np.testing.assert_array_equal(acts(loaded, seen), flat)
    assert any("key after key" in note for note in loaded.notes)


@pytest.mark.parametrize("names", [("12", "values", "log_prob"), ("actions", "values", "log_prob")])
def test_the_first_of_the_outputs_of_sb3_is_taken_and_told(tmp_path, names):
    loaded = load_policy(mlp(tmp_path / "p.onnx", outputs=names), STEER)
    np.testing.assert_allclose(acts(loaded, OBSERVATIONS), expected(OBSERVATIONS), rtol=1e-5, atol=1e-5)
    assert loaded.notes == (
        f"takes actions from output {names[0]}, not values, log_prob; ?output=NAME takes another",
    )


def test_an_output_with_a_telling_name_is_preferred(tmp_path):
    nodes = [helper.make_node("Neg", ["obs"], ["value"]), helper.make_node("Identity", ["obs"], ["Mu"])]
    outputs = [port("value", ["n", 4]), port("Mu", ["n", 4])]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 4])], outputs)
    wide = Spaces(STEER.observation, spaces.Box(-100, 100, (4,)))
    np.testing.assert_array_equal(acts(load_policy(uri, wide), OBSERVATIONS), OBSERVATIONS)
    chosen = load_policy(f"{uri}?output=value", wide)
    np.testing.assert_array_equal(acts(chosen, OBSERVATIONS), -OBSERVATIONS)
    assert chosen.uri == f"{uri}?output=value"
    assert chosen.sha256 != load_policy(uri, wide).sha256
    with pytest.raises(UsageError, match="did you mean 'value'"):
        load_policy(f"{uri}?output=valu", wide)


def counter(path, names, shapes=(["n", 4], ["n", 2])):
    """A network that adds 1 to its memory and gives it as the action."""
    nodes = [
        helper.make_node("ReduceSum", ["obs"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "nothing"], ["zero"]),
        helper.make_node("Add", [names[0], "one"], ["more"]),
        helper.make_node("Add", ["more", "zero"], [names[1]]),
        helper.make_node("Identity", [names[1]], ["action"]),
    ]
    inputs, outputs = (
        [port("obs", shapes[0]), port(names[0], shapes[1])],
        [port("action", None), port(names[1], None)],
    )
    return save(path, nodes, inputs, outputs, one=np.float32(1), nothing=np.float32(0))


@pytest.mark.parametrize(
    "names", [("h_in", "h_out"), ("hidden", "hidden_out"), ("h0", "hn"), ("state_in", "state_out")]
)
@pytest.mark.parametrize(
    "shapes",
    [(["n", 4], ["n", 2]), ([1, 4], [1, 2]), (["n", 4], [1, "n", 2]), ([4], [2]), ([None, 4], [1, None, 2])],
)
def test_memory_is_kept_for_each_episode_and_begins_at_zero(tmp_path, names, shapes):
    loaded = load_policy(counter(tmp_path / "p.onnx", names, shapes), STEER)
    policy = loaded.make()
    for _ in range(2):
        policy.begin(70)
        np.testing.assert_array_equal(policy.act(OBSERVATIONS[:70], np.arange(70)), np.ones((70, 2)))
        np.testing.assert_array_equal(policy.act(OBSERVATIONS[:2], np.array([3, 66])), np.full((2, 2), 2))
        np.testing.assert_array_equal(policy.act(OBSERVATIONS[:3], np.array([2, 3, 66]))[:, 0], [2, 3, 3])
    assert f"remembers for each episode: {names[0]} <- {names[1]}" in loaded.notes


def test_memory_with_other_names_is_asked_for_and_taken(tmp_path):
    uri = counter(tmp_path / "p.onnx", ("what", "ever"))
    with pytest.raises(PolicyError, match=r"inputs obs \(any, 4\), what \(any, 2\)") as caught:
        load_policy(uri, STEER)
    assert "?state=INPUT:OUTPUT" in caught.value.hint
    loaded = load_policy(f"{uri}?state=what:ever", STEER)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS, steps=3), np.full((100, 2), 3))
    with pytest.raises(UsageError, match="did you mean 'ever'"):
        load_policy(f"{uri}?state=what:evr", STEER)


def test_memory_of_unknown_size_is_refused(tmp_path):
    with pytest.raises(PolicyError, match=r"size of memory h_in \(any, any\) is not known"):
        load_policy(counter(tmp_path / "p.onnx", ("h_in", "h_out"), (["n", 4], ["n", "k"])), STEER)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 100])
def test_a_network_sees_64_rows_whatever_the_batch(tmp_path, count):
    nodes = [
        helper.make_node("Shape", ["obs"], ["size"], start=0, end=1),
        helper.make_node("Cast", ["size"], ["rows"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["obs", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "rows"], ["action"]),
    ]
    uri = save(
        tmp_path / "p.onnx", nodes, [port("obs", ["n", 4])], [port("action", ["n", 4])], zero=np.float32(0)
    )
    loaded = load_policy(uri, Spaces(STEER.observation, spaces.Box(-100, 100, (4,))))
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS[:count]), np.full((count, 4), 64))


def test_a_network_that_mixes_its_rows_runs_row_by_row(tmp_path):
    nodes = [
        helper.make_node("ReduceMean", ["obs"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Mul", ["obs", "mean"], ["action"]),
    ]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 4])], [port("action", ["n", 4])])
    loaded = load_policy(uri, Spaces(STEER.observation, spaces.Box(-100, 100, (4,))))
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), OBSERVATIONS**2)
    assert any("row by row" in note for note in loaded.notes)


def test_a_network_that_draws_its_actions_is_refused(tmp_path):
    nodes = [helper.make_node("RandomNormalLike", ["obs"], ["action"])]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 4])], [port("action", ["n", 4])])
    with pytest.raises(PolicyError, match="two different actions for the same observation"):
        load_policy(uri, Spaces(STEER.observation, spaces.Box(-100, 100, (4,))))


@pytest.mark.parametrize(
    ("spaces_", "message", "hint"),
    [
        (
            Spaces(spaces.Box(-1, 1, (5,)), CART.action),
            r"takes obs \(any, 4\), and an observation is Box",
            "wrapper",
        ),
        (Spaces(spaces.Box(-1, 1, (2,)), CART.action), r"takes obs \(any, 4\)", "4 is 2 times 2"),
        (
            Spaces(CART.observation, spaces.Discrete(3)),
            r"gives 2 number.*expected 1 or 3",
            "another environment",
        ),
    ],
)
def test_spaces_that_do_not_fit_are_told_when_it_is_loaded(tmp_path, spaces_, message, hint):
    with pytest.raises(PolicyError, match=message) as caught:
        load_policy(mlp(tmp_path / "p.onnx"), spaces_)
    assert hint in caught.value.hint


@pytest.mark.parametrize("last", ["Tanh", "Sin"])
def test_a_squashed_actor_is_noticed_and_rescaled_on_demand(tmp_path, last):
    nodes = [helper.make_node(last, ["obs"], ["x"]), helper.make_node("Identity", ["x"], ["action"])]
    uri = save(tmp_path / "p.onnx", nodes, [port("obs", ["n", 4])], [port("action", ["n", 4])])
    wide = Spaces(STEER.observation, spaces.Box(-3, 3, (4,)))
    plain, stretched = load_policy(uri, wide), load_policy(f"{uri}?rescale", wide)
    assert any("?rescale" in note for note in plain.notes) == (last == "Tanh")
    np.testing.assert_allclose(acts(stretched, OBSERVATIONS), 3 * acts(plain, OBSERVATIONS), atol=1e-5)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "p.onnx").write_text("<html>404 not found")
    with pytest.raises(PolicyError, match=r"p\.onnx cannot be read by onnx:"):
        load_policy(f"onnx:{tmp_path / 'p.onnx'}", CART)


def test_an_archive_gets_its_own_scheme(tmp_path):
    np.savez(tmp_path / "p.npz", W0=np.zeros((4, 2)))
    with pytest.raises(PolicyError, match="did you mean npz:"):
        load_policy(f"onnx:{tmp_path / 'p.npz'}", CART)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:Exporting a model")
def test_an_export_of_pytorch_acts_and_its_weights_beside_it_are_hashed(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("onnxscript", reason="needs onnxscript")
    module = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)).eval()
    digests = []
    for _ in range(2):
        batch = torch.export.Dim("batch", min=1, max=4096)
        torch.onnx.export(
            module, (torch.zeros(2, 4),), tmp_path / "p.onnx", dynamic_shapes=({0: batch},), verbose=False
        )
        loaded = load_policy(f"onnx:{tmp_path / 'p.onnx'}", STEER)
        with torch.no_grad():
            wanted = module(torch.from_numpy(OBSERVATIONS)).numpy()
            module[0].weight *= 2
        np.testing.assert_allclose(acts(loaded, OBSERVATIONS), wanted, rtol=1e-4, atol=1e-5)
        digests.append(loaded.sha256)
    assert digests[0] != digests[1]
    (tmp_path / "p.onnx.data").unlink()
    with pytest.raises(PolicyError, match=r"p\.onnx\.data"):
        load_policy(f"onnx:{tmp_path / 'p.onnx'}", STEER)
