"""Several campaigns in one folder, one by one and together."""

import json
import shutil

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, fuzz
from policyfuzz.cli.main import exit_code
from policyfuzz.report.instances import Instance, Unreadable, holds_instances, instances_in, together
from policyfuzz.store.records import Progress

RIPPLE = "ripple:dimensions=3,probability=0.01,regions=2"


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """A folder with two instances that have exchanged what they found, to be copied."""
    folder = tmp_path_factory.mktemp("exchanged") / "shared"
    for name in ("a", "b"):
        fuzz(RIPPLE, sync=folder, out=name, max_execs=3000, progress=False)
    return folder


@pytest.fixture
def shared(exchanged, tmp_path):
    """The same, for one test."""
    return shutil.copytree(exchanged, tmp_path / "shared")


def readable_in(folder):
    """The instances in `folder`, all of which can be read."""
    found = list(instances_in(folder))
    instances = [one for one in found if isinstance(one, Instance)]
    assert len(instances) == len(found)
    return instances


def distinct_together(dimensions, *found):
    """How many distinct findings instances have together that have `found` inputs, each with its radius."""
    instances = [
        Instance(
            name=str(number),
            state="stopped",
            config=CampaignConfig("ripple", distinct_radius=radius),
            dimensions=dimensions,
            progress=Progress(),
            stop_reason=None,
            seconds_since_finding=None,
            distinct=inputs,
        )
        for number, (inputs, radius) in enumerate(found)
    ]
    return together(instances).distinct_findings


def test_union_counts_equal_and_near_findings_once():
    dimensions = [["x", "real", 0.0, 10.0], ["a", "angle", -np.pi, np.pi]]
    first = np.array([[1.0, 0.0], [5.0, np.pi - 0.001]])
    second = np.array([[1.0, 0.0], [5.0, -np.pi + 0.001], [9.0, 0.0]])
    assert distinct_together(dimensions, (first, 0.01), (second, 0.01)) == 3
    assert distinct_together(dimensions, (first, 0.01), (second, 5.0)) == 1
    assert distinct_together(dimensions) == 0


def test_union_of_too_many_findings_is_a_lower_bound(shared, monkeypatch):
    monkeypatch.setattr("policyfuzz.report.instances._MOST_COMPARED", 3)
    instances = readable_in(shared)
    total = together(instances)
    assert not total.distinct_is_exact
    assert total.distinct_findings == max(one.progress.distinct_findings for one in instances) > 3


def test_union_knows_every_kind_of_dimension():
    dimensions = [
        ["c", "choice", 0.0, 3.0],
        ["i", "integer", 1.0, 4.0],
        ["s", "seed", 0.0, 3.0],
        ["own", "kind of one's own", 0.0, 1.0],
    ]
    inputs = np.array(
        [[0.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.0, 0.5], [1.0, 2.0, 0.0, 0.5], [1.0, 2.0, 1.0, 0.5]]
    )
    assert distinct_together(dimensions, (inputs, 0.1), (inputs, 0.05)) == 4


def test_rows_tell_own_findings_from_those_that_were_taken(shared):
    first, second = instances_in(shared)
    assert isinstance(first, Instance)
    assert isinstance(second, Instance)
    assert (first.config.seed, second.config.seed) == (0, 1)
    assert first.progress.imported_findings == 0
    assert second.progress.imported_findings > 0
    assert second.own_findings + second.progress.imported_findings == second.progress.findings
    assert (first.state, first.stop_reason) == ("stopped", "max-execs")
    assert first.seconds_since_finding is not None
    assert 0 <= first.seconds_since_finding <= first.progress.seconds


def test_sums_count_no_finding_twice(shared):
    instances = readable_in(shared)
    total = together(instances)
    assert total.findings == sum(one.own_findings for one in instances)
    assert total.executions == 6000
    each = [one.progress.distinct_findings for one in instances]
    assert max(each) <= total.distinct_findings < sum(each)


def test_campaigns_on_different_targets_have_no_findings_in_common(shared):
    before = together(readable_in(shared)).distinct_findings
    other = fuzz("ripple:dimensions=3,probability=0.02", out=shared / "c", max_execs=2000, progress=False)
    after = together(readable_in(shared)).distinct_findings
    assert after == before + other.progress.distinct_findings


def test_failure_probability_is_of_the_draws_of_all_instances(shared):
    instances = readable_in(shared)
    estimate = together(instances).failure_probability
    assert estimate.draws == sum(one.progress.samples for one in instances)
    assert estimate.crashes == sum(one.progress.sample_crashes for one in instances)


def test_draws_of_the_same_seed_count_once(shared):
    before = together(readable_in(shared)).failure_probability
    longer = fuzz(RIPPLE, out=shared / "c", seed=1, max_execs=4000, progress=False)
    first, second, _ = readable_in(shared)
    assert (first.config.seed, second.config.seed) == (0, 1)
    after = together(readable_in(shared)).failure_probability
    assert after.draws == first.progress.samples + longer.progress.samples > before.draws


def test_campaigns_on_different_targets_have_no_failure_probability_in_common(shared):
    fuzz("ripple:dimensions=3,probability=0.02", out=shared / "c", max_execs=500, progress=False)
    assert together(readable_in(shared)).failure_probability is None


def test_running_instance_on_another_machine_is_known_by_what_it_shows(shared):
    """Its store must not be opened here: SQLite in WAL mode works on one machine only."""
    exchange = shared / "a" / "exchange"
    about, page = (json.loads((exchange / name).read_text()) for name in ("about.json", "progress.json"))
    (exchange / "about.json").write_text(json.dumps(about | {"host": "elsewhere"}))
    (exchange / "progress.json").write_text(json.dumps(page | {"stop_reason": None}))
    here = CampaignReader(shared / "a")
    distinct = np.array([finding.input for finding in here.findings() if finding.is_distinct])
    progress = here.progress()
    here.close()
    (shared / "a" / "campaign.sqlite").write_text("nobody may read this")
    first, _ = instances_in(shared)
    assert isinstance(first, Instance)
    assert (first.state, first.host, first.config.seed) == ("running", "elsewhere", 0)
    assert first.progress.findings == progress.findings
    assert sorted(map(tuple, first.distinct.tolist())) == sorted(map(tuple, distinct.tolist()))


def test_instance_elsewhere_that_fell_silent_is_not_called_running(shared):
    exchange = shared / "a" / "exchange"
    about, page = (json.loads((exchange / name).read_text()) for name in ("about.json", "progress.json"))
    (exchange / "about.json").write_text(json.dumps(about | {"host": "elsewhere"}))
    (exchange / "progress.json").write_text(json.dumps(page | {"stop_reason": None, "at": page["at"] - 3600}))
    assert next(iter(instances_in(shared))).state == "killed"


@pytest.mark.parametrize("name", ["about.json", "progress.json"])
def test_store_is_read_when_what_an_instance_shows_is_damaged(shared, name):
    (shared / "a" / "exchange" / name).write_text("garbage")
    first, _ = instances_in(shared)
    assert isinstance(first, Instance)
    assert first.state == "stopped"


def test_campaign_of_another_format_is_listed_as_damaged(shared):
    store = CampaignWriter(shared / "b")
    with store._connection as connection:
        connection.execute("PRAGMA user_version = 1")
    store.close()
    _, second = instances_in(shared)
    assert isinstance(second, Unreadable)
    assert (second.state, "format 1" in second.problem) == ("damaged", True)


def test_folder_of_campaigns_is_told_from_a_campaign(shared, tmp_path):
    assert holds_instances(shared)
    assert not holds_instances(shared / "a")
    assert not holds_instances(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    assert not holds_instances(tmp_path / "empty")


def test_status_does_not_add_up_campaigns_on_different_targets(shared, capsys):
    fuzz("ripple:dimensions=3,probability=0.02", out=shared / "c", max_execs=500, progress=False)
    assert exit_code(["status", str(shared), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["together"] is None
    one, other = values["groups"]
    assert (one["instances"], one["together"]["executions"]) == (["a", "b"], 6000)
    assert (other["instances"], other["together"]["executions"]) == (["c"], 500)
    assert exit_code(["status", str(shared)]) == 0
    said = capsys.readouterr().out
    assert f"target {RIPPLE}, policy the target's own" in said
    assert "target ripple:dimensions=3,probability=0.02, policy the target's own" in said
    assert said.count("together") == 2
    assert "6,500" not in said


def test_status_of_one_campaign_says_its_target_and_policy(shared, capsys):
    assert exit_code(["status", str(shared / "a")]) == 0
    rows = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines() if line.strip())
    assert rows["target"].startswith(RIPPLE)
    assert rows["policy"].strip() == "the target's own"
