"""Commands for new modes: what they get to know, and that none of them can do harm to the campaign."""

import json
import os
import select
from pathlib import Path

import pytest

from policyfuzz import CampaignConfig, Choice, InputSpace, Real
from policyfuzz.campaign import finding_commands
from policyfuzz.campaign.finding_commands import LOG_NAME, FindingCommands, facts_of, variables_of
from policyfuzz.campaign.new_modes import NewMode
from tests.store.example_findings import a_finding

SPACE = InputSpace(
    (Real("speed", 0, 9), Real("angle", 0, 9), Choice("light", ("red", "green", "blue", "off")))
)


def facts(folder: Path, number: int = 1, **others) -> dict:
    mode = NewMode(1, a_finding(number, **others), is_first_of_kind=True)
    return facts_of(mode, folder, CampaignConfig("driving"), SPACE, trust=False)


@pytest.fixture
def run(tmp_path):
    """Run a command for some findings; give back what was said."""

    def run(command: str, *given: dict, last_seconds: float = 300.0, **settings) -> list[str]:
        said: list[str] = []
        commands = FindingCommands(command, said.append, **settings)
        for one in given or (facts(tmp_path),):
            commands.add(tmp_path, one)
        commands.close(last_seconds)
        return said

    return run


def test_command_gets_the_facts_as_json(run, tmp_path):
    assert run(f"cat > {tmp_path}/given.json") == []
    given = json.loads((tmp_path / "given.json").read_text())
    assert (given["target"], given["mode"], given["is_first_of_kind"]) == ("driving", 1, True)
    assert given["finding"]["crash_step"] == 7
    assert given["finding"]["input"]["light"] == "off"
    assert given["replay"] == f"policyfuzz replay {tmp_path} 1"


def test_command_gets_the_facts_as_variables(run, tmp_path):
    run(f'echo "$POLICYFUZZ_KIND, $POLICYFUZZ_STEP, $POLICYFUZZ_FINDING" > {tmp_path}/line')
    assert (tmp_path / "line").read_text() == "caught, 7, 1\n"


def test_numbers_that_json_does_not_know_are_null(tmp_path):
    given = facts(tmp_path, margin=float("nan"), episode_return=float("-inf"))
    assert json.loads(json.dumps(given, allow_nan=False))["finding"]["margin"] is None
    assert variables_of(given)["POLICYFUZZ_RETURN"] == ""


def test_target_of_a_program_has_no_replay_command(tmp_path):
    mode = NewMode(1, a_finding(), is_first_of_kind=True)
    given = facts_of(mode, tmp_path, CampaignConfig("python:Env"), SPACE, trust=False)
    assert given["replay"] is None
    assert variables_of(given)["POLICYFUZZ_REPLAY"] == ""


def test_names_cannot_become_part_of_the_command(run, tmp_path):
    evil = f"$(touch {tmp_path}/owned); `touch {tmp_path}/owned` ' \" \n touch {tmp_path}/owned \0"
    said = run(f"printenv POLICYFUZZ_KIND > {tmp_path}/line", facts(tmp_path, kind=evil))
    assert said == []
    assert not (tmp_path / "owned").exists()
    assert (tmp_path / "line").read_text().count("\n") == 1, "a variable is one line"


def test_what_commands_print_goes_to_the_log(run, tmp_path):
    run("echo out; echo err >&2", facts(tmp_path, 1), facts(tmp_path, 2))
    assert (tmp_path / LOG_NAME).read_text() == "--- finding 1\nout\nerr\n--- finding 2\nout\nerr\n"


def test_failing_commands_are_told_once_and_counted(run, tmp_path):
    first, last = run("exit 3", *(facts(tmp_path, number) for number in (1, 2, 3)))
    assert "exit code 3" in first
    assert "for finding 1" in first
    assert "3 commands failed" in last


def test_missing_command_is_told(run):
    (said,) = run("no-such-command-at-all")
    assert "exit code 127" in said


def test_command_that_hangs_is_ended_with_its_children(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    (said,) = run(f"tail -f /dev/null > {tmp_path}/pipe & wait", command_seconds=1.0)
    assert "ended after 1 s" in said
    is_closed, _, _ = select.select([end], [], [], 60)
    assert is_closed, "nobody holds the other end"
    assert os.read(end, 1) == b""
    os.close(end)


def test_command_that_prints_without_end_is_ended(run, tmp_path, monkeypatch):
    monkeypatch.setattr(finding_commands, "_MOST_PRINTED", 10_000)
    (said,) = run("yes")
    assert "printed more than" in said


def test_end_of_the_campaign_waits_only_so_long(run, tmp_path):
    said = run("tail -f /dev/null", facts(tmp_path, 1), facts(tmp_path, 2), last_seconds=0.0)
    assert "for 1 new modes" in said[-1] or "for 2 new modes" in said[-1]


def test_too_many_new_modes_are_left_out(run, tmp_path, monkeypatch):
    monkeypatch.setattr(finding_commands, "_MOST_WAITING", 2)
    said = run("read line", *(facts(tmp_path, number) for number in range(1, 500)))
    assert "new modes" in said[-1]


def test_campaign_that_never_stops_finding_modes_tells_only_so_many(run, tmp_path, monkeypatch):
    monkeypatch.setattr(finding_commands, "MOST_COMMANDS", 2)
    given = [facts(tmp_path, number) | {"mode": number} for number in range(1, 6)]
    said = run(f"echo >> {tmp_path}/told", *given)
    assert said == ["--on-finding: 2 new modes were told, and no more will be"]
    assert (tmp_path / "told").read_text() == "\n" * 2


def test_log_that_is_a_link_is_not_followed(run, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / LOG_NAME).symlink_to(tmp_path / "precious")
    (said,) = run("echo overwritten")
    assert "cannot be run" in said
    assert (tmp_path / "precious").read_text() == "mine"
