"""BipedalWalker starts on the course, or with the push, that it is told."""

import hashlib
import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("Box2D", reason="BipedalWalker needs Box2D")

from gymnasium.envs.box2d import bipedal_walker  # noqa: E402

from policyfuzz.core.inputs import Choice  # noqa: E402
from policyfuzz.environments.families.bipedal_walker import find  # noqa: E402
from policyfuzz.environments.simulator import EnvironmentSlot, StateNotKept  # noqa: E402
from policyfuzz.targets.bipedal.terrain import lay_course  # noqa: E402
from policyfuzz.targets.bipedal.walkers import Walker  # noqa: E402

IDS = ("BipedalWalker-v3", "BipedalWalkerHardcore-v3")
HARDCORE = IDS[1]


def make(name, **options):
    return gymnasium.make(name, disable_env_checker=True, **options)


def known_start(env):
    start = find(env.unwrapped)
    assert start is not None
    return start


def make_slot(name, **options):
    env = make(name, **options)
    return EnvironmentSlot(env, known_start(env))


def draws(name, count, seed=0):
    return find(make(name).unwrapped).inputs.sample(np.random.default_rng(seed), count)


def stagger(step):
    """Motor commands that kick about."""
    return np.sin(np.array([1.0, 1.7, 2.3, 3.1]) * (step + 1)).astype(np.float32)


def walk(slot, values, seed, action=stagger, *, films=False, steps=150):
    """What is seen and got, as bytes, and the last reward."""
    seen = [slot.reset(values, seed)[0].tobytes()]
    for step in range(steps):
        observation, reward, terminated, _, _ = slot.env.step(action(step))
        seen.append(observation.tobytes() + np.float64(reward).tobytes())
        if films:
            slot.env.render()
        if terminated:
            break
    return b"".join(seen), reward


def test_hardcore_inputs_are_the_obstacles():
    start = find(make(HARDCORE).unwrapped)
    assert all(isinstance(dimension, Choice) for dimension in start.inputs.dimensions)
    assert len(start.inputs.dimensions) == 15
    assert (start.way, start.oracle) == ("state", "reward<=-99.5 as fall")


def test_the_plain_input_is_the_push():
    start = find(make(IDS[0]).unwrapped)
    assert start.inputs.names == ("push",)
    assert (start.inputs.dimensions[0].low, start.inputs.dimensions[0].high) == (-5.0, 5.0)
    assert "seed" in start.label


def test_other_environments_have_no_start_here():
    assert find(gymnasium.make("CartPole-v1").unwrapped) is None


def test_obstacles_read_back_as_far_as_the_course_goes():
    env = make(HARDCORE).unwrapped
    start = find(env)
    for seed, values in enumerate(draws(HARDCORE, 12)):
        start.begin(env, env.reset, values, seed)
        read = start.read(env)
        built = len(lay_course(values.astype(int).tolist(), np.random.default_rng(seed)).starts)
        np.testing.assert_array_equal(read[:built], values[:built])
        assert np.isnan(read[built:]).all()


def test_pushes_read_back():
    env = make(IDS[0]).unwrapped
    start = find(env)
    for seed, values in enumerate(draws(IDS[0], 12)):
        start.begin(env, env.reset, values, seed)
        np.testing.assert_array_equal(start.read(env), values)


def test_a_push_of_its_own_draw_gives_its_own_episode():
    env = make(IDS[0]).unwrapped
    own = [env.reset(seed=8)[0], *(env.step(stagger(step))[0] for step in range(40))]
    start = find(env)
    pushes = []

    class Listening:
        def __init__(self, generator):
            self._generator = generator

        def __getattr__(self, name):
            return getattr(self._generator, name)

        def uniform(self, low, high):
            drawn = self._generator.uniform(low, high)
            pushes.extend([drawn] if (low, high) == (-5, 5) else [])
            return drawn

    env.np_random = Listening(np.random.default_rng(8))
    env.reset()
    ours = [start.begin(env, env.reset, np.array(pushes), 8)[0]]
    ours += [env.step(stagger(step))[0] for step in range(40)]
    np.testing.assert_array_equal(ours, own)


def test_the_course_is_that_of_the_built_in_target():
    env = make(HARDCORE).unwrapped
    start = find(env)
    for seed, values in enumerate(draws(HARDCORE, 3)):
        walker = Walker()
        ours = start.begin(env, env.reset, values, seed)[0]
        np.testing.assert_array_equal(ours, walker.reset(values.astype(int).tolist(), seed))
        np.testing.assert_array_equal(env.terrain_y, walker.course.heights)


@pytest.mark.parametrize("name", IDS)
def test_episodes_are_the_same_on_a_fresh_and_on_a_used_environment(name):
    cases = [(values, seed) for seed, values in enumerate(draws(name, 3))]
    used = make_slot(name)
    first = [walk(used, *case) for case in cases]
    assert [walk(used, *case) for case in cases[::-1]] == first[::-1]
    assert [walk(make_slot(name), *case) for case in cases] == first


@pytest.mark.parametrize("name", IDS)
def test_another_seed_is_another_ground(name):
    slot = make_slot(name)
    values = draws(name, 1)[0]
    slot.reset(values, 1)
    ground = list(slot.env.unwrapped.terrain_y)
    slot.reset(values, 2)
    assert list(slot.env.unwrapped.terrain_y) != ground


def test_episodes_are_the_same_in_another_process():
    case = f"m.walk(m.make_slot({HARDCORE!r}), m.draws({HARDCORE!r}, 1)[0], 3)[0]"
    here = hashlib.sha256(walk(make_slot(HARDCORE), draws(HARDCORE, 1)[0], 3)[0]).hexdigest()
    code = (
        "import importlib.util, sys, hashlib, warnings; warnings.simplefilter('ignore');"
        f"spec = importlib.util.spec_from_file_location('walker', {__file__!r});"
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m);"
        f"print(hashlib.sha256({case}).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == here


@pytest.mark.parametrize("name", IDS)
def test_wrappers_see_the_start(name):
    env = gymnasium.wrappers.TransformObservation(make(name), lambda seen: 2 * seen, None)
    slot = EnvironmentSlot(env, known_start(env))
    values = draws(name, 1)[0]
    np.testing.assert_array_equal(slot.reset(values, 4)[0], 2 * make_slot(name).reset(values, 4)[0])


@pytest.mark.parametrize("name", IDS)
def test_a_walker_that_bends_its_knees_falls_and_one_at_rest_stands(name):
    values = draws(name, 1)[0]
    # straight out with one hip and in with the other, until the hull is down
    assert walk(make_slot(name), values, 0, lambda step: np.array([1, 1, -1, -1], np.float32))[1] == -100
    assert walk(make_slot(name), values, 0, lambda step: np.zeros(4, np.float32), steps=20)[1] > -1


@pytest.mark.parametrize(
    ("name", "method", "line", "instead"),
    [
        (HARDCORE, "_generate_terrain", "integers(1, _STATES_)", "choice([1, 2, 3])"),
        (IDS[0], "reset", "uniform(-INITIAL_RANDOM, INITIAL_RANDOM)", "normal(0, INITIAL_RANDOM)"),
    ],
)
def test_a_reset_that_draws_otherwise_is_noticed(name, method, line, instead, monkeypatch):
    source = textwrap.dedent(inspect.getsource(getattr(bipedal_walker.BipedalWalker, method)))
    assert line in source
    changed = source.replace(line, instead).replace("super()", "super(BipedalWalker, self)")
    names = {}
    exec(changed, vars(bipedal_walker), names)
    monkeypatch.setattr(bipedal_walker.BipedalWalker, method, names[method])
    with pytest.raises(StateNotKept):
        make_slot(name).reset(draws(name, 1)[0], 0)


@pytest.mark.parametrize("name", IDS)
def test_a_film_is_the_same_episode(name, monkeypatch):
    pytest.importorskip("pygame", reason="pictures are drawn with pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    values = draws(name, 1)[0]
    filmed = make_slot(name, render_mode="rgb_array")
    assert walk(filmed, values, 1, films=True, steps=40) == walk(make_slot(name), values, 1, steps=40)
    assert filmed.env.render().shape == (400, 600, 3)
