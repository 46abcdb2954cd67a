"""LunarLander starts where it is told, and as its own reset would."""

import hashlib
import inspect
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("Box2D", reason="LunarLander needs Box2D")

from gymnasium.envs.box2d import lunar_lander  # noqa: E402

from policyfuzz.environments.families.lunar_lander import find  # noqa: E402
from policyfuzz.environments.simulator import EnvironmentSlot, StateNotKept  # noqa: E402

FREE = [0, 1, 2, 8, 9, 10, 11]
KINDS: list[dict[str, Any]] = [
    {},
    {"continuous": True},
    {"enable_wind": True, "wind_power": 20.0, "turbulence_power": 2.0},
]


def make(**options):
    return gymnasium.make("LunarLander-v3", disable_env_checker=True, **options)


def known_start(env):
    start = find(env.unwrapped)
    assert start is not None
    return start


def make_slot(**options):
    env = make(**options)
    return EnvironmentSlot(env, known_start(env))


def draws(count, seed=0):
    return find(make().unwrapped).inputs.sample(np.random.default_rng(seed), count)


def calm(**changed):
    """A start with a level ground and no push, but for what is named."""
    inputs = find(make().unwrapped).inputs
    row = np.array([0.0] * 5 + [10 / 3] * 7)
    for name, value in changed.items():
        row[inputs.names.index(name.replace("_", " "))] = value
    return row


def control(observation):
    """Leans against drift, sinks slowly, and waits until it is over the pad; lands nearly always."""
    x, y, vx, vy, angle, spin, left, right = map(float, observation)
    turn = (np.clip(0.55 * x + 1.1 * vx, -0.6, 0.6) - angle) * 0.6 - spin
    sink = max(-0.12 - 0.33 * max(y - 0.05, 0.0), -0.55)
    if abs(x) > 0.18 and y < 0.35:
        sink = max(sink, (0.35 - y) * 0.5)
    lift = sink - vy
    if left or right:
        turn, lift = 0.0, -vy * 0.5
    if lift > max(abs(turn), 0.05):
        return 2
    return 0 if abs(turn) <= 0.05 else 3 if turn < 0 else 1


def fly(slot, values, seed, policy=control, *, films=False):
    """What the policy sees and gets, as bytes, and the last reward."""
    observation = slot.reset(values, seed)[0]
    seen = [observation.tobytes()]
    for _ in range(1000):
        observation, reward, terminated, truncated, _ = slot.env.step(policy(observation))
        seen.append(observation.tobytes() + np.float64(reward).tobytes())
        if films:
            slot.env.render()
        if terminated or truncated:
            break
    return b"".join(seen), reward


def thrust(observation):
    """Some thrust of both engines."""
    return np.array([np.sin(7 * observation[1]), np.cos(5 * observation[0])], np.float32)


def test_a_start_is_found_for_landers_only():
    start = find(make().unwrapped)
    assert start.way == "state"
    assert start.oracle == "reward<=-99.5 as crash"
    assert len(start.inputs.dimensions) == 12
    assert find(gymnasium.make("CartPole-v1").unwrapped) is None


@pytest.mark.parametrize("options", KINDS)
def test_values_read_back(options):
    env = make(**options).unwrapped
    start = find(env)
    for seed, values in enumerate(draws(20)):
        start.begin(env, env.reset, values, seed)
        np.testing.assert_array_equal(start.read(env), values)


@pytest.mark.parametrize("options", KINDS)
def test_its_own_draws_give_its_own_episode(options):
    env = make(**options).unwrapped
    start = find(env)
    action = np.array([0.7, -0.8], np.float32) if env.continuous else 2
    for seed in range(5):
        rng = np.random.default_rng(seed)
        heights = rng.uniform(0, lunar_lander.VIEWPORT_H / lunar_lander.SCALE / 2, 12)
        push = [rng.uniform(-lunar_lander.INITIAL_RANDOM, lunar_lander.INITIAL_RANDOM) for _ in range(2)]
        own = [env.reset(seed=seed)[0], *(env.step(action)[0] for _ in range(30))]
        values = np.concatenate([push, np.zeros(3), heights[FREE]])
        ours = [start.begin(env, env.reset, values, seed)[0], *(env.step(action)[0] for _ in range(30))]
        np.testing.assert_array_equal(ours, own)


def test_the_observation_shows_the_pose():
    env = make().unwrapped
    start = find(env)
    usual = start.begin(env, env.reset, calm(), 0)[0]
    moved = start.begin(env, env.reset, calm(x=1.5, height=-0.5, angle=0.2), 0)[0]
    half_width, half_height = 10.0, 20 / 3
    np.testing.assert_allclose(moved[:2] - usual[:2], [1.5 / half_width, -0.5 / half_height], atol=2e-3)
    assert moved[4] - usual[4] == pytest.approx(0.2, abs=0.01)


def test_legs_move_with_the_lander(monkeypatch):
    placed = []
    own_step = lunar_lander.LunarLander.step

    def step(env, action):
        if not placed or placed[-1][0] is not env.lander:
            bodies = (env.lander, *env.legs)
            local = [env.lander.GetLocalPoint(body.position) for body in bodies]
            placed.append(
                (
                    env.lander,
                    [
                        (*point, body.angle - env.lander.angle)
                        for point, body in zip(local, bodies, strict=True)
                    ],
                )
            )
        return own_step(env, action)

    monkeypatch.setattr(lunar_lander.LunarLander, "step", step)
    env = make().unwrapped
    start = find(env)
    start.begin(env, env.reset, calm(), 0)
    start.begin(env, env.reset, calm(x=-2.0, height=1.0, angle=-0.3), 0)
    np.testing.assert_allclose(placed[1][1], placed[0][1], atol=2e-6)


def test_episodes_are_the_same_on_a_fresh_and_on_a_used_environment():
    cases = [(values, seed) for seed, values in enumerate(draws(6))]
    used = make_slot()
    first = [fly(used, *case) for case in cases]
    assert [fly(used, *case) for case in cases[::-1]] == first[::-1]
    assert [fly(make_slot(), *case) for case in cases] == first


def test_wind_comes_from_the_seed_alone():
    used = make_slot(**KINDS[2])
    case = draws(1)[0], 5
    first = fly(used, *case)
    fly(used, draws(2)[1], 6)
    assert fly(used, *case) == first
    assert fly(used, case[0], 7) != first


def test_episodes_are_the_same_in_another_process():
    here = hashlib.sha256(fly(make_slot(), draws(1)[0], 3)[0]).hexdigest()
    code = (
        "import importlib.util, sys, hashlib, warnings; warnings.simplefilter('ignore');"
        f"spec = importlib.util.spec_from_file_location('lander', {__file__!r});"
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m);"
        "print(hashlib.sha256(m.fly(m.make_slot(), m.draws(1)[0], 3)[0]).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == here


def test_wrappers_see_the_start():
    env = gymnasium.wrappers.TransformObservation(make(), lambda seen: 2 * seen, None)
    slot = EnvironmentSlot(env, known_start(env))
    values = draws(1)[0]
    plain = make_slot().reset(values, 4)[0]
    np.testing.assert_array_equal(slot.reset(values, 4)[0], 2 * plain)


def test_a_lander_without_engines_crashes_and_a_controlled_one_lands():
    hard = calm(push_y=-1000.0, height=-1.0)
    assert fly(make_slot(), hard, 0, lambda observation: 0)[1] == -100
    assert fly(make_slot(), hard, 0)[1] == 100


def test_a_controller_lands_from_nearly_all_starts():
    slot = make_slot()
    landed = [fly(slot, values, seed)[1] == 100 for seed, values in enumerate(draws(40, seed=9))]
    assert np.mean(landed) >= 0.95


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("uniform(-INITIAL_RANDOM, INITIAL_RANDOM)", "normal(0, INITIAL_RANDOM)"),
        ("CHUNKS = 11", "CHUNKS = 13"),
        ("uniform(0, H / 2, size=(CHUNKS + 1,))", "normal(H / 4, 1, size=(CHUNKS + 1,))"),
        ("initial_x = VIEWPORT_W / SCALE / 2", "initial_x = VIEWPORT_W / SCALE / 2 + 1"),
    ],
)
def test_a_reset_that_draws_otherwise_is_noticed(line, instead, monkeypatch):
    source = textwrap.dedent(inspect.getsource(lunar_lander.LunarLander.reset))
    assert line in source
    changed = source.replace(line, instead).replace("super()", "super(LunarLander, self)")
    names = {}
    exec(changed, vars(lunar_lander), names)
    monkeypatch.setattr(lunar_lander.LunarLander, "reset", names["reset"])
    with pytest.raises(StateNotKept):
        make_slot().reset(draws(1)[0], 0)


def test_a_film_is_the_same_episode(monkeypatch):
    pytest.importorskip("pygame", reason="pictures are drawn with pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    filmed, values = make_slot(render_mode="rgb_array"), draws(1)[0]
    assert fly(filmed, values, 0, films=True) == fly(make_slot(), values, 0)
    assert filmed.env.render().shape == (400, 600, 3)


def test_continuous_landers_repeat():
    slot = make_slot(continuous=True)
    values = draws(1)[0]
    first = fly(slot, values, 1, thrust)
    fly(slot, draws(2)[1], 2, thrust)
    assert fly(slot, values, 1, thrust) == first
