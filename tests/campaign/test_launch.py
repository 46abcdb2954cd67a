"""The one way into a campaign: start, resume, stop, leave nothing behind."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from policyfuzz import (
    BatchDone,
    Below,
    Budget,
    CampaignConfig,
    CampaignOptions,
    CampaignReader,
    CampaignWriter,
    SearchSettings,
    Stop,
    StopReason,
    load_target,
)
from policyfuzz.campaign.launch import launch, stored_policies
from policyfuzz.core.errors import CampaignError, UsageError

RIPPLE = "ripple:dimensions=3,probability=0.01"


@pytest.fixture(scope="module")
def target():
    return load_target(RIPPLE)


@pytest.fixture
def hopeless(target):
    """Every episode crashes."""
    return replace(target, oracle=Below(target.simulator().signals[0], float("inf"), kind="always"))


def findings(folder):
    return [
        (one.id, one.kind, one.case_seed, one.input.tolist()) for one in CampaignReader(folder).findings()
    ]


def test_new_campaigns_get_the_first_free_folder(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [launch(target, Budget(executions=100)).folder for _ in range(2)]
    assert [str(folder) for folder in folders] == [
        "campaigns/ripple-dimensions=3-probability=0.01-1",
        "campaigns/ripple-dimensions=3-probability=0.01-2",
    ]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("\x1b]0;x\x07\u202e../../etc", "etc-1"),
        ("..", "..-1"),
        ("日本", "target-1"),
        ("\udcff", "target-1"),
        (f"module{300 * 'x'}:make", f"module{94 * 'x'}-1"),
    ],
)
def test_folder_of_a_campaign_is_a_plain_name_whatever_the_target_is_called(
    target, tmp_path, monkeypatch, name, folder
):
    monkeypatch.chdir(tmp_path)
    launched = launch(replace(target, name=name), Budget(executions=100))
    assert launched.folder == Path("campaigns", folder)
    assert [path.name for path in tmp_path.iterdir()] == ["campaigns"]


def test_published_strategies_have_the_constants_of_their_target_unless_the_user_has_chosen(tmp_path):
    options = CampaignOptions(strategy="reward-published", components=3, samples=60)
    launched = launch(load_target("coopnavi"), Budget(executions=100), options, folder=tmp_path / "c")
    search = CampaignReader(launched.folder).config.search
    assert (search.density.components, search.samples) == (3, 60)
    assert (search.published.children, search.density.forgetting) == (20, 0.1)


def test_resumed_campaign_finds_what_an_uninterrupted_one_finds(target, tmp_path):
    options = CampaignOptions(seed=3, samples=100)
    whole = launch(target, Budget(executions=900), options, folder=tmp_path / "whole")

    def stop(event):
        if isinstance(event, BatchDone) and event.progress.batch == 4:
            raise Stop

    first = launch(target, Budget(executions=900), options, folder=tmp_path / "parts", listeners=(stop,))
    assert (first.reason, first.progress.batch) == (StopReason.INTERRUPTED, 4)
    rest = launch(target, Budget(executions=900), folder=tmp_path / "parts", resume=True)
    assert rest.reason is StopReason.MAX_EXECS
    assert rest.progress.findings == whole.progress.findings > 0
    assert findings(tmp_path / "parts") == findings(tmp_path / "whole")


def test_every_listener_gets_every_event(target, tmp_path):
    first, second = [], []
    launch(target, Budget(executions=200), folder=tmp_path / "c", listeners=(first.append, second.append))
    assert first == second != []


def test_unhealthy_campaign_is_kept_or_discarded(hopeless, tmp_path):
    kept = launch(hopeless, Budget(executions=200), folder=tmp_path / "kept")
    assert kept.reason is StopReason.UNHEALTHY
    assert [one.name for one in kept.bad_diagnoses] == ["oracle"]
    assert CampaignReader(tmp_path / "kept").about["stop_reason"] == "unhealthy"
    launch(hopeless, Budget(executions=200), folder=tmp_path / "gone", discard_unhealthy=True)
    assert not (tmp_path / "gone").exists()
    forced = launch(hopeless, Budget(executions=200), folder=tmp_path / "gone", force=True)
    assert forced.reason is StopReason.MAX_EXECS


def test_listener_that_fails_before_the_first_batch_leaves_no_folder(target, tmp_path):
    def broken(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch(target, Budget(executions=200), folder=tmp_path / "c", listeners=(broken,))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("left", [(), ("writer.lock",), ("writer.lock", "campaign.sqlite.new")])
def test_campaign_that_died_before_its_first_batch_starts_on_resume(target, tmp_path, left):
    (tmp_path / "c").mkdir()
    for name in left:
        (tmp_path / "c" / name).write_bytes(b"half a file")
    assert stored_policies(tmp_path / "c") == (None, [])
    launched = launch(target, Budget(executions=200), folder=tmp_path / "c", resume=True)
    assert launched.progress.executions == 200


def test_campaign_without_a_batch_starts_on_resume(target, tmp_path):
    config = CampaignConfig(target.name, batch_size=target.batch_size, search=SearchSettings(target.samples))
    CampaignWriter.create(tmp_path / "c", config, target.inputs).close()
    launched = launch(target, Budget(executions=200), folder=tmp_path / "c", resume=True)
    assert launched.progress.executions == 200


def test_folder_with_other_things_in_it_is_not_resumed(target, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(CampaignError, match="has no campaign in it"):
        launch(target, Budget(executions=200), folder=tmp_path, resume=True)


def test_folder_that_is_removed_during_the_run_is_noticed(target, tmp_path):
    def remove(event):
        if isinstance(event, BatchDone) and event.progress.batch == 2:
            shutil.rmtree(tmp_path / "c")

    with pytest.raises(CampaignError, match="was removed or replaced while the campaign ran"):
        launch(target, Budget(executions=2000), folder=tmp_path / "c", listeners=(remove,))
    assert not (tmp_path / "c").exists()


def test_listener_that_fails_after_a_resume_is_not_blamed_on_the_file(target, tmp_path):
    def broken(event):
        if isinstance(event, BatchDone):
            raise ZeroDivisionError

    launch(target, Budget(executions=400), folder=tmp_path / "c")
    with pytest.raises(ZeroDivisionError):
        launch(target, Budget(executions=900), folder=tmp_path / "c", resume=True, listeners=(broken,))


def test_policy_of_a_campaign_is_known_before_it_is_resumed(target, tmp_path):
    launch(target, Budget(executions=100), folder=tmp_path / "c", policy="npz:some.npz")
    assert stored_policies(tmp_path / "c") == ("npz:some.npz", [])
    assert stored_policies(tmp_path / "c", sync=tmp_path) == ("npz:some.npz", [])
    with pytest.raises(UsageError, match="which campaign"):
        stored_policies(None)
    with pytest.raises(CampaignError, match="does not exist"):
        stored_policies(tmp_path / "nowhere")


def test_instances_get_folders_and_seeds_of_their_own(target, tmp_path):
    options = CampaignOptions(strategy="random")
    folders = [
        launch(target, Budget(executions=100), options, sync=tmp_path / "shared").folder for _ in range(2)
    ]
    assert [CampaignReader(folder).config.seed for folder in folders] == [0, 1]
    assert [folder.name.rpartition("-")[0] for folder in folders] == [
        "ripple-dimensions=3-probability=0.01-random"
    ] * 2
    with pytest.raises(UsageError, match="is a campaign itself"):
        launch(target, Budget(executions=100), sync=folders[0])
