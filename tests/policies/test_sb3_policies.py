"""Models of stable-baselines3 and sb3-contrib, saved and loaded: the actions of predict, and what fails."""

import copy
import hashlib
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import Env, spaces

from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.sb3 import load

sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
torch = pytest.importorskip("torch", reason="needs torch")

VECTOR = spaces.Box(-np.inf, np.inf, (4,), np.float32)
PICTURE = spaces.Box(0, 255, (40, 36, 3), np.uint8)
SENSORS = spaces.Dict(
    camera=spaces.Box(0, 255, (36, 40, 1), np.uint8),
    gear=spaces.Discrete(3),
    speed=spaces.Box(-1, 1, (2,), np.float32),
)
BUTTONS, LEVER = spaces.Discrete(3), spaces.Box(np.array([-2, 0], np.float32), np.array([2, 5], np.float32))
SMALL = {"policy_kwargs": {"net_arch": [16]}}
REPLAY = {"buffer_size": 100, **SMALL}


class Noise(Env):
    """Observations at random, a reward of one for each of ten steps."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 10, False, {}


def make_model(algorithm, policy, observation_space, action_space, **options):
    """A model whose weights are far from those that it began with, so that actions vary."""
    options = copy.deepcopy(options)  # algorithms write into what they are given
    model = algorithm(policy, Noise(observation_space, action_space), seed=0, device="cpu", **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in model.policy.parameters():
            weights += 0.2 * torch.randn(weights.shape, generator=generator)
    return model


def batch(space, count):
    """`count` observations as simulators give them."""
    space.seed(3)
    rows = [space.sample() for _ in range(count)]
    if not isinstance(space, spaces.Dict):
        return np.stack(rows)
    found = np.zeros(count, [(key, part.dtype, part.shape) for key, part in space.items()])
    for key in space:
        found[key] = [row[key] for row in rows]
    return found


def one(observations, row):
    """One row as stable-baselines3 takes it."""
    if observations.dtype.names is None:
        return observations[row]
    return {key: observations[key][row] for key in observations.dtype.names}


def acted(loaded, observations):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


ALGORITHMS: dict[str, tuple[Any, ...]] = {
    "PPO": (sb3.PPO, "MlpPolicy", VECTOR, BUTTONS, SMALL),
    "PPO pictures": (sb3.PPO, "CnnPolicy", PICTURE, BUTTONS, {}),
    "PPO dictionaries": (sb3.PPO, "MultiInputPolicy", SENSORS, LEVER, SMALL),
    "PPO gSDE": (sb3.PPO, "MlpPolicy", VECTOR, LEVER, {"use_sde": True, **SMALL}),
    "PPO one-hot": (sb3.PPO, "MlpPolicy", spaces.Discrete(6), spaces.MultiDiscrete([2, 3]), SMALL),
    "PPO switches": (sb3.PPO, "MlpPolicy", spaces.MultiBinary(5), spaces.MultiBinary(4), SMALL),
    "PPO own extractors": (
        sb3.PPO,
        "MlpPolicy",
        spaces.Box(-1, 1, (2, 3), np.float64),
        LEVER,
        {"policy_kwargs": {"share_features_extractor": False, "activation_fn": torch.nn.ELU}},
    ),
    "A2C": (sb3.A2C, "MlpPolicy", VECTOR, LEVER, SMALL),
    "DQN": (sb3.DQN, "MlpPolicy", VECTOR, BUTTONS, REPLAY),
    "SAC": (sb3.SAC, "MlpPolicy", VECTOR, LEVER, REPLAY),
    "SAC gSDE": (sb3.SAC, "MlpPolicy", VECTOR, LEVER, {"use_sde": True, **REPLAY}),
    "TD3": (sb3.TD3, "MlpPolicy", VECTOR, LEVER, REPLAY),
    "DDPG": (sb3.DDPG, "MlpPolicy", VECTOR, LEVER, REPLAY),
    "TQC": (contrib.TQC, "MlpPolicy", VECTOR, LEVER, REPLAY),
    "TRPO": (contrib.TRPO, "MlpPolicy", VECTOR, BUTTONS, SMALL),
    "QRDQN": (contrib.QRDQN, "MlpPolicy", VECTOR, BUTTONS, REPLAY),
    "CrossQ": (contrib.CrossQ, "MlpPolicy", VECTOR, LEVER, REPLAY),
    "MaskablePPO": (contrib.MaskablePPO, "MlpPolicy", VECTOR, BUTTONS, SMALL),
    "RecurrentPPO": (contrib.RecurrentPPO, "MlpLstmPolicy", VECTOR, BUTTONS, SMALL),
    "ARS": (contrib.ARS, "MlpPolicy", VECTOR, LEVER, {}),
    "ARS linear": (contrib.ARS, "LinearPolicy", VECTOR, BUTTONS, {}),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """name -> (model, zip), made once each."""
    folder, made = tmp_path_factory.mktemp("models"), {}

    def get(name):
        if name not in made:
            algorithm, policy, observation, action, options = ALGORITHMS[name]
            model = make_model(algorithm, policy, observation, action, **options)
            path = folder / f"{name.replace(' ', '_')}.zip"
            model.save(path)
            made[name] = model, path, Spaces(observation, action)
        return made[name]

    return get


@pytest.mark.parametrize("name", ALGORITHMS)
def test_actions_are_those_of_predict(saved, name):
    model, path, given = saved(name)
    loaded = load(str(path), given, trust=True)
    observations = batch(given.observation, 150)
    wanted = np.stack([model.predict(one(observations, row), deterministic=True)[0] for row in range(150)])
    actions = acted(loaded, observations)
    assert loaded.name == f"sb3:{path.name} ({name.split()[0]})"
    assert len(np.unique(wanted, axis=0)) > 1
    if np.issubdtype(wanted.dtype, np.integer):
        np.testing.assert_array_equal(actions, wanted)
    else:
        # one row at a time rounds differently than 64, the more so the longer the sums, as those of pictures
        tolerance = 1e-5 if name == "PPO dictionaries" else 1e-6
        np.testing.assert_allclose(actions, wanted, rtol=tolerance, atol=tolerance)
        assert actions.dtype == wanted.dtype


@pytest.mark.parametrize("name", ALGORITHMS)
def test_actions_are_those_of_predict_to_the_last_bit_for_64_rows(saved, name):
    model, path, given = saved(name)
    observations = batch(given.observation, 64)
    wanted, _ = model.predict(one(observations, slice(None)), deterministic=True)
    np.testing.assert_array_equal(acted(load(str(path), given, trust=True), observations), wanted)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_actions_do_not_depend_on_the_batch(saved, name):
    _, path, given = saved(name)
    policy = load(str(path), given, trust=True).make()
    observations = batch(given.observation, 70)
    policy.begin(70)
    together = policy.act(observations, np.arange(70))
    for rows in ([0], [69], [3, 1, 2], np.arange(69, 4, -1)):
        policy.begin(70)
        np.testing.assert_array_equal(policy.act(observations[rows], np.asarray(rows)), together[rows])


def test_memory_follows_its_episode_when_others_end(saved):
    model, path, given = saved("RecurrentPPO")
    policy = load(str(path), given, trust=True).make()
    steps = batch(given.observation, 4 * 100).reshape(4, 100, -1)
    wanted, state = [], None
    for step in steps:
        action, state = model.predict(step[41], state, np.array([state is None]), deterministic=True)
        wanted.append(action)
    policy.begin(100)
    rows = np.arange(100)
    for step, keep in zip(steps, (1, 2, 3, 1), strict=True):
        rows = rows[(rows % keep == 0) | (rows == 41)]
        together = policy.act(step[rows], rows)
        assert together[rows == 41] == wanted.pop(0)
    hidden = policy._states[0][41].copy()
    policy.begin(1)
    for step in steps:
        policy.act(step[41:42], np.array([0]))
    np.testing.assert_array_equal(policy._states[0][0], hidden)
    assert hidden.any()


def test_new_episodes_remember_nothing(saved):
    _, path, given = saved("RecurrentPPO")
    policy = load(str(path), given, trust=True).make()
    observations = batch(given.observation, 5)
    policy.begin(5)
    policy.act(observations, np.arange(5))
    first = policy._states[0].copy()
    policy.act(observations, np.arange(5))
    assert (policy._states[0] != first).any()
    policy.begin(5)
    policy.act(observations, np.arange(5))
    np.testing.assert_array_equal(policy._states[0], first)


def test_torch_is_left_as_it_was(saved):
    _, path, given = saved("SAC")
    threads, checks = torch.get_num_threads(), torch.distributions.Distribution._validate_args
    torch.set_num_threads(2)
    try:
        acted(load(str(path), given, trust=True), batch(given.observation, 3))
        assert torch.get_num_threads() == 2
        assert torch.distributions.Distribution._validate_args == checks
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)


def test_observations_that_diverged_do_not_stop_the_others(saved):
    for name in ("PPO", "MaskablePPO", "SAC"):
        _, path, given = saved(name)
        loaded = load(str(path), given, trust=True)
        observations = batch(given.observation, 4)
        wanted = acted(loaded, observations)
        observations[1] = np.nan
        np.testing.assert_array_equal(acted(loaded, observations)[[0, 2, 3]], wanted[[0, 2, 3]])


def test_what_was_loaded_can_be_made_in_another_process(saved):
    _, path, given = saved("PPO dictionaries")
    loaded = load(str(path), given, trust=True)
    observations = batch(given.observation, 5)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(acted(again, observations), acted(loaded, observations))


def test_uri_and_digest_name_the_file_from_any_folder(saved, monkeypatch):
    _, path, given = saved("PPO")
    monkeypatch.chdir(path.parent)
    loaded = load("PPO?algo=ppo", given, trust=True)
    assert loaded.uri == f"sb3:{path}?algo=ppo&normalize=none"
    assert loaded.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.chdir(Path(__file__).parent)
    assert load(loaded.uri.removeprefix("sb3:"), given, trust=True).sha256 == loaded.sha256


def test_masks_are_said_to_be_missing(saved):
    _, path, given = saved("MaskablePPO")
    assert "without masks" in load(str(path), given, trust=True).notes[0]
    _, path, given = saved("PPO")
    assert load(str(path), given, trust=True).notes == ()


def test_recorded_return_is_that_of_the_last_training_episodes(tmp_path):
    model = make_model(sb3.PPO, "MlpPolicy", VECTOR, BUTTONS, n_steps=32, batch_size=32, n_epochs=1)
    model.save(tmp_path / "best_model.zip")
    given = Spaces(VECTOR, BUTTONS)
    assert load(str(tmp_path / "best_model"), given, trust=True).recorded_return is None
    results = np.array([[1.0, 3.0], [7.0, 9.0], [4.0, 4.0]])
    np.savez(tmp_path / "evaluations.npz", timesteps=[1, 2, 3], results=results, ep_lengths=results)
    assert load(str(tmp_path / "best_model"), given, trust=True).recorded_return == 8.0
    model.learn(32)
    model.save(tmp_path / "best_model.zip")
    assert load(str(tmp_path / "best_model"), given, trust=True).recorded_return == 10.0


class Boom:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def test_nothing_is_unpickled_without_trust(tmp_path):
    mark, path = tmp_path / "mark", tmp_path / "model.zip"
    model = make_model(sb3.PPO, "MlpPolicy", VECTOR, BUTTONS)
    model.policy_kwargs = {"optimizer_kwargs": Boom(mark)}
    model.save(path)
    with pytest.raises(PolicyError, match=r"can run code") as caught:
        load(str(path), Spaces(VECTOR, BUTTONS), trust=False)
    assert "--trust" in caught.value.hint
    assert not mark.exists()
    load(str(path), Spaces(VECTOR, BUTTONS), trust=True)
    assert mark.exists()


MISFITS: dict[str, tuple[Any, ...]] = {
    "other width": (
        spaces.Box(-1, 1, (7,), np.float32),
        BUTTONS,
        r"shape \(4,\).* shape \(7,\)",
        "another env",
    ),
    "stacked": (spaces.Box(-1, 1, (2,), np.float32), BUTTONS, "observations", "2 times as many"),
    "time": (spaces.Box(-1, 1, (3,), np.float32), BUTTONS, "observations", "TimeAware"),
    "reshaped": (spaces.Box(-1, 1, (2, 2), np.float32), BUTTONS, "observations", "FlattenObservation"),
    "whole numbers": (spaces.Box(0, 9, (4,), np.uint8), BUTTONS, "float32 .* uint8", "VecNormalize"),
    "dictionary": (SENSORS, BUTTONS, "a dictionary of camera", "FilterObservation"),
    "cells": (spaces.Discrete(4), BUTTONS, "one of 4", "another env"),
    "more buttons": (VECTOR, spaces.Discrete(4), "actions that are one of 3.* one of 4", "another env"),
    "lever": (VECTOR, LEVER, r"actions that are one of 3.* float32 numbers of shape \(2,\)", "another env"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_spaces_that_do_not_fit_are_refused_in_words(saved, name):
    observation, action, message, hint = MISFITS[name]
    with pytest.raises(PolicyError, match=message) as caught:
        load(str(saved("PPO")[1]), Spaces(observation, action), trust=True)
    assert hint in caught.value.hint


def test_other_bounds_and_precision_are_a_note(saved):
    wide = Spaces(spaces.Box(-9, 9, (4,), np.float64), spaces.Box(-3, 3, (2,), np.float32))
    notes = load(str(saved("A2C")[1]), wide, trust=True).notes
    assert [word for note in notes for word in ("float64", "low -9", "low -3") if word in note] == [
        "float64",
        "low -9",
        "low -3",
    ]


def test_keys_that_the_model_does_not_know_are_left_out(saved):
    model, path, given = saved("PPO dictionaries")
    more = spaces.Dict(mission=spaces.Text(9), **given.observation.spaces)
    loaded = load(str(path), Spaces(more, LEVER), trust=True)
    assert "does not look at mission" in loaded.notes[0]
    observations = batch(given.observation, 3)
    wider = np.zeros(3, [("mission", object), *observations.dtype.descr])
    for key in observations.dtype.names:
        wider[key] = observations[key]
    np.testing.assert_allclose(
        acted(loaded, wider)[1], model.predict(one(observations, 1), deterministic=True)[0], atol=2e-6
    )


WRONG = {
    "missing.zip": (None, "no file"),
    "PPOO": (None, "no file"),
    "text.zip": (b"hello", "zip"),
    "pickle.zip": (pickle.dumps({}), "pickle"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_no_models_are_refused_before_trust_is_asked_for(tmp_path, name):
    content, message = WRONG[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PolicyError, match=message):
        load(str(tmp_path / name), Spaces(VECTOR, BUTTONS), trust=False)


def test_zips_of_something_else_are_named(tmp_path):
    kinds = {
        "parameter_list": "stable-baselines 2",
        "data": "no weights",
        "model/constants.pkl": "torchscript",
        "readme.txt": "not of stable-baselines3",
    }
    for number, (name, message) in enumerate(kinds.items()):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "{}")
        with pytest.raises(PolicyError) as caught:
            load(str(path), Spaces(VECTOR, BUTTONS), trust=False)
        assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}"])
def test_damaged_parameters_are_refused(tmp_path, content):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", content)
        archive.writestr("policy.pth", "")
    with pytest.raises(PolicyError, match="parameters in"):
        load(str(tmp_path / "model.zip"), Spaces(VECTOR, BUTTONS), trust=True)


def test_options_are_checked(saved):
    _, path, given = saved("PPO")
    with pytest.raises(PolicyError, match="function of its input and seed"):
        load(f"{path}?deterministic=no", given, trust=True)
    with pytest.raises(UsageError, match="algoritm") as caught:
        load(f"{path}?algoritm=ppo", given, trust=True)
    assert "'algo'" in caught.value.hint
    with pytest.raises(UsageError, match="ppoo"):
        load(f"{path}?algo=ppoo", given, trust=True)
    assert load(f"{path}?algo=A2C&deterministic=yes", given, trust=True).name.endswith("(A2C)")


class Dizzy(torch.nn.Flatten):
    """A features extractor that adds noise, even in eval mode."""

    def __init__(self, observation_space):
        super().__init__()
        self.features_dim = spaces.flatdim(observation_space)

    def forward(self, observations):
        return super().forward(observations) + 100 * torch.randn(len(observations), 1)


def test_network_that_draws_random_numbers_is_refused(tmp_path):
    options = {"policy_kwargs": {"features_extractor_class": Dizzy, "net_arch": [16]}}
    make_model(sb3.PPO, "MlpPolicy", VECTOR, LEVER, **options).save(tmp_path / "dizzy.zip")
    with pytest.raises(PolicyError, match="two different actions for the same observation") as caught:
        load(str(tmp_path / "dizzy.zip"), Spaces(VECTOR, LEVER), trust=True)
    assert "even in eval mode" in caught.value.hint
