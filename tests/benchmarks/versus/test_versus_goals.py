from dataclasses import replace

import pytest

from benchmarks.versus.goals import check
from benchmarks.versus.results import Results
from benchmarks.versus.targets import ENTRIES


def goals_of(results) -> dict[str, bool | None]:
    return {goal.what: goal.is_met for goal in check(Results(results))}


def test_goals_on_acasxu_are_multiples_of_random(trials):
    met = goals_of(trials(default=1000, random=10))
    assert met["default has at least 4 times the distinct findings of random at 20,000 episodes"] is True
    assert met["default has at least 10 times the findings of random at 20,000 episodes"] is True
    met = goals_of(trials(default=60, random=10))
    assert met["default has at least 4 times the distinct findings of random at 20,000 episodes"] is True
    assert met["default has at least 10 times the findings of random at 20,000 episodes"] is False


def test_goals_are_not_measured_with_other_numbers_of_episodes(trials):
    for label in ("acasxu", "coopnavi", "ripple-10"):
        short = trials(label=label, episodes=300, default=20, random=5)
        goals = check(Results(short))
        assert {goal.is_met for goal in goals} == {None}, label
        assert any("default: 300 of 20,000 episodes" in goal.numbers for goal in goals)


def test_slow_peers_are_compared_within_their_own_episodes(trials, made_trial):
    peers = [made_trial("pypi-mdpfuzz", seed, tuple(range(1, 21)), episodes=5000) for seed in range(3)]
    what = "default has at least 10 times the distinct findings of pypi-mdpfuzz at 5,000 episodes"
    # of 1,000 findings over 20,000 episodes, 250 are within the first 5,000
    assert goals_of(trials(default=1000, random=1) + peers)[what] is True
    assert goals_of(trials(default=700, random=1) + peers)[what] is False


def test_goal_beside_random_needs_significance_where_crashes_are_rare(trials):
    rare = "default has more findings than random (A12 > 0.5, p < 0.05)"
    assert goals_of(trials(label="coopnavi", default=20, random=10))[rare] is True
    assert goals_of(trials(label="coopnavi", default=10, random=10))[rare] is False
    often = "default has no fewer findings than random (A12 >= 0.5)"
    assert goals_of(trials(label="coopnavi", default=2000, random=2000))[often] is True
    assert goals_of(trials(label="coopnavi", default=1990, random=2000))[often] is False


@pytest.mark.parametrize(("complete", "is_met"), [(9, True), (8, False)])
def test_goal_of_regions_wants_all_of_them_in_nine_of_ten_trials(made_trial, complete, is_met):
    some = [
        made_trial(
            seed=seed,
            label="ripple-10",
            numbers=(1, 2, 3),
            regions=(0, 1, 2 if seed < complete else 1),
            known_regions=3,
        )
        for seed in range(10)
    ]
    assert goals_of(some)["default finds all 3 regions in 90% of trials"] is is_met


@pytest.mark.parametrize(("simulated", "is_met"), [(8.0, True), (7.0, False)])
def test_goal_of_overhead_is_about_what_is_neither_simulation_nor_validation(made_trial, simulated, is_met):
    met = goals_of([made_trial(seed=seed, simulated_seconds=simulated) for seed in range(10)])
    assert met["default spends at most 25% of wall time on the search and the store"] is is_met


def test_goals_are_not_measured_with_too_few_seeds(trials, made_trial):
    for label in ("acasxu", "coopnavi", "ripple-10"):
        few = trials(seeds=9, label=label, default=1000, random=1)
        goals = check(Results(few))
        assert {goal.is_met for goal in goals} == {None}, label
        assert goals[0].numbers == "default: 9 of 10 seeds; random: 9 of 10 seeds"
    peers = [made_trial("pypi-mdpfuzz", seed, (1,), episodes=5000) for seed in range(2)]
    told = [goal for goal in check(Results(trials(default=1000) + peers)) if "pypi-mdpfuzz" in goal.what]
    assert [(goal.numbers, goal.is_met) for goal in told] == [("pypi-mdpfuzz: 2 of 3 seeds", None)]


def test_of_longer_trials_the_episodes_that_a_goal_is_about_count(trials):
    longer = trials(label="acasxu", episodes=40_000, default=1000, random=10)
    (goal,) = (goal for goal in check(Results(longer)) if "4 times" in goal.what)
    assert goal.is_met is True
    assert goal.numbers.startswith("502."), "half of 1,000 and some"


def test_goals_on_other_targets_are_about_any_number_of_episodes(trials):
    often = "default has no fewer findings than random (A12 >= 0.5)"
    assert goals_of(trials(label="mine", episodes=300, default=50, random=20))[often] is True


def test_goal_is_not_met_against_a_peer_that_broke_off(trials, made_trial):
    peers = [made_trial("pypi-mdpfuzz", seed, (1,), episodes=5000) for seed in range(3)]
    peers[1] = replace(peers[1], episodes=40)
    (goal,) = (goal for goal in check(Results(trials(default=1000) + peers)) if "pypi" in goal.what)
    assert (goal.numbers, goal.is_met) == ("pypi-mdpfuzz broke off in 1 of 3 trials", None)


def test_goals_tell_what_was_asked_for_and_did_not_run(trials):
    results = Results(
        trials(label="coopnavi", default=20, random=10), {("coopnavi", "pypi-mdpfuzz"): "no mixture"}
    )
    reasons = {(goal.target, goal.numbers) for goal in check(results) if goal.is_met is None}
    assert reasons == {("coopnavi", "pypi-mdpfuzz could not run")}
    asked = check(results, list(ENTRIES), ["pypi-mdpfuzz-no-coverage"])
    reasons = {(goal.target, goal.numbers) for goal in asked if goal.is_met is None}
    assert reasons == {
        ("coopnavi", "pypi-mdpfuzz could not run"),
        ("coopnavi", "pypi-mdpfuzz-no-coverage did not run"),
        *((label, "did not run") for label in ENTRIES if label != "coopnavi"),
    }
