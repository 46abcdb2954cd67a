"""What known environments tell about how near they are to failing."""

from functools import cache
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest

from policyfuzz.core.oracle import smallest
from policyfuzz.core.rollout import rollout
from policyfuzz.environments.find_start import find_start
from policyfuzz.environments.gauges import find_gauge
from policyfuzz.environments.simulator import GymSimulator
from policyfuzz.environments.starts import SeedStart
from policyfuzz.oracles import graded, parse_oracle

EPISODES, HORIZON = 8, 120

BOX2D = ("LunarLander-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3")
MUJOCO = tuple(
    f"{name}-v5"
    for name in ("Ant", "Hopper", "Humanoid", "InvertedDoublePendulum", "InvertedPendulum", "Walker2d")
)
GOALS = ("MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")
#: No signal of their own; `truncated` is graded by the time that is left, and `return` by itself.
PLAIN = ("Pendulum-v1", "Taxi-v4", "FrozenLake-v1", "CliffWalking-v1", "HalfCheetah-v5")


def here(name):
    """The name as a parameter, skipped where its package is missing."""
    package = "Box2D" if name in BOX2D else "mujoco" if name.endswith("-v5") else "gymnasium"
    missing = pytest.mark.skipif(find_spec(package) is None, reason=f"needs {package}")
    return pytest.param(name, marks=missing)


FALLING = [here(name) for name in ("CartPole-v1", *BOX2D, *MUJOCO)]
EVERY = [*FALLING, *map(here, (*GOALS, *PLAIN))]


@pytest.fixture(autouse=True)
def _away(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file in the folder it runs in."""
    monkeypatch.chdir(tmp_path)


class Thrashing:
    """Actions at random, each held for some steps: the same for an episode whatever its neighbours do."""

    def __init__(self, space):
        self._space = space

    def begin(self, count):
        self._time = 0

    def act(self, observations, rows):
        self._time += 1
        actions = []
        for row in rows.tolist():
            self._space.seed(1000 * row + self._time // (1 + row))
            actions.append(self._space.sample())
        return np.array(actions)


class Watching:
    """An oracle that keeps what it has judged."""

    def __init__(self, oracle):
        self.oracle, self.kinds = oracle, oracle.kinds

    def judge(self, trajectories):
        self.seen = trajectories
        return self.oracle.judge(trajectories)


def run(name, *, has_gauge, text=None, horizon=HORIZON):
    """Executions of wild episodes, and what the oracle saw of them."""
    return run_once(name, has_gauge, text, horizon)


@cache  # knows nothing of defaults: every call must name the same arguments in the same way
def run_once(name, has_gauge, text, horizon):
    def make():
        return gymnasium.make(name, disable_env_checker=True)

    env = make()
    start = find_start(env)
    gauge = find_gauge(env) if has_gauge else None
    oracle = parse_oracle(text or start.oracle or "truncated")
    if has_gauge:
        oracle = graded(oracle, None if gauge is None else gauge.failure, horizon)
    watching = Watching(oracle)
    drawn = start.inputs.sample(np.random.default_rng(0), 40 * EPISODES)
    inputs = drawn[start.inputs.is_valid(drawn)][:EPISODES]
    assert len(inputs) == EPISODES
    executions = rollout(
        GymSimulator(make, start, gauge=gauge),
        Thrashing(env.action_space),
        watching,
        inputs,
        np.arange(EPISODES, dtype=np.uint64),
        horizon=horizon,
    )
    return executions, watching.seen


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", [None, "terminated | truncated as late"], ids=["default", "written"])
def test_reading_a_gauge_changes_neither_episodes_nor_crashes(name, text):
    (plain, _), (gauged, _) = (run(name, has_gauge=with_one, text=text) for with_one in (False, True))
    assert gauged.returns.tobytes() == plain.returns.tobytes()
    assert gauged.states.tobytes() == plain.states.tobytes()
    np.testing.assert_array_equal(gauged.verdicts.kinds, plain.verdicts.kinds)
    np.testing.assert_array_equal(gauged.verdicts.steps, plain.verdicts.steps)
    assert not plain.errors


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", [None, "terminated | truncated as late"], ids=["default", "written"])
def test_margin_is_on_the_side_of_zero_that_the_verdict_says(name, text):
    executions, _ = run(name, has_gauge=True, text=text)
    margins, crashed = executions.verdicts.margins, executions.crashed
    assert np.isfinite(margins).all()
    assert (margins[crashed] <= 0).all()
    assert (margins[~crashed] >= 0).all()


@pytest.mark.parametrize("name", FALLING)
def test_room_is_used_up_where_an_episode_fails_and_only_there(name):
    executions, seen = run(name, has_gauge=True)
    crashed, room = executions.crashed, smallest(seen.signal("room"), seen.counted)
    assert crashed.any()
    # Box2D calls it contact when hulls come within a few centimetres; all others compare the same numbers
    contact = 0.1 if name in BOX2D else 1e-12
    assert (room[crashed] <= contact).all()
    assert (room[~crashed] >= -1e-12).all()
    before = np.where(seen.counted, seen.signal("room"), np.nan)
    last = executions.lengths - 1
    before[np.arange(EPISODES), last] = np.nan
    assert np.nanmin(before) >= 0
    assert np.nanmax(before) <= 1.5


@pytest.mark.parametrize("name", [*FALLING, *map(here, GOALS)])
def test_margins_of_crashes_rank_them(name):
    # goals are reached by chance if there is time
    executions, _ = run(name, has_gauge=True, horizon=20 if name in GOALS else HORIZON)
    margins = executions.verdicts.margins[executions.crashed]
    assert len(np.unique(margins)) >= len(margins) / 2
    assert (margins < 0).any()


@pytest.mark.parametrize(
    ("name", "state", "way"),
    [
        ("MountainCar-v0", (-1.2, 0.0), 1.0),
        ("MountainCar-v0", (0.5, 0.0), 0.0),
        ("MountainCarContinuous-v0", (0.45, 0.0), 0.0),
        ("Acrobot-v1", (0.0, 0.0, 0.0, 0.0), 1.0),
        ("Acrobot-v1", (np.pi, 0.0, 0.0, 0.0), 0.0),
        ("Acrobot-v1", (np.pi / 2, np.pi / 2, 0.0, 0.0), 0.0),
    ],
)
def test_way_to_the_goal_is_a_share_of_the_whole(name, state, way):
    env = gymnasium.make(name)
    env.reset(seed=0)
    env.unwrapped.state = np.array(state)
    gauge = find_gauge(env)
    assert gauge is not None
    assert gauge.read(env.unwrapped) == pytest.approx((way,), abs=1e-9)


@pytest.mark.parametrize(
    ("state", "room"),
    [
        ((0, 9, 0, 9), 1.0),
        ((1.2, 0, 0, 0), 0.5),
        ((-1.2, 0, np.radians(-9), 0), 0.25),
        ((3.6, 0, 0, 0), -0.5),
    ],
)
def test_room_of_a_cart_is_relative_to_its_limits(state, room):
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    env.unwrapped.state = np.array(state, np.float64)
    gauge = find_gauge(env)
    assert gauge is not None
    assert gauge.read(env.unwrapped) == pytest.approx((room,))


@pytest.mark.parametrize("name", [here(name) for name in MUJOCO])
def test_room_of_the_initial_pose_is_whole(name):
    env = gymnasium.make(name)
    env.reset(seed=0)
    base = env.unwrapped
    base.set_state(base.init_qpos, 0 * base.init_qvel)
    gauge = find_gauge(env)
    assert gauge is not None
    assert gauge.read(base) == pytest.approx((1.0,))


@pytest.mark.skipif(find_spec("mujoco") is None, reason="needs mujoco")
def test_there_is_no_gauge_where_the_rule_is_switched_off():
    assert find_gauge(gymnasium.make("Hopper-v5", terminate_when_unhealthy=False)) is None
    assert find_gauge(gymnasium.make("HalfCheetah-v5")) is None


def test_there_is_no_gauge_for_an_unknown_environment():
    class Own(gymnasium.Env):
        """An environment of nobody's family."""

    assert find_gauge(Own()) is None


def test_margin_is_unknown_and_episodes_run_when_a_class_changes_what_its_state_is():
    from gymnasium.envs.classic_control import CartPoleEnv

    class Stateless(CartPoleEnv):
        """Keeps its state elsewhere, if it has any."""

        def reset(self, *, seed=None, options=None):
            _, info = super().reset(seed=seed)
            self.state = None
            return np.zeros(4, np.float32), info

        def step(self, action):
            return np.zeros(4, np.float32), 1.0, bool(self.np_random.random() < 0.5), False, {}

    env = Stateless()
    gauge = find_gauge(env)
    assert gauge is not None
    executions = rollout(
        GymSimulator(Stateless, SeedStart(), gauge=gauge),
        Thrashing(env.action_space),
        graded(parse_oracle("terminated"), gauge.failure, HORIZON),
        np.arange(4.0)[:, None],
        np.arange(4, dtype=np.uint64),
        horizon=HORIZON,
    )
    assert not executions.errors
    assert executions.crashed.all()
    assert np.isnan(executions.verdicts.margins).all()
