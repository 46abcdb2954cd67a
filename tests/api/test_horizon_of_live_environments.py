"""How long episodes are in environments that exist in this process only."""

from typing import Any

import gymnasium
import pytest

import policyfuzz as pf


def steady(observation):
    """CartPole: never falls, where it starts near the middle."""
    x, speed, angle, turning = observation
    return int(0.1 * x + 0.2 * speed + angle + 0.4 * turning > 0)


@pytest.mark.parametrize("horizon", [60, 520])
def test_horizon_replaces_the_limit_that_the_environment_has(horizon):
    still = dict.fromkeys(("x", "x_dot", "theta", "theta_dot"), (-0.01, 0.01))
    options: dict[str, Any] = {
        "oracle": "truncated",
        "input": still,
        "max_execs": 10,
        "samples": 5,
        "batch": 5,
    }
    result = pf.fuzz(
        lambda: gymnasium.make("CartPole-v1"), steady, horizon=horizon, force=True, progress=False, **options
    )
    assert {(row["crash_step"], row["return"]) for row in result.rows()} == {(horizon, horizon)}
