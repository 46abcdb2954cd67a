import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.policies.spaces import sample_observations, views

ROOM = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (2, 2, 3), np.uint8),
        "direction": spaces.Discrete(4),
        "speed": spaces.Box(-1, 1, ()),
    }
)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3,)),
        spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
        spaces.Box(0, 255, (4, 4, 3), np.uint8),
        spaces.Discrete(3, start=7),
        spaces.MultiDiscrete([3, 4], start=[1, 0]),
        spaces.MultiBinary(5),
    ],
)
def test_sample_observations_are_of_the_space_and_always_the_same(space):
    batch = sample_observations(space, 10)
    assert all(space.contains(row) for row in batch)
    assert len(np.unique(batch, axis=0)) > 1
    np.testing.assert_array_equal(batch, sample_observations(space, 10))


def test_sample_dictionaries_have_a_field_for_each_key():
    batch = sample_observations(ROOM, 3)
    assert batch.shape == (3,)
    assert batch["image"].shape == (3, 2, 2, 3)
    assert ROOM.contains({key: np.asarray(batch[key][0]) for key in ROOM.spaces})


def test_sample_text_is_text():
    space = spaces.Dict({"mission": spaces.Text(10), "position": spaces.Discrete(4)})
    batch = sample_observations(space, 3)
    assert all(isinstance(mission, str) for mission in batch["mission"])
    assert views(space) == ()
    assert views(spaces.Dict({"nested": space})) == ()


def test_several_numbers_are_given_one_hot_where_that_fits():
    view = views(spaces.MultiDiscrete([2, 3], start=[0, 4]))[-1]
    np.testing.assert_array_equal(
        view.convert(np.array([[1, 4], [0, 6]])), [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    )
