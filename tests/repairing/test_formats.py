import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import UsageError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.uri import load_policy
from policyfuzz.repairing.files import policy_file
from policyfuzz.repairing.networks import Decision
from policyfuzz.repairing.states import States
from policyfuzz.repairing.training import outputs_of
from tests.repairing.planted_gaps import world

torch = pytest.importorskip("torch")

CHOICES = Spaces(spaces.Box(-2.0, 2.0, (2,), np.float32), spaces.Discrete(3))
NUMBERS = Spaces(spaces.Box(-2.0, 2.0, (2,), np.float32), spaces.Box(-1.0, 1.0, (3,), np.float32))
SEEN = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)


def target_with(uri, given=CHOICES):
    from dataclasses import replace

    loaded = load_policy(uri, given, trust=True)
    is_choice = given is CHOICES
    actions = ActionSpace.choices("abc") if is_choice else ActionSpace.box(-np.ones(3), np.ones(3))
    return replace(
        world(), policy=loaded.make, policy_uri=loaded.uri, policy_name=loaded.name, actions=actions
    )


def acted(target):
    policy = target.policy()
    policy.begin(len(SEEN))
    return policy.act(SEEN, np.arange(len(SEEN)))


def states():
    return States(SEEN, np.full((len(SEEN), 1), np.nan), np.zeros((len(SEEN), 1)))


def given_outputs(networks):
    return outputs_of(networks, networks.examples(states()))


def module():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def npz_uri(folder):
    np.savez(folder / "old.npz", **{name: one.numpy() for name, one in module().state_dict().items()})
    with np.load(folder / "old.npz") as stored:
        np.savez(folder / "old.npz", activation="tanh", **dict(stored))
    return f"npz:{folder / 'old.npz'}"


def onnx_uri(folder):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    weights = [one.detach().numpy() for one in module().parameters()]
    names = ("W0", "B0", "W1", "B1")
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "W0", "B0"], ["h"], transB=1),
        onnx.helper.make_node("Tanh", ["h"], ["t"]),
        onnx.helper.make_node("Gemm", ["t", "W1", "B1"], ["y"], transB=1),
    ]
    ports = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size])
        for name, size in (("x", 2), ("y", 3))
    ]
    stored = [onnx.numpy_helper.from_array(one, name) for one, name in zip(weights, names, strict=True)]
    graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], stored)
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save_model(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "old.onnx")
    return f"onnx:{folder / 'old.onnx'}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def torchscript_uri(folder):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(module()).save(str(folder / "old.ts"))
    return f"torchscript:{folder / 'old.ts'}"


FORMATS = {"npz": npz_uri, "onnx": onnx_uri, "torchscript": torchscript_uri}
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


@pytest.mark.parametrize("kind", FORMATS)
def test_scores_are_those_that_the_policy_acts_by(kind, tmp_path):
    target = target_with(FORMATS[kind](tmp_path))

    networks = policy_file(target).load()

    assert networks.decision is Decision.HIGHEST
    np.testing.assert_array_equal(given_outputs(networks).argmax(axis=1), acted(target))


@pytest.mark.parametrize("kind", FORMATS)
def test_changed_weights_are_written_to_the_same_kind_of_file(kind, tmp_path):
    file = policy_file(target_with(FORMATS[kind](tmp_path)))
    networks = file.load()
    before = given_outputs(networks)
    with torch.no_grad():
        for one in networks.parameters():
            one.add_(0.3 * torch.randn(one.shape, generator=torch.Generator().manual_seed(1)))
    out = tmp_path / f"new{file.suffix}"
    networks.write(out)

    target = target_with(file.uri(out))

    changed = given_outputs(networks)
    assert not np.allclose(before, changed)
    np.testing.assert_allclose(given_outputs(policy_file(target).load()), changed, atol=1e-6)
    np.testing.assert_array_equal(acted(target), changed.argmax(axis=1))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_weights_are_the_same_bytes(kind, tmp_path):
    file = policy_file(target_with(FORMATS[kind](tmp_path)))
    first, second = (tmp_path / f"{name}{file.suffix}" for name in ("first", "second"))

    for out in (first, second):
        file.load().write(out)

    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_numbers_are_those_that_the_policy_acts_by(kind, tmp_path):
    target = target_with(FORMATS[kind](tmp_path), NUMBERS)

    networks = policy_file(target).load()

    assert networks.decision is Decision.NUMBERS
    np.testing.assert_allclose(np.clip(given_outputs(networks), -1, 1), acted(target), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "is_choice"), [("PPO", True), ("PPO", False), ("DQN", True), ("SAC", False)]
)
def test_a_model_of_stable_baselines3_loads_there_again(algorithm, is_choice, tmp_path):
    library = pytest.importorskip("stable_baselines3")
    given = CHOICES if is_choice else NUMBERS
    model = getattr(library, algorithm)("MlpPolicy", _Still(given), policy_kwargs={"net_arch": [16]}, seed=0)
    model.save(tmp_path / "old.zip")
    file = policy_file(target_with(f"sb3:{tmp_path / 'old.zip'}", given))
    networks = file.load()
    with torch.no_grad():
        for one in networks.parameters():
            one.add_(0.3 * torch.randn(one.shape, generator=torch.Generator().manual_seed(1)))
    networks.write(tmp_path / "new.zip")

    target = target_with(file.uri(tmp_path / "new.zip"), given)

    new = getattr(library, algorithm).load(tmp_path / "new.zip")
    expected, _ = new.predict(SEEN, deterministic=True)
    np.testing.assert_allclose(acted(target), expected, atol=1e-5)
    assert not np.allclose(acted(target), model.predict(SEEN, deterministic=True)[0])
    shapes = [{name: one.shape for name, one in some.policy.state_dict().items()} for some in (model, new)]
    assert shapes[0] == shapes[1]


def _Still(given):  # noqa: N802 - used like a class
    import gymnasium

    class Still(gymnasium.Env):
        observation_space, action_space = given.observation, given.action

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}

        def step(self, action):
            return np.zeros(2, np.float32), 0.0, False, True, {}

    return Still()


def test_a_policy_that_is_code_is_refused_kindly():
    from dataclasses import replace

    target = replace(world(), policy_uri="py:policy.py:act", policy_name="py:policy.py:act")

    with pytest.raises(UsageError, match="nobody knows how to write") as refused:
        policy_file(target)
    assert "export --what minari" in refused.value.hint


def test_an_onnx_network_with_other_operators_is_refused_kindly(tmp_path):
    uri = onnx_uri(tmp_path)
    import onnx

    model = onnx.load_model(uri.partition(":")[2])
    model.graph.node[1].op_type = "Erf"
    onnx.save_model(model, uri.partition(":")[2])

    with pytest.raises(UsageError, match="operators Erf"):
        policy_file(target_with(uri))
