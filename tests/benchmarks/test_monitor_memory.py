"""The benchmark of monitors with memory: sums, and contacts that are counted."""

import numpy as np

from benchmarks.monitor_memory import added_up, with_contacts
from policyfuzz.analysis.monitor_episodes import NONE, Episodes
from policyfuzz.monitors.monitor import OBSERVATIONS
from policyfuzz.targets.registry import load_target
from tests.analysis.monitor_material import made_episodes


def test_sums_begin_anew_with_each_episode_and_stay_above_zero():
    episodes = made_episodes(np.random.default_rng(0), 2, crash_at=3)
    scores = np.array([2.0, -5.0, 4.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(added_up(scores, episodes, 0.5, 1.0), [1.0, 0.0, 3.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(added_up(scores, episodes, 1.0, 0.0), [2.0, 0.0, 4.0, 1.0, 2.0, 3.0])


def test_contacts_are_those_of_the_simulator():
    target = load_target("coopnavi:finish=ignored")  # no episode ends early
    inputs = target.inputs.sample(np.random.default_rng(2), 400)
    inputs = inputs[target.inputs.is_valid(inputs)]
    count, steps, rows = len(inputs), 30, np.arange(len(inputs))
    simulator, policy = target.simulator(), target.policy()
    policy.begin(count)
    frames = [simulator.reset(inputs, np.zeros(count, np.uint64))]
    for _ in range(steps - 1):
        frames.append(simulator.step(policy.act(frames[-1].observations, rows), rows))
    seen = np.stack([one.observations.reshape(count, -1) for one in frames], axis=1)
    counted = np.stack([one.signals[:, simulator.signals.index("collisions")] for one in frames], axis=1)
    none = np.full(count, NONE)
    starts = np.arange(0, (count + 1) * steps, steps)
    names = rows.astype(np.uint64)
    flat = seen.reshape(count * steps, -1)
    episodes = Episodes(starts, none, np.zeros(count), names, none, {OBSERVATIONS: flat})
    assert counted.max() > 0
    np.testing.assert_array_equal(with_contacts(episodes).frames["count"][:, 0], counted.ravel())
