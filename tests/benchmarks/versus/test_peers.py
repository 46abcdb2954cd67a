"""What every peer must do, whoever wrote it."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.peers import PEERS
from benchmarks.versus.trial import Trial
from policyfuzz import Target, load_target
from policyfuzz.core.errors import MissingExtra
from policyfuzz.core.inputs import Choice, InputSpace, Integer
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.target import Runner
from policyfuzz.oracles import Below

#: The extra that brings it, and one module of it.
PACKAGES = {"pypi-mdpfuzz": "mdpfuzz", "pypi-mdpfuzz-no-coverage": "mdpfuzz", "cma-me": "ribs"}


#: One runs a few episodes a second, the other compiles itself first.
SLOW = ("pypi-mdpfuzz", "cma-me")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PEERS])
def peer(request: pytest.FixtureRequest) -> str:
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return request.param


def easy_target() -> Target:
    """A pond in which an eighth of all starts crash, in few steps."""
    return replace(load_target("ripple:dimensions=1,probability=0.5"), horizon=12)


class SumSimulator:
    """Counts down from the sum of the input; a start of 8 or more in all is a crash at once."""

    signals = ("left",)
    capacity = None

    def reset(self, inputs: np.ndarray, seeds: np.ndarray) -> Frame:
        self._left = 8.0 - inputs.sum(axis=1)
        return self._frame(np.arange(len(inputs)))

    def step(self, actions: np.ndarray, rows: np.ndarray) -> Frame:
        return self._frame(rows)

    def _frame(self, rows: np.ndarray) -> Frame:
        left = self._left[rows]
        states = np.column_stack([left, left**2])
        return Frame(states, states, left[:, None], left, np.zeros(len(rows), np.bool_))


class NoPolicy:
    def begin(self, count: int) -> None: ...

    def act(self, observations: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.zeros(len(rows))


def discrete_target() -> Target:
    """Five discrete dimensions, of which the largest values crash."""
    numbers = tuple(Integer(f"n{i}", 0, 3) for i in range(4))
    return Target(
        name="tests:discrete",
        inputs=InputSpace((*numbers, Choice("surface", ("dry", "wet")))),
        simulator=SumSimulator,
        policy=NoPolicy,
        oracle=Below("left", 0.5, kind="crash"),
        horizon=12,
    )


def run(peer: str, target: Target, episodes: int = 80, seed: int = 3) -> Trial:
    return PEERS[peer]()(target, episodes, seed)


def test_peer_runs_exactly_the_episodes_it_was_given(peer):
    assert run(peer, easy_target(), 67).episodes == 67


@pytest.mark.parametrize("episodes", [1, 7])
def test_peer_stops_in_time_when_there_are_hardly_any_episodes(peer, episodes):
    trial = run(peer, easy_target(), episodes)
    assert trial.episodes == episodes
    assert (trial.numbers <= episodes).all()


def test_claims_crash_again_at_their_input_and_case_seed(peer):
    target = easy_target()
    trial = run(peer, target)
    assert len(trial.numbers) > 0
    assert Runner(target)(trial.inputs, trial.seeds).crashed.all()
    assert (np.diff(trial.numbers) > 0).all()
    assert trial.numbers[-1] <= trial.episodes


def test_same_seed_gives_the_same_claims_and_another_seed_others(peer):
    first, again, other = (run(peer, easy_target(), seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.inputs, again.inputs)
    np.testing.assert_array_equal(first.seeds, again.seeds)
    np.testing.assert_array_equal(first.numbers, again.numbers)
    assert not np.array_equal(first.inputs, other.inputs)


def test_peer_says_nothing(peer, capfd):
    run(peer, easy_target())
    assert capfd.readouterr() == ("", "")


def test_discrete_inputs_stay_discrete(peer):
    target = discrete_target()
    trial = run(peer, target, 200)
    assert trial.episodes == 200
    assert len(trial.numbers) > 0
    assert target.inputs.is_valid(trial.inputs).all()


@pytest.mark.parametrize("name", ["curiosity", "half-noise"])
def test_mending_peers_claim_valid_and_solvable_inputs_only(name):
    target = load_target("acasxu")
    trial = run(name, target, 600)
    assert trial.episodes == 600
    assert target.inputs.is_valid(trial.inputs).all()
    assert target.solvable is not None
    assert target.solvable(trial.inputs).all()


@pytest.mark.parametrize(("name", "package"), PACKAGES.items())
def test_missing_package_is_asked_for_by_its_extra(name, package, monkeypatch):
    for module in [module for module in sys.modules if module.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[versus\]"):
        PEERS[name]()
