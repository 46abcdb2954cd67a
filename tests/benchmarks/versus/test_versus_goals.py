from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus import goals as module
from benchmarks.versus.goals import BELOW_NOBODY, WANTED, check, shortfalls
from benchmarks.versus.results import Results
from benchmarks.versus.targets import ENTRIES

MASS = "default: failure mass at 0.05 at least 0.75 at 20,000 episodes"
FINDINGS = "default has at least 10 times the findings of random at 20,000 episodes"


def goals_of(results, references=None) -> dict[str, bool | None]:
    return {goal.what: goal.is_met for goal in check(Results(results, references=references))}


def test_goals_are_those_that_were_set():
    assert [(one.metric, one.number) for one in WANTED["acasxu"][:2]] == [
        ("mass_near", 0.75),
        ("mass_far", 0.92),
    ]
    assert set(WANTED) <= set(ENTRIES)
    assert {ENTRIES[label].episodes for label in ("bipedal", "lunarlander", "cartpole")} == {5000}


@pytest.mark.parametrize(("covered", "is_met"), [(3, True), (2, False)])
def test_goal_of_failure_mass_is_about_the_mean_share(made_trial, made_reference, covered, is_met):
    """Of four random crashes so many lie at a finding."""
    unit = np.eye(4)
    trials = [
        replace(made_trial(seed=seed, numbers=tuple(range(1, covered + 1))), unit=unit[:covered])
        for seed in range(10)
    ]
    assert goals_of(trials, {"acasxu": made_reference(unit)})[MASS] is is_met


def test_goal_of_failure_mass_is_not_measured_without_a_reference_set(trials):
    (goal,) = (goal for goal in check(Results(trials(default=10))) if goal.what == MASS)
    assert (goal.numbers, goal.is_met) == ("default: mass 0.05 not known", None)


def test_goal_of_findings_is_a_multiple_of_random(trials):
    assert goals_of(trials(default=1000, random=10))[FINDINGS] is True
    assert goals_of(trials(default=60, random=10))[FINDINGS] is False


def test_goals_on_coopnavi_are_lineages_behaviours_and_an_early_crash(made_trial, trials):
    def ours(lineages: int, first: int) -> list:
        numbers = tuple(range(first, first + 30))
        roots = tuple(number % lineages for number in range(30))
        return [made_trial(seed=seed, label="coopnavi", numbers=numbers, roots=roots) for seed in range(10)]

    peers = trials(label="coopnavi", cma_me=1, curiosity=6)
    met = goals_of(ours(10, 2500) + peers)
    assert met["default: root lineages with a crash at least 10 at 20,000 episodes"] is True
    assert met["default: episodes to the first crash at most 2,500 at 20,000 episodes"] is True
    assert met["default has at least 3 times the behaviours of cma-me at 20,000 episodes"] is True
    assert met["default has at least 3 times the behaviours of curiosity at 20,000 episodes"] is False
    met = goals_of(ours(9, 2501) + peers)
    assert met["default: root lineages with a crash at least 10 at 20,000 episodes"] is False
    assert met["default: episodes to the first crash at most 2,500 at 20,000 episodes"] is False


@pytest.mark.parametrize(("count", "is_met"), [(6, True), (5, False)])
def test_goal_on_bipedal_counts_courses_and_not_findings(made_trial, count, is_met):
    def walkers(name: str, different: int, findings: int) -> list:
        numbers = tuple(range(1, findings + 1))
        facts = {"label": "bipedal", "episodes": 5000, "courses": [1 + one % different for one in numbers]}
        return [made_trial(name, seed, numbers, **facts) for seed in range(10)]

    what = "default has at least 3 times the outcomes that differ in terrain or obstacles reached of"
    some = walkers("default", count, 100) + walkers("random", 2, 2) + walkers("half-noise", 2, 90)
    met = goals_of(some)
    assert met[f"{what} random at 5,000 episodes, p < 0.05"] is is_met
    assert met[f"{what} half-noise at 5,000 episodes, p < 0.05"] is is_met


@pytest.mark.parametrize("label", ["lunarlander", "cartpole"])
def test_goals_on_gymnasium_are_behaviours(trials, label):
    what = "default has at least 5 times the behaviours of random at 5,000 episodes"
    assert goals_of(trials(label=label, episodes=5000, default=90, random=10))[what] is True
    assert goals_of(trials(label=label, episodes=5000, default=60, random=10))[what] is False


def test_goals_are_not_measured_with_other_numbers_of_episodes(trials):
    for label in ("acasxu", "coopnavi", "ripple-10"):
        short = trials(label=label, episodes=300, default=20, random=5)
        goals = check(Results(short))
        assert {goal.is_met for goal in goals} == {None}, label
        assert any("default: 300 of 20,000 episodes" in goal.numbers for goal in goals)


def test_goals_are_not_measured_with_too_few_seeds(trials):
    for label in ("acasxu", "coopnavi", "ripple-10"):
        few = trials(seeds=9, label=label, default=1000, random=1)
        goals = check(Results(few))
        assert {goal.is_met for goal in goals} == {None}, label
        assert goals[-1].numbers == "default: 9 of 10 seeds; random: 9 of 10 seeds"


def test_of_longer_trials_the_episodes_that_a_goal_is_about_count(trials):
    longer = trials(label="acasxu", episodes=40_000, default=1000, random=10)
    (goal,) = (goal for goal in check(Results(longer)) if "10 times" in goal.what)
    assert goal.is_met is True
    assert goal.numbers.startswith("502 against"), "half of 1,000 and some"


def test_default_must_be_below_nobody_in_any_column(trials):
    assert goals_of(trials(label="ripple-2", default=1000, random=10))[BELOW_NOBODY] is True
    results = Results(trials(label="ripple-2", default=10, random=10, curiosity=40))
    (goal,) = check(results)
    assert (goal.what, goal.is_met) == (BELOW_NOBODY, False)
    assert "findings of curiosity (14.5 against 44.5, A12 0.00, p " in goal.numbers
    assert "random" not in goal.numbers, "nothing differs there"


def test_later_first_crash_is_below(made_trial):
    late = [made_trial("default", seed, (900 + seed,), label="ripple-2") for seed in range(10)]
    early = [made_trial("random", seed, (100 + seed,), label="ripple-2") for seed in range(10)]
    assert [one.metric for one in shortfalls(Results(late + early), "ripple-2")] == ["first_or_end"]
    assert shortfalls(Results(late), "ripple-2") == [], "nobody is there to be below"


def test_column_that_one_of_the_two_does_not_know_is_not_compared(made_trial):
    ours = [made_trial("default", seed, (1, 2), roots=(4, 4)) for seed in range(10)]
    theirs = [made_trial("random", seed, (1, 2)) for seed in range(10)]
    assert shortfalls(Results(ours + theirs), "acasxu") == []
    knowing = [made_trial("random", seed, (1, 2), roots=(4, 5)) for seed in range(10)]
    assert [one.metric for one in shortfalls(Results(ours + knowing), "acasxu")] == ["lineages"]


def test_slow_peers_are_compared_within_their_own_episodes(trials, made_trial):
    peers = [
        made_trial("pypi-mdpfuzz", seed, tuple(range(1, 301 + seed)), episodes=5000) for seed in range(3)
    ]
    # of 1,000 findings over 20,000 episodes, 250 are within the first 5,000
    found = shortfalls(Results(trials(default=1000) + peers), "acasxu")
    assert {(one.contestant, one.episodes) for one in found} == {("pypi-mdpfuzz", 5000)}
    assert "findings" in {one.metric for one in found}


def test_goals_on_other_targets_are_about_any_number_of_episodes(trials):
    assert goals_of(trials(label="mine", episodes=300, default=50, random=20))[BELOW_NOBODY] is True


def test_goal_is_not_met_against_a_peer_that_broke_off(trials, made_trial):
    peers = [made_trial("pypi-mdpfuzz", seed, (1,), label="coopnavi", episodes=5000) for seed in range(3)]
    peers[1] = replace(peers[1], episodes=40)
    results = Results(trials(label="coopnavi", default=1000) + peers)
    (goal,) = (goal for goal in check(results) if "behaviours of pypi" in goal.what)
    assert (goal.numbers, goal.is_met) == ("pypi-mdpfuzz broke off in 1 of 3 trials", None)


def test_goals_tell_what_was_asked_for_and_did_not_run(trials):
    results = Results(
        trials(label="ripple-2", default=20, random=10), {("ripple-2", "pypi-mdpfuzz"): "no mixture"}
    )
    asked = check(results, list(ENTRIES), ["pypi-mdpfuzz-no-coverage"])
    reasons = {(goal.target, goal.numbers) for goal in asked if goal.is_met is None}
    assert reasons == {
        ("ripple-2", "not run: pypi-mdpfuzz, pypi-mdpfuzz-no-coverage"),
        *((label, "did not run") for label in ENTRIES if label != "ripple-2"),
    }


def test_nothing_is_said_about_a_default_that_is_alone(trials):
    (goal,) = check(Results(trials(label="ripple-2", default=20)))
    assert (goal.numbers, goal.is_met) == ("nobody else did run", None)
    assert module.shortfalls(Results(trials(label="ripple-2", random=20)), "ripple-2") == []
