import json
import re
from pathlib import Path

import numpy as np
import pytest

RIPPLE = "ripple:dimensions=3,probability=0.01"


def test_json_summary_has_all_that_is_promised(cli):
    code, out, _ = cli("fuzz", RIPPLE, "--max-execs", 2000, "--seed", 4, "-o", "c", "--json", "--ui", "none")
    summary = json.loads(out)
    assert code == 1
    assert summary["target"] == RIPPLE
    assert (summary["strategy"], summary["seed"], summary["executions"]) == ("portfolio", 4, 2000)
    assert summary["findings"] >= summary["distinct_findings"] > 0
    assert 0 < summary["valid_rate"] <= 1
    assert summary["seconds"] > 0
    assert summary["executions_per_second"] > 0
    assert set(summary["time_split"]) == {"simulate", "validate", "density", "search", "store"}
    assert (summary["stop_reason"], summary["campaign"]) == ("max-execs", "c")
    estimate = summary["failure_probability"]
    assert set(estimate) == {"probability", "low", "high", "draws", "crashes", "of_solvable"}
    assert (estimate["draws"], estimate["crashes"]) == (summary["samples"], summary["sample_crashes"])
    assert 0 < estimate["low"] < estimate["probability"] < estimate["high"] < 0.1


def test_exit_code_is_zero_when_nothing_is_found(cli):
    code, out, _ = cli("fuzz", "ripple:probability=1e-9", "--max-execs", 500, "--json", "--ui", "none")
    assert code == 0
    assert json.loads(out)["findings"] == 0


def test_ui_none_is_silent(cli):
    _, _, err = cli("fuzz", RIPPLE, "--max-execs", 500, "--ui", "none", "--json")
    assert err == ""


def test_plain_ui_says_where_the_campaign_is(cli):
    _, _, err = cli("fuzz", RIPPLE, "--max-execs", 500, "--ui", "plain", "-o", "here")
    assert "campaign here" in err


def test_screen_ui_draws_without_a_terminal(cli):
    code, _, _ = cli("fuzz", RIPPLE, "--max-execs", 2000, "--ui", "screen")
    assert code == 1


def test_human_summary_ends_with_the_command_that_replays(cli):
    _, out, _ = cli("fuzz", RIPPLE, "--max-execs", 2000, "--ui", "none")
    folder = "campaigns/ripple-dimensions=3-probability=0.01-1"
    _, listed, _ = cli("show", folder, "--top", 1, "--json")
    worst = json.loads(listed)[0]["finding"]
    assert f"policyfuzz replay {folder} {worst}\n" in out


def test_human_summary_says_how_likely_a_failure_is(cli):
    _, out, _ = cli("fuzz", "ripple:probability=0.2", "--max-execs", 1000, "--ui", "none")
    line = next(line for line in out.splitlines() if line.startswith("failure probability"))
    assert re.search(
        r"[\d.]+% of valid, solvable inputs \(95 %: [\d.]+% to [\d.]+%\), from [\d,]+ random", line
    )
    _, out, _ = cli("fuzz", "ripple:probability=1e-9", "--max-execs", 500, "--ui", "none")
    assert re.search(r"failure probability +at most [\d.]+% of valid, solvable inputs \(95 %\): none of", out)


def test_finished_campaign_is_one_file_and_its_lock(cli, tmp_path):
    cli("fuzz", "ripple", "--max-execs", 300, "-o", tmp_path / "c")
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"campaign.sqlite", "writer.lock"}


def test_folders_are_numbered_when_none_is_given(cli, tmp_path):
    for _ in range(2):
        cli("fuzz", "ripple", "--max-execs", 10, "--ui", "none")
    assert sorted(path.name for path in (tmp_path / "campaigns").iterdir()) == ["ripple-1", "ripple-2"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["acasux"], "did you mean 'acasxu'?"),
        (["no.such.module:make"], "No module named 'no'"),
        (["os:getcwdd"], "has no 'getcwdd'"),
        (["ripple:dimension=3"], "did you mean 'dimensions'?"),
        (["ripple:dimensions=-1"], "expected a whole number from 1"),
        (["ripple:dimensions"], "write ripple:option=value"),
        (["ripple:regions=100,probability=0.3"], "do not fit"),
        (["acasxu:bucket=12"], "from 1 to 9"),
        (["ripple", "--strategy", "mdpfuz"], "did you mean 'mdpfuzz'?"),
        (["ripple", "--max-time", "soon"], "is not a duration"),
        (["ripple", "--max-time", "-5s"], "is not a duration"),
        (["ripple", "--max-time", "0s"], "expected more than 0"),
        (["ripple", "--max-execs", "-10"], "expected more than 0"),
        (["ripple", "--max-findings", "0"], "expected more than 0"),
        (["ripple", "--seed", "-1"], "seed is -1"),
        (["ripple", "--batch", "0"], "batch is 0"),
        (["ripple", "--quantile", "1.5"], "between 0 and 1"),
        (["ripple", "--gamma", "1"], "below 1"),
        (["ripple", "--tau", "nan"], "tau is nan"),
        (["os:path"], "expected a function"),
        (["ripple", "--sensitivity", "exakt"], "did you mean 'exact'?"),
        (["ripple", "--radius", "0"], "more than 0"),
        (["ripple", "--samples", "0"], "expected 1 or more"),
        (["ripple", "--components", "0"], "expected 1 or more"),
        (["ripple", "--resume"], "which campaign"),
        (["ripple", "--resume", "-o", "nowhere"], "does not exist"),
        (["ripple", "--policy", "sb3:x.zip"], "cannot use policy"),
        (["acasxu", "--policy", "acasxu:nowhere"], "nowhere' with ACAS Xu networks"),
        (["acasxu", "--policy", "ppo.zip"], "cannot use policy"),
        (["ripple", "--frobnicate"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_gets_a_message_and_code_2(cli, arguments, complaint):
    code, out, err = cli("fuzz", *arguments)
    assert code == 2
    assert complaint in err
    assert out == ""


def test_unknown_verb_gets_a_suggestion(cli):
    code, _, err = cli("fuz", "acasxu")
    assert code == 2
    assert "did you mean 'fuzz'?" in err


def test_internal_error_has_its_own_code_and_no_traceback(cli, monkeypatch):
    def fail(*_arguments):
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("policyfuzz.targets.registry.load_target", fail)
    code, _, err = cli("fuzz", "ripple")
    assert code == 4
    assert "the sky fell" in err


@pytest.mark.parametrize("folder", ["file/campaign", "/proc/campaign"])
def test_unwritable_folder_gets_a_message(cli, tmp_path, folder):
    (tmp_path / "file").write_text("in the way")
    code, _, err = cli("fuzz", "ripple", "-o", folder)
    assert code == 2
    assert "cannot make folder" in err


def test_existing_campaign_is_not_overwritten(cli, campaign):
    code, _, err = cli("fuzz", "ripple", "-o", campaign)
    assert code == 2
    assert "--resume" in err


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["--seed", "9"], "seed was 0, now 9"),
        (["--strategy", "random"], "strategy was 'portfolio', now 'random'"),
        (["--samples", "5"], "search.samples was 1000, now 5"),
    ],
)
def test_resume_is_refused_when_an_option_changed(cli, campaign, options, change):
    code, _, err = cli("fuzz", RIPPLE, "-o", campaign, "--resume", *options)
    assert code == 2
    assert change in err


def test_resume_is_refused_when_the_target_changed(cli, campaign):
    code, _, err = cli("fuzz", "ripple", "-o", campaign, "--resume")
    assert code == 2
    assert "target was" in err


@pytest.fixture
def networks(tmp_path):
    """A folder of small .nnet networks."""
    folder = tmp_path / "networks"
    folder.mkdir()
    rng = np.random.default_rng(0)
    header = ["1,5,5,5,", "5,5,", "0,", "0,0,0,0,0,", "1,1,1,1,1,", "0,0,0,0,0,0,", "1,1,1,1,1,1,"]
    for advisory in range(1, 6):
        rows = [",".join(map(repr, row)) + "," for row in rng.normal(size=(5, 5)).tolist()]
        biases = [f"{value!r}," for value in rng.normal(size=5).tolist()]
        (folder / f"n_{advisory}_2.nnet").write_text("\n".join([*header, *rows, *biases]))
    return folder


def test_resume_finds_the_policy_again_from_another_folder(cli, networks, monkeypatch, tmp_path):
    fuzz = ["fuzz", "acasxu", "-o", tmp_path / "c", "--ui", "none", "--json"]
    assert cli(*fuzz, "--policy", "acasxu:networks/", "--max-execs", 300)[0] in (0, 1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cli(*fuzz, "--resume", "--max-execs", 400)[0] in (0, 1)
    assert cli(*fuzz, "--resume", "--policy", "acasxu:../networks", "--max-execs", 500)[0] in (0, 1)


def test_resume_is_refused_when_the_policy_changed(cli, networks, tmp_path):
    fuzz = ["fuzz", "acasxu", "-o", "c", "--ui", "none", "--policy", f"acasxu:{networks}", "--max-execs", 300]
    cli(*fuzz)
    text = (networks / "n_1_2.nnet").read_text()
    (networks / "n_1_2.nnet").write_text(text.replace(text.splitlines()[-1], "7.5,"))
    code, _, err = cli(*fuzz, "--resume")
    assert code == 2
    assert "policy_sha256 was" in err


def test_resume_goes_on_with_the_recorded_options(cli):
    arguments = ["fuzz", RIPPLE, "-o", "c", "--ui", "none", "--json"]
    cli(*arguments, "--seed", 3, "--strategy", "reward", "--max-execs", 1500)
    _, out, _ = cli(*arguments, "--resume", "--max-execs", 2500)
    summary = json.loads(out)
    assert (summary["seed"], summary["strategy"], summary["executions"]) == (3, "reward", 2500)


def test_start_that_fails_leaves_the_folder_free(cli, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "conformance")
    assert cli("fuzz", "broken_targets:cannot_be_made", "--ui", "none", "-o", "c")[0] == 3
    assert not Path("c").exists()
    assert cli("fuzz", "broken_targets:sound", "--max-execs", 50, "--ui", "none", "-o", "c")[0] in (0, 1)
