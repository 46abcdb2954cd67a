"""What the environment's own reset draws is learnt, and sets the bounds of the input."""

from pathlib import Path

import cloudpickle
import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra gym")

from gymnasium import spaces  # noqa: E402

import policyfuzz  # noqa: E402
from policyfuzz import load_target  # noqa: E402
from policyfuzz.core.errors import UsageError  # noqa: E402
from policyfuzz.core.own_reset import OwnRange, OwnReset  # noqa: E402
from policyfuzz.core.target import Runner  # noqa: E402
from policyfuzz.environments.bounds import RESETS, bounded, learn_own_reset  # noqa: E402
from policyfuzz.environments.find_start import read_changes, unchanged_start  # noqa: E402
from policyfuzz.environments.gymnasium import Environment  # noqa: E402

POLICIES = Path(__file__).parent / "gym_policies.py"
STEADY = f"py:{POLICIES}:steady"
CARTPOLE = "gym:CartPole-v1"
#: Environment to the package that it needs.
KNOWN = {
    "CartPole-v1": None,
    "MountainCar-v0": None,
    "Pendulum-v1": None,
    "Acrobot-v1": None,
    "FrozenLake-v1": None,
    "Hopper-v5": "mujoco",
    "HalfCheetah-v5": "mujoco",
    "MiniGrid-DoorKey-5x5-v0": "minigrid",
}


def made(name):
    package = KNOWN.get(name)
    if package:
        pytest.importorskip(package)
    return Environment(name)().unwrapped


def start_of(env, text="", bounds=None):
    changes = read_changes(text)
    return bounded(*unchanged_start(env, changes), env, changes, bounds)


def ranges_of(target):
    return {one.name: (one.low, one.high) for one in target.inputs.dimensions}


@pytest.mark.parametrize("name", KNOWN)
def test_ranges_are_what_resets_draw_and_no_wider(name):
    env = made(name)
    start, _ = unchanged_start(env)
    own = learn_own_reset(start, env)
    assert own.resets == RESETS
    drawn = []
    for seed in range(RESETS):
        env.reset(seed=seed)
        drawn.append(start.read(env))
    for dimension, column in zip(start.inputs.dimensions, np.array(drawn).T, strict=True):
        if dimension.kind != "seed":
            found = own.ranges[dimension.name]
            assert (found.low, found.high) == (column.min(), column.max())


@pytest.mark.parametrize("name", ["LunarLander-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3"])
def test_what_box2d_draws_is_known_without_a_reset(name):
    pytest.importorskip("Box2D", reason="needs the extra box2d")
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    start, _ = unchanged_start(env)
    own = learn_own_reset(start, env)
    assert own.resets == 0
    assert set(own.ranges) == set(start.inputs.names)
    for dimension in start.inputs.dimensions:
        drawn = own.ranges[dimension.name]
        whole = (dimension.low, dimension.high)
        is_pose = dimension.name in ("x", "height", "angle")
        assert (drawn.low, drawn.high) == ((0, 0) if is_pose else whole)


def test_own_bounds_keep_the_inputs_and_the_oracle_and_stay_within_what_reset_draws():
    plain, own = load_target(CARTPOLE, STEADY), load_target(f"{CARTPOLE}:bounds=own", STEADY)
    assert own.name == f"{CARTPOLE}:bounds=own"
    assert own.inputs.names == plain.inputs.names
    assert own.oracle == plain.oracle
    assert own.own_reset is not None
    for name, (low, high) in ranges_of(own).items():
        assert (low, high) == (own.own_reset.ranges[name].low, own.own_reset.ranges[name].high)
        assert -0.05 <= low < high <= 0.05
    rebuilt = load_target(own.name, STEADY)
    assert (rebuilt.inputs.dimensions, rebuilt.own_reset) == (own.inputs.dimensions, own.own_reset)


def test_factors_scale_what_reset_draws_up_to_the_wide_bounds():
    wide, twice, huge = (
        ranges_of(load_target(f"{CARTPOLE}:bounds={text}", STEADY)) for text in ("wide", "2", "1000")
    )
    assert twice == dict.fromkeys(wide, (-0.1, 0.1))
    assert huge == wide
    assert wide["x"] == (-1.2, 1.2)


def test_bounds_that_the_user_gives_win():
    target = load_target(f"{CARTPOLE}:bounds=own,input=theta=-0.2..0.2;x=1", STEADY)
    assert ranges_of(target)["theta"] == (-0.2, 0.2)
    assert target.inputs.names == ("x_dot", "theta", "theta_dot")
    assert target.own_reset is not None
    assert target.own_reset.excesses({"x_dot": 0.0}) == {"x": pytest.approx(0.95, abs=0.01)}


def test_dimensions_that_reset_never_varies_are_fixed_and_named():
    env = made("MountainCar-v0")
    found = start_of(env, bounds="own")
    assert found.start.inputs.names == ("position",)
    assert "fixed, since reset never varies it: velocity" in found.note
    found.start.begin(env, env.reset, np.array([-0.5]), 0)
    assert env.state.tolist() == [-0.5, 0.0]


def test_nothing_is_left_where_reset_has_one_state_only():
    with pytest.raises(UsageError, match="never vary") as raised:
        start_of(made("FrozenLake-v1"), bounds="own")
    assert "--bounds wide" in (raised.value.hint or "")


@pytest.mark.parametrize("text", ["narrow", "0", "-1", "nan", "inf", ""])
def test_bounds_that_cannot_be_read_are_refused(text):
    with pytest.raises(UsageError, match="expected own, wide or a factor"):
        start_of(made("CartPole-v1"), bounds=text)


def test_whole_numbers_stay_whole():
    class Level(gymnasium.Env):
        observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)
        metadata = {"reset_options": {"level": (0, 100)}}  # noqa: RUF012

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.level = (options or {}).get("level", int(self.np_random.integers(10, 21)))
            return np.zeros(1, np.float32), {}

    env = Level()
    found = start_of(env)
    assert (found.own_reset.ranges["level"].low, found.own_reset.ranges["level"].high) == (10, 20)
    assert [(one.low, one.high) for one in found.start.inputs.dimensions] == [(0, 100)]  # wide by default
    scaled = start_of(env, bounds="1.5").start.inputs.dimensions[0]
    assert (scaled.low, scaled.high, scaled.kind) == (8, 22, "integer")


@pytest.mark.parametrize("fault", ["raises", "hides"])
def test_what_reset_draws_is_not_known_where_it_cannot_be_read(fault):
    class Opaque(gymnasium.Env):
        observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)
        metadata = {"reset_options": {"mass": (0.5, 2.0)}}  # noqa: RUF012

        def reset(self, *, seed=None, options=None):
            if fault == "raises" and options is None:
                raise SystemExit(3)
            return np.zeros(1, np.float32), {}

    found = start_of(Opaque())
    assert found.own_reset.ranges == {}
    assert "what reset draws is not known" in found.note
    with pytest.raises(UsageError, match="cannot be read"):
        start_of(Opaque(), bounds="own")


def test_the_seed_keeps_the_oracle_of_the_family():
    wide, seed = (load_target(f"{CARTPOLE}:{text}", STEADY) for text in ("bounds=wide", "input=seed"))
    assert seed.oracle == wide.oracle
    assert "oracle=" not in seed.name
    assert seed.own_reset is not None
    assert seed.own_reset.excesses({"seed": 12345.0}) == {}


@pytest.mark.slow
def test_the_seed_keeps_the_oracle_of_a_lander():
    pytest.importorskip("Box2D", reason="needs the extra box2d")
    seed = load_target("gym:LunarLander-v3:input=seed", f"py:{POLICIES}:lander")
    assert seed.oracle.kinds == ("crash",)


def test_targets_with_what_reset_draws_can_be_sent_to_workers():
    target = cloudpickle.loads(cloudpickle.dumps(load_target(CARTPOLE, STEADY)))
    assert target.own_reset == load_target(CARTPOLE, STEADY).own_reset


def test_bounds_are_an_argument_in_python():
    target = policyfuzz.as_target(CARTPOLE, STEADY, bounds=2)
    assert ranges_of(target)["theta"] == (-0.1, 0.1)
    with pytest.raises(UsageError, match="bounds"):
        policyfuzz.as_target("ripple", bounds="own")


def test_own_starts_crash_no_more_than_the_environments_own():
    """Within own bounds, a policy that never crashes from its own reset does not crash either."""
    target = load_target(f"{CARTPOLE}:bounds=own", STEADY)
    inputs = target.inputs.sample(np.random.default_rng(0), 20)
    assert not Runner(target)(inputs, np.arange(20, dtype=np.uint64)).crashed.any()


def test_an_excess_has_a_sign_and_a_little_slack():
    own = OwnReset({"x": OwnRange(-1.0, 1.0, "m", 4.0), "y": OwnRange(5.0, 5.0, "m", 1.0)}, {"y": 5.5})
    assert own.excesses({"x": 1.01}) == {"y": 0.5}
    assert own.excesses({"x": -3.5}) == {"x": -2.5, "y": 0.5}  # by share of the reach
    assert own.excesses({"x": 0.0, "z": 9.0}) == {"y": 0.5}
    assert OwnReset.from_json(own.to_json()) == own


def page(low: str, high: str = "1", unit: str = '"m"') -> str:
    one = f'{{"low": {low}, "high": {high}, "unit": {unit}, "reach": 1}}'
    return f'{{"ranges": {{"x": {one}}}, "fixed": {{}}, "resets": 1}}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{}", "1", "[" * 100_000, '{"ranges": {"x": 3}, "fixed": {}, "resets": 1}'),
        *(page('"low"'), page("NaN"), page("2"), page("-1e999"), page("-1e308", "1e308"), page("true")),
        *(page("0", unit="7"), page("0").replace('"resets": 1', '"resets": 1e999')),
    ],
)
def test_text_that_is_no_own_reset_says_nothing(text):
    assert OwnReset.from_json(text) is None
