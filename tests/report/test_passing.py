import numpy as np
import pytest

from policyfuzz import Runner
from policyfuzz.report.passing import passing_episodes
from tests.report import drifting

FAST, SLOW = 1e-3, 60.0
CRASHING = np.array([0.6, 1.0])


def test_nearby_inputs_that_pass_are_taken_where_there_are_some():
    found = passing_episodes(Runner(drifting.target()), CRASHING, 7, FAST)
    assert found is not None
    assert found.are_near
    assert not found.recordings.executions.crashed.any()
    assert len(found) == len(found.recordings.states) == len(found.recordings.rewards)


def test_random_inputs_are_taken_where_all_nearby_ones_crash():
    found = passing_episodes(Runner(drifting.target(noise=1e-4)), CRASHING, 7, FAST)
    assert found is not None
    assert not found.are_near
    assert 10 < len(found) < 40, "about half of random inputs crash"


def test_nothing_is_run_where_episodes_are_slow():
    runner = Runner(drifting.target())
    runner.policy = None  # type: ignore[assignment]
    assert passing_episodes(runner, CRASHING, 7, SLOW) is None


def test_fewer_are_run_the_longer_they_take():
    class Counting(Runner):
        def __call__(self, inputs, *others, **options):
            batches.append(len(inputs))
            return super().__call__(inputs, *others, **options)

    batches: list[int] = []
    passing_episodes(Counting(drifting.target()), CRASHING, 7, FAST)
    assert set(batches) == {48}
    batches.clear()
    passing_episodes(Counting(drifting.target()), CRASHING, 7, 0.8)
    assert set(batches) == {10}


def test_the_same_episodes_are_found_again():
    first, second = (passing_episodes(Runner(drifting.target()), CRASHING, 7, FAST) for _ in range(2))
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.recordings.states, second.recordings.states)


def test_there_are_none_where_everything_crashes():
    class AlwaysPushed(drifting.Drifting):
        def reset(self, inputs, seeds):
            return super().reset(np.where([True, False], 1.0, inputs), seeds)

    assert passing_episodes(Runner(drifting.target(AlwaysPushed)), CRASHING, 7, FAST) is None


@pytest.mark.parametrize("bad", ["raises", "gives NaN"])
def test_episodes_that_could_not_be_run_are_left_out(bad):
    class Fragile(drifting.Drifting):
        def step(self, actions, rows):
            frame = super().step(actions, rows)
            is_bad = self.inputs[rows, 0] < 0.2
            if bad == "raises" and is_bad.any():
                raise ValueError("too weak")
            frame.rewards[is_bad] = np.nan
            return frame

    found = passing_episodes(Runner(drifting.target(Fragile, noise=1e-4)), CRASHING, 7, FAST)
    assert found is not None
    assert np.isfinite(found.recordings.rewards).all()
    assert np.isfinite(found.recordings.actions[:, 1:]).all(), "recorded though the batch raised"
