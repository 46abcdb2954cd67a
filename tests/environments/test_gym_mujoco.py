"""MuJoCo environments start in the pose that they are told, and as their own reset would."""

import hashlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco", reason="these environments need MuJoCo")

from gymnasium.envs.mujoco import MujocoEnv  # noqa: E402

from policyfuzz.core.errors import CannotRender  # noqa: E402
from policyfuzz.environments.families.mujoco import find  # noqa: E402
from policyfuzz.environments.families.mujoco_joints import Part  # noqa: E402
from policyfuzz.environments.mujoco_camera import follow_body  # noqa: E402
from policyfuzz.environments.simulator import EnvironmentSlot, picture_of  # noqa: E402

IDS = [
    f"{name}-v5"
    for name in (
        *("Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum"),
        *("InvertedPendulum", "Pusher", "Reacher", "Swimmer", "Walker2d"),
    )
]
FALLING = {
    f"{name}-v5"
    for name in ("Ant", "Hopper", "Humanoid", "InvertedDoublePendulum", "InvertedPendulum", "Walker2d")
}


@pytest.fixture(autouse=True)
def _away(tmp_path, monkeypatch):
    """MuJoCo writes its warnings, such as that of HalfCheetah, to a file in the folder it runs in."""
    monkeypatch.chdir(tmp_path)


def make(name, **options):
    return gymnasium.make(name, disable_env_checker=True, **options)


def known_start(env):
    start = find(env.unwrapped)
    assert start is not None
    return start


def make_slot(name, **options):
    env = make(name, **options)
    return EnvironmentSlot(env, known_start(env))


def draws(start, count, seed=0):
    rows = start.inputs.sample(np.random.default_rng(seed), 20 * count)
    rows = rows[start.inputs.is_valid(rows)]
    assert len(rows) >= count
    return rows[:count]


def initial(start, **changed):
    """The initial pose at rest, but for what is named."""
    row = start.pose.values(start.pose.initial_qpos, start.pose.initial_qvel)
    for name, value in changed.items():
        row[start.inputs.names.index(name.replace("__", " "))] = value
    return row


def thrash(slot, values, seed, *, steps=25, films=False):
    """What is seen and got under wild actions, and what the solver remembers, as bytes."""
    space = slot.env.action_space
    seen = [np.asarray(slot.reset(values, seed)[0]).tobytes()]
    base = slot.env.unwrapped
    for step in range(steps):
        wave = np.sin((step + 1) * np.arange(1, 1 + space.shape[0]))
        action = (space.low + (wave + 1) / 2 * (space.high - space.low)).astype(np.float32)
        observation, reward, terminated, _, _ = slot.env.step(action)
        seen += [observation.tobytes(), np.float64(reward).tobytes(), base.data.qacc_warmstart.tobytes()]
        if films:
            slot.env.render()
        if terminated:
            break
    return b"".join(seen)


def falls(slot, values, steps):
    """True where an episode without any action ends."""
    slot.reset(values, 0)
    idle = np.zeros(slot.env.action_space.shape, np.float32)
    return any(slot.env.step(idle)[2] for _ in range(steps))


def test_only_mujoco_environments_have_a_start_here():
    assert find(gymnasium.make("CartPole-v1").unwrapped) is None


@pytest.mark.parametrize("name", IDS)
def test_values_read_back_and_the_observation_is_its_own(name):
    env, other = make(name).unwrapped, make(name).unwrapped
    start = find(env)
    for seed, values in enumerate(draws(start, 5)):
        observation, info = start.begin(env, env.reset, values, seed)
        np.testing.assert_allclose(start.read(env), values, rtol=1e-9, atol=1e-12)
        other.reset(seed=seed)
        mujoco.mj_resetData(other.model, other.data)
        other.set_state(env.data.qpos, env.data.qvel)
        np.testing.assert_array_equal(observation, other._get_obs())
        np.testing.assert_equal(info, other._get_reset_info())


@pytest.mark.parametrize("name", IDS)
def test_episodes_are_the_same_on_a_fresh_and_on_a_used_environment(name):
    used = make_slot(name)
    start = find(make(name).unwrapped)
    cases = [(values, seed) for seed, values in enumerate(draws(start, 3))]
    first = [thrash(used, *case) for case in cases]
    assert [thrash(used, *case) for case in cases[::-1]] == first[::-1]
    assert [thrash(make_slot(name), *case) for case in cases] == first
    assert len(set(first)) == len(first)


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "Swimmer-v5"])
def test_its_own_state_gives_its_own_start(name):
    options = {"exclude_current_positions_from_observation": False} if "Swimmer" in name else {}
    env = make(name, **options).unwrapped
    start = find(env)
    own = env.reset(seed=3)
    np.testing.assert_equal(start.begin(env, env.reset, start.read(env), 3), own)


def test_episodes_are_the_same_in_another_process():
    case = "m.thrash(m.make_slot('Ant-v5'), m.draws(m.find(m.make('Ant-v5').unwrapped), 1)[0], 3)"
    here = thrash(make_slot("Ant-v5"), draws(find(make("Ant-v5").unwrapped), 1)[0], 3)
    code = (
        "import importlib.util, hashlib, warnings; warnings.simplefilter('ignore');"
        f"spec = importlib.util.spec_from_file_location('poses', {__file__!r});"
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m);"
        f"print(hashlib.sha256({case}).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == hashlib.sha256(here).hexdigest()


def test_wrappers_see_the_start():
    env = gymnasium.wrappers.TransformObservation(make("Hopper-v5"), lambda seen: 2 * seen, None)
    start = known_start(env)
    values = draws(start, 1)[0]
    plain = make_slot("Hopper-v5").reset(values, 4)[0]
    np.testing.assert_array_equal(EnvironmentSlot(env, start).reset(values, 4)[0], 2 * plain)


@pytest.mark.parametrize("name", IDS)
def test_the_initial_pose_is_valid_and_bounds_keep_to_the_limits(name):
    env = make(name).unwrapped
    start = find(env)
    away = {"Reacher-v5": {"target_x": 0.1, "target_y": 0.05}, "Pusher-v5": {"obj_slidey": -0.25}}
    assert start.inputs.is_valid(initial(start, **away.get(name, {}))[None])[0]
    limits = dict(zip(env.model.jnt_qposadr, env.model.jnt_range, strict=True))
    is_limited = dict(zip(env.model.jnt_qposadr, env.model.jnt_limited, strict=True))
    for coordinate in start.pose.chosen:
        usual = start.pose.initial_qpos[coordinate.address]
        if coordinate.part is Part.POSITION and is_limited.get(coordinate.address, False):
            low, high = limits[coordinate.address]
            assert min(low, usual) <= coordinate.dimension.low
            assert coordinate.dimension.high <= max(high, usual)


def test_turns_make_unit_quaternions():
    env = make("Humanoid-v5").unwrapped
    start = find(env)
    values = initial(start, root__turn__x=0.1, root__turn__y=-0.08, root__turn__z=0.05)
    start.begin(env, env.reset, values, 0)
    assert np.linalg.norm(env.data.qpos[3:7]) == pytest.approx(1.0, abs=1e-12)
    angle = 2 * np.arccos(env.data.qpos[3])
    assert angle == pytest.approx(np.linalg.norm([0.1, -0.08, 0.05]), abs=1e-9)


def test_a_start_in_the_ground_is_not_valid():
    start = find(make("Hopper-v5").unwrapped)
    assert start.inputs.is_valid(initial(start, rootz=1.3)[None])[0]
    assert not start.inputs.is_valid(initial(start, rootz=1.15)[None])[0]


@pytest.mark.parametrize(
    ("name", "joint", "healthy", "fallen"),
    [
        ("Hopper-v5", "rooty", 0.15, 0.25),
        ("Walker2d-v5", "rooty", 0.5, 1.1),
        ("InvertedPendulum-v5", "hinge", 0.15, 0.25),
        ("InvertedDoublePendulum-v5", "hinge", 0.2, 1.0),
        ("Ant-v5", "root__z", 0.9, 1.2),
    ],
)
def test_a_start_that_is_over_at_once_is_not_valid(name, joint, healthy, fallen):
    start = find(make(name).unwrapped)
    up = {"rootz": 1.6} if joint == "rooty" else {}
    rows = np.array([initial(start, **up, **{joint: value}) for value in (healthy, fallen)])
    assert start.inputs.constraint is not None
    assert start.inputs.constraint(rows).tolist() == [True, False]


def test_trying_starts_out_leaves_the_environment_alone():
    env = make("Pusher-v5").unwrapped
    start = find(env)
    rows = start.inputs.sample(np.random.default_rng(0), 20)
    env.reset(seed=1)
    before = env.data.qpos.tobytes(), env.data.qvel.tobytes(), env.np_random.bit_generator.state
    first = start.inputs.is_valid(rows)
    after = env.data.qpos.tobytes(), env.data.qvel.tobytes(), env.np_random.bit_generator.state
    assert after == before
    np.testing.assert_array_equal(start.inputs.is_valid(rows[::-1])[::-1], first)


def test_things_lie_where_the_environment_itself_would_put_them():
    start = find(make("Pusher-v5").unwrapped)
    assert not {"goal_slidex", "goal_slidey", "obj_slidex velocity"} & set(start.inputs.names)
    rows = np.array([initial(start, obj_slidey=y, obj_slidex=0.0) for y in (-0.2, -0.1)])
    assert start.inputs.is_valid(rows).tolist() == [True, False]
    start = find(make("Reacher-v5").unwrapped)
    assert not {"target_x velocity", "target_y velocity"} & set(start.inputs.names)
    rows = np.array([initial(start, target_x=x, target_y=x) for x in (0.13, 0.15)])
    assert start.inputs.is_valid(rows).tolist() == [True, False]


def test_the_place_along_the_ground_is_an_input_only_where_it_is_seen():
    assert "rootx" not in find(make("Hopper-v5").unwrapped).inputs.names
    seen = make("Hopper-v5", exclude_current_positions_from_observation=False).unwrapped
    assert "rootx" in find(seen).inputs.names
    assert "root x" not in find(make("Ant-v5").unwrapped).inputs.names


@pytest.mark.parametrize("name", IDS)
def test_falls_are_the_oracle_where_there_is_a_rule_for_them(name):
    assert find(make(name).unwrapped).oracle == ("terminated" if name in FALLING else None)


def test_there_is_no_oracle_where_the_rule_is_switched_off():
    assert find(make("Hopper-v5", terminate_when_unhealthy=False).unwrapped).oracle is None


@pytest.mark.parametrize(
    ("name", "shove", "steps"),
    [
        ("InvertedPendulum-v5", {"hinge": 0.1}, 15),
        ("Hopper-v5", {"rooty": -0.1, "rooty__velocity": -0.5}, 60),
    ],
)
def test_what_is_shoved_falls_and_what_is_not_stands(name, shove, steps):
    slot = make_slot(name)
    start = find(slot.env.unwrapped)
    assert falls(slot, initial(start, **shove), steps)
    assert not falls(slot, initial(start), steps)


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_older_versions_start_too():
    slot = make_slot("Walker2d-v4")
    start = find(slot.env.unwrapped)
    values = draws(start, 1)[0]
    assert thrash(slot, values, 1) == thrash(slot, values, 1)


_MODEL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="arm" pos="0 0 1">
      <joint type="ball" name="shoulder"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <body pos=".3 0 0">
        <joint type="hinge" name="elbow" axis="0 1 0" limited="true" range="-90 5"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03"/>
        <joint type="hinge" axis="0 0 1"/>
      </body>
    </body>
    <body name="ball" pos="1 0 .1"><freejoint name="ball"/><geom type="sphere" size=".1"/></body>
  </worldbody>
  <actuator><motor joint="elbow" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Arm(MujocoEnv):
    """An environment of a user: an arm on a ball joint, and a ball on the floor."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"]}  # noqa: RUF012

    def __init__(self, model: Path, *, sets_state: bool = True):
        space = gymnasium.spaces.Box(-np.inf, np.inf, (4,))
        super().__init__(str(model), 2, observation_space=space)
        self._sets_state = sets_state

    def reset_model(self):
        self.wanted = self.np_random.uniform(-1, 1)
        self.fuel = 5
        if self._sets_state:
            self.set_state(qpos=self.init_qpos, qvel=self.init_qvel)
        return self.data.qpos[:4].copy()

    def step(self, action):
        self.do_simulation(action, self.frame_skip)
        self.fuel -= 1
        return self.data.qpos[:4].copy(), self.wanted, self.fuel <= 0, False, {}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(_MODEL)
    return path


def test_an_environment_of_the_user_starts_as_told(model):
    env = Arm(model)
    start = find(env)
    turns = [f"shoulder turn {axis}" for axis in "xyz"]
    assert start.inputs.names[:5] == (*turns, "elbow", "joint2")
    assert {"ball x", "ball turn z", "shoulder spin x"} <= set(start.inputs.names)
    assert "ball velocity x" not in start.inputs.names
    assert start.inputs.dimensions[3].high == pytest.approx(np.radians(5))
    assert start.oracle is None
    values = draws(start, 1)[0]
    observation = start.begin(env, env.reset, values, 0)[0]
    np.testing.assert_allclose(start.read(env), values, atol=1e-12)
    np.testing.assert_array_equal(observation, env.data.qpos[:4])


def test_an_environment_that_never_sets_its_state_has_no_start(model):
    assert find(Arm(model, sets_state=False)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Hopper-v5", "Humanoid-v5"])
def test_a_film_is_the_same_episode(name, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    filmed = make_slot(name, render_mode="rgb_array", width=64, height=48)
    values = draws(find(filmed.env.unwrapped), 1)[0]
    try:
        filmed.reset(values, 0)
        filmed.env.render()
    except Exception as error:
        pytest.skip(f"MuJoCo cannot render here: {error}")
    assert thrash(filmed, values, 1, films=True, steps=8) == thrash(make_slot(name), values, 1, steps=8)
    filmed.env.close()


def body_pixels(picture):
    """How much of `picture` (h, w, 3) has the colour of the bodies: brown, not grey, green or blue."""
    red, green, blue = picture.astype(float).transpose(2, 0, 1)
    return int(np.count_nonzero((red > 1.2 * green) & (green > 1.1 * blue) & (red > 50)))


@pytest.mark.parametrize("name", ["Hopper-v5", "HalfCheetah-v5", "Ant-v5"])
def test_the_camera_follows_the_body(name):
    env = make(name, render_mode="rgb_array", width=128, height=128)
    env.reset(seed=0)
    try:
        near = picture_of(env)
    except CannotRender as error:
        pytest.skip(f"MuJoCo cannot render here: {error}")
    base = env.unwrapped
    qpos = base.data.qpos.copy()
    qpos[0] += 50
    base.set_state(qpos, base.data.qvel)
    far = picture_of(env)
    assert body_pixels(near) > 100
    assert body_pixels(far) > 0.5 * body_pixels(near)


def test_a_camera_that_the_user_has_chosen_stays():
    env = make("Hopper-v5", render_mode="rgb_array", camera_id=0, width=64, height=64)
    env.reset(seed=0)
    follow_body(env.unwrapped)
    assert env.unwrapped.mujoco_renderer.camera_id == 0
    follow_body(gymnasium.make("CartPole-v1").unwrapped)  # has none


def test_the_body_of_a_model_without_such_a_camera_is_looked_at():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qpos[:3] = 7, 8, 9
    mujoco.mj_forward(model, data)
    cam = SimpleNamespace(lookat=np.zeros(3))
    renderer = SimpleNamespace(camera_id=-1, viewer=SimpleNamespace(cam=cam))
    follow_body(SimpleNamespace(mujoco_renderer=renderer, model=model, data=data))
    np.testing.assert_allclose(cam.lookat, [7, 8, 9])
