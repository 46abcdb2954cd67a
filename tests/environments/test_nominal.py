"""Episodes from the environment's own reset are judged, and tell a weak policy from one worth fuzzing."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra gym")

from policyfuzz import load_target
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Level, Runner
from policyfuzz.environments.nominal import (
    EPISODES,
    JudgedEpisodes,
    NominalChecks,
    _crash_rates,
    _examples,
    _recorded_return,
)
from policyfuzz.oracles import parse_oracle
from policyfuzz.oracles.defaults import NominalEpisodes

FOLDER = Path(__file__).parent
ENVIRONMENTS, POLICIES = FOLDER / "gym_environments.py", FOLDER / "gym_policies.py"
CORRIDOR, BRAVE = f"gym:{ENVIRONMENTS}:Corridor", f"py:{ENVIRONMENTS}:brave"


def judged(crashes, returns=None):
    crashed = np.arange(50) < crashes
    return JudgedEpisodes(crashed, np.full(50, 200.0) if returns is None else returns)


def drawn(crashes, count=64):
    return Executions.of(np.linspace(-300, 250, count), np.arange(count) < crashes)


@pytest.mark.parametrize(
    ("crashes", "level"),
    [
        (0, Level.GOOD),
        (2, Level.GOOD),
        (3, Level.WEAK),
        (25, Level.WEAK),
        (26, Level.UNHEALTHY),
        (45, Level.UNHEALTHY),
    ],
)
def test_crash_rate_from_the_own_reset_decides_the_level(crashes, level):
    found = _crash_rates(judged(crashes), drawn(34))
    assert found.level is level
    assert f"{crashes} of 50 from the environment's own reset, 34 of 64 within the bounds" in found.message
    assert found.counts == {"crashes": crashes, "episodes": 50, "crashes_in_bounds": 34, "draws": 64}
    assert bool(found.hint) == (level is not Level.GOOD)


def test_policy_that_holds_within_the_bounds_of_the_user_can_be_fuzzed():
    assert _crash_rates(judged(45), drawn(5)).level is Level.WEAK


def test_examples_show_normal_returns_and_the_worst_failing_one():
    returns = np.linspace(210, 290, 50)
    assert _examples(judged(0, returns), drawn(2)).message == (
        "returns of normal episodes: 210, 211.6, 213.3; the worst failing one -300"
    )
    assert "no failing one was seen" in _examples(judged(0, returns), drawn(0)).message


def nominal(mean):
    returns = np.full(50, float(mean))
    return NominalEpisodes(returns, np.full(50, 100), returns > 0, returns > 0)


@pytest.mark.parametrize(
    ("mean", "level"),
    [(260, Level.GOOD), (205, Level.GOOD), (150, Level.WEAK), (125, Level.WEAK), (20, Level.UNHEALTHY)],
)
def test_policy_that_earns_less_than_in_training_is_weak_or_broken(mean, level):
    found = _recorded_return(250.0, nominal(mean), False, lambda: nominal(-10))
    assert found.level is level


def test_random_actions_are_not_run_where_the_policy_earns_what_it_did():
    def never():
        raise AssertionError("they were run")

    assert _recorded_return(250.0, nominal(240), False, never).level is Level.GOOD
    assert _recorded_return(-180.0, nominal(-200), False, never).level is Level.GOOD


def checks_of(name, policy):
    checks = load_target(name, policy).further_checks
    assert isinstance(checks, NominalChecks)
    return checks


@pytest.mark.parametrize(
    "text", ["terminated", "return<3", "info.place>1", "!info.place", "reward<0 | truncated"]
)
def test_own_episodes_are_judged_as_the_target_itself_judges_them(text):
    """The same episodes, run by a target whose input is the seed, crash alike."""
    seeded = load_target(f"{CORRIDOR}:input=seed,oracle={text}", BRAVE)
    seeds = np.arange(EPISODES)
    executions = Runner(seeded)(seeds.astype(np.float64)[:, None], seeds.astype(np.uint64))
    checks = checks_of(f"{CORRIDOR}:oracle={text}", BRAVE)
    found = checks.nominal.judged(checks.target.oracle, Runner)
    np.testing.assert_array_equal(found.crashed, executions.crashed)
    np.testing.assert_allclose(found.returns, executions.returns)


def test_own_episodes_that_raise_count_only_where_the_oracle_asks_for_them():
    checks = checks_of(f"gym:{ENVIRONMENTS}:Quitter:oracle=terminated", BRAVE)
    assert len(checks.nominal.judged(parse_oracle("terminated"), Runner).crashed) == 0
    assert checks.nominal.judged(parse_oracle("exception"), Runner).crashed.all()
