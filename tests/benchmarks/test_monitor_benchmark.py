"""The benchmark of monitors, with a small target and budget."""

import pytest

import benchmarks.monitor as bench
from benchmarks.__main__ import exit_code


@pytest.mark.slow
def test_it_prints_worth_and_cost(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    name = "ripple:dimensions=3,probability=0.01"
    monkeypatch.setattr(bench, "_BUDGETS", {name: (bench.Budget(2, 1200, 600),) * 2})
    monkeypatch.setattr(bench, "_LEAST_AUC", {name: 0.0})
    monkeypatch.setattr(bench, "_REPEATS", 20)
    assert exit_code(["monitor", "--target", name]) in (0, 1)  # the cost depends on the machine
    out = " ".join(capsys.readouterr().out.split())
    assert "lineages with crashes" in out
    assert "score by density on observations, one observation" in out


def test_targets_without_a_budget_are_refused(capsys):
    assert exit_code(["monitor", "--target", "acasux"]) == 2
    assert "acasxu" in capsys.readouterr().err
