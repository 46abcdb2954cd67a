"""Environments and policies that exist in this process only."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.core.errors import TargetCodeError, UsageError

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium")


class Corridor(gymnasium.Env):
    """Walks along a corridor by its action; beyond 3 there is a pit. The start is an option."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    reset_options_space = gymnasium.spaces.Dict({"start": gymnasium.spaces.Box(-4.0, 2.0, (), np.float64)})

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float((options or {}).get("start", 0.0)), 0
        return np.array([self.place]), {}

    def step(self, action):
        self.place += 0.1 if action else -0.1
        self.time += 1
        return np.array([self.place]), -abs(self.place), self.place > 3, self.time >= 30, {}

    def render(self):
        picture = np.zeros((40, 80, 3), np.uint8)
        picture[:, int(np.clip(40 + 8 * self.place, 0, 79))] = 255
        return picture


def brave(observation):
    """Goes on where it should turn, from 0.5 on."""
    return int(observation[0] > 0.5)


def brave_batch(observations):
    return (observations[:, 0] > 0.5).astype(np.int64)


class Brave:
    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return brave(observation), None


class Protocol:
    def begin(self, count): ...

    def act(self, observations, rows):
        return brave_batch(observations)


def fuzz(target=Corridor, policy=brave, **options):
    defaults: dict[str, Any] = {"oracle": "terminated", "max_execs": 200, "horizon": 40}
    return pf.fuzz(target, policy, **(defaults | options))


@pytest.fixture(scope="module")
def expected():
    """What the plain function finds, to be read only."""
    return fuzz()


FORMS = ["one", "batch", "predict", "object", "class"]


@pytest.mark.parametrize("policy", [brave, brave_batch, Brave(), Protocol(), Protocol], ids=FORMS)
def test_any_form_of_a_policy_gives_the_same_findings(expected, policy):
    found = fuzz(policy=policy).rows()
    assert [row["start"] for row in found] == [row["start"] for row in expected.rows()] != []


def test_class_and_function_that_make_an_environment_give_the_same_findings(expected):
    of_class, of_function = expected, fuzz(lambda: Corridor())
    assert of_class.summary["target"].startswith("python:Corridor")
    assert [row["start"] for row in of_function.rows()] == [row["start"] for row in of_class.rows()] != []
    assert all(row["start"] + 0.6 > 0.5 for row in of_class.rows())


def test_bounds_are_given_by_name_and_numpy_numbers_are_numbers():
    result = fuzz(input={"start": (np.float64(0.0), 1)})
    assert result.progress.findings
    assert all(0 <= row["start"] <= 1 for row in result.rows())
    with pytest.raises(UsageError, match=r"expected \(low, high\)"):
        fuzz(input={"start": (0, 1, 2)})


@pytest.mark.parametrize(
    "given",
    [
        {"way": "options", "start": (0.0, 1.0)},
        {"bounds": {"start": [0.0, 1.0]}},
        {"start": np.array([0.0, 1.0])},
    ],
)
def test_input_is_a_dictionary_with_a_way_tables_or_arrays(given):
    found, expected = (fuzz(input=one).rows() for one in (given, "start=0.0..1.0"))
    assert [row["start"] for row in found] == [row["start"] for row in expected] != []
    with pytest.raises(UsageError, match="did you mean 'bounds'"):
        fuzz(input={"bound": {"start": (0, 1)}})


@dataclass(frozen=True)
class Deep(pf.Composable):
    """Fires beyond a place, which the environment tells in `info`."""

    place: float = 2.0
    info_keys = ("place",)
    kinds = ("deep",)

    def judge(self, trajectories):
        return pf.at_first(trajectories.counted & (trajectories.signal("info.place") > self.place))


class Telling(Corridor):
    """Tells where it is."""

    def step(self, action):
        seen, reward, ended, cut, _ = super().step(action)
        return seen, reward, ended, cut, {"place": self.place}


def test_oracle_object_is_taken_and_gets_its_keys_of_info():
    result = fuzz(Telling, oracle=Deep())
    expected = fuzz(Telling, oracle="info.place>2.0")
    assert [row["start"] for row in result.rows()] == [row["start"] for row in expected.rows()] != []
    assert {finding.kind for finding in result.findings} == {"deep"}
    assert "Deep(place=2.0)" in result.summary["target"]
    assert result.replay(1).is_identical
    mixed = fuzz(Telling, oracle=Deep(2.5) | pf.WithKind(pf.InfoTrue("place") & pf.Terminated(), "fell"))
    assert {finding.kind for finding in mixed.findings} == {"deep"}


@pytest.mark.parametrize(
    "text",
    [
        "terminated as fell | info.place & info.place>14 | return<-100",
        "truncated | !info.place",
        "out_of_space",
    ],
)
def test_oracle_object_that_has_words_is_written_in_them(text):
    oracle = pf.parse_oracle(text)
    made = pf.as_target("gym:CartPole-v1", lambda seen: 0, oracle=oracle)
    written = pf.as_target("gym:CartPole-v1", lambda seen: 0, oracle=text)
    assert made.name == written.name
    assert made.oracle == written.oracle
    assert made.oracle.kinds == oracle.kinds


def test_key_that_info_never_has_is_a_warning():
    with pytest.warns(pf.HealthWarning, match="info never has plaice"):
        fuzz(Telling, oracle="terminated | info.plaice")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pf.HealthWarning)
        fuzz(Telling, oracle="terminated | info.place>9")


def test_check_shows_inputs_and_oracle():
    shown = str(pf.check(Corridor, brave, oracle="terminated as fell", episodes=20))
    assert "input start: real, -4 to 2" in shown
    assert "oracle: terminated as fell, as you asked" in shown
    assert "crash kinds: fell" in shown


def test_policies_by_agent_are_refused_where_there_is_one():
    with pytest.raises(pf.PolicyFuzzError, match="for agent_0, and this environment has one agent"):
        fuzz(policy={"agent_0": brave})


def test_finding_is_replayed_and_filmed_in_this_process(tmp_path):
    replayed = fuzz().replay(1)
    assert replayed.is_identical
    film = replayed.film(tmp_path / "one.gif")
    assert "data:image/gif;base64," in film._repr_html_()


def test_same_policy_resumes_and_another_one_does_not(tmp_path):
    fuzz(out=tmp_path / "c")
    assert fuzz(out=tmp_path / "c", resume=True, max_execs=300).progress.executions == 300
    with pytest.raises(pf.PolicyFuzzError, match="policy_sha256 was"):
        fuzz(policy=brave_batch, out=tmp_path / "c", resume=True, max_execs=400)


def test_object_of_a_registered_environment_is_made_again():
    env = gymnasium.make("CartPole-v1")
    result = pf.fuzz(env, lambda observation: int(observation[2] > 0), max_execs=60, force=True)
    assert result.progress.executions == 60


def test_object_without_a_name_asks_for_its_class():
    with pytest.raises(UsageError, match="a batch of episodes needs many"):
        fuzz(Corridor())


def test_function_that_makes_no_environment_is_told():
    with pytest.raises(UsageError, match="gave int, expected a gymnasium"):
        fuzz(lambda: 3)
    with pytest.raises(TargetCodeError, match="ZeroDivisionError"):
        fuzz(lambda: 1 / 0)
    with pytest.raises(UsageError, match="no policy was given"):
        fuzz(policy=None)


def test_what_looks_like_an_argument_and_is_none_is_told(tmp_path):
    with pytest.raises(UsageError, match="horizon is 0"):
        fuzz(horizon=0)
    with pytest.raises(UsageError, match="did you mean 'start'"):
        fuzz(input={"strat": (0, 1)})
    with pytest.raises(UsageError, match=r"did you mean sb3:.*model\.zip"):
        fuzz(policy=tmp_path / "model.zip")


def test_policy_that_raises_is_told_with_its_name():
    def broken(observation):
        raise KeyError("weights")

    with pytest.raises(TargetCodeError, match="python:broken raised KeyError"):
        fuzz(policy=broken)


@pytest.fixture(scope="module")
def model():
    sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3")
    return sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, seed=1, device="cpu").learn(640)


@pytest.mark.slow
def test_model_acts_as_its_own_predict_and_as_its_file(model, tmp_path):
    model.save(tmp_path / "model.zip")
    common: dict[str, Any] = {"max_execs": 60, "force": True, "batch": 20}
    live = pf.fuzz("gym:CartPole-v1", model, **common)
    named = pf.fuzz("gym:CartPole-v1", f"sb3:{tmp_path / 'model.zip'}", trust=True, **common)
    policy = pf.fuzz("gym:CartPole-v1", model.policy, **common)
    returns = [[row["return"] for row in one.rows()] for one in (live, named, policy)]
    assert returns[0] == returns[1] == returns[2] != []
    assert live.summary["target"] == "python:CartPole-v1"
    assert named.summary["target"] == "gym:CartPole-v1"


@pytest.mark.slow
def test_model_brings_the_normalisation_of_its_environment():
    pytest.importorskip("stable_baselines3", reason="stable-baselines3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    envs = VecNormalize(make_vec_env("CartPole-v1", seed=1))
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, seed=1, device="cpu").learn(128)
    target = pf.as_target("gym:CartPole-v1", model)
    assert any("normal" in note.lower() for note in target.notes), target.notes


def test_findings_say_how_far_they_are_from_the_own_reset():
    class Telling(Corridor):
        def reset(self, *, seed=None, options=None):
            first = super().reset(seed=seed, options=options)
            self.start = self.place  # 0 by its own reset
            return first

    telling, silent = fuzz(Telling), fuzz()
    for finding in telling.findings:
        assert telling.outside_own_reset(finding.id) == {"start": finding.input[0]}
    assert silent.outside_own_reset(1) is None
