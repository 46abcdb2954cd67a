from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.diversity import BehaviourScale
from benchmarks.versus.judge import Judge, Verdict, outcomes_of
from benchmarks.versus.trial import Trial
from policyfuzz import load_target
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.executions import Executions
from policyfuzz.targets.ripple.target import Pond

TARGET = load_target("ripple:dimensions=2,regions=3,probability=0.01")
POND = Pond.make(2, 3, 0.01)


def claims(inputs, numbers=None, seeds=None) -> Trial:
    count = len(inputs)
    return Trial(
        episodes=100,
        seconds=1.0,
        cpu_seconds=1.0,
        numbers=np.arange(1, count + 1) if numbers is None else np.array(numbers, np.int64),
        inputs=np.array(inputs, np.float64).reshape(count, 2),
        seeds=np.arange(count, dtype=np.uint64) if seeds is None else np.array(seeds, np.uint64),
    )


def verdicts(trial: Trial, target=TARGET, episodes: int = 100) -> list[Verdict]:
    return [Verdict(one) for one in Judge(target)(trial, episodes).verdicts]


def test_true_claims_are_findings():
    assert verdicts(claims(POND.centres)) == [Verdict.FINDING] * 3


def test_lies_are_found_out():
    centre, half = POND.centres[0], POND.half_width
    beside = [centre[0] + 1.01 * half, centre[1]]
    trial = claims([centre, beside, [2.0, 0.5], [np.nan, 0.5]])
    expected = [Verdict.FINDING, Verdict.NOT_REPRODUCED, Verdict.INVALID, Verdict.INVALID]
    assert verdicts(trial) == expected


def test_claims_that_no_policy_could_avoid_are_unsolvable():
    target = replace(TARGET, solvable=lambda inputs: inputs[:, 0] > POND.centres[0, 0])
    left, right = POND.centres[0] - [1e-6, 0], POND.centres[0] + [1e-6, 0]
    assert verdicts(claims([left, right]), target) == [Verdict.UNSOLVABLE, Verdict.FINDING]


def test_a_repeated_case_counts_once():
    first, second = POND.centres[:2]
    trial = claims([first, second, first], seeds=[5, 5, 5])
    assert verdicts(trial) == [Verdict.FINDING, Verdict.FINDING, Verdict.REPEATED]


def test_a_claim_with_the_episode_of_an_earlier_one_is_a_repeat():
    """The seed plays no part here, as obstacles play none that are never reached."""
    first, second = POND.centres[:2]
    trial = claims([first, second, first], seeds=[5, 5, 6])
    judged = Judge(TARGET)(trial, 100)
    assert judged.verdicts.tolist() == [Verdict.FINDING, Verdict.FINDING, Verdict.REPEATED]
    assert judged.outcomes[2] == 0


def test_claims_after_the_last_episode_are_late():
    trial = claims(POND.centres[:2], numbers=[100, 101])
    assert verdicts(trial, episodes=100) == [Verdict.FINDING, Verdict.LATE]


def test_no_claims_are_no_problem():
    assert verdicts(claims(np.empty((0, 2)))) == []


def test_only_findings_have_a_behaviour():
    judged = Judge(TARGET)(claims([POND.centres[0], [0.999, 0.001]]), 100)
    assert judged.found.tolist() == [True, False]
    assert np.isfinite(judged.behaviours).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize(
    ("trial", "complaint"),
    [
        (replace(claims(POND.centres), seeds=np.zeros(2, np.uint64)), "have shapes"),
        (claims(POND.centres, numbers=[3, 2, 1]), "not in the order of discovery"),
    ],
)
def test_claims_that_make_no_sense_are_refused(trial, complaint):
    with pytest.raises(TargetCodeError, match=complaint):
        Judge(TARGET)(trial, 100)


def test_behaviour_is_measured_in_deviations_and_root_mean_square():
    # the second coordinate is constant, and does not count
    scale = BehaviourScale.of(np.array([[0.0, 7.0, 0.0], [4.0, 7.0, 2.0]]))
    assert scale.size == 2
    executions = Executions.of([0.0, 0.0], [True, True], [np.array([[0.0]]), np.array([[1.0]])])
    alike = BehaviourScale(np.zeros(2), np.ones(2))(executions)
    # both coordinates differ by one deviation, so the whole does too
    assert np.linalg.norm(alike[0] - alike[1]) == pytest.approx(1.0)


def test_behaviour_scale_is_the_same_at_every_time():
    first, second = (Judge(TARGET)(claims(POND.centres), 100).behaviours for _ in range(2))
    assert (first == second).all()


def episodes(*states: list[float], steps: list[int]) -> Executions:
    """Crashed episodes with these `states`, each crashed at its step."""
    made = Executions.of([0.0] * len(states), [True] * len(states), [np.array(one) for one in states])
    return replace(made, verdicts=replace(made.verdicts, steps=np.array(steps)))


def test_episodes_that_differ_only_after_the_crash_have_one_outcome():
    first, second, third = outcomes_of(
        episodes([1.0, 2.0, 3.0], [1.0, 2.0, 9.0], [1.0, 2.5, 3.0], steps=[1, 1, 1])
    )
    assert first == second
    assert first != third


def test_outcomes_differ_by_the_step_of_the_crash_and_by_the_last_bit():
    made = episodes([1.0, 2.0], [1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], steps=[1, 0, 1])
    assert len(set(outcomes_of(made).tolist())) == 3


def test_outcome_does_not_depend_on_the_other_claims():
    together = Judge(TARGET)(claims(POND.centres), 100).outcomes
    for row, centre in enumerate(POND.centres):
        assert Judge(TARGET)(claims([centre], seeds=[row]), 100).outcomes[0] == together[row]


def test_refused_claims_have_no_outcome():
    judged = Judge(TARGET)(claims([POND.centres[0], [0.999, 0.001], [2.0, 0.5]]), 100)
    assert (judged.outcomes > 0).tolist() == [True, False, False]
