import numpy as np
import pytest

from policyfuzz.core.branches import Branches
from policyfuzz.core.target import Runner
from policyfuzz.store.triage_records import WITNESS
from policyfuzz.targets.registry import load_target
from policyfuzz.triage.avoidance import find_witnesses
from policyfuzz.triage.witness import Crash

pytest.importorskip("gymnasium")

#: Balances well, but pushes the wrong way while the pole leans far to the right.
POLICY = """
import numpy as np


def act(observations):
    x, x_dot, theta, theta_dot = observations.T
    right = 0.05 * x + 0.15 * x_dot + theta + 0.3 * theta_dot > 0
    return np.where(theta > 0.12, ~right, right).astype(np.int64)
"""


def test_a_gym_target_has_witnesses(tmp_path):
    (tmp_path / "leaning.py").write_text(POLICY)
    name = "gym:CartPole-v1:bounds=wide,horizon=60,oracle=terminated"
    target = load_target(name, f"py:{tmp_path}/leaning.py:act", trust=True)
    # leaning to the right and falling slowly: a push at once saves it, and the policy makes it fall
    row, seeds = np.array([[0.0, 0.0, 0.13, 0.0]]), np.zeros(1, np.uint64)
    run, run_longer = Runner(target), Runner(target.prolonged(3))
    plain = run(row, seeds)
    assert plain.crashed.all()
    crash = Crash(row[0], 0, int(plain.verdicts.steps[0]), target.oracle.kinds[0], float(plain.returns[0]))
    ((_, found),) = find_witnesses(target, [crash], run, run_longer)
    assert found.verdict == WITNESS
    branches = Branches.of([found.branch], 1)
    assert not run(row, seeds, branches=branches).crashed.any()
    longer = run_longer(row, seeds, branches=branches)
    assert not longer.crashed.any()
    assert longer.lengths[0] == 3 * 60 + 1, "the time limit of the environment grows as well"
