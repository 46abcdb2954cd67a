"""Environments and policies that would break a campaign, its output or its replay, if one let them."""

from pathlib import Path

import pytest

from policyfuzz import CampaignReader

FOLDER = Path(__file__).parents[1] / "environments"
CORRIDOR, HOSTILE = f"gym:{FOLDER / 'gym_environments.py'}:Corridor", f"gym:{FOLDER / 'gym_hostile.py'}"
BRAVE = f"py:{FOLDER / 'gym_environments.py'}:brave"
LIMITS = ["--max-execs", 60, "--samples", 30, "--batch", 30, "-o", "c"]


def fuzz(cli, target, *words, policy=BRAVE, oracle="terminated", ui="none"):
    return cli("fuzz", target, "--policy", policy, "--oracle", oracle, "--ui", ui, *LIMITS, *words)


@pytest.mark.parametrize("ui", ["plain", "screen"])
@pytest.mark.parametrize("text", ["lost in [/data/x]", "[red] light"])
def test_what_looks_like_markup_is_printed_as_it_is(cli, monkeypatch, text, ui):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # the screen draws for terminals only
    monkeypatch.setenv("COLUMNS", "400")
    code, out, err = fuzz(cli, f"{HOSTILE}:Talkative:env.says={text}", ui=ui)
    assert code == 1, err
    assert f"ValueError: {text}" in err  # the health check
    assert f"env.says={text}" in err + out  # the target's name
    code, out, err = cli("show", "c", "--errors")
    assert code == 0, err
    assert f"ValueError: {text}" in out


def test_half_a_surrogate_pair_is_stored_shown_and_replayed(loud_cli):
    code, _, err = fuzz(loud_cli, f"{HOSTILE}:Talkative:env.says=surrogate", ui="plain")
    assert code == 1, err
    for command in (
        ["show", "c", "--errors"],
        ["show", "c", 1, "--errors"],
        ["replay", "c", 1, "--trust", "--error"],
    ):
        code, out, err = loud_cli(*command)
        assert code == (3 if command[0] == "replay" else 0), err
        assert r"ValueError: half a pair: \udc80" in out


def test_message_of_a_megabyte_keeps_its_head_and_tail(loud_cli):
    code, _, err = fuzz(loud_cli, f"{HOSTILE}:Talkative:env.says=long", ui="plain")
    assert code == 1, err
    failed = CampaignReader("c").failed_episodes()
    assert failed
    for one in failed:
        assert len(one.text) < 25_000
        assert "ValueError: HEAD xxx" in one.text
        assert one.text.endswith("xxx TAIL")
        assert "characters left out" in one.text
    for command in (["show", "c", 1, "--errors"], ["replay", "c", 1, "--trust", "--error"]):
        code, out, err = loud_cli(*command)
        assert code == (3 if command[0] == "replay" else 0), err
        assert "HEAD xxx" in out
        assert "xxx TAIL" in out


def test_policy_that_ends_the_program_is_no_success(cli):
    code, _, err = fuzz(cli, CORRIDOR, policy=f"py:{FOLDER / 'gym_hostile.py'}:quitter")
    assert code == 3
    assert "raised SystemExit: 0" in err
    assert "gym_hostile.py:" in err


def test_wrapper_from_a_file_is_found_from_another_folder(cli, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "import gymnasium\n"
        "class Shifted(gymnasium.ObservationWrapper):\n"
        "    def observation(self, observation):\n"
        "        return observation + 0.25\n"
    )
    code, _, err = fuzz(cli, f"{CORRIDOR}:wrap=own.py:Shifted")
    assert code == 1, err
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, out, err = cli("replay", "../c", 1, "--trust", "--no-picture")
    assert (code, err) == (1, "")
    assert "exactly as recorded" in out


def test_two_parts_of_an_oracle_may_have_one_name(cli):
    code, _, err = fuzz(cli, CORRIDOR, oracle="terminated as bad | return<-100 as bad")
    assert code == 1, err
    findings = CampaignReader("c").findings()
    assert {one.kind for one in findings} == {"bad"}
    fallen = next(one for one in findings if one.episode_return >= -100)
    poor = next(one for one in findings if one.episode_return < -100)
    for one in (fallen, poor):
        code, out, err = cli("replay", "c", one.id, "--trust", "--no-picture")
        assert code == 1, err
        assert "exactly as recorded" in out


def test_environment_without_pictures_is_drawn_and_not_filmed(cli, tmp_path):
    assert fuzz(cli, f"{HOSTILE}:Blind")[0] == 1
    code, out, err = cli("replay", "c", 1, "--trust")
    assert code == 1
    assert "exactly as recorded" in out
    assert "not filmed: the environment cannot draw itself: render() gave NoneType" in err
    assert [path.name for path in (tmp_path / "c/findings").iterdir()] == ["1.png"]


@pytest.mark.parametrize(("name", "example"), [("gym:", "gym:LunarLander-v3"), ("pettingzoo:", "mpe2.")])
def test_kind_of_environment_alone_is_answered_by_an_example(cli, name, example):
    code, _, err = cli("check", name)
    assert code == 2
    assert f"target {name!r} names no environment" in err
    assert example in err.partition("hint: ")[2]


def test_finding_of_an_exception_is_shown_with_its_traceback(loud_cli):
    fuzz(loud_cli, f"{HOSTILE}:Talkative:env.says=lost", oracle="terminated | exception")
    findings = CampaignReader("c").findings()
    raised = next(one for one in findings if one.kind == "exception")
    code, out, err = loud_cli("show", "c", raised.id)
    assert code == 0, err
    assert out.count("Traceback (most recent call last)") == 1  # not once more for its second run
    assert "gym_hostile.py" in out
    assert "ValueError: lost" in out
    _, out, _ = loud_cli("show", "c", raised.id, "--json")
    assert r"\nValueError: lost" in out
    fallen = next(one for one in findings if one.kind == "terminated")
    _, out, _ = loud_cli("show", "c", fallen.id)
    assert "Traceback" not in out
    assert '"error": null' in loud_cli("show", "c", fallen.id, "--json")[1]
