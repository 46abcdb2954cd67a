"""Models saved by other versions of Python, gym, numpy and stable-baselines3, made by rewriting new ones."""

import base64
import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from gymnasium import Env, spaces

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.sb3 import load

sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
torch = pytest.importorskip("torch", reason="needs torch")

VECTOR = spaces.Box(-np.inf, np.inf, (4,), np.float32)
BUTTONS = spaces.Discrete(3)


class Still(Env):
    """Never moves."""

    def __init__(self, observation_space):
        self.observation_space, self.action_space = observation_space, BUTTONS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


def saved(path, policy="MlpPolicy", observation_space=VECTOR, **policy_kwargs):
    """A model whose actions vary, saved at `path`."""
    model = sb3.PPO(policy, Still(observation_space), seed=0, device="cpu", policy_kwargs=policy_kwargs)
    model.action_space.seed(0)  # its generator is stored with it
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in model.policy.parameters():
            weights += 0.2 * torch.randn(weights.shape, generator=generator)
    model.save(path)
    return model


def rewrite(path, weights=None, **changes):
    """Replace parameters, given as new JSON or as functions of their pickled bytes, and the weights."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    data = json.loads(contents["data"])
    for key, change in changes.items():
        if callable(change):
            change = {":type:": "", ":serialized:": base64.b64encode(change(_bytes(data[key]))).decode()}
        data[key] = change
    contents["data"] = json.dumps(data).encode()
    if weights is not None:
        buffer = io.BytesIO()
        torch.save(weights, buffer)
        contents["policy.pth"] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def _bytes(value):
    is_pickled = isinstance(value, dict) and ":serialized:" in value
    return base64.b64decode(value[":serialized:"]) if is_pickled else b""


def renamed(old, new):
    """The change of a pickle that puts module `new` for `old`."""

    def change(content):
        plain = pickle.dumps(pickle.loads(content), protocol=2)  # names end with their line
        assert old.encode() in plain
        return plain.replace(old.encode(), new.encode())

    return change


def unreadable(_content):
    return b"cno_such_module\nThing\n."


def acted(loaded, observations):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


def assert_acts_as(model, path, space=VECTOR, notes=()):
    found = load(str(path), Spaces(space, BUTTONS), trust=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 255, (100, *space.shape)) if space.dtype == np.uint8 else rng.normal(size=(100, 4))
    rows = rows.astype(space.dtype)
    wanted = np.array([model.predict(row, deterministic=True)[0] for row in rows])
    assert len(np.unique(wanted)) > 1
    np.testing.assert_array_equal(acted(found, rows), wanted)
    assert found.notes == notes
    return found


def test_what_is_not_needed_to_act_need_not_be_readable(tmp_path):
    path = tmp_path / "ppo.zip"
    model = saved(path)
    unneeded = ("clip_range", "lr_schedule", "rollout_buffer_class", "_last_obs", "ep_info_buffer")
    rewrite(path, **dict.fromkeys(unneeded, unreadable))
    assert assert_acts_as(model, path).recorded_return is None


def test_spaces_of_gym_are_read_as_those_of_gymnasium(tmp_path):
    path = tmp_path / "ppo.zip"
    model = saved(path)
    change = renamed("gymnasium.spaces", "gym.spaces")
    rewrite(path, observation_space=change, action_space=change)
    assert_acts_as(model, path)
    with pytest.raises(PolicyError, match="one of 3"):
        load(str(path), Spaces(VECTOR, spaces.Discrete(4)), trust=True)


def test_generators_and_arrays_of_other_numpys_are_read(tmp_path):
    path = tmp_path / "ppo.zip"
    model = saved(path)
    generator = renamed("numpy.random._pickle", "numpy.random._gone")
    arrays = renamed("numpy._core" if hasattr(np, "_core") else "numpy.core", "numpy.core")
    rewrite(path, action_space=generator, observation_space=arrays)
    assert_acts_as(model, path)


def test_spaces_that_cannot_be_read_are_those_of_the_environment(tmp_path):
    pictures = spaces.Box(0, 255, (40, 36, 3), np.uint8)
    notes = tuple(
        f"its {what} space cannot be read: taken to be that of the environment"
        for what in ("observation", "action")
    )
    for space, policy in ((VECTOR, "MlpPolicy"), (pictures, "CnnPolicy")):
        model = saved(tmp_path / "ppo.zip", policy, space)
        rewrite(tmp_path / "ppo.zip", observation_space=unreadable, action_space=unreadable)
        assert_acts_as(model, tmp_path / "ppo.zip", space, notes)


def test_parts_that_were_stored_once_are_shared_again(tmp_path):
    path = tmp_path / "ppo.zip"
    pictures = spaces.Box(0, 255, (40, 36, 3), np.uint8)
    model = saved(path, "CnnPolicy", pictures)
    weights = {
        name: tensor
        for name, tensor in model.policy.state_dict().items()
        if not name.startswith(("pi_features_extractor.", "vf_features_extractor."))
    }
    assert len(weights) < len(model.policy.state_dict())
    rewrite(path, weights=weights)
    assert_acts_as(model, path, pictures)


def test_layers_that_actor_and_critic_shared_come_first_in_both(tmp_path):
    path = tmp_path / "ppo.zip"
    model = saved(path, net_arch={"pi": [16, 8], "vf": [16, 12]})
    weights = {}
    for name, tensor in model.policy.state_dict().items():
        name = name.replace("mlp_extractor.policy_net.0", "mlp_extractor.shared_net.0")
        name = name.replace("policy_net.2", "policy_net.0").replace("value_net.2", "value_net.0")
        if "mlp_extractor.value_net.0" not in name or len(tensor) == 12:
            weights[name] = tensor
    rewrite(path, weights=weights, policy_kwargs={"net_arch": [16, {"pi": [8], "vf": [12]}]})
    assert_acts_as(model, path)


def test_architectures_within_a_list_are_taken_out(tmp_path):
    path = tmp_path / "ppo.zip"
    model = saved(path, net_arch={"pi": [16], "vf": [8]})
    rewrite(path, policy_kwargs={"net_arch": [{"pi": [16], "vf": [8]}]})
    assert_acts_as(model, path)


def test_classes_that_cannot_be_imported_are_named(tmp_path):
    saved(tmp_path / "ppo.zip")
    rewrite(tmp_path / "ppo.zip", policy_class=unreadable)
    with pytest.raises(
        PolicyError, match=r"policy_class in ppo\.zip needs the module 'no_such_module'"
    ) as caught:
        load(str(tmp_path / "ppo.zip"), Spaces(VECTOR, BUTTONS), trust=True)
    assert "PYTHONPATH" in caught.value.hint


def test_pickles_of_another_python_name_both_versions(tmp_path):
    saved(tmp_path / "ppo.zip")
    rewrite(tmp_path / "ppo.zip", policy_kwargs=lambda _content: b"cbuiltins\nint\n(Vx\ntR.")
    with pytest.raises(PolicyError, match=r"policy_kwargs in ppo\.zip cannot be read: ValueError") as caught:
        load(str(tmp_path / "ppo.zip"), Spaces(VECTOR, BUTTONS), trust=True)
    assert "saved with Python 3" in caught.value.hint


@pytest.mark.parametrize("change", ["missing", "unexpected", "other size"])
def test_weights_of_another_network_are_refused(tmp_path, change):
    weights = dict(saved(tmp_path / "ppo.zip").policy.state_dict())
    if change == "missing":
        del weights["action_net.bias"]
    else:
        weights["extra" if change == "unexpected" else "action_net.bias"] = torch.zeros(7)
    rewrite(tmp_path / "ppo.zip", weights=weights)
    with pytest.raises(PolicyError, match="cannot be built") as caught:
        load(str(tmp_path / "ppo.zip"), Spaces(VECTOR, BUTTONS), trust=True)
    assert sb3.__version__ in caught.value.hint


class Neighbourly(torch.nn.Flatten):
    """Not a map of single rows: subtracts the mean of the batch."""

    features_dim = 4

    def __init__(self, observation_space):
        super().__init__()

    def forward(self, rows):
        return rows - rows.mean(axis=0, keepdim=True) + 0.5 * rows[:1]


def test_networks_whose_rows_are_not_independent_run_row_by_row(tmp_path):
    model = saved(tmp_path / "ppo.zip", features_extractor_class=Neighbourly)
    note = ("runs row by row, since its rows of a batch depend on each other",)
    assert_acts_as(model, tmp_path / "ppo.zip", notes=note)
