"""Two policies are compared by the command line and from Python."""

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import policyfuzz as pf
from policyfuzz import CampaignReader
from policyfuzz.cli.main import exit_code

FILE = Path(__file__).parent / "walls.py"
WALLS = f"{FILE}:make"


def fuzz(folder, policy, target=WALLS, episodes=800):
    words = ["fuzz", target, "--policy", policy, "--max-execs", episodes, "-o", folder, "--ui", "none"]
    assert exit_code([str(word) for word in words]) == 1
    return folder


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    """Campaigns against bold, which fails in a fifth of all starts, and careful, in half of these."""
    folder = tmp_path_factory.mktemp("compare")
    return {policy: fuzz(folder / policy, policy) for policy in ("bold", "careful")}


@pytest.fixture
def compare(cli):
    def run(*words):
        code, out, err = cli("compare", *words, "--trust")
        assert "internal error" not in err
        return code, out, err

    return run


@pytest.mark.parametrize(
    ("a", "b", "code", "verdict"),
    [
        ("bold", "careful", 0, "better"),
        ("careful", "bold", 1, "worse"),
        ("careful", "timid", 0, "better"),
        ("bold", "as bold", 0, "no difference shown"),
    ],
)
def test_better_worse_and_equal_policies_are_told_apart(campaigns, compare, a, b, code, verdict):
    found, out, _ = compare(campaigns[a], "--policy", b, "--pool", 300, "--json")
    page = json.loads(out)
    assert (found, page["verdict"], page["is_worse"]) == (code, verdict, verdict == "worse")


def test_findings_and_pool_are_counted_as_the_closed_form_says(campaigns, compare):
    code, out, _ = compare(campaigns["bold"], "--policy", "careful", "--pool", 300, "--json")
    groups = json.loads(out)["groups"]
    distinct = CampaignReader(campaigns["bold"]).findings(distinct_only=True)
    fixed = sum(one.input[1] < 0.5 for one in distinct)
    assert code == 0
    assert groups["findings of A"]["cases"] == len(distinct)
    assert groups["findings of A"]["fixed"] == fixed
    assert groups["findings of A"]["still_failing"] == len(distinct) - fixed
    assert groups["pool"]["newly_failing"] == 0


def test_text_says_what_findings_cannot_show(campaigns, compare):
    _, out, _ = compare(campaigns["bold"], "--policy", "careful", "--pool", 100)
    assert "those of A show what B\nfixes, not that B is better" in out


def test_two_campaigns_are_compared_on_the_findings_of_both(campaigns, compare):
    code, out, _ = compare(campaigns["careful"], campaigns["bold"], "--pool", 300, "--json")
    page = json.loads(out)
    assert code == 1
    assert list(page["groups"]) == ["findings of A", "findings of B", "pool"]
    assert page["groups"]["findings of A"]["still_failing"] == page["groups"]["findings of A"]["cases"]
    assert page["groups"]["findings of B"]["newly_failing"] > 0
    assert [one["executions"] for one in page["campaigns"]] == [800, 800]
    assert page["setting_differences"] == []


def test_newly_failing_inputs_can_be_run_again(campaigns, compare):
    _, out, _ = compare(campaigns["careful"], "--policy", "bold", "--pool", 100, "--json")
    new = json.loads(out)["newly_failing_cases"]
    assert new
    assert all(one["input_x"] < 0.2 and one["input_y"] < 0.5 for one in new)


@pytest.mark.slow
def test_same_numbers_with_workers(campaigns, compare):
    words = [campaigns["bold"], "--policy", "careful", "--pool", 200, "--json"]
    assert compare(*words, "-j", 2)[1] == compare(*words)[1]


def test_campaign_against_the_other_policy_has_the_same_settings(campaigns, compare, tmp_path):
    code, out, _ = compare(campaigns["bold"], "--policy", "careful", "--fuzz", tmp_path / "b", "--pool", 50)
    assert code == 0
    ours, theirs = CampaignReader(campaigns["careful"]), CampaignReader(tmp_path / "b")
    assert theirs.config == ours.config
    assert [one.input.tolist() for one in theirs.findings()] == [
        one.input.tolist() for one in ours.findings()
    ]
    assert f"campaign against B   {ours.progress().distinct_findings:,} distinct findings" in out


def test_policy_that_changed_is_refused(campaigns, tmp_path, compare):
    campaign = shutil.copytree(campaigns["bold"], tmp_path / "c")
    import sqlite3

    with sqlite3.connect(campaign / "campaign.sqlite") as file:
        file.execute(
            'UPDATE about SET value = replace(value, \'"policy_sha256": "bold"\', \'"policy_sha256": "x"\')'
        )
    code, _, err = compare(campaign, "--policy", "careful")
    assert code == 2
    assert "has changed since the campaign" in err


def test_code_that_changed_is_refused_unless_it_is_named(tmp_path, compare):
    file = shutil.copy(FILE, tmp_path / "walls.py")
    campaign = fuzz(tmp_path / "c", "bold", f"{file}:make", episodes=300)
    with Path(file).open("a") as more:
        more.write("\n# another line\n")
    code, _, err = compare(campaign, "--policy", "careful", "--pool", 10)
    assert code == 2
    assert "is written in have changed" in err
    code, _, _ = compare(campaign, "--policy", "careful", "--pool", 10, "--target", f"{file}:make")
    assert code == 0


def test_campaigns_of_two_targets_are_refused(campaigns, campaign, compare):
    code, _, err = compare(campaigns["bold"], campaign)
    assert code == 2
    assert "cannot be compared" in err


@pytest.mark.parametrize("words", [(), ("b", "--policy", "careful"), ("b", "--fuzz", "c")])
def test_question_that_makes_no_sense_is_refused(campaigns, compare, words):
    code, _, err = compare(campaigns["bold"], *words)
    assert code == 2
    assert "hint:" in err


def test_code_that_only_the_campaign_names_is_not_run_without_trust(campaigns, cli):
    code, _, err = cli("compare", campaigns["bold"], "--policy", "careful")
    assert code == 2
    assert "walls.py" in err


def test_policy_under_which_nothing_runs_is_unhealthy(campaigns, cli, monkeypatch):
    original = pf.core.target.Runner.__call__

    def broken(self, inputs, seeds, observer=None):
        executions = original(self, inputs, seeds, observer)
        if self.target.policy_uri == "bold":
            return executions
        return pf.Executions.of(
            executions.returns, [False] * len(inputs), errors=dict.fromkeys(range(len(inputs)), "no")
        )

    monkeypatch.setattr(pf.core.target.Runner, "__call__", broken)
    code, _, err = cli("compare", campaigns["bold"], "--policy", "careful", "--pool", 20, "--trust")
    assert code == 3
    assert "20 of 20 random episodes of policy B" in err


def test_time_limit_leaves_a_part_that_is_said_to_be_one(campaigns, compare, tmp_path):
    words = [campaigns["bold"], "--policy", "careful", "--pool", 2000, "-o", tmp_path / "o.json", "--json"]
    page = json.loads(compare(*words, "--max-time", "0.000001s")[1])
    assert not page["is_complete"]
    assert 0 < page["cases"] < page["planned"]
    assert json.loads(compare(*words)[1])["is_complete"]


def test_finished_comparison_is_read_and_not_run(campaigns, compare, tmp_path, monkeypatch):
    words = [campaigns["bold"], "--policy", "careful", "--pool", 100, "-o", tmp_path / "o.json", "--json"]
    first = compare(*words)
    monkeypatch.setattr(pf.core.target.Runner, "__call__", lambda *_: pytest.fail("an episode was run"))
    assert compare(*words) == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "[]",
        lambda text: text[:-9],
        lambda text: text.replace("passes", "wins"),
        lambda text: text.replace('"wall", 2', '"wall", "2"'),
        lambda text: text.replace('"comparison": "', '"comparison": "x'),
        lambda text: text.replace('"cases": {"', '"cases": {"x'),
    ],
)
def test_damaged_or_other_results_are_refused_with_a_sentence(campaigns, compare, tmp_path, damage):
    file = tmp_path / "o.json"
    words = [campaigns["bold"], "--policy", "careful", "--pool", 20, "-o", file]
    assert compare(*words)[0] == 0
    text = file.read_text()
    file.write_text(damage(text))
    assert file.read_text() != text
    code, _, err = compare(*words)
    assert code == 2
    assert "name another file, or remove this one" in err


def test_results_of_other_policies_are_not_mixed(campaigns, compare, tmp_path):
    words = ["--pool", 20, "-o", tmp_path / "o.json"]
    assert compare(campaigns["bold"], "--policy", "careful", *words)[0] == 0
    assert compare(campaigns["bold"], "--policy", "timid", *words)[0] == 2


@pytest.mark.slow
def test_killed_comparison_goes_on_and_leaves_the_campaign_alone(campaigns, start, tmp_path):
    campaign = shutil.copytree(campaigns["careful"], tmp_path / "c")
    before = {path.name: path.read_bytes() for path in campaign.iterdir()}
    words = [
        "compare",
        campaign,
        "--policy",
        "bold",
        "--pool",
        3000,
        "--trust",
    ]  # short: nobody reads the pipe
    whole, _ = start(*words).communicate()
    kept, kills = 0, 0
    while True:
        process = start(*words, "-o", "o.json")
        while process.poll() is None and known(tmp_path / "o.json") < kept + 1000:
            time.sleep(0.001)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert known(tmp_path / "o.json") >= kept + 1000
        kept = known(tmp_path / "o.json")
    out, err = process.communicate()
    assert process.returncode == 1, err
    assert kills > 0
    assert out == whole
    after = {path.name: path.read_bytes() for path in campaign.iterdir() if path.name in before}
    assert after == before


def known(file: Path) -> int:
    """Cases in a file of results, which is whole whenever it is there."""
    return len(json.loads(file.read_text())["cases"]) if file.exists() else 0


def test_python_compares_folders_results_and_policies_of_this_process(campaigns):
    from walls import Timid

    options: Any = {"pool": 200, "progress": False}
    by_uri = pf.compare(campaigns["bold"], policy="careful", trust=True, **options)
    assert by_uri.verdict == "better"
    assert len(by_uri.rows()) == by_uri.planned
    result = pf.fuzz(WALLS, "bold", max_execs=300, progress=False)
    live = pf.compare(result, policy=Timid(), **options)
    assert live.pool.fixed > 0
    assert live.pool.still_failing == 0
    both = pf.compare(campaigns["careful"], campaigns["bold"], trust=True, **options)
    assert both.is_worse


def test_python_asks_for_the_environment_of_a_function():
    result = pf.fuzz("gym:CartPole-v1", lambda _: 1, max_execs=100, progress=False, force=True)
    options: Any = {"pool": 30, "progress": False}
    with pytest.raises(pf.PolicyFuzzError, match="does not say how a function acts"):
        pf.compare(result, policy=lambda _: 0, **options)
    other = pf.as_target("gym:CartPole-v1", lambda _: 0)
    assert pf.compare(result, policy=other, **options).pool.cases == 30
