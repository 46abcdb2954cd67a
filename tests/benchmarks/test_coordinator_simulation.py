"""The simulation of many workers keeps to what can be said on paper."""

import pytest

from benchmarks.coordinator.costs import Shape, campaign_cost
from benchmarks.coordinator.simulation import Costs, Plan, simulate

FREE = Costs(0.0, 0.0, delay=0.0)


def test_all_are_busy_where_nothing_costs_anything():
    found = simulate(Plan(workers=50, batch=100, window=4), FREE)
    assert found.utilisation == pytest.approx(1.0, abs=0.02)
    assert found.episodes_per_second == pytest.approx(50, rel=0.05)


def test_no_more_are_busy_than_cases_are_in_flight():
    found = simulate(Plan(workers=400, batch=50, window=2), FREE)
    assert found.episodes_per_second == pytest.approx(100, rel=0.05)
    assert found.utilisation == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("costs", [Costs(0.002, 0.003), Costs(0.0, 0.0005, relay=0.005)])
def test_rate_is_what_the_busiest_process_can_do(costs):
    found = simulate(Plan(workers=1000, batch=500, window=4), costs, seconds=20.0)
    assert found.episodes_per_second == pytest.approx(200, rel=0.1)


def test_varying_lengths_have_a_mean_of_a_second():
    found = simulate(Plan(workers=20, batch=200, window=4, varies=True), FREE, seconds=100.0)
    assert found.episodes_per_second == pytest.approx(20, rel=0.05)


def test_cost_of_a_campaign_is_split_completely():
    cost = campaign_cost(workers=20, batch=32, shape=Shape(10, 2, 2), batches=3, strategy="mdpfuzz")
    parts = (cost.search, cost.density, cost.dispatch, cost.store, cost.other)
    assert min(parts) > 0
    assert cost.total == pytest.approx(sum(parts))


def test_strategy_without_density_pays_nothing_for_it():
    cost = campaign_cost(workers=20, batch=32, shape=Shape(10, 2, 2), batches=3, strategy="reward")
    assert cost.density == 0
