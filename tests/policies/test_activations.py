"""Hidden activations of all kinds of networks: what they are, and that reading them changes nothing."""

import pickle
from contextlib import nullcontext

import cloudpickle
import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.activations import NoActivations, act_and_activations, activations_of
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.python import maker
from policyfuzz.policies.python_calls import FunctionPolicy
from policyfuzz.policies.uri import load_policy

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.*` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
]
STEER = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Box(-100, 100, (2,)))
RNG = np.random.default_rng(0)
FIRST, SECOND, THIRD = (RNG.normal(size=shape).astype(np.float32) / 2 for shape in ((4, 6), (6, 64), (64, 2)))
BACK = RNG.normal(size=(6, 6)).astype(np.float32) / 2
STEPS = RNG.normal(size=(3, 100, 4)).astype(np.float32)


def by_hand(observations):
    first = np.tanh(observations @ FIRST)
    return np.concatenate([first, np.maximum(first @ SECOND, 0)], axis=1)


def read_and_act(make, is_read=True):
    """Activations and actions of three steps, in which a third of the episodes ends after the first."""
    policy = make()
    policy.begin(100)
    rows, found, actions = np.arange(100), [], []
    for step in STEPS:
        if is_read:
            found.append(policy.activations(step[rows], rows))
            np.testing.assert_array_equal(found[-1].values, policy.activations(step[rows], rows).values)
        actions.append(policy.act(step[rows], rows))
        rows = rows[rows % 3 > 0]
    return found, actions


def reading_changes_nothing(make):
    found, read = read_and_act(make)
    _, unread = read_and_act(make, is_read=False)
    for one, other in zip(read, unread, strict=True):
        assert one.tobytes() == other.tobytes()
    return found


def one_pass_gives_both(make):
    """Actions and activations of one call are those of two, at every step, to the last bit."""
    inside, actions = read_and_act(make)
    policy = make()
    policy.begin(100)
    rows = np.arange(100)
    for step, activations, acted in zip(STEPS, inside, actions, strict=True):
        both = act_and_activations(policy, step[rows], rows)
        assert both[0].tobytes() == acted.tobytes()
        assert both[1].values.tobytes() == activations.values.tobytes()
        assert both[1].layers == activations.layers
        rows = rows[rows % 3 > 0]


def rows_stay_apart(make):
    policy = make()
    policy.begin(100)
    together = policy.activations(STEPS[0], np.arange(100)).values
    for rows in ([0], [99], [5, 3, 4], np.arange(99, 20, -1)):
        some = policy.activations(STEPS[0][rows], np.array(rows)).values
        np.testing.assert_array_equal(some, together[rows])


def check_perceptron(make):
    found = reading_changes_nothing(make)
    one_pass_gives_both(make)
    rows_stay_apart(make)
    assert [(layer.name, layer.width) for layer in found[0].layers] == [("hidden 1", 6), ("hidden 2", 64)]
    np.testing.assert_allclose(found[0].values, by_hand(STEPS[0]), rtol=1e-5, atol=1e-5)


def check_memory(make):
    found = reading_changes_nothing(make)
    one_pass_gives_both(make)
    first = np.tanh(STEPS[0] @ FIRST)
    rows = np.flatnonzero(np.arange(100) % 3)
    np.testing.assert_allclose(found[0].values, first, rtol=1e-5, atol=1e-5)
    second = np.tanh(STEPS[1][rows] @ FIRST + first[rows] @ BACK)
    np.testing.assert_allclose(found[1].values, second, rtol=1e-5, atol=1e-5)


def test_npz(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, W0=FIRST, W1=BACK, W2=FIRST.T[:, :2], activation="tanh")
    make = load_policy(f"npz:{path}", STEER).make
    found = reading_changes_nothing(make)
    one_pass_gives_both(make)
    rows_stay_apart(make)
    first = np.tanh(STEPS[0].astype(np.float64) @ FIRST)
    np.testing.assert_allclose(found[0].values, np.hstack([first, np.tanh(first @ BACK)]), rtol=1e-9)


def test_one_layer_alone_has_no_activations(tmp_path):
    np.savez(tmp_path / "p.npz", W0=FIRST[:, :2])
    policy = load_policy(f"npz:{tmp_path / 'p.npz'}", STEER).make()
    with pytest.raises(NoActivations, match="no layer with weights behind another"):
        policy.activations(STEPS[0], np.arange(100))
    with pytest.raises(NoActivations):
        act_and_activations(policy, STEPS[0], np.arange(100))


@pytest.mark.parametrize("way", ["batch", "single"])
def test_a_function_is_told_that_it_has_none(way):
    make, _ = maker(lambda observations: observations[..., :2], STEER, "mine", way)
    policy = make()
    policy.begin(100)
    with pytest.raises(NoActivations, match=r"can(not)? be read") as caught:
        activations_of(policy, STEPS[0], np.arange(100))
    assert "observations instead" in caught.value.hint


def test_an_object_that_only_acts_is_told_that_it_has_none():
    with pytest.raises(NoActivations, match="FunctionPolicy"):
        activations_of(FunctionPolicy(lambda seen: seen), STEPS[0], np.arange(100))


class TestTorch:
    @pytest.fixture(autouse=True)
    def needed(self, request):
        request.cls.torch = pytest.importorskip("torch", reason="needs torch")

    @classmethod
    def linear(cls, weights):
        layer = cls.torch.nn.Linear(*weights.shape, bias=False)
        layer.weight.data = cls.torch.from_numpy(np.ascontiguousarray(weights.T))
        return layer

    @classmethod
    def perceptron(cls):
        nn = cls.torch.nn
        layers = map(cls.linear, (FIRST, SECOND, THIRD))
        parts = zip(layers, (nn.Tanh(), nn.ReLU(inplace=True), nn.Identity()), strict=True)
        return nn.Sequential(*(one for pair in parts for one in pair)).eval()

    @classmethod
    def memory(cls):
        torch, linear = cls.torch, cls.linear

        class Memory(torch.nn.Module):
            """Functions instead of layers for activations, and a critic that nobody asks for."""

            def __init__(self):
                super().__init__()
                self.first, self.back = linear(FIRST), linear(BACK)
                self.head, self.critic = linear(FIRST.T[:, :2].copy()), linear(FIRST.T[:, :1].copy())

            def forward(self, obs: torch.Tensor, state: torch.Tensor):
                state = torch.tanh(self.first(obs) + self.back(state))
                return self.head(state), state

            @torch.jit.export
            def initial_state(self, batch: int):
                return torch.zeros(batch, 6)

        return Memory().eval()

    def stored(self, tmp_path, module):
        path = tmp_path / "p.ts"
        self.torch.jit.save(self.torch.jit.script(module), path)
        return load_policy(f"torchscript:{path}", STEER, trust=True).make

    def test_module(self):
        check_perceptron(maker(self.perceptron(), STEER, "mine", None)[0])

    def test_module_with_memory(self):
        check_memory(maker(self.memory(), STEER, "mine", None)[0])

    def test_torchscript(self, tmp_path):
        check_perceptron(self.stored(tmp_path, self.perceptron()))

    def test_torchscript_with_memory(self, tmp_path):
        check_memory(self.stored(tmp_path, self.memory()))

    def test_frozen_torchscript_has_no_parameters_left_and_shows_the_same(self, tmp_path):
        frozen = self.torch.jit.freeze(self.torch.jit.script(self.perceptron()))
        self.torch.jit.save(frozen, tmp_path / "p.ts")
        check_perceptron(load_policy(f"torchscript:{tmp_path / 'p.ts'}", STEER, trust=True).make)

    @pytest.mark.slow
    @pytest.mark.parametrize("rows", [None, 3])
    def test_exported_program(self, tmp_path, rows):
        torch = self.torch
        shapes = None if rows else ({0: torch.export.Dim("batch", min=1, max=1024)},)
        program = torch.export.export(self.perceptron(), (torch.zeros(rows or 5, 4),), dynamic_shapes=shapes)
        torch.export.save(program, tmp_path / "p.pt2")
        check_perceptron(load_policy(f"torchscript:{tmp_path / 'p.pt2'}", STEER, trust=True).make)

    def test_weights_on_the_left_of_what_they_are_given(self):
        torch = self.torch

        class Turned(torch.nn.Module):
            """Rows lie on the second axis inside, and a layer is as wide as a block is long."""

            def __init__(self):
                super().__init__()
                for name, weights in (("first", FIRST), ("second", SECOND), ("third", THIRD)):
                    setattr(self, name, torch.nn.Parameter(torch.from_numpy(weights.T.copy())))

            def forward(self, obs):
                hidden = torch.relu(self.second @ torch.tanh(self.first @ obs.T))
                return (self.third @ hidden).T

        check_perceptron(maker(Turned(), STEER, "mine", None)[0])

    def test_what_two_layers_are_given_counts_once(self):
        torch, linear = self.torch, self.linear

        class Heads(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.left, self.right = linear(FIRST), linear(BACK[:, :1]), linear(BACK[:, 1:2])

            def forward(self, obs):
                hidden = torch.tanh(self.first(obs))
                return torch.cat([self.left(hidden), self.right(hidden)], dim=1)

        found, _ = read_and_act(maker(Heads(), STEER, "mine", None)[0])
        np.testing.assert_allclose(found[0].values, np.tanh(STEPS[0] @ FIRST), rtol=1e-5, atol=1e-5)

    def test_a_copy_in_another_process_shows_the_same(self, tmp_path):
        make = self.stored(tmp_path, self.perceptron())
        found, _ = read_and_act(make)
        again, _ = read_and_act(pickle.loads(cloudpickle.dumps(make)))
        np.testing.assert_array_equal(found[2].values, again[2].values)


class TestOnnx:
    @pytest.fixture(autouse=True)
    def needed(self, request):
        request.cls.onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
        pytest.importorskip("onnxruntime", reason="needs the extra onnx")

    @pytest.fixture(autouse=True)
    def tried_in_this_process(self, monkeypatch):
        from policyfuzz.policies import onnx as adapter

        monkeypatch.setattr(
            adapter, "TrialSession", lambda content, _name: nullcontext(adapter.Session(content))
        )

    def save(self, path, nodes, inputs, outputs, **weights):
        helper, numpy_helper = self.onnx.helper, self.onnx.numpy_helper

        def port(name, shape):
            return helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape)

        tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
        made = [helper.make_node(kind, given, [result]) for kind, given, result in nodes]
        ports = [[port(*one) for one in side.items()] for side in (inputs, outputs)]
        graph = helper.make_graph(made, "policy", *ports, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        self.onnx.save(model, path)
        return load_policy(f"onnx:{path}", STEER).make

    @pytest.mark.parametrize("rows", ["batch", 3, 1])
    def test_perceptron(self, tmp_path, rows):
        nodes = [
            ("Identity", ["obs"], "seen"),
            ("MatMul", ["seen", "A"], "x"),
            ("Tanh", ["x"], "h"),
            ("MatMul", ["h", "B"], "y"),
            ("Relu", ["y"], "g"),
            ("MatMul", ["g", "C"], "action"),
            ("MatMul", ["y", "C"], "value"),  # of a critic, which is given something else
        ]
        ports = {"action": (rows, 2), "value": (rows, 2)}
        check_perceptron(
            self.save(tmp_path / "p.onnx", nodes, {"obs": (rows, 4)}, ports, A=FIRST, B=SECOND, C=THIRD)
        )

    def test_memory(self, tmp_path):
        nodes = [
            ("MatMul", ["obs", "A"], "x"),
            ("MatMul", ["h_in", "U"], "back"),
            ("Add", ["x", "back"], "sum"),
            ("Tanh", ["sum"], "h_out"),
            ("MatMul", ["h_out", "V"], "action"),
        ]
        inputs = {"obs": ("batch", 4), "h_in": ("batch", 6)}
        outputs = {"action": ("batch", 2), "h_out": ("batch", 6)}
        head = FIRST.T[:, :2].copy()
        check_memory(self.save(tmp_path / "p.onnx", nodes, inputs, outputs, A=FIRST, U=BACK, V=head))

    def test_a_copy_in_another_process_shows_the_same(self, tmp_path):
        nodes = [("MatMul", ["obs", "A"], "x"), ("MatMul", ["x", "U"], "action")]
        weights = {"A": FIRST, "U": BACK[:, :2].copy()}
        inputs, outputs = {"obs": ("batch", 4)}, {"action": ("batch", 2)}
        make = self.save(tmp_path / "p.onnx", nodes, inputs, outputs, **weights)
        found, _ = read_and_act(make)
        again, _ = read_and_act(pickle.loads(cloudpickle.dumps(make)))
        np.testing.assert_array_equal(found[2].values, again[2].values)


class TestStableBaselines:
    @pytest.fixture(autouse=True)
    def needed(self, request):
        request.cls.sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
        request.cls.contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")

    def stored(self, tmp_path, algorithm, policy, action, **options):
        from gymnasium import Env

        class Room(Env):
            observation_space, action_space = spaces.Box(-np.inf, np.inf, (4,), np.float32), action

        model = algorithm(policy, Room(), seed=0, device="cpu", **options)
        model.save(tmp_path / "model.zip")
        made = load_policy(f"sb3:{tmp_path / 'model.zip'}", Spaces(Room.observation_space, action), True).make
        weights = {name: tensor.numpy() for name, tensor in model.policy.state_dict().items()}

        def layer(name, values):
            return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

        return made, layer, weights

    def check(self, make, expected):
        found = reading_changes_nothing(make)
        rows_stay_apart(make)
        np.testing.assert_allclose(found[0].values, expected, rtol=1e-4, atol=1e-5)

    def test_ppo(self, tmp_path):
        make, layer, _ = self.stored(
            tmp_path, self.sb3.PPO, "MlpPolicy", spaces.Discrete(3), policy_kwargs={"net_arch": [16, 8]}
        )
        first = np.tanh(layer("mlp_extractor.policy_net.0", STEPS[0]))
        second = np.tanh(layer("mlp_extractor.policy_net.2", first))
        self.check(make, np.hstack([first, second]))

    def test_sac_whose_two_heads_are_given_the_same(self, tmp_path):
        make, layer, _ = self.stored(
            tmp_path,
            self.sb3.SAC,
            "MlpPolicy",
            spaces.Box(-1, 1, (2,), np.float32),
            policy_kwargs={"net_arch": [16]},
            buffer_size=10,
        )
        self.check(make, np.maximum(layer("actor.latent_pi.0", STEPS[0]), 0))

    @pytest.mark.slow
    def test_recurrent_ppo(self, tmp_path):
        make, layer, weights = self.stored(
            tmp_path,
            self.contrib.RecurrentPPO,
            "MlpLstmPolicy",
            spaces.Discrete(3),
            policy_kwargs={"net_arch": [8], "lstm_hidden_size": 5},
        )

        def core(values, hidden, cell):
            parts = values @ weights["lstm_actor.weight_ih_l0"].T + weights["lstm_actor.bias_ih_l0"]
            parts += hidden @ weights["lstm_actor.weight_hh_l0"].T + weights["lstm_actor.bias_hh_l0"]
            enter, forget, content, leave = np.split(parts, 4, axis=1)
            enter, forget, leave = (1 / (1 + np.exp(-gate)) for gate in (enter, forget, leave))
            cell = forget * cell + enter * np.tanh(content)
            return leave * np.tanh(cell), cell

        found = reading_changes_nothing(make)
        rows_stay_apart(make)
        hidden = cell = np.zeros((100, 5))
        for step, activations in zip(STEPS[:2], found, strict=False):
            rows = np.arange(100) if activations is found[0] else np.flatnonzero(np.arange(100) % 3)
            hidden, cell = core(step, hidden, cell)
            units = np.tanh(layer("mlp_extractor.policy_net.0", hidden))
            np.testing.assert_allclose(
                activations.values, np.hstack([hidden, units])[rows], rtol=1e-4, atol=1e-5
            )
