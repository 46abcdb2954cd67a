import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from policyfuzz.cli.main import VERBS
from policyfuzz.targets.registry import BUILT_INS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(cli, verb):
    code, out, _ = cli(verb, "--help")
    assert code == 0
    assert f"policyfuzz {verb}" in out
    assert "Example" in out


def test_targets_are_listed(cli):
    code, out, _ = cli("targets", "--json")
    assert code == 0
    assert {"acasxu", "ripple"} <= {target["name"] for target in json.loads(out)}


def test_check_is_green_on_every_built_in_target(cli):
    for target in ("acasxu", "ripple"):
        code, out, _ = cli("check", target, "--episodes", "200", "--json")
        assert code == 0, out


def test_check_says_what_the_input_is(cli):
    _, out, _ = cli("check", "acasxu", "--episodes", "100")
    assert "input own_speed: real, 10 to 1100 ft/s" in out
    assert "GOOD" in out


def test_check_exits_3_when_target_is_unhealthy(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    code, out, _ = cli("check", "faulty_targets:noisy", "--episodes", 50)
    assert code == 3
    assert "UNHEALTHY determinism" in out


def test_fuzz_exits_3_when_target_is_unhealthy_unless_forced(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    arguments = ["fuzz", "faulty_targets:always_crashing", "--max-execs", 500, "--ui", "none", "--json"]
    code, out, _ = cli(*arguments)
    assert (code, json.loads(out)["stop_reason"]) == (3, "unhealthy")
    code, _, _ = cli(*arguments, "--force")
    assert code == 1


def test_resume_does_not_pass_over_the_health_check(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    arguments = ["fuzz", "faulty_targets:always_crashing", "--max-execs", 500, "--ui", "none", "-o", "c"]
    assert cli(*arguments)[0] == 3
    assert cli(*arguments, "--resume")[0] == 3
    assert cli(*arguments, "--resume", "--force")[0] == 1


def test_target_with_infinite_returns_is_unhealthy_and_can_be_forced(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    arguments = ["fuzz", "faulty_targets:infinite", "--max-execs", 500, "--ui", "none", "--json"]
    code, out, _ = cli(*arguments)
    assert (code, json.loads(out)["stop_reason"]) == (3, "unhealthy")
    code, out, _ = cli(*arguments, "--force", "-o", "forced")
    assert code == 1
    listing = json.loads(cli("show", "forced", "--all", "--json")[1])
    assert {finding["return"] for finding in listing} == {None}
    assert {finding["status"] for finding in listing} == {"confirmed"}


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("raising", "simulator broke"),
        ("misspelt_signal", "did you mean 'health'?"),
        ("needs_an_argument", "missing 1 required"),
        ("broken_factory", "cannot be made"),
    ],
)
def test_failure_in_the_code_of_a_target_is_named_as_such(cli, monkeypatch, target, complaint):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    code, _, err = cli("fuzz", f"faulty_targets:{target}", "--max-execs", 50, "--ui", "none")
    assert code in (2, 3)
    assert complaint in err
    assert "internal error" not in err


def test_target_is_named_as_it_was_asked_for(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    cli("fuzz", "faulty_targets:misnamed", "--max-execs", 500, "--ui", "none", "-o", "c")
    assert cli("replay", "c", 1, "--trust", "--no-picture")[0] == 1


def test_function_that_makes_no_target_is_refused(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "campaign")
    code, _, err = cli("check", "faulty_targets:not_a_target")
    assert code == 2
    assert "returned int" in err


def test_status_counts_what_the_campaign_found(cli, campaign):
    code, out, _ = cli("status", campaign, "--json")
    summary = json.loads(out)
    assert (code, summary["executions"], summary["running"]) == (0, 2000, False)
    assert "confirmed findings" in cli("status", campaign)[1]


def test_show_lists_distinct_findings_and_all_lists_every_one(cli, campaign):
    distinct = json.loads(cli("show", campaign, "--json")[1])
    everything = json.loads(cli("show", campaign, "--all", "--json")[1])
    assert 0 < len(distinct) <= len(everything)
    assert all(finding["is_distinct"] for finding in distinct)
    assert "policyfuzz replay" in cli("show", campaign)[1]


def test_show_one_names_the_inputs(cli, campaign):
    _, out, _ = cli("show", campaign, 1)
    assert "x0" in out
    assert f"policyfuzz replay {campaign} 1" in out


@pytest.mark.parametrize("number", [0, 10**6, -1, 2**70])
def test_show_and_replay_refuse_a_finding_that_is_not_there(cli, campaign, number):
    for verb in ("show", "replay"):
        code, _, err = cli(verb, campaign, "--", number)
        assert code == 2
        assert "no finding" in err


def test_replay_crashes_as_recorded_and_draws(cli, campaign):
    code, out, _ = cli("replay", campaign, 1, "--png", "one.png", "--json")
    report = json.loads(out)
    assert code == 1
    assert report["crashes"]
    assert report["is_identical"]
    assert Path("one.png").read_bytes().startswith(b"\x89PNG")


def test_replay_refuses_when_the_policy_has_changed(cli, campaign, tmp_path):
    changed = shutil.copytree(campaign, tmp_path / "changed")
    with closing(sqlite3.connect(changed / "campaign.sqlite")) as connection, connection:
        connection.execute(
            'UPDATE about SET value = replace(value, \'"policy_sha256": ""\', \'"policy_sha256": "other"\')'
        )
    code, _, err = cli("replay", changed, 1)
    assert code == 2
    assert "has changed since" in err


@pytest.mark.parametrize("name", ["plain", "odd.ending"])
def test_picture_is_a_png_whatever_it_is_called(cli, campaign, name):
    assert cli("replay", campaign, 1, "--png", name)[0] == 1
    assert Path(name).read_bytes().startswith(b"\x89PNG")


def test_picture_is_refused_where_a_folder_is(cli, campaign, tmp_path):
    code, _, err = cli("replay", campaign, 1, "--png", tmp_path)
    assert code == 2
    assert "cannot write" in err


@pytest.mark.parametrize("what", ["findings", "seeds", "history"])
def test_export_writes_the_same_rows_in_every_format(cli, campaign, what):
    for form in ("csv", "json", "npz"):
        code, _, _ = cli("export", campaign, "--what", what, "--format", form, "-o", f"table.{form}")
        assert code == 0
    with Path("table.csv").open() as file:
        from_csv = list(csv.DictReader(file))
    from_json = json.loads(Path("table.json").read_text())
    from_npz = np.load("table.npz")
    assert len(from_csv) == len(from_json) == len(from_npz["id"]) > 0
    assert list(from_csv[0]) == list(from_json[0]) == list(from_npz)


def test_export_names_inputs_with_their_unit(cli, tmp_path):
    cli("fuzz", "acasxu", "--max-execs", 100, "-o", "c", "--ui", "none")
    cli("export", "c", "--what", "seeds", "-o", "seeds.csv")
    header = Path("seeds.csv").read_text().splitlines()[0]
    assert "own_speed [ft/s]" in header


def test_export_refuses_an_unknown_ending(cli, campaign):
    code, _, err = cli("export", campaign, "-o", "findings.xlsx")
    assert code == 2
    assert "--format" in err


@pytest.mark.parametrize("arguments", [("status",), ("show",), ("show", "--all"), ("export", "-o", "x.csv")])
def test_reading_a_campaign_imports_nothing_heavy(campaign, tmp_path, arguments):
    verb, *options = arguments
    script = (
        "import sys; from policyfuzz.cli.main import exit_code; print(exit_code(sys.argv[1:]), *sys.modules)"
    )
    command = [sys.executable, "-c", script, verb, str(campaign), *options]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    code, *modules = ran.stdout.splitlines()[-1].split()
    assert code == "0"
    assert "policyfuzz.store.reader" in modules
    heavy = {f"policyfuzz.{name}" for name in ("search", "density", "execution", "environments")}
    heavy |= {f"policyfuzz.targets.{name.partition('-')[0]}" for name in BUILT_INS}
    heavy |= {"scipy", "numba", "gymnasium", "matplotlib"}
    assert not [name for name in modules if any(name == one or name.startswith(f"{one}.") for one in heavy)]


@pytest.mark.parametrize("verb", ["status", "show", "export", "replay"])
def test_folder_without_campaign_gets_a_message(cli, tmp_path, verb):
    extra = {"export": ["-o", "x.csv"], "replay": ["1"]}.get(verb, [])
    for folder in (tmp_path, tmp_path / "nowhere"):
        code, _, err = cli(verb, folder, *extra)
        assert code == 2
        assert "campaign" in err


@pytest.mark.parametrize("verb", ["status", "show", "export", "replay"])
def test_damaged_campaign_gets_a_message(cli, campaign, tmp_path, verb):
    extra = {"export": ["-o", "x.csv"], "replay": ["1"]}.get(verb, [])
    damaged = shutil.copytree(campaign, tmp_path / "damaged")
    path = damaged / "campaign.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    code, _, err = cli(verb, damaged, *extra)
    assert code == 2
    assert "damaged" in err


@pytest.mark.parametrize("what", ["folder", "picture"])
def test_replay_does_not_write_behind_a_link(cli, campaign, tmp_path, what):
    linked = shutil.copytree(campaign, tmp_path / "c")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "1.png").write_text("mine")
    if what == "folder":
        (linked / "findings").symlink_to(precious)
    else:
        (linked / "findings").mkdir()
        (linked / "findings" / "1.png").symlink_to(precious / "1.png")
    code, out, err = cli("replay", linked, 1)
    assert code == 2
    assert "finding 1 crashes" in out, "the verdict is printed all the same"
    assert "is a link" in err
    assert [path.read_text() for path in precious.iterdir()] == ["mine"]


def test_export_leaves_the_older_file_when_it_fails(cli, campaign, tmp_path):
    damaged = shutil.copytree(campaign, tmp_path / "c")
    with closing(sqlite3.connect(damaged / "campaign.sqlite")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE type = 'table'")
    with closing(sqlite3.connect(damaged / "campaign.sqlite")) as connection, connection:
        connection.execute("UPDATE findings SET seconds = 'x' WHERE id = (SELECT MAX(id) FROM findings)")
    Path("t.csv").write_text("old")
    code, _, err = cli("export", damaged, "-o", "t.csv")
    assert (code, Path("t.csv").read_text()) == (2, "old")
    assert "column 'seconds' of table findings holds str, expected a number" in err
    assert not list(tmp_path.glob(".unfinished*"))


def test_export_to_standard_output_is_not_renamed(campaign):
    command = [sys.executable, "-m", "policyfuzz", "export", campaign, "--format", "csv", "-o", "/dev/stdout"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("id,status,is_distinct")
