import importlib

import numpy as np
import pytest

pytest.importorskip("mpe2", reason="needs the extra pettingzoo")

from policyfuzz.core.errors import UsageError
from policyfuzz.environments.families.particle_worlds import CountsContacts, find_world_start
from policyfuzz.environments.find_start import read_changes
from policyfuzz.environments.pettingzoo import find_parallel_start
from policyfuzz.environments.simulator import EnvironmentSlot, StateNotKept

POSITIONED = (
    "collect_treasure_v1",
    "simple_adversary_v3",
    "simple_formation_v1",
    "simple_line_v1",
    "simple_push_v3",
    "simple_reference_v3",
    "simple_speaker_listener_v4",
    "simple_spread_v3",
    "simple_tag_v3",
    "simple_v3",
    "simple_world_comm_v3",
)


def make(name, **kwargs):
    return importlib.import_module(f"mpe2.{name}").parallel_env(**kwargs)


def drawn(start, count=1):
    inputs = start.inputs.sample(np.random.default_rng(0), 50 * count)
    return inputs[start.inputs.is_valid(inputs)][:count]


@pytest.mark.parametrize("name", POSITIONED)
def test_a_world_begins_where_it_is_told_and_shows_it(name):
    env = make(name)
    start = find_world_start(env.unwrapped)
    assert start is not None
    slot = EnvironmentSlot(env, start)
    one, other = drawn(start, 2)
    before, _ = slot.reset(one, 7)
    np.testing.assert_array_equal(start.read(env.unwrapped), one)
    after, _ = slot.reset(other, 7)
    again, _ = slot.reset(one, 7)
    assert any((before[agent] != after[agent]).any() for agent in env.possible_agents)
    for agent in env.possible_agents:
        np.testing.assert_array_equal(before[agent], again[agent])
        np.testing.assert_array_equal(before[agent], env.unwrapped.observe(agent))
    assert all((entity.state.p_vel == 0).all() for entity in env.unwrapped.world.entities)


def test_the_input_of_simple_spread_is_every_position():
    start = find_world_start(make("simple_spread_v3", N=2).unwrapped)
    assert start.inputs.names == (
        *("agent_0.x", "agent_0.y", "agent_1.x", "agent_1.y"),
        *("landmark_0.x", "landmark_0.y", "landmark_1.x", "landmark_1.y"),
    )
    assert {(one.low, one.high) for one in start.inputs.dimensions} == {(-1.0, 1.0)}


def test_bounds_are_those_of_the_world_itself():
    start = find_world_start(make("simple_tag_v3").unwrapped)
    bounds = {one.name: (one.low, one.high) for one in start.inputs.dimensions}
    assert bounds["agent_0.x"] == (-1.0, 1.0)
    assert bounds["landmark_1.y"] == (-0.9, 0.9)


def test_agents_begin_apart():
    start = find_world_start(make("simple_spread_v3", N=2).unwrapped)
    apart, touching = [0.0, 0.0, 0.31, 0.0], [0.0, 0.0, 0.2, 0.2]  # each has a radius of 0.15
    landmarks = [0.0, 0.0, 0.0, 0.0]  # which nobody bumps into
    assert start.inputs.is_valid(np.array([apart + landmarks, touching + landmarks])).tolist() == [
        True,
        False,
    ]


def test_landmarks_that_the_scenario_has_plans_for_are_left_alone():
    start = find_world_start(make("simple_line_v1").unwrapped)
    assert not [name for name in start.inputs.names if name.startswith("landmark")]
    assert "landmark_0, landmark_1" in start.label


def test_what_nobody_sees_is_no_input():
    start = find_world_start(make("simple_speaker_listener_v4").unwrapped)
    assert not [name for name in start.inputs.names if name.startswith("speaker")]


def test_a_world_in_which_places_mean_nothing_begins_by_its_seed():
    env = make("simple_crypto_v3")
    assert find_parallel_start(env, read_changes("")).way == "seed"


def test_a_reset_of_the_users_own_is_respected():
    from mpe2.simple.simple import raw_env

    class Own(raw_env):
        def reset(self, seed=None, options=None):
            super().reset(seed, options)
            self.plan = self.world.landmarks[0].state.p_pos.copy()

    assert find_world_start(Own()) is None


def test_bounds_can_be_changed_and_places_fixed():
    start = find_parallel_start(make("simple_v3"), read_changes("agent_0.x=0..0.5;landmark_0.y=0.25"))
    assert start.inputs.names == ("agent_0.x", "agent_0.y", "landmark_0.x")
    with pytest.raises(UsageError, match="agent_1"):
        find_parallel_start(make("simple_v3"), read_changes("agent_1.x=0..0.5"))


def test_a_world_that_does_not_stay_put_is_noticed():
    env = make("simple_v3")
    start = find_world_start(env.unwrapped)
    assert start is not None
    env.unwrapped.world.agents[0].state.__class__ = type(
        "Stuck",
        (type(env.unwrapped.world.agents[0].state),),
        {"p_pos": property(lambda _: np.zeros(2), lambda *_: None)},
    )
    with pytest.raises(StateNotKept, match=r"agent_0\.x was set to"):
        EnvironmentSlot(env, start).reset(drawn(start)[0], 0)


def test_the_camera_sees_the_start_in_its_true_size():
    env = make("simple_spread_v3")
    start = find_world_start(env.unwrapped)
    assert start is not None
    slot = EnvironmentSlot(env, start)
    ranges = set()
    for seed in range(3):
        slot.reset(drawn(start)[0], seed)
        ranges.add(float(env.unwrapped.original_cam_range))
    assert ranges == {float(np.abs(drawn(start)[0]).max())}


def test_contacts_are_those_that_the_scenario_punishes():
    env = CountsContacts(make("simple_spread_v3", local_ratio=1.0, max_cycles=10))
    rng, seen = np.random.default_rng(0), set()
    for seed in range(40):
        env.reset(seed=seed)
        while env.agents:
            actions = {agent: int(rng.integers(5)) for agent in env.agents}
            _, rewards, _, _, infos = env.step(actions)
            assert {agent: -info["collisions"] for agent, info in infos.items()} == rewards
            seen |= {info["collisions"] for info in infos.values()}
    assert {0, 1} <= seen
