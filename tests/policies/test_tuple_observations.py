import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.uri import load_policy

HANDS = Spaces(
    spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2)]), spaces.Discrete(2)
)
SINGLE = """
def act(observation):
    mine, dealer, has_ace = observation
    return int(mine < 17)
"""
BATCH = """
def act(observations):
    mine, dealer, has_ace = observations
    return (mine < 17).astype(int)
"""


@pytest.mark.parametrize("code", [SINGLE, BATCH])
def test_tuples_are_given_as_tuples(tmp_path, code):
    (tmp_path / "hand.py").write_text(code)
    policy = load_policy(f"py:{tmp_path / 'hand.py'}:act", HANDS).make()
    seen = np.zeros(3, [("0", np.int64), ("1", np.int64), ("2", np.int64)])
    seen["0"] = [12, 17, 16]
    policy.begin(3)
    assert policy.act(seen, np.arange(3)).tolist() == [1, 0, 1]
