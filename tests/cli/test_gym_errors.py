"""Environments that cannot run some episodes, and policies that break, in the middle of a campaign."""

import json
from pathlib import Path

import pytest

from policyfuzz import CampaignReader

ENVIRONMENTS = Path(__file__).parents[1] / "environments" / "gym_environments.py"
BRAVE = f"py:{ENVIRONMENTS}:brave"

#: Fault of the environment to the kind of the error, its step, and the end of what is told about it.
FAULTS = {
    "reset": ("raised", 0, "KeyError: 'no map of this place'"),
    "step": ("raised", 3, "ZeroDivisionError: float division by zero"),
    "quits": ("raised", 3, "SystemExit: lost"),
    "flag": ("raised", 3, "ValueError: step gave terminated = 'no', expected True or False"),
    "text": ("raised", 3, "ValueError: step gave the reward '1.0', expected a number"),
    "shape": ("raised", 3, "ValueError: an observation has shape (2,), its space says (1,)"),
    "observation": ("numbers", 3, "the observation has a NaN or infinite number in it at step 3"),
    "reward": ("numbers", 3, "the reward is NaN at step 3"),
    "endless": (
        "endless",
        1000,
        "the episode has not ended after 1000 steps, and no limit is declared",
    ),
}


def fuzz(cli, fault, *words, executions=90):
    target = f"gym:{ENVIRONMENTS}:Faulty:env.fault={fault}"
    limits = ["--max-execs", executions, "--samples", 45, "--batch", 30, "--ui", "none", "-o", "c"]
    chosen = [target, "--policy", BRAVE, "--oracle", "terminated", *limits, *words]
    code, out, err = cli("fuzz", *chosen, "--json")
    assert out, err
    return code, json.loads(out), CampaignReader(Path("c"))


@pytest.fixture(scope="module")
def healthy_findings(tmp_path_factory):
    """What the same campaign finds where the environment has no fault."""
    from policyfuzz.cli.main import exit_code

    folder = tmp_path_factory.mktemp("healthy") / "c"
    limits = ["--max-execs", "90", "--samples", "45", "--batch", "30", "--ui", "none", "-o", str(folder)]
    target = f"gym:{ENVIRONMENTS}:Faulty:env.fault=none"
    assert exit_code(["fuzz", target, "--policy", BRAVE, "--oracle", "terminated", *limits]) == 1
    return CampaignReader(folder).findings()


@pytest.mark.parametrize("fault", FAULTS)
def test_campaign_goes_on_and_keeps_what_could_not_be_run(cli, fault, healthy_findings):
    kind, step, told = FAULTS[fault]
    code, summary, campaign = fuzz(cli, fault)
    failed = campaign.failed_episodes()
    assert (code, summary["executions"]) == (1, 90)
    assert summary["errors"] == campaign.progress().errors == len(failed) > 2
    for one in failed:
        assert one.input[0] < -3  # where the fault is, and nowhere else
        assert (one.kind, one.step, one.summary) == (kind, step, told)
        assert ("Traceback" in one.text) == (kind == "raised")
    assert all(finding.status == "confirmed" for finding in campaign.findings())
    assert all(row["start"] >= -3 for row in campaign.iterate("seeds"))
    sampled = [one for one in healthy_findings if one.parent is None]
    found = {(one.input[0], one.episode_return, one.crash_step) for one in campaign.findings()}
    assert {(one.input[0], one.episode_return, one.crash_step) for one in sampled[:5]} <= found


@pytest.mark.slow
def test_environment_that_hangs_is_given_up(cli):
    _, summary, campaign = fuzz(cli, "hangs,patience=0.2", executions=40)
    failed = campaign.failed_episodes()
    assert summary["executions"] == 40
    assert summary["hangs"] == len(failed) > 0
    assert {(one.kind, one.step) for one in failed} == {("hung", 3)}
    assert all(one.input[0] < -3 and "gym_environments.py" in one.text for one in failed)


def test_error_is_shown_and_run_again(run_in_process):
    run_in_process("fuzz", "step")
    code, out, _ = run_in_process("show", "c", "--errors")
    assert code == 0
    assert "raised   at step    3  ZeroDivisionError" in out
    code, out, _ = run_in_process("show", "c", 1, "--errors")
    assert "Traceback (most recent call last)" in out
    assert "gym_environments.py" in out
    assert "start" in out
    code, out, _ = run_in_process("replay", "c", 1, "--trust", "--error")
    assert code == 3
    assert "error 1 happens again at step 3" in out


@pytest.fixture
def run_in_process(capsys, monkeypatch, tmp_path):
    """Command lines as by `cli`; what they print may have tracebacks of the environment in it."""
    from policyfuzz.cli.main import exit_code

    monkeypatch.chdir(tmp_path)

    def run(*words):
        def cli(*arguments):
            code = exit_code([str(argument) for argument in arguments])
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return fuzz(cli, words[1]) if words[0] == "fuzz" else cli(*words)

    return run


@pytest.mark.parametrize(
    ("fault", "word", "kind"), [("step", "exception", "exception"), ("observation", "nan", "NaN")]
)
def test_error_is_a_finding_where_the_oracle_says_so(cli, fault, word, kind):
    code, summary, campaign = fuzz(cli, fault, "--oracle", f"terminated | {word}")
    assert (code, summary["flaky_findings"]) == (1, 0)
    of_errors = [one for one in campaign.findings() if one.kind != "terminated"]
    assert {one.kind for one in of_errors} == {kind}
    assert all(one.input[0] < -3 and one.crash_step == 3 for one in of_errors)
    assert summary["errors"] == 0
    assert {one.finding for one in campaign.failed_episodes()} == {one.id for one in of_errors}
    code, out, _ = cli("replay", "c", of_errors[0].id, "--trust", "--no-picture")
    assert code == 1
    assert "exactly as recorded" in out


FRAIL = '''
calls = []

def act(observations):
    """Goes right from 0.5 on, for as long as it can."""
    calls.append(len(observations))
    if len(calls) > 600:
        raise LookupError("too tired to go on")
    return (observations[:, 0] > 0.5).astype(int)
'''


def test_policy_that_breaks_stops_the_campaign_and_what_was_done_is_saved(cli, tmp_path):
    (tmp_path / "frail.py").write_text(FRAIL)
    target = f"gym:{ENVIRONMENTS}:Corridor"
    limits = ["--max-execs", 5000, "--samples", 60, "--batch", 30, "--ui", "none", "-o", "c"]
    code, _, err = cli("fuzz", target, "--policy", "py:frail.py:act", "--oracle", "terminated", *limits)
    assert code == 3
    assert "LookupError: too tired to go on" in err
    assert f"{tmp_path / 'frail.py'}:8" in err
    progress = CampaignReader(tmp_path / "c").progress()
    assert 0 < progress.executions < 5000
    assert progress.errors == 0
    code, out, _ = cli("show", "c", "--json")
    assert code == 0
    assert len(json.loads(out)) == progress.distinct_findings > 0


def test_action_outside_of_its_space_stops_the_campaign(cli, tmp_path):
    (tmp_path / "wild.py").write_text(
        "import numpy as np\ndef act(observations):\n    return np.where(observations[:, 0] < -5, 2, 0)\n"
    )
    target = f"gym:{ENVIRONMENTS}:Corridor"
    limits = ["--max-execs", 90, "--ui", "none", "-o", "c"]
    code, _, err = cli("fuzz", target, "--policy", "py:wild.py:act", "--oracle", "terminated", *limits)
    assert code == 2
    assert "the policy gave 2 as an action, which is not in Discrete(2)" in err


@pytest.mark.parametrize("ui", ["plain", "none"])
def test_unhealthy_start_shows_its_first_error_and_points_to_nothing_that_is_not_there(cli, ui):
    target = f"gym:{ENVIRONMENTS}:Faulty:env.fault=reset,input=start=-4..-3.5"
    code, out, err = cli(
        "fuzz", target, "--policy", BRAVE, "--oracle", "terminated", "--max-execs", 90, "-o", "c", "--ui", ui
    )
    assert code == 3
    assert "KeyError: 'no map of this place' (gym_environments.py:" in err
    assert "episodes could not be run" in out
    assert "--errors" not in out + err
