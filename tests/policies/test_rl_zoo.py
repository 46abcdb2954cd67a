"""Files that RL Zoo writes beside a model say what its environment had in training."""

import numpy as np
import pytest

pytest.importorskip("yaml")

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.rl_zoo import training_notes

CONFIG = """\
!!python/object/apply:collections.OrderedDict
- - - batch_size
    - 64
  - - env_wrapper
    - - sb3_contrib.common.wrappers.TimeFeatureWrapper
      - gym.wrappers.ResizeObservation:
          shape: 84
  - - frame_stack
    - 4
  - - normalize
    - true
  - - policy
    - MlpPolicy
  - - learning_rate
    - !!python/name:os.system ''
"""
ARGS = """\
!!python/object/apply:collections.OrderedDict
- - - algo
    - tqc
  - - env
    - Ant-v3
  - - env_kwargs
    - use_contact_forces: true
      healthy_reward: 0.5
"""
NOTES = (
    "trained with use_contact_forces=True: gym:ENVIRONMENT:env.use_contact_forces=True sets it (args.yml)",
    "trained with healthy_reward=0.5: gym:ENVIRONMENT:env.healthy_reward=0.5 sets it (args.yml)",
    "trained with the wrapper sb3_contrib.common.wrappers.TimeFeatureWrapper:"
    " gym:ENVIRONMENT:wrap=sb3_contrib.common.wrappers:TimeFeatureWrapper adds it (config.yml)",
    "trained with the wrapper gym.wrappers.ResizeObservation with {'shape': 84}:"
    " gym:ENVIRONMENT:wrap=FILE.py:FUNCTION can make it (config.yml)",
    "trained with 4 stacked frames: the environment needs a wrapper that stacks them,"
    " gym:ENVIRONMENT:wrap=FILE.py:FUNCTION (config.yml)",
    "trained with VecNormalize, whose statistics were not found:"
    " sb3:FILE.zip?normalize=FILE.pkl names them (config.yml)",
)


@pytest.mark.parametrize("place", [".", "Ant-v3", "of another name"])
def test_wrappers_and_arguments_are_named_with_their_options(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir(exist_ok=True)
    (folder / "config.yml").write_text(CONFIG)
    (folder / "args.yml").write_text(ARGS)
    assert training_notes(tmp_path / "Ant-v3.zip", has_statistics=False) == NOTES
    assert training_notes(tmp_path / "Ant-v3.zip", has_statistics=True) == NOTES[:-1]


def test_arguments_of_a_file_of_their_own_are_named(tmp_path):
    (tmp_path / "env_kwargs.yml").write_text("use_contact_forces: true\n")
    (note,) = training_notes(tmp_path / "model.zip", has_statistics=True)
    assert "env.use_contact_forces=True" in note


def test_folders_of_other_models_say_nothing(tmp_path):
    for name in ("Ant-v3", "Hopper-v3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yml").write_text(CONFIG)
    assert training_notes(tmp_path / "best_model.zip", has_statistics=False) == ()
    assert training_notes(tmp_path / "Hopper-v3.zip", has_statistics=False) != ()


@pytest.mark.parametrize(
    "content",
    [
        "- just\n- a list\n",
        "{broken",
        "[" * 3000,
        "a: &a [x, x]\n"
        + "".join(f"k{n}: &k{n} [{', '.join(['*a' if n == 0 else f'*k{n - 1}'] * 9)}]\n" for n in range(9)),
        "x" * 100_000,
        "\x00",
        "",
        "env_wrapper: 3\nenv_kwargs: [1]\nframe_stack: many\n",
        "!!python/object/apply:collections.OrderedDict\n- 3\n",
        "!!python/object/apply:os.system ['touch made']\n",
    ],
    ids=range(10),
)
def test_any_other_file_of_this_name_does_no_harm(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yml").write_text(content)
    assert training_notes(tmp_path / "model.zip", has_statistics=False) == ()
    assert not (tmp_path / "made").exists()


def test_model_that_does_not_fit_says_which_wrapper_it_was_trained_with(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    from gymnasium.spaces import Box, Discrete

    from policyfuzz.policies.uri import load_policy

    sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, device="cpu").save(tmp_path / "model.zip")
    (tmp_path / "config.yml").write_text(CONFIG)
    longer = Spaces(Box(-1.0, 1.0, (5,), np.float32), Discrete(2))
    with pytest.raises(PolicyError, match=r"wrap=sb3_contrib\.common\.wrappers:TimeFeatureWrapper"):
        load_policy(f"sb3:{tmp_path / 'model.zip'}", longer, trust=True)
