import sys

import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.errors import PolicyError, TargetCodeError, UsageError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.spaces import sample_observations
from policyfuzz.policies.uri import load_policy

CART = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Discrete(2))
STEER = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Box(-1, 1, (1,)))
OBSERVATIONS = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _own_path(monkeypatch):
    """Loading a file makes its folder importable; not for the next test."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def code(tmp_path):
    """Writes a file of the user's and gives the URI of a name in it."""

    def write(text, name="act"):
        (tmp_path / "controller.py").write_text("import numpy as np\n" + text)
        return f"py:{tmp_path / 'controller.py'}:{name}"

    return write


def acts(loaded, observations=OBSERVATIONS):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


BALANCE = (OBSERVATIONS[:, 2] > 0).astype(int)

BATCH = {
    "columns": "def act(obs): return (obs[:, 2] > 0).astype(int)",
    "product": "def act(obs): return obs @ np.array([[0, 0], [0, 0], [-1, 1], [0, 0]])",
    "tuple": "def act(obs): return (obs[:, 2] > 0).astype(int), None",
    "lambda": "act = lambda obs: np.where(obs[:, 2] > 0, 1, 0)",
    "list": "def act(obs): return [int(row[2] > 0) for row in obs]",
}
SINGLE = {
    "number": "def act(obs): return 1 if obs[2] > 0 else 0",
    "truth": "def act(obs): return obs[2] > 0",
    "unpacked": "def act(obs):\n    x, v, angle, w = obs\n    return int(angle > 0)",
    "scores": "def act(obs): return np.array([-obs[2], obs[2]])",
    "list": "def act(obs): return [int(obs[2] > 0)]",
    "annotated": "def act(obs: 'np.ndarray', /) -> int: return int(obs[2] > 0)",
    "tensor": "import torch\ndef act(obs): return (torch.tensor(obs, requires_grad=True) * 1)[2:3] > 0",
}


@pytest.mark.parametrize("name", BATCH)
def test_a_function_of_a_batch_is_recognised(code, name):
    loaded = load_policy(code(BATCH[name]), CART)
    assert loaded.notes[0] == "takes a batch of observations"
    np.testing.assert_array_equal(acts(loaded), BALANCE)


@pytest.mark.parametrize("name", SINGLE)
def test_a_function_of_one_observation_is_recognised(code, name):
    if name == "tensor":
        pytest.importorskip("torch", reason="needs torch")
    loaded = load_policy(code(SINGLE[name]), CART)
    assert loaded.notes == ("takes one observation at a time",)
    np.testing.assert_array_equal(acts(loaded), BALANCE)


@pytest.mark.parametrize("width", [2, 61, 64])
def test_one_observation_is_not_mistaken_for_a_batch_of_its_width(code, width):
    loaded = load_policy(
        code("def act(obs): return obs[0]"), Spaces(spaces.Box(-1, 1, (width,)), spaces.Box(-1, 1, (1,)))
    )
    assert loaded.notes == ("takes one observation at a time",)


def test_a_function_that_would_mix_rows_gets_one_observation(code):
    box = spaces.Box(-10, 10, (4,))
    loaded = load_policy(code("def act(obs): return obs / np.abs(obs).max()"), Spaces(box, box))
    assert loaded.notes == ("takes one observation at a time",)
    np.testing.assert_array_equal(
        acts(loaded), OBSERVATIONS / np.abs(OBSERVATIONS).max(axis=1, keepdims=True)
    )


def test_the_way_can_be_said_instead(code):
    uri = code("def act(obs): return np.tanh(obs.sum(-1))")
    batch, single = (load_policy(f"{uri}?{way}", STEER) for way in ("batch", "single"))
    assert batch.notes[0] == "takes a batch of observations"
    assert single.notes == ("takes one observation at a time",)
    assert single.uri == f"{uri}?single"
    np.testing.assert_allclose(acts(batch), acts(single), rtol=1e-6)
    with pytest.raises(PolicyError, match="both batch and single"):
        load_policy(f"{uri}?batch&single", STEER)
    with pytest.raises(UsageError, match="did you mean 'single'"):
        load_policy(f"{uri}?singel", STEER)


def test_a_batch_that_was_promised_must_come(code):
    with pytest.raises(PolicyError, match=r"result of shape \(\) for 64 observations") as caught:
        load_policy(code("def act(obs): return 0") + "?batch", CART)
    assert "?single" in caught.value.hint


def test_rows_of_a_batch_do_not_depend_on_each_other(code):
    text = "W = np.random.default_rng(0).normal(size=(4, 300)).astype('f4')\n"
    loaded = load_policy(code(text + "def act(obs): return np.tanh(obs @ W).sum(1) / 300"), STEER)
    alone = np.concatenate([acts(loaded, OBSERVATIONS[row : row + 1]) for row in range(100)])
    np.testing.assert_array_equal(acts(loaded), alone)


@pytest.mark.parametrize("way", ["", "?batch", "?single"])
def test_code_that_writes_into_its_observations_harms_nobody(code, way):
    before = OBSERVATIONS.copy()
    loaded = load_policy(code("def act(obs):\n    obs *= 0\n    return obs[..., :2]") + way, CART)
    acts(loaded, OBSERVATIONS[:64])
    np.testing.assert_array_equal(OBSERVATIONS, before)


# memory

COUNTS = np.arange(1, 4)


def counted(loaded):
    """Actions in three steps of an episode that began second; the other one begins, and waits."""
    policy = loaded.make()
    for _ in range(2):
        policy.begin(2)
        policy.act(OBSERVATIONS[:1], np.array([0]))
        counts = [policy.act(OBSERVATIONS[:1], np.array([1]))[0] for _ in range(3)]
    return np.ravel(counts)


COUNTING = {
    "function": "def act(obs, state):\n    state = (state or 0) + 1\n    return state, state",
    "default": "def act(obs, state=None):\n    state = (state or 0) + 1\n    return state, state",
    "reset": """
class act:
    def reset(self): self.count = 0
    def act(self, obs):
        self.count += 1
        return self.count
""",
    "object": """
class Counter:
    def reset(self): self.count = 0
    def predict(self, obs):
        self.count += 1
        return self.count
act = Counter()
""",
    "reset and state": """
class act:
    def reset(self): pass
    def predict(self, obs, state): return (state or 0) + 1, (state or 0) + 1
""",
    "protocol": """
class act:
    def begin(self, count): self.counts = np.zeros(count, int)
    def act(self, observations, rows):
        self.counts[rows] += 1
        return self.counts[rows]
""",
}


@pytest.mark.parametrize("name", COUNTING)
def test_memory_is_kept_for_each_episode(code, name):
    loaded = load_policy(code(COUNTING[name]), Spaces(CART.observation, spaces.Discrete(9)))
    np.testing.assert_array_equal(counted(loaded), COUNTS)


@pytest.mark.parametrize(
    "text",
    [
        "rng = np.random.default_rng()\ndef act(obs): return rng.random()",
        "rng = np.random.default_rng()\ndef act(obs): return rng.random(len(obs[:, 0]))",
        "count = [0]\ndef act(obs):\n    count[0] += 1\n    return count[0] / 1000",
    ],
)
def test_an_action_that_is_not_of_the_observation_alone_is_refused(code, text):
    with pytest.raises(PolicyError, match="two different actions for the same observation"):
        load_policy(code(text), STEER)


def test_a_state_must_be_returned(code):
    with pytest.raises(PolicyError, match=r"takes a state and returned int, expected \(action, state\)"):
        load_policy(code("def act(obs, state): return 0"), CART)


# what makes policies


def test_a_factory_is_given_the_spaces_it_asks_for(code):
    text = "def act(action_space, scale=1):\n    return lambda obs: np.full(len(obs), action_space.n - 1)"
    np.testing.assert_array_equal(acts(load_policy(code(text), CART)), np.ones(100))


def test_each_policy_of_the_protocol_is_made_anew(code):
    loaded = load_policy(code(COUNTING["protocol"]), Spaces(CART.observation, spaces.Discrete(9)))
    assert loaded.make() is not loaded.make()


def test_a_predict_that_can_be_deterministic_is(code):
    text = """
class act:
    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        return (np.asarray(obs)[..., 2] > 0) if deterministic else np.random.default_rng().integers(2), state
"""
    np.testing.assert_array_equal(acts(load_policy(code(text), CART)), BALANCE)


def test_a_method_of_an_object_can_be_named(code):
    text = "class Agent:\n    def choose(self, obs): return int(obs[2] > 0)\nagent = Agent()"
    np.testing.assert_array_equal(acts(load_policy(code(text, "agent.choose"), CART)), BALANCE)


def test_a_pytorch_module_acts(code):
    torch = pytest.importorskip("torch", reason="needs torch")
    text = """
import torch
def act():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(), torch.nn.Linear(16, 2))
"""
    loaded = load_policy(code(text), CART)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Dropout(), torch.nn.Linear(16, 2)).eval()
    np.testing.assert_array_equal(acts(loaded), module(torch.from_numpy(OBSERVATIONS)).argmax(1).numpy())


@pytest.mark.parametrize(("text", "verb"), [("def act(): return 3", "returned"), ("act = 3", "is")])
def test_what_is_no_policy_is_told(code, text, verb):
    with pytest.raises(PolicyError, match=f"{verb} int, expected an object with begin"):
        load_policy(code(text), CART)


def test_a_policy_that_gives_too_few_actions_is_told(code):
    text = "class act:\n    def begin(self, count): pass\n    def act(self, observations, rows): return 0"
    with pytest.raises(PolicyError, match=r"actions of shape \(\) for 2 observations"):
        load_policy(code(text), CART)


# dictionaries and other observations

ROOM = Spaces(
    spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "direction": spaces.Discrete(4)}),
    spaces.Discrete(4),
)


@pytest.mark.parametrize(
    "text",
    [
        "def act(obs):\n    assert obs['image'].shape == (2, 2)\n    return dict(obs)['direction']",
        "def act(obs):\n    assert obs['image'].ndim == 3\n    return dict(obs)['direction']",
    ],
)
def test_dictionaries_come_as_such(code, text):
    seen = sample_observations(ROOM.observation, 10)
    np.testing.assert_array_equal(acts(load_policy(code(text), ROOM), seen), seen["direction"])


def test_whole_numbers_come_as_such(code):
    table = Spaces(spaces.Discrete(5), spaces.Discrete(5))
    single = load_policy(code("def act(obs): return {0: 4, 1: 3, 2: 2, 3: 1, 4: 0}[obs]"), table)
    batch = load_policy(code("def act(obs): return np.arange(5)[::-1][obs]"), table)
    for loaded in (single, batch):
        np.testing.assert_array_equal(acts(loaded, np.arange(5)), [4, 3, 2, 1, 0])


# where the code is


def test_the_uri_of_a_file_is_absolute_and_its_content_hashed(code, tmp_path, monkeypatch):
    code(SINGLE["number"])
    monkeypatch.chdir(tmp_path)
    first = load_policy("py:controller.py:act", CART)
    assert first.uri == f"py:{tmp_path / 'controller.py'}:act"
    assert first.name == "py:controller.py:act"
    code(SINGLE["number"].replace("1 if", "0 if"))  # as long, and within the same second
    second = load_policy(first.uri, CART)
    assert second.sha256 != first.sha256
    assert acts(second).sum() == 0


def test_what_lies_beside_the_file_can_be_imported(code, tmp_path):
    (tmp_path / "gains_of_mine.py").write_text("K = 2")
    try:
        loaded = load_policy(code("from gains_of_mine import K\ndef act(obs): return int(obs[K] > 0)"), CART)
    finally:
        sys.modules.pop("gains_of_mine", None)
    np.testing.assert_array_equal(acts(loaded), BALANCE)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of the user's and makes it importable."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text):
        (tmp_path / "brain_of_mine.py").write_text(text)

    yield write
    sys.modules.pop("brain_of_mine", None)


def test_a_module_is_imported_and_hashed(module, tmp_path):
    module(SINGLE["number"])
    loaded = load_policy("py:brain_of_mine:act", CART)
    assert loaded.uri == "py:brain_of_mine:act"
    np.testing.assert_array_equal(acts(loaded), BALANCE)
    sys.modules.pop("brain_of_mine")
    module(SINGLE["number"] + "  # changed")
    assert load_policy("py:brain_of_mine:act", CART).sha256 != loaded.sha256


def test_module_of_the_current_folder_is_found_after_all_others(tmp_path, monkeypatch):
    (tmp_path / "brain_elsewhere.py").write_text(SINGLE["number"])
    (tmp_path / "json.py").write_text("raise AssertionError('searched first')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [item for item in sys.path if item])
    np.testing.assert_array_equal(acts(load_policy("py:brain_elsewhere:act", CART)), BALANCE)
    assert sys.path[-1] == ""


def test_file_beside_a_policy_replaces_no_module_and_is_told_if_it_was_meant(tmp_path):
    (tmp_path / "zipapp.py").write_text("def double(x): return 2 * x")
    (tmp_path / "doubled.py").write_text("from zipapp import double")
    with pytest.raises(PolicyError, match="cannot import name 'double'") as refused:
        load_policy(f"py:{tmp_path / 'doubled.py'}:act", CART)
    assert "zipapp.py" in refused.value.hint
    assert "rename" in refused.value.hint


@pytest.mark.parametrize(
    ("uri", "message", "hint"),
    [
        ("py:no_such_module_here:act", "No module named 'no_such_module_here'", "PYTHONPATH"),
        ("py:controller.py", "names no function", "add the function: py:controller.py:FUNCTION"),
        ("py:package.module.act", "names no function", "did you mean py:package.module:act?"),
        ("py:act", "names no function", "py:MODULE:FUNCTION"),
        ("py:none.py:act", r"no file .*none\.py", ""),
    ],
)
def test_code_that_cannot_be_found_is_told(uri, message, hint):
    with pytest.raises(PolicyError, match=message) as caught:
        load_policy(uri, CART)
    assert hint in caught.value.hint


def test_a_name_that_does_not_exist_gets_a_did_you_mean(code):
    with pytest.raises(PolicyError, match=r"controller\.py has no 'actt'") as caught:
        load_policy(code(SINGLE["number"], "actt"), CART)
    assert caught.value.hint == "did you mean 'act'?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1 / 0", r"ZeroDivisionError: division by zero \(.*controller\.py:3\)"),
        ("def act(obs)\n    return 0", r"expected ':' \(.*controller\.py:2\)"),
        ("import no_such_thing_here", r"No module named 'no_such_thing_here' \(.*controller\.py:2\)"),
        ("raise SystemExit(1)", "ends the program"),
    ],
)
def test_code_that_cannot_be_imported_is_told_with_its_line(code, text, message):
    with pytest.raises(PolicyError, match=message):
        load_policy(code(text), CART)


def test_a_function_that_breaks_is_told_with_its_line(code):
    where = r"NameError: name 'gain' is not defined \(.*controller\.py:3\)$"
    with pytest.raises(TargetCodeError, match=where) as caught:
        load_policy(code("def act(obs):\n    return gain * obs"), CART)
    assert caught.value.message.startswith("the code of policy py:")


def test_a_function_that_can_be_called_neither_way_is_told_both_reasons(code):
    both = r"too many indices .*controller\.py:2\); that was for one observation, and for a batch: .*matmul"
    with pytest.raises(TargetCodeError, match=both):
        load_policy(code("def act(obs): return obs[:, :3] @ np.ones((4, 2))"), CART)


def test_a_function_that_breaks_later_is_blamed(code):
    loaded = load_policy(code("def act(obs):\n    assert obs[0] < 99\n    return 0"), CART)
    with pytest.raises(TargetCodeError, match=r"policy py:.* raised AssertionError.*controller\.py:3"):
        acts(loaded, np.full((1, 4), 100.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def act(obs): pass", "returned nothing, expected an action"),
        ("def act(obs): return 'left'", "returned str, expected an action"),
        ("def act(obs): return 7", "gave 7 as an action, which is not in Discrete"),
        ("def act(obs): return np.zeros(3)", r"gives 3 number\(s\) for an observation, expected 1 or 2"),
        ("def act(obs): return float('nan')", "NaN"),
    ],
)
def test_a_result_that_is_no_action_is_told_when_it_is_loaded(code, text, message):
    with pytest.raises(PolicyError, match=message):
        load_policy(code(text), CART)


# tuples

HANDS = Spaces(
    spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2)]), spaces.Discrete(2)
)
HAND = """
def act(observation):
    mine, dealer, has_ace = observation
    return int(mine < 17)
"""
HANDS_AT_ONCE = """
def act(observations):
    mine, dealer, has_ace = observations
    return (mine < 17).astype(int)
"""


@pytest.mark.parametrize("code", [HAND, HANDS_AT_ONCE])
def test_tuples_are_given_as_tuples(tmp_path, code):
    (tmp_path / "hand.py").write_text(code)
    policy = load_policy(f"py:{tmp_path / 'hand.py'}:act", HANDS).make()
    seen = np.zeros(3, [("0", np.int64), ("1", np.int64), ("2", np.int64)])
    seen["0"] = [12, 17, 16]
    policy.begin(3)
    assert policy.act(seen, np.arange(3)).tolist() == [1, 0, 1]
