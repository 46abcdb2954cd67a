import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.environments.spaces import ObservationTable

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
