"""Campaign files written by strangers: what they name is not run unless the user says so."""

import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from policyfuzz import CampaignReader, fuzz, open_result, replay
from policyfuzz.core.errors import CampaignError

#: Leaves a mark when it is imported, and when something in it is called.
PAYLOAD = """
from pathlib import Path

def mark(*arguments, **options):
    Path("MARK").touch()

mark()
act = make = Env = Wrapper = start = parallel_env = mark
"""
TARGETS = [
    "os:system:command=touch MARK",
    "planted.py:make",
    "planted:make",
    "gym:subprocess:getoutput:env.cmd=touch MARK",
    "gym:planted.py:Env",
    "gym:planted.py:Env-v0",
    "gym:planted:Env",
    "gym:planted:Env-v0",
    "gym:CartPole-v1:wrap=planted:Wrapper",
    "gym:CartPole-v1:wrap=planted.py:Wrapper",
    "gym:CartPole-v1:input=planted.py",
    "pettingzoo:planted",
    "pettingzoo:planted.py",
    "pettingzoo:planted:make",
]


@pytest.fixture(autouse=True)
def _in_their_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLICYFUZZ_TRUST", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("planted.py").write_text(PAYLOAD)
    yield
    sys.modules.pop("planted", None)


@pytest.fixture
def plant(campaign):
    """Give a copy of a campaign this target and policy."""

    def edit(target: str | None = None, policy: str | None = None) -> Path:
        folder = Path(shutil.copytree(campaign, "theirs", dirs_exist_ok=True))
        with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection, connection:
            ((text,),) = connection.execute("SELECT value FROM about WHERE name = 'config'")
            config = json.loads(text) | {"policy": policy} | ({} if target is None else {"target": target})
            connection.execute("UPDATE about SET value = ? WHERE name = 'config'", [json.dumps(config)])
        return folder

    return edit


def has_run() -> bool:
    """True if planted code was run; forgets it."""
    was_there = Path("MARK").exists()
    Path("MARK").unlink(missing_ok=True)
    return was_there


@pytest.mark.parametrize("target", TARGETS)
def test_replay_runs_no_code_that_only_the_file_names(loud_cli, plant, target):
    folder = plant(target, "py:planted.py:act" if target.startswith("gym:CartPole") else None)
    code, out, err = loud_cli("replay", folder, 1, "--no-picture")
    assert (code, out) == (2, "")
    named = target.partition(":command=")[0].partition(":env.")[0].rpartition("=")[2]
    named = named.removeprefix("gym:").removeprefix("pettingzoo:")
    assert named in err
    assert "--trust" in err
    assert not has_run()
    shown = loud_cli("show", folder)[1]
    assert "--trust" in shown
    assert f"runs code: {named!r}" in shown
    assert not has_run()
    loud_cli("replay", folder, 1, "--trust", "--no-picture")
    assert has_run()


@pytest.mark.parametrize("policy", ["py:planted.py:act", "py:planted:act"])
@pytest.mark.parametrize("target", ["gym:CartPole-v1", "bipedal"])
def test_replay_loads_no_policy_code_that_only_the_file_names(cli, plant, policy, target):
    if target == "bipedal":
        pytest.importorskip("Box2D", reason="needs the extra bipedal")
    folder = plant(target, policy)
    code, _, err = cli("replay", folder, 1, "--no-picture")
    assert code == 2
    assert repr(policy) in err
    assert not has_run()
    cli("replay", folder, 1, "--trust", "--no-picture")
    assert has_run()


def test_error_of_a_stranger_is_not_replayed_either(cli, plant):
    folder = plant("planted.py:make")
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(errors)")]
        values = ["exception" if name == "kind" else "" if name == "text" else 1 for name in columns]
        connection.execute(f"INSERT INTO errors VALUES ({','.join('?' * len(values))})", values)
    code, _, err = cli("replay", folder, 1, "--error")
    assert code == 2
    assert "'planted.py:make'" in err
    assert not has_run()


def test_resume_loads_no_policy_code_that_only_the_file_names(cli, plant):
    folder = plant(policy="py:planted.py:act")
    target = "ripple:dimensions=3,probability=0.01"
    resume = ("fuzz", target, "-o", folder, "--resume", "--max-execs", 2100, "--ui", "none")
    code, _, err = cli(*resume)
    assert code == 2
    assert "'py:planted.py:act' is the policy" in err
    with pytest.raises(CampaignError, match="planted"):
        fuzz(target, out=folder, resume=True, max_execs=2100, progress=False)
    assert not has_run()


def test_python_replays_no_code_that_only_the_file_names(plant):
    folder = plant("planted.py:make")
    with pytest.raises(CampaignError, match=r"planted\.py:make"):
        open_result(folder).replay(1)
    campaign = CampaignReader(folder)
    with pytest.raises(CampaignError, match=r"planted\.py:make"):
        replay(campaign, campaign.finding(1))
    assert not has_run()
    with pytest.raises(Exception, match=r"expected policyfuzz\.Target"):
        open_result(folder, trust=True).replay(1)
    assert has_run()


def test_trust_by_the_environment_counts_for_replays(cli, plant, monkeypatch):
    monkeypatch.setenv("POLICYFUZZ_TRUST", "1")
    cli("replay", plant("planted.py:make"), 1)
    assert has_run()


def test_their_folder_is_not_searched_for_what_is_built_in(cli, plant, monkeypatch):
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    folder = plant("gym:CartPole-v1:wrap=gymnasium.wrappers:FlattenObservation", "npz:nowhere.npz")
    code, _, err = cli("replay", folder, 1)
    assert (code, "nowhere.npz" in err) == (2, True)
    assert "" not in sys.path


OWN = """
from policyfuzz import load_target

def make():
    return load_target("ripple:dimensions=3,probability=0.01")
"""


def test_replay_of_own_code_needs_trust_or_its_name(cli):
    Path("own.py").write_text(OWN)
    code, out, _ = cli("fuzz", "own.py:make", "--max-execs", 2000, "-o", "my campaign", "--ui", "none")
    assert code == 1
    assert re.search(r"policyfuzz replay 'my campaign' \d+ --trust\n", out)
    assert cli("replay", "my campaign", 1, "--no-picture")[0] == 2
    assert cli("replay", "my campaign", 1, "--no-picture", "--trust")[0] == 1
    code, out, _ = cli("replay", "my campaign", 1, "--no-picture", "--target", "own.py:make")
    assert code == 1
    assert "exactly as recorded" in out


def test_another_target_must_have_the_same_inputs(cli, campaign):
    code, _, err = cli("replay", campaign, 1, "--target", "acasxu", "--no-picture")
    assert code == 2
    assert "own_speed" in err


def test_result_of_this_process_needs_no_trust():
    Path("own.py").write_text(OWN)
    assert fuzz("own.py:make", max_execs=2000, progress=False).replay(1).is_identical


@pytest.mark.parametrize("verb", ["coverage", "activations"])
def test_analysis_runs_nothing_that_only_the_campaign_names(cli, plant, verb):
    folder = plant(target="planted.py:make")
    code, _, err = cli(verb, folder)
    assert code == 2
    assert "names code to run" in err
    assert not has_run()
