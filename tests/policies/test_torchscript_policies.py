import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.spaces import sample_observations
from policyfuzz.policies.uri import load_policy

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:`torch.jit.(script|trace|trace_method|save)` is deprecated:DeprecationWarning"
    ),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
]
CART = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Discrete(2))
STEER = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Box(-100, 100, (2,)))
OBSERVATIONS = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 64), torch.nn.Linear(64, 2)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, obs):
        return self.second(self.dropout(torch.tanh(self.first(obs))))


class Pair(Mlp):
    def forward(self, obs):
        hidden = torch.tanh(self.first(obs))
        return self.second(hidden), hidden


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = torch.nn.GRUCell(4, 8), torch.nn.Linear(8, 2)

    def forward(self, obs: torch.Tensor, state: torch.Tensor):
        state = self.cell(obs, state)
        return self.head(state), state

    @torch.jit.export
    def initial_state(self, batch: int):
        return torch.ones(batch, 8)


class Long(torch.nn.Module):
    """Memory of two tensors with the rows on their second axis; begins with None."""

    def __init__(self):
        super().__init__()
        self.core, self.head = torch.nn.LSTM(4, 8), torch.nn.Linear(8, 2)

    def forward(self, obs: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None = None):
        if state is None:
            zeros = torch.zeros(1, obs.size(0), 8)
            state = (zeros, zeros)
        hidden, state = self.core(obs[None], state)
        return self.head(hidden[0]), state


class Nameless(Recurrent):
    """Memory of which nobody knows the size."""

    def forward(self, obs: torch.Tensor, state: torch.Tensor):
        return self.head(state), state

    initial_state = None


class Rooms(torch.nn.Module):
    def forward(self, obs: dict[str, torch.Tensor]):
        return obs["image"].flatten(1).sum(1, keepdim=True) + obs["goal"]


def save(module, path):
    torch.jit.script(module).save(str(path))
    return f"torchscript:{path}"


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def acts(loaded, observations):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


def plain(module, observations, *more):
    with torch.no_grad():
        return module.eval()(torch.from_numpy(observations), *more)


def test_a_module_acts_in_eval_mode(tmp_path):
    module = Mlp()
    loaded = load_policy(save(module, tmp_path / "p.pt"), CART, trust=True)
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS), plain(module, OBSERVATIONS).argmax(1).numpy())
    assert loaded.uri == f"torchscript:{tmp_path / 'p.pt'}"
    assert loaded.notes == ()


def test_it_needs_trust(tmp_path):
    with pytest.raises(PolicyError, match="can run code") as caught:
        load_policy(save(Mlp(), tmp_path / "p.pt"), CART)
    assert "--trust" in caught.value.hint


def test_a_traced_module_of_another_precision_acts(tmp_path):
    module = Mlp().double().eval()
    torch.jit.trace(module, torch.zeros(1, 4, dtype=torch.float64)).save(str(tmp_path / "p.pt"))
    loaded = load_policy(f"torchscript:{tmp_path / 'p.pt'}", STEER, trust=True)
    wanted = plain(module, OBSERVATIONS.astype(float)).numpy()
    np.testing.assert_allclose(acts(loaded, OBSERVATIONS), wanted, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_do_not_depend_on_their_batch(tmp_path, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        loaded = load_policy(save(Mlp(), tmp_path / "p.pt"), STEER, trust=True)
        together = acts(loaded, OBSERVATIONS)
        alone = np.concatenate([acts(loaded, OBSERVATIONS[row : row + 1]) for row in range(100)])
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(together, alone)


def test_the_first_of_several_outputs_is_taken_and_told(tmp_path):
    module = Pair()
    loaded = load_policy(save(module, tmp_path / "p.pt"), STEER, trust=True)
    np.testing.assert_allclose(
        acts(loaded, OBSERVATIONS), plain(module, OBSERVATIONS)[0], rtol=1e-4, atol=1e-5
    )
    assert loaded.notes == ("takes actions from the first of 2 outputs",)


@pytest.mark.parametrize(("kind", "option"), [(Recurrent, ""), (Recurrent, "?recurrent"), (Long, "")])
def test_memory_is_kept_for_each_episode(tmp_path, kind, option):
    module = kind()
    loaded = load_policy(save(module, tmp_path / "p.pt") + option, STEER, trust=True)
    policy = loaded.make()
    assert "remembers a state for each episode" in loaded.notes
    begin = torch.ones(70, 8) if kind is Recurrent else None
    first, state = plain(module, OBSERVATIONS[:70], begin)
    second, _ = plain(module, OBSERVATIONS[:70], state)
    rows = np.array([1, 5, 66])
    for _ in range(2):
        policy.begin(70)
        np.testing.assert_allclose(policy.act(OBSERVATIONS[:70], np.arange(70)), first, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(policy.act(OBSERVATIONS[rows], rows), second[rows], rtol=1e-4, atol=1e-5)


def test_memory_of_unknown_size_is_asked_for(tmp_path):
    with pytest.raises(PolicyError, match="state at the beginning of an episode is not known") as caught:
        load_policy(save(Nameless(), tmp_path / "p.pt"), STEER, trust=True)
    assert "initial_state(batch)" in caught.value.hint


def test_a_dictionary_is_given_as_one(tmp_path):
    room = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "goal": spaces.Box(-1, 1, (2,))})
    uri = save(Rooms(), tmp_path / "p.pt")
    loaded = load_policy(uri, Spaces(room, spaces.Box(-9999, 9999, (2,))), trust=True)
    seen = sample_observations(room, 5)
    np.testing.assert_allclose(
        acts(loaded, seen), seen["image"].sum((1, 2))[:, None] + seen["goal"], rtol=1e-6
    )


def test_whole_numbers_reach_an_embedding(tmp_path):
    module = torch.nn.Embedding(5, 3)
    loaded = load_policy(
        save(module, tmp_path / "p.pt"), Spaces(spaces.Discrete(5), spaces.Discrete(3)), trust=True
    )
    np.testing.assert_array_equal(acts(loaded, np.arange(5)), module.weight.argmax(1).numpy())


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        (
            Spaces(spaces.Box(-1, 1, (5,)), CART.action),
            r"p\.pt fails on observations of Box.*multiplied",
            "wrapper",
        ),
        (
            Spaces(CART.observation, spaces.Discrete(3)),
            r"gives 2 number.*expected 1 or 3",
            "another environment",
        ),
    ],
)
def test_spaces_that_do_not_fit_are_told_when_it_is_loaded(tmp_path, given, message, hint):
    with pytest.raises(PolicyError, match=message) as caught:
        load_policy(save(Mlp(), tmp_path / "p.pt"), given, trust=True)
    assert hint in caught.value.hint


@pytest.mark.parametrize("what", [lambda module: module, lambda module: module.state_dict()])
@pytest.mark.parametrize("is_zip", [True, False])
def test_a_pickled_module_gets_the_hint_to_script_it(tmp_path, what, is_zip):
    torch.save(what(torch.nn.Linear(4, 2)), tmp_path / "p.pt", _use_new_zipfile_serialization=is_zip)
    with pytest.raises(PolicyError, match="is a pickled PyTorch module or its weights") as caught:
        load_policy(f"torchscript:{tmp_path / 'p.pt'}", CART, trust=True)
    assert "torch.jit.script" in caught.value.hint
    assert "py:FILE.py:FUNCTION" in caught.value.hint


def test_a_damaged_file_is_told(tmp_path):
    uri = save(Mlp(), tmp_path / "p.pt")
    (tmp_path / "p.pt").write_bytes((tmp_path / "p.pt").read_bytes()[:2000])
    with pytest.raises(PolicyError, match="cannot be read by torchscript:"):
        load_policy(uri, CART, trust=True)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 8, None])
def test_an_archive_of_torch_export_acts(tmp_path, rows):
    module = Mlp().eval()
    batch = None if rows else ({0: torch.export.Dim("batch", min=1, max=4096)},)
    program = torch.export.export(module, (torch.zeros(rows or 2, 4),), dynamic_shapes=batch)
    torch.export.save(program, tmp_path / "p.pt2")
    uri = f"torchscript:{tmp_path / 'p.pt2'}"
    with pytest.raises(PolicyError, match="can run code"):
        load_policy(uri, STEER)
    loaded = load_policy(uri, STEER, trust=True)
    wanted = plain(module, OBSERVATIONS)
    np.testing.assert_allclose(acts(loaded, OBSERVATIONS), wanted, rtol=1e-4, atol=1e-5)
    alone = np.concatenate([acts(loaded, OBSERVATIONS[row : row + 1]) for row in range(20)])
    np.testing.assert_array_equal(acts(loaded, OBSERVATIONS)[:20], alone)


@pytest.mark.slow
def test_loading_prints_no_warnings(tmp_path):
    uri = save(Mlp(), tmp_path / "p.pt")
    code = f"""
from gymnasium import spaces
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.uri import load_policy
load_policy({uri!r}, Spaces(spaces.Box(-1, 1, (4,)), spaces.Discrete(2)), trust=True)
"""
    done = subprocess.run(
        [sys.executable, "-Wdefault::DeprecationWarning:torch", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
        env=os.environ,
    )
    assert done.stderr == ""
