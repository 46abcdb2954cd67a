import json
from typing import Any

import numpy as np
import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.repairing.states import Ends
from policyfuzz.repairing.verdict import (
    FuzzedLine,
    PoolLine,
    ReplayLine,
    Verdict,
    covered_mass,
    pool_line,
    return_line,
)
from policyfuzz.repairing.verdict_file import read_verdict
from tests.repairing.planted_gaps import world


def ends(crashed, returns=None):
    count = len(crashed)
    earned = np.ones(count) if returns is None else np.array(returns, float)
    flags = np.array(crashed, np.bool_)
    return Ends(flags, np.ones(count, np.bool_), np.zeros(count, np.int64), np.zeros(count), earned)


def fuzzed(before, after):
    return FuzzedLine("portfolio", 100, before, after, before, after, 0.5, None)


def verdict(**changes):
    parts: dict[str, Any] = {
        "pool": PoolLine(1000, 40, 4, 37, 1, 1e-9, 0.1),
        "fuzzed": (fuzzed((9, 8), (2, 0)),),
        "returns": return_line(ends([False] * 4), ends([False] * 4)),
        "replayed": ReplayLine(("mode 1", "mode 2"), (10, 5), (9, 4)),
    }
    return Verdict("gaps", "old", "new", **(parts | changes))


def test_pairs_are_counted_by_what_changed():
    line = pool_line(ends([1, 1, 1, 0, 0, 0]), ends([0, 0, 1, 1, 0, 0]), allowed=0.1)

    assert (line.crashes_before, line.crashes_after, line.fixed, line.newly_broken) == (3, 2, 2, 1)
    assert line.p_value == 1.0
    assert not line.holds


def test_a_repair_that_breaks_too_much_fails_however_much_it_fixes():
    assert PoolLine(1000, 100, 20, 90, 9, 1e-9, 0.1).holds
    assert not PoolLine(1000, 100, 20, 90, 10, 1e-9, 0.1).holds


def test_fewer_findings_hold_and_as_many_do_not():
    assert fuzzed((5, 5), (5, 4)).holds
    assert not fuzzed((5, 5), (5, 5)).holds
    assert fuzzed((0, 0), (0, 0)).holds


def test_returns_count_only_where_neither_crashes():
    line = return_line(ends([0, 0, 1], [10.0, 12.0, -100.0]), ends([0, 0, 0], [10.0, 12.0, 50.0]))

    assert (line.cases, line.mean_before, line.difference) == (2, 11.0, 0.0)
    assert line.holds


def test_a_lower_return_fails():
    line = return_line(ends([0, 0], [10.0, 12.0]), ends([0, 0], [9.0, 11.0]))

    assert line.difference == -1.0
    assert not line.holds


def test_failure_mass_is_covered_within_the_radius():
    crashes = np.array([[0.0], [0.05], [0.8]])

    assert covered_mass(world(), crashes, [np.array([[0.0]])]) == pytest.approx(2 / 3)
    assert covered_mass(world(), crashes[:0], [np.array([[0.0]])]) is None


def test_any_failed_line_fails_the_verdict():
    assert verdict().holds
    failed = verdict(fuzzed=(fuzzed((9, 8), (9, 9)),))
    assert not failed.holds
    assert "fails 1 of 4 tests" in failed.lines()[-1]
    assert any(line.startswith("FAILED  fuzzed with portfolio") for line in failed.lines())


def test_a_stored_verdict_reads_back(tmp_path):
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(verdict().summary()))

    assert read_verdict(path) == verdict()


@pytest.mark.parametrize(
    "damage",
    [
        {"holds": False},
        {"pool": {}},
        {"target": 3},
        {"more": 1},
        {"replayed": {"modes": ["one"], "findings": [-1], "fixed": [0]}},
    ],
)
def test_a_damaged_verdict_is_refused(damage, tmp_path):
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(verdict().summary() | damage))

    with pytest.raises(CampaignError, match="holds no verdict"):
        read_verdict(path)


def test_no_two_purposes_share_a_seed():
    from policyfuzz.repairing.seeds import Purpose, seed_for

    drawn = [
        seed_for(purpose, seed, number) for purpose in Purpose for seed in (0, 1, 99) for number in range(5)
    ]
    assert len(set(drawn)) == len(drawn)
    assert min(drawn) > 10**9  # seeds of users' campaigns are smaller


def test_what_is_no_verdict_at_all_can_be_removed_without_the_campaign(tmp_path):
    (tmp_path / "repair.json").write_text("{")

    with pytest.raises(CampaignError) as error:
        read_verdict(tmp_path / "repair.json")

    assert error.value.hint == "remove it, and run policyfuzz repair again"
