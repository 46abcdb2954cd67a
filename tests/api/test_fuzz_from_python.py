from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.core.errors import CampaignError, PolicyError, UsageError

RIPPLE = "ripple:dimensions=3,probability=0.01"


class Slide:
    """Falls by its action each step; the reward is what the `rewards` say."""

    signals, capacity = ("height",), None

    def reset(self, inputs, seeds):
        self.height = inputs[:, 0].copy()
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self.height[rows] -= actions
        return self._frame(rows)

    def _frame(self, rows):
        seen = self.height[rows, None]
        return pf.Frame(seen, seen, seen, self.rewards(rows), np.zeros(len(rows), np.bool_))

    def rewards(self, rows):
        return self.height[rows]


class Noisy(Slide):
    def rewards(self, rows):
        return np.random.default_rng().random(len(rows))


def slide(simulator=Slide, speed=0.1):
    return pf.Target(
        name="slide",
        inputs=pf.InputSpace((pf.Real("height", 0, 10),)),
        simulator=simulator,
        policy=lambda: pf.FunctionPolicy(lambda observations: np.full(len(observations), speed)),
        oracle=pf.Below("height", 0.0, kind="fell"),
        horizon=20,
    )


def test_findings_are_those_of_the_command_line(tmp_path):
    from policyfuzz.cli.main import exit_code

    line = ["fuzz", RIPPLE, "--max-execs", "2000", "-s", "3", "-o", str(tmp_path / "line"), "--ui", "none"]
    assert exit_code(line) == 1
    result = pf.fuzz(RIPPLE, max_execs=2000, seed=3, out=tmp_path / "python")
    told = [{**row, "seconds": 0} for row in result.rows()]
    assert told
    assert told == [{**row, "seconds": 0} for row in pf.open_result(tmp_path / "line").rows()]


def test_result_tells_totals_and_how_to_find_the_campaign(tmp_path):
    result = pf.fuzz(RIPPLE, max_execs=1000, out=tmp_path / "c", strategy="random", samples=10)
    assert result.summary["executions"] == result.progress.executions == 1000
    assert result.summary["strategy"] == "random"
    assert result.stop_reason == "max-execs"
    assert f"{result.progress.findings} findings" in repr(result)
    assert str(tmp_path / "c") in repr(result)


def test_campaign_without_a_folder_goes_into_a_temporary_one():
    result = pf.fuzz(RIPPLE, max_execs=200)
    assert (result.folder / "campaign.sqlite").is_file()


def test_time_limit_may_be_a_text_a_number_or_a_timedelta():
    for limit in ("0.01s", 0.01, timedelta(milliseconds=10)):
        assert pf.fuzz(RIPPLE, max_time=limit).stop_reason == "max-time"
    wrong: list[Any] = ["soon", "5", True, [5]]
    for nonsense in wrong:
        with pytest.raises(UsageError, match="not a duration"):
            pf.fuzz(RIPPLE, max_time=nonsense)


def test_target_object_keeps_its_own_policy_and_is_replayed_in_this_process():
    result = pf.fuzz(slide(), max_execs=200)
    assert result.progress.findings
    replayed = result.replay(1)
    assert replayed.crashes
    assert replayed.is_identical
    assert replayed.kind == "fell"
    assert "exactly as recorded" in repr(replayed)


def test_policy_of_this_process_takes_the_place_of_the_targets_own():
    fast = pf.fuzz(slide, lambda observations: np.full(len(observations), 0.4), max_execs=400)
    assert fast.summary["target"] == "python:slide"
    assert fast.progress.findings > pf.fuzz(slide, max_execs=400).progress.findings


def test_what_only_a_name_can_have_is_refused_for_a_target_object():
    with pytest.raises(UsageError, match="has its horizon already"):
        pf.fuzz(slide(), horizon=5)
    with pytest.raises(UsageError, match="has its policy already"):
        pf.fuzz(slide(), "sb3:model.zip")
    with pytest.raises(PolicyError, match="cannot be given a int"):
        pf.fuzz(slide(), 3)
    with pytest.raises(UsageError, match="cannot fuzz a float"):
        pf.fuzz(1.5)
    with pytest.raises(UsageError, match="oracle is a int, expected text or an object"):
        pf.fuzz(RIPPLE, oracle=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="oracle is a type, expected text or an object"):
        pf.fuzz(RIPPLE, oracle=pf.Terminated)  # type: ignore[arg-type]


def test_oracle_object_takes_the_place_of_the_targets_own():
    strict = pf.fuzz(RIPPLE, oracle=pf.Below("gap", 1e9, kind="near"), max_execs=60, force=True)
    assert {finding.kind for finding in strict.findings} == {"near"}
    assert strict.summary["target"].startswith("python:ripple:")


def test_unknown_option_is_refused_as_by_any_function():
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample'"):
        pf.fuzz(RIPPLE, max_execs=10, sample=5)  # type: ignore[call-arg]


def test_unhealthy_target_raises_all_that_is_bad_and_leaves_no_folder(tmp_path):
    with pytest.raises(pf.UnhealthyTarget, match=r"another result when run again.*\n.*hint: .*") as raised:
        pf.fuzz(slide(Noisy), max_execs=200, out=tmp_path / "c")
    assert "force=True" in str(raised.value)
    assert not (tmp_path / "c").exists()
    assert pf.fuzz(slide(Noisy), max_execs=200, out=tmp_path / "c", force=True).progress.executions == 200


def test_campaign_is_resumed_and_ends_as_one_that_was_not_stopped(tmp_path):
    def stop(event):
        if isinstance(event, pf.BatchDone) and event.progress.batch == 5:
            raise pf.Stop

    part = pf.fuzz(RIPPLE, max_execs=2000, seed=2, out=tmp_path / "c", callbacks=[stop])
    assert part.stop_reason == "interrupted"
    assert part.progress.batch == 5
    whole = pf.fuzz(RIPPLE, max_execs=2000, seed=2)
    result = pf.fuzz(RIPPLE, max_execs=2000, seed=2, out=tmp_path / "c", resume=True)
    without_time = [[{**row, "seconds": 0} for row in one.rows()] for one in (result, whole)]
    assert without_time[0] == without_time[1] != []


def test_resume_refuses_what_has_changed(tmp_path):
    pf.fuzz(RIPPLE, max_execs=200, out=tmp_path / "c")
    with pytest.raises(CampaignError, match="resume=True"):
        pf.fuzz(RIPPLE, max_execs=200, out=tmp_path / "c")
    with pytest.raises(CampaignError, match="seed was 0, now 1"):
        pf.fuzz(RIPPLE, max_execs=400, seed=1, out=tmp_path / "c", resume=True)
    with pytest.raises(UsageError, match="which campaign"):
        pf.fuzz(RIPPLE, resume=True)


def test_keyboard_interrupt_gives_the_result_so_far():
    def interrupt(event):
        if isinstance(event, pf.BatchDone) and event.progress.batch == 3:
            raise KeyboardInterrupt

    result = pf.fuzz(RIPPLE, callbacks=interrupt)
    assert (result.stop_reason, result.progress.batch) == ("interrupted", 3)


def test_callbacks_see_every_event_in_order():
    class Listener:
        def __init__(self):
            self.seen = []

        def __call__(self, event):
            self.seen.append(type(event))

    listener = Listener()
    result = pf.fuzz(RIPPLE, max_execs=300, callbacks=[listener])
    assert listener.seen[:2] == [pf.Started, pf.Examined]
    assert listener.seen[2:] == [pf.BatchDone] * result.progress.batch + [pf.Stopped]


def test_callback_that_stops_before_the_start_is_heard_at_the_first_chance():
    def stop(event):
        if isinstance(event, pf.Started):
            raise pf.Stop

    result = pf.fuzz(RIPPLE, callbacks=[stop])
    assert (result.stop_reason, result.progress.batch) == ("interrupted", 0)


def test_callback_that_raises_something_else_is_not_silenced():
    def broken(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pf.fuzz(RIPPLE, callbacks=[broken])
    with pytest.raises(UsageError, match="cannot be called"):
        pf.fuzz(RIPPLE, callbacks=[3])  # type: ignore[list-item]


def test_check_gives_diagnoses_that_can_be_read(capsys):
    diagnoses = pf.check(RIPPLE, episodes=100)
    assert diagnoses.is_healthy
    assert all(isinstance(one, pf.Diagnosis) for one in diagnoses)
    assert "GOOD      determinism: 8 episodes" in repr(diagnoses)
    assert "crash kinds: " in str(diagnoses)
    assert "  input " in str(diagnoses)
    assert "<td>determinism</td>" in diagnoses._repr_html_()
    assert not pf.check(slide(Noisy), episodes=100).is_healthy
    assert capsys.readouterr() == ("", "")
    with pytest.raises(UsageError, match="at least 1"):
        pf.check(RIPPLE, episodes=0)


def test_replay_by_the_command_line_says_why_it_cannot(tmp_path, capsys):
    from policyfuzz.cli.main import exit_code

    def steady(observations):
        return np.full(len(observations), 0.4)

    pf.fuzz(slide(), steady, max_execs=300, out=tmp_path / "c")
    assert exit_code(["replay", str(tmp_path / "c"), "1"]) == 2
    assert "was made by a Python program" in capsys.readouterr().err


def test_result_of_a_named_target_is_opened_and_replayed_from_its_folder(tmp_path):
    pf.fuzz(RIPPLE, max_execs=2000, out=tmp_path / "c")
    result = pf.open_result(str(tmp_path / "c"))
    replayed = result.replay(1)
    assert replayed.is_identical
    picture = replayed.picture()
    assert Path(picture) == tmp_path / "c" / "findings" / "1.png"
    assert "data:image/png;base64," in picture._repr_html_()
    assert len(replayed.recording().actions) == replayed.steps
    with pytest.raises(UsageError, match="ends in"):
        replayed.picture(tmp_path / "1.jpg")
    with pytest.raises(CampaignError, match="no finding 100000"):
        result.replay(100_000)


def test_what_cannot_be_filmed_says_so():
    with pytest.raises(UsageError, match="cannot be filmed"):
        pf.fuzz(slide(), max_execs=200).replay(1).film()
