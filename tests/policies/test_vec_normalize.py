"""Statistics of VecNormalize: found beside a model, applied as during training, part of what the model is."""

import pickle

import numpy as np
import pytest
from gymnasium import Env, spaces

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.sb3 import load

sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="needs stable-baselines3")

VECTOR = spaces.Box(-np.inf, np.inf, (4,), np.float32)
PAIR = spaces.Dict(far=spaces.Box(-9, 9, (3,), np.float64), near=spaces.Box(-1, 1, (2,), np.float32))
LEVER = spaces.Box(-2, 2, (1,), np.float32)


class Still(Env):
    """Never moves."""

    def __init__(self, observation_space):
        self.observation_space, self.action_space = observation_space, LEVER

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


def statistics(space, shift=1.0, **options):
    """A VecNormalize that has seen something."""
    made = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Still(space)]), clip_obs=2.0, **options)
    rng = np.random.default_rng(0)
    found = made.obs_rms if isinstance(made.obs_rms, dict) else {"": made.obs_rms}
    for each in found.values():
        each.update(shift + 3 * rng.standard_normal((50, *each.mean.shape)))
    return made


@pytest.fixture(scope="module")
def model():
    return sb3.PPO("MlpPolicy", Still(VECTOR), seed=0, device="cpu")


@pytest.fixture
def observations():
    return (4 * np.random.default_rng(1).standard_normal((70, 4))).astype(np.float32)


def acted(loaded, observations):
    policy = loaded.make()
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


def loaded(text):
    return load(str(text), Spaces(VECTOR, LEVER), trust=True)


def assert_acts_as(model, normalised, found, observations):
    wanted = np.concatenate([model.predict(row[None], deterministic=True)[0] for row in normalised])
    np.testing.assert_allclose(acted(found, observations), wanted, rtol=0, atol=1e-6)


PLACES = {
    "runs/ppo.zip": "runs/vecnormalize.pkl",
    "runs/model.zip": "runs/vec_normalize.pkl",
    "runs/walker.zip": "runs/walker_vecnormalize.pkl",
    "runs/rl_model_2000_steps.zip": "runs/rl_model_vecnormalize_2000_steps.pkl",
    "ppo/Walker2d-v4_3/best_model.zip": "ppo/Walker2d-v4_3/Walker2d-v4/vecnormalize.pkl",
    "ppo/any/Walker2d-v4.zip": "ppo/any/Walker2d-v4/vecnormalize.pkl",
}


@pytest.mark.parametrize("place", PLACES)
def test_statistics_are_found_where_people_keep_them(tmp_path, model, observations, place):
    path, stats = tmp_path / place, tmp_path / PLACES[place]
    stats.parent.mkdir(parents=True)
    model.save(path)
    made = statistics(VECTOR)
    made.save(str(stats))
    found = loaded(path)
    assert found.notes == (f"observations are normalised by {stats.name} (VecNormalize)",)
    assert found.uri == f"sb3:{path}?normalize={stats}"
    assert loaded(found.uri.removeprefix("sb3:")).sha256 == found.sha256
    assert_acts_as(model, made.normalize_obs(observations), found, observations)


def test_statistics_of_the_same_checkpoint_come_first(tmp_path, model):
    model.save(tmp_path / "rl_model_20_steps.zip")
    for name in ("rl_model_vecnormalize_10_steps", "rl_model_vecnormalize_20_steps", "vecnormalize"):
        statistics(VECTOR).save(str(tmp_path / f"{name}.pkl"))
    assert "vecnormalize_20_steps" in loaded(tmp_path / "rl_model_20_steps.zip").notes[0]


def test_statistics_are_used_as_told(tmp_path, model, observations, monkeypatch):
    model.save(tmp_path / "ppo.zip")
    near, given = statistics(VECTOR), statistics(VECTOR, shift=-5.0)
    near.save(str(tmp_path / "vecnormalize.pkl"))
    given.save(str(tmp_path / "given.pkl"))
    monkeypatch.chdir(tmp_path)
    assert_acts_as(model, near.normalize_obs(observations), loaded("ppo.zip"), observations)
    assert_acts_as(
        model, given.normalize_obs(observations), loaded("ppo.zip?normalize=given.pkl"), observations
    )
    plain = loaded("ppo.zip?normalize=none")
    assert_acts_as(model, observations, plain, observations)
    assert (plain.notes, plain.uri) == ((), f"sb3:{tmp_path / 'ppo.zip'}?normalize=none")


def test_statistics_are_part_of_the_digest(tmp_path, model):
    model.save(tmp_path / "ppo.zip")
    digests = [loaded(tmp_path / "ppo.zip").sha256]
    for shift in (1.0, 2.0):
        statistics(VECTOR, shift).save(str(tmp_path / "vecnormalize.pkl"))
        digests.append(loaded(tmp_path / "ppo.zip").sha256)
    digests.append(loaded(tmp_path / "ppo.zip?normalize=none").sha256)
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]


def test_only_normalised_keys_of_dictionaries_change(tmp_path):
    model = sb3.PPO("MultiInputPolicy", Still(PAIR), seed=0, device="cpu")
    model.save(tmp_path / "ppo.zip")
    made = statistics(PAIR, norm_obs_keys=["far"])
    made.save(str(tmp_path / "vecnormalize.pkl"))
    rows = np.zeros(70, [("far", np.float64, (3,)), ("near", np.float32, (2,))])
    rng = np.random.default_rng(2)
    for key in rows.dtype.names:
        rows[key] = rng.standard_normal(rows[key].shape)
    normalised = made.normalize_obs({key: rows[key] for key in rows.dtype.names})
    wanted, _ = model.predict(normalised, deterministic=True)
    found = load(str(tmp_path / "ppo.zip"), Spaces(PAIR, LEVER), trust=True)
    np.testing.assert_allclose(acted(found, rows), wanted, rtol=0, atol=1e-6)


def test_statistics_of_rewards_leave_observations_alone(tmp_path, model, observations):
    model.save(tmp_path / "ppo.zip")
    made = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Still(VECTOR)]), norm_obs=False)
    made.save(str(tmp_path / "vecnormalize.pkl"))
    found = loaded(tmp_path / "ppo.zip")
    assert "leaves observations as they are" in found.notes[0]
    assert_acts_as(model, observations, found, observations)


def test_pictures_that_were_normalised_fit_their_environment(tmp_path):
    pictures = spaces.Box(0, 255, (36, 36, 3), np.uint8)
    made = statistics(pictures)
    model = sb3.PPO("MlpPolicy", made, seed=0, device="cpu")
    model.save(tmp_path / "ppo.zip")
    made.save(str(tmp_path / "vecnormalize.pkl"))
    rows = np.random.default_rng(0).integers(0, 255, (5, 36, 36, 3)).astype(np.uint8)
    wanted, _ = model.predict(made.normalize_obs(rows), deterministic=True)
    found = load(str(tmp_path / "ppo.zip"), Spaces(pictures, LEVER), trust=True)
    np.testing.assert_allclose(acted(found, rows), wanted, rtol=0, atol=1e-5)
    with pytest.raises(PolicyError, match="uint8") as caught:
        load(str(tmp_path / "ppo.zip?normalize=none"), Spaces(pictures, LEVER), trust=True)
    assert "normalised by VecNormalize" in caught.value.hint


def test_statistics_that_do_not_fit_are_refused_if_given_and_left_out_if_found(tmp_path, model, observations):
    model.save(tmp_path / "ppo.zip")
    other = spaces.Box(-1, 1, (3,), np.float32)
    statistics(other).save(str(tmp_path / "vecnormalize.pkl"))
    found = loaded(tmp_path / "ppo.zip")
    assert "not used" in found.notes[0]
    assert found.uri == f"sb3:{tmp_path / 'ppo.zip'}?normalize=none"
    assert_acts_as(model, observations, found, observations)
    with pytest.raises(PolicyError, match=r"shape \(3,\), but the observation has shape \(4,\)"):
        loaded(tmp_path / "ppo.zip?normalize=vecnormalize.pkl")


def test_what_is_no_statistics_is_refused(tmp_path, model):
    model.save(tmp_path / "ppo.zip")
    (tmp_path / "other.pkl").write_bytes(pickle.dumps([1, 2]))
    (tmp_path / "broken.pkl").write_bytes(b"\x80broken")
    with pytest.raises(PolicyError, match="holds list, expected the statistics"):
        loaded(tmp_path / "ppo.zip?normalize=other.pkl")
    with pytest.raises(PolicyError, match=r"broken\.pkl cannot be read"):
        loaded(tmp_path / "ppo.zip?normalize=broken.pkl")
    statistics(VECTOR).save(str(tmp_path / "vecnormalize.pkl"))
    with pytest.raises(PolicyError, match=r"no statistics 'missing\.pkl'") as caught:
        load(str(tmp_path / "ppo.zip?normalize=missing.pkl"), Spaces(VECTOR, LEVER), trust=False)
    assert "vecnormalize.pkl" in caught.value.hint
