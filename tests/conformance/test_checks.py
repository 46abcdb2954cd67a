import sys
from pathlib import Path

import pytest

from policyfuzz.cli.main import exit_code
from policyfuzz.conformance.checks import CHECKS
from policyfuzz.conformance.subject import Subject, Violation
from policyfuzz.conformance.suite import TargetConformance

sys.path.append(str(Path(__file__).parent))  # for this process and those that the checks start


class TestSoundTarget(TargetConformance):
    target = "broken_targets:sound"
    executions = 120


@pytest.mark.parametrize(
    ("target", "check", "complaint"),
    [
        ("changes_with_every_load", "name_rebuilds_the_target", "policy_sha256"),
        ("draws_by_itself", "draws_depend_on_the_generator_only", "other inputs"),
        ("stretched_dimension", "inputs_survive_the_unit_cube", "unit cube"),
        ("relative_validity", "validity_is_a_property_of_the_input", "constraint of a row"),
        ("edits_while_judging", "validity_is_a_property_of_the_input", "solvability edits"),
        ("starts_with_reward", "frames_have_the_shapes_they_promise", "rewards are not zero"),
        ("too_many_signals", "frames_have_the_shapes_they_promise", "2 signals, but 1 names"),
        ("all_rows_always", "frames_have_the_shapes_they_promise", "have shape"),
        ("edits_inputs", "arguments_are_not_edited", "edits the inputs"),
        ("mixes_rows", "episode_alone_equals_episode_in_a_batch", "run alone differs"),
        ("last_one_counts", "order_in_the_batch_does_not_matter", "another order differs"),
        ("ages", "earlier_episodes_leave_no_trace", "new simulator differs"),
        ("knows_its_process", "another_process_gives_the_same", "another process"),
        ("disturbed_by_camera", "rendering_changes_nothing", "when rendered differs"),
        ("zooming_camera", "rendering_changes_nothing", "the one before was"),
        ("wears_out_slowly", "campaign_repeats", "second campaign"),
        ("wears_out_slowly", "interrupted_campaign_ends_the_same", "interrupted and resumed"),
        ("wears_out_slowly", "findings_are_valid_and_replay", "flaky|does not replay"),
        ("unseeded", "episode_alone_equals_episode_in_a_batch", "run alone differs"),
        ("unseeded", "campaign_repeats", "health check refuses"),
        ("unseeded", "findings_are_valid_and_replay", "health check refuses"),
        ("float_camera", "rendering_changes_nothing", "float64"),
        ("grey_camera", "rendering_changes_nothing", "uint8 .20, 30."),
        ("camera_of_gymnasium", "rendering_changes_nothing", "TypeError"),
        ("broken_camera", "rendering_changes_nothing", "no film in it"),
    ],
)
def test_check_catches_a_target_that_breaks_it(target, check, complaint):
    subject = Subject(f"broken_targets:{target}", executions=120)
    with pytest.raises(Violation, match=complaint):
        CHECKS[check](subject)


def test_check_says_when_there_was_nothing_to_check():
    subject = Subject("broken_targets:never_crashes", executions=30)
    assert CHECKS["findings_are_valid_and_replay"](subject) == "30 episodes found no crash to replay"
    subject = Subject("ripple:dimensions=2", executions=30)
    assert CHECKS["rendering_changes_nothing"](subject) == "its simulator does not render"


def test_checks_use_the_policy_that_was_asked_for():
    subject = Subject("broken_targets:with_policy", policy="-0.2", executions=30)
    for name in ("name_rebuilds_the_target", "another_process_gives_the_same"):
        assert CHECKS[name](subject) is None


@pytest.mark.parametrize("target", ["cannot_be_made", "cannot_judge"])
def test_failing_code_of_a_target_is_told_as_such(capsys, target):
    assert exit_code(["check", f"broken_targets:{target}", "--episodes", "5", "--thorough"]) == 3
    error = capsys.readouterr().err
    assert "RuntimeError" in error
    assert "internal error" not in error


@pytest.mark.parametrize(("target", "code"), [("sound", 0), ("mixes_rows", 3)])
def test_thorough_check_exits_3_when_a_promise_is_broken(capsys, target, code):
    assert exit_code(["check", f"broken_targets:{target}", "--episodes", "50", "--thorough"]) == code
    printed = capsys.readouterr().out
    assert ("run alone differs in its" in printed) == (code == 3)
    assert "GOOD      conformance: Two generators with one seed draw and change inputs alike" in printed
