import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.environments.spaces import ObservationTable, StepTable, as_flag, as_reward

BOX = spaces.Box(-1, 1, (3,), np.float32)
PARTS = spaces.Dict(
    {"image": spaces.Box(0, 255, (2, 2), np.uint8), "inner": spaces.Dict({"n": spaces.Discrete(5)})}
)


def filled(space, observations):
    table = ObservationTable(space)
    array = table.empty(len(observations))
    for row, observation in enumerate(observations):
        table.put(array, row, observation)
    return table, array


@pytest.mark.parametrize(
    "space",
    [
        BOX,
        spaces.Discrete(4),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Box(0, 255, (4, 4, 3), np.uint8),
    ],
)
def test_observations_come_back_as_they_were(space):
    space.seed(0)
    observations = [space.sample() for _ in range(5)]
    _, array = filled(space, observations)
    assert array.shape == (5, *space.shape)
    assert array.dtype == space.dtype
    assert all(np.array_equal(one, other) for one, other in zip(observations, array, strict=True))


def test_dictionaries_become_records():
    PARTS.seed(0)
    observations = [PARTS.sample() for _ in range(4)]
    table, array = filled(PARTS, observations)
    assert array["image"].shape == (4, 2, 2)
    assert array["inner"]["n"].tolist() == [one["inner"]["n"] for one in observations]
    assert array[np.array([True, False, True, False])]["image"].shape == (2, 2, 2)
    assert table.states(array).shape == (4, 5)


def test_tuples_become_records_too():
    space = spaces.Tuple([spaces.Discrete(7), BOX])
    _, array = filled(space, [(3, np.full(3, 0.5, np.float32))])
    assert array["0"].tolist() == [3]
    assert array["1"].tolist() == [[0.5, 0.5, 0.5]]


@pytest.mark.parametrize("given", [np.zeros(2), np.float32(0.5), np.zeros((1, 3))])
def test_observation_of_another_shape_is_refused(given):
    with pytest.raises(ValueError, match=r"its space says \(3,\)"):
        filled(BOX, [given])


def test_nan_and_outside_are_told_by_row():
    table, array = filled(BOX, [np.zeros(3), np.array([0, np.nan, 0]), np.array([0, 0, 2.0])])
    assert table.is_broken(array, may_be_infinite=True).tolist() == [False, True, False]
    assert table.is_outside(array).tolist() == [False, False, True]


def test_outside_is_told_for_records():
    table, array = filled(PARTS, [PARTS.sample(), {"image": np.zeros((2, 2)), "inner": {"n": 6}}])
    assert table.is_outside(array).tolist() == [False, True]


def test_infinite_observations_give_finite_states():
    space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    table, array = filled(space, [np.array([np.inf, 1.0]), np.array([-np.inf, np.nan])])
    assert np.isfinite(table.states(array)[0]).all()
    assert table.is_broken(array, may_be_infinite=False).tolist() == [True, True]
    assert table.is_broken(array, may_be_infinite=True).tolist() == [False, True]
    assert np.isnan(table.states(array)[1, 1])


def test_large_observations_are_sketched_row_by_row():
    space = spaces.Box(0, 255, (20, 20), np.uint8)
    space.seed(0)
    table, array = filled(space, [space.sample() for _ in range(9)])
    states = table.states(array)
    assert states.shape == (9, 32)
    alone = np.concatenate([table.states(array[row : row + 1]) for row in range(9)])
    assert np.array_equal(states, alone)
    # distances survive about as they are: 32 sums of 400 numbers
    pixels = array.reshape(9, -1).astype(float)
    true = np.linalg.norm(pixels[:, None] - pixels, axis=2)[np.triu_indices(9, 1)]
    sketched = np.linalg.norm(states[:, None] - states, axis=2)[np.triu_indices(9, 1)]
    ratio = sketched / true
    assert ratio.std() / ratio.mean() < 0.3


@pytest.mark.parametrize("value", [True, np.bool_(True), 1, np.int64(1), np.array(True)])
def test_what_is_true_or_false_is_a_flag(value):
    assert as_flag(value, "terminated") is True
    assert as_flag(np.logical_not(value), "terminated") is False


@pytest.mark.parametrize(
    "value",
    ["no", "", None, [], [True], {}, 2, -1, 0.0, 1.0, np.nan, np.array([True]), np.array(["no"]), object],
)
def test_what_is_neither_true_nor_false_is_told(value):
    with pytest.raises(ValueError, match=r"step gave terminated = .*, expected True or False"):
        as_flag(value, "terminated")


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), np.array([2.0])])
def test_one_number_is_a_reward(value):
    assert as_reward(value) == 2.0


@pytest.mark.parametrize("value", ["2", None, [1.0, 2.0], np.zeros(2), [], 1j, {}, object(), b"2"])
def test_what_is_no_number_is_no_reward(value):
    with pytest.raises(ValueError, match=r"step gave the reward .*, expected a number"):
        as_reward(value)


@pytest.mark.parametrize(
    ("reward", "terminated", "truncated", "problem"),
    [
        (0.0, "no", False, "terminated = 'no'"),
        (0.0, True, "no", "truncated = 'no'"),
        ("0", False, False, "the reward '0'"),
    ],
)
def test_step_of_an_environment_is_checked(reward, terminated, truncated, problem):
    table = StepTable(1, ObservationTable(BOX), ("terminated", "truncated", "out_of_space"))
    with pytest.raises(ValueError, match=f"step gave {problem}"):
        table.put(0, np.zeros(3), reward, terminated, truncated, {}, ())
    assert not table.signals.any()
