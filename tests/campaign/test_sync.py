"""Instances beside each other: what they take from each other, and what they survive."""

import errno
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter, load_target
from policyfuzz.campaign.events import BatchDone, Event, Synced
from policyfuzz.campaign.queues import import_share
from policyfuzz.campaign.sync.files import instance_folders, read_sync_batch, sync_batch_file
from policyfuzz.campaign.sync.synchronizer import Synchronizer, _valid_and_solvable
from policyfuzz.core.inputs import Angle, InputSpace, Real
from policyfuzz.core.settings import SearchSettings
from policyfuzz.search.strategies import STRATEGIES

TARGET = load_target("ripple:dimensions=4,regions=3,probability=0.003")


class Instance:
    """A campaign in a folder of its own beside others, started and resumed at will."""

    def __init__(self, folder: Path, target=TARGET, interval=0.0, is_new=True, **config) -> None:
        self.folder, self.target, self.interval = folder, target, interval
        # a strategy that keeps whatever it takes, so that nothing can get lost unnoticed
        options: dict[str, Any] = {
            "strategy": "reward",
            "batch_size": 64,
            "search": SearchSettings(samples=200),
        } | config
        if is_new:
            CampaignWriter.create(folder, CampaignConfig(target.name, **options), target.inputs).close()
        self.events: list[Event] = []

    def run(self, executions=1000, is_synced=True, listener=lambda _event: None) -> CampaignReader:
        def listen(event: Event) -> None:
            self.events.append(event)
            listener(event)

        store = CampaignWriter(self.folder)
        try:
            synchronizer = Synchronizer(store, self.target, self.interval) if is_synced else None
            budget = Budget(executions=executions)
            Campaign(self.target, store, budget, listen, synchronizer=synchronizer).run()
        finally:
            store.close()
        return CampaignReader(self.folder)

    @property
    def troubles(self) -> list[str]:
        return [text for event in self.events if isinstance(event, Synced) for text in event.troubles]

    @property
    def queued(self) -> int:
        return sum(event.queued for event in self.events if isinstance(event, Synced))


def cases_of(rows) -> set[tuple]:
    return {(row["case_seed"], *(row[f"x{i}"] for i in range(4))) for row in rows}


def shown(folder: Path) -> set[tuple]:
    """All cases that the instance in `folder` has sent."""
    page = json.loads((folder / "exchange" / "progress.json").read_text())
    batches = [read_sync_batch(folder, number, 4) for number in range(1, page["parcels"] + 1)]
    return {
        (int(seed), *row.tolist())
        for batch in batches
        for seed, row in zip(batch.seeds, batch.inputs, strict=True)
    }


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    instance = Instance(tmp_path_factory.mktemp("finished") / "first", seed=1)
    assert instance.run(700).progress().findings
    return instance.folder


@pytest.fixture(scope="module")
def another(tmp_path_factory) -> Path:
    """An instance that searches otherwise than the first, to be copied."""
    instance = Instance(tmp_path_factory.mktemp("finished") / "another", seed=5)
    instance.run(300)
    return instance.folder


@pytest.fixture
def first(finished, tmp_path) -> Instance:
    """An instance that has been run to its end."""
    shutil.copytree(finished, tmp_path / "first")
    return Instance(tmp_path / "first", is_new=False)


def test_share_of_imports_is_an_eighth_whatever_the_size_of_batches():
    for size in (1, 3, 8, 64, 100):
        total = sum(import_share(position, size) for position in range(0, 800 * size, size))
        assert total == 800 * size // 8


def test_shown_are_kept_mutants_and_distinct_findings_only(first):
    campaign = CampaignReader(first.folder)
    expected = cases_of(campaign.iterate("seeds", "parent IS NOT NULL"))
    expected |= cases_of(campaign.iterate("findings", "is_distinct"))
    assert shown(first.folder) == expected


def test_findings_that_a_search_goes_on_from_are_not_shown_twice(tmp_path):
    folder = tmp_path / "first"
    campaign = Instance(folder, seed=1, strategy="portfolio").run(1000)
    assert any(True for _ in campaign.iterate("seeds", "is_crash AND parent IS NOT NULL"))
    expected = cases_of(campaign.iterate("seeds", "parent IS NOT NULL AND NOT is_crash"))
    expected |= cases_of(campaign.iterate("findings", "is_distinct"))
    assert shown(folder) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_findings_of_another_instance_are_found_here_with_their_origin(first, tmp_path, strategy):
    second = Instance(tmp_path / "second", seed=2, strategy=strategy).run()
    taken = list(second.iterate("findings", "origin IS NOT NULL"))
    assert {row["origin"] for row in taken} == {"first"}
    assert {row["status"] for row in taken} == {"confirmed"}
    assert {row["parent"] for row in taken} == {None}
    assert cases_of(taken) <= shown(first.folder)
    assert second.progress().imported_findings == len(taken)
    assert second.progress().executions == 1000


def test_corpus_takes_what_did_not_crash_and_searches_on_from_there(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2, strategy="reward").run()
    taken = list(second.iterate("seeds", "origin IS NOT NULL"))
    assert {row["origin"] for row in taken} == {"first"}
    assert cases_of(taken) <= shown(first.folder)
    children = second.iterate("seeds", "parent IN (SELECT id FROM seeds WHERE origin IS NOT NULL)")
    assert any(True for _ in children)


def test_imports_are_at_most_an_eighth_and_count_as_executions(first, tmp_path):
    progress = Instance(tmp_path / "second", seed=2).run().progress()
    assert 0 < progress.imports <= progress.executions / 8
    kinds = progress.samples + progress.mutants + progress.imports
    again = progress.findings + progress.flaky
    assert progress.executions - kinds - again in range(100), "the rest are replays of the health check"


def test_what_was_taken_is_not_sent_on(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2)
    second.run()
    assert CampaignReader(second.folder).progress().imports
    assert not shown(first.folder) & shown(second.folder)


def test_instance_that_only_samples_takes_findings_only(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2, strategy="random")
    progress = second.run().progress()
    distinct = list(CampaignReader(first.folder).iterate("findings", "is_distinct"))
    assert progress.imports == progress.imported_findings == len(distinct)


@pytest.mark.slow
def test_nothing_is_taken_twice_over_many_resumed_parts(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2)
    for part in range(1, 9):
        second.run(500 * part)
        first.run(700 + 300 * part)
    campaign = CampaignReader(second.folder)
    rows = [
        (row["case_seed"], *(row[f"x{i}"] for i in range(4)))
        for table in ("findings", "seeds")
        for row in campaign.iterate(table, "origin IS NOT NULL")
    ]
    assert len(rows) == len(set(rows)) == campaign.progress().imports
    assert CampaignReader(first.folder).progress().imports, "the first takes from the second too"


def test_interrupt_loses_no_import_and_repeats_none(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2, interval=1e9)  # looks once in every part

    def interrupt_at(batch: int):
        def interrupt(event: Event) -> None:
            if isinstance(event, BatchDone) and event.progress.batch >= batch:
                raise KeyboardInterrupt

        return interrupt

    for batch in (8, 9, 13, 20, 10_000):
        second.run(2500, listener=interrupt_at(batch))
    queued = second.queued
    campaign = CampaignReader(second.folder)
    assert queued > 100
    assert campaign.progress().imports == queued, "all that was queued has been run, once"
    assert campaign.about["stop_reason"] == "max-execs"


def test_waiting_imports_are_run_when_resumed_without_an_exchange(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2)
    second.run(500)
    before = CampaignReader(second.folder).progress().imports
    assert second.queued > before
    campaign = second.run(2500, is_synced=False)
    assert campaign.progress().imports == second.queued


def test_findings_without_others_are_the_same_with_and_without_exchange(tmp_path):
    alone = Instance(tmp_path / "alone" / "a", seed=3).run(is_synced=False)
    synced = Instance(tmp_path / "synced" / "a", seed=3).run()
    for table in ("findings", "seeds"):
        rows = [
            [{name: value for name, value in row.items() if name != "seconds"} for row in one.iterate(table)]
            for one in (alone, synced)
        ]
        assert rows[0] == rows[1]


def test_files_of_another_instance_are_never_changed(first, tmp_path):
    before = hashes(first.folder)
    second = Instance(tmp_path / "second", seed=2)
    second.run()
    assert second.queued
    assert hashes(first.folder) == before


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"target": load_target("ripple:dimensions=4")}, "it fuzzes ripple"),
        ({"policy_sha256": "other"}, "another policy"),
        ({"code_sha256": "other"}, "the files that its target is written in differ"),
    ],
)
def test_instance_that_fuzzes_something_else_is_skipped_and_told_once(first, tmp_path, config, complaint):
    second = Instance(tmp_path / "second", **config)
    second.run(500)
    assert len(second.troubles) == 1
    assert second.troubles[0].startswith("first: nothing is exchanged with it: ")
    assert second.queued == 0
    third = Instance(tmp_path / "third", seed=3)
    third.run(500)
    assert third.queued
    assert [text.split(":")[0] for text in third.troubles] == ["second"]
    assert complaint in third.troubles[0] or "ripple:dimensions=4" in third.troubles[0]


def test_two_instances_with_the_same_seed_are_told_that_they_search_the_same(first, tmp_path):
    second = Instance(tmp_path / "second", seed=1)
    second.run(500)
    assert second.troubles == ["first: it searches exactly as this one does: give each its own --seed"]


def test_copied_folder_is_not_taken_for_an_instance_of_its_own(first, tmp_path):
    shutil.copytree(first.folder, tmp_path / "second")
    third = Instance(tmp_path / "third", seed=3)
    third.run(500)
    assert third.troubles == ["second: nothing is exchanged with it: it is a copy of first"]


def test_damaged_sync_batch_is_skipped_and_the_rest_taken(first, tmp_path):
    page = json.loads((first.folder / "exchange" / "progress.json").read_text())
    assert page["parcels"] > 4
    whole = shown(first.folder)
    lost = set()
    for number, damage in ((2, lambda data: data[:-30]), (3, lambda _data: b"garbage")):
        path = sync_batch_file(first.folder, number)
        batch = read_sync_batch(first.folder, number, 4)
        lost |= {(int(s), *row.tolist()) for s, row in zip(batch.seeds, batch.inputs, strict=True)}
        path.write_bytes(damage(path.read_bytes()))
    sync_batch_file(first.folder, 4).unlink()
    second = Instance(tmp_path / "second", seed=2, batch_size=256)
    campaign = second.run(2000)
    rows = [
        *campaign.iterate("seeds", "origin IS NOT NULL"),
        *campaign.iterate("findings", "origin = 'first'"),
    ]
    taken = cases_of(rows)
    assert taken
    assert not taken & lost
    assert taken < whole
    told = sorted(text.partition("left out: ")[2][:10] for text in second.troubles)
    assert told == ["000002.npz", "000003.npz", "a file is "]


@pytest.mark.parametrize("name", ["about.json", "progress.json"])
@pytest.mark.parametrize("text", ["", "garbage", "{}", '{"format": 1}', '{"format": 2}'])
def test_garbage_in_one_instance_is_told_and_the_others_are_taken(first, another, tmp_path, name, text):
    shutil.copytree(another, tmp_path / "bad")
    (tmp_path / "bad" / "exchange" / name).write_text(text)
    third = Instance(tmp_path / "third", seed=3)
    campaign = third.run(700)
    assert len(third.troubles) == 1
    assert third.troubles[0].startswith(f"bad: skipped: {name}")
    assert {row["origin"] for row in campaign.iterate("seeds", "origin IS NOT NULL")} == {"first"}


def test_instance_that_disappears_is_no_trouble(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2)

    def remove(event: Event) -> None:
        if isinstance(event, BatchDone) and event.progress.batch == 9:
            shutil.rmtree(first.folder)

    campaign = second.run(listener=remove)
    assert campaign.progress().executions == 1000
    assert {row["origin"] for row in campaign.iterate("seeds", "origin IS NOT NULL")} == {"first"}


def test_instance_that_is_just_being_made_is_left_alone(first, tmp_path):
    (tmp_path / "empty").mkdir()
    Instance(tmp_path / "made", seed=9)  # a store without a single batch
    (tmp_path / "started" / "exchange").mkdir(parents=True)
    (tmp_path / "started" / "exchange" / "about.json.new").write_text("{")
    (tmp_path / "file").write_text("no folder")
    second = Instance(tmp_path / "second", seed=2)
    second.run(500)
    assert second.troubles == []
    assert second.queued


def test_page_that_promises_too_much_does_not_hold_up_the_campaign(first, tmp_path):
    path = first.folder / "exchange" / "progress.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"parcels": 10**12}))
    second = Instance(tmp_path / "second", seed=2)
    assert second.run(500).progress().executions == 500
    assert second.troubles == ["first: a part of it is left out: a file is missing or locked"]


def test_campaign_goes_on_while_the_shared_folder_is_away(first, tmp_path, monkeypatch):
    rounds = iter(range(10_000))

    def sometimes_away(folder: Path):
        if next(rounds) % 2 == 0:
            raise OSError(errno.ESTALE, "Stale file handle")
        return instance_folders(folder)

    monkeypatch.setattr("policyfuzz.campaign.sync.synchronizer.instance_folders", sometimes_away)
    second = Instance(tmp_path / "second", seed=2)
    second.run(700)
    assert second.troubles == [f"{tmp_path.name}: cannot be read, will try again: Stale file handle"]
    assert second.queued


def test_unreadable_file_of_another_instance_is_tried_again(first, tmp_path, monkeypatch):
    tries = iter(range(10_000))

    def sometimes_broken(folder: Path, number: int, dimensions: int):
        if next(tries) < 3:
            raise OSError(errno.EIO, "Input/output error")
        return read_sync_batch(folder, number, dimensions)

    monkeypatch.setattr("policyfuzz.campaign.sync.synchronizer.read_sync_batch", sometimes_broken)
    second = Instance(tmp_path / "second", seed=2, batch_size=256)
    second.run(2000)
    assert second.troubles == ["first: skipped, will try again: Input/output error"]
    assert second.queued == len(shown(first.folder))


def test_campaign_goes_on_when_it_cannot_show_anything(tmp_path):
    first = Instance(tmp_path / "first", seed=1)
    (first.folder / "exchange").write_text("in the way")
    assert first.run(500).progress().executions == 500
    assert len(first.troubles) == 1
    assert "cannot write to exchange" in first.troubles[0]


def test_own_damaged_page_does_not_make_others_miss_what_follows(first, tmp_path):
    second = Instance(tmp_path / "second", seed=2)
    second.run(500)
    batches = len(list((first.folder / "exchange").glob("*.npz")))
    (first.folder / "exchange" / "progress.json").write_text("garbage")
    first.run(1000)
    page = json.loads((first.folder / "exchange" / "progress.json").read_text())
    assert page["parcels"] > batches


def test_inputs_that_are_not_valid_here_are_left_out(first, tmp_path):
    path = sync_batch_file(first.folder, 1)
    with np.load(path) as arrays:
        columns = dict(arrays)
    columns["inputs"][0] = 7.0
    np.savez(path, **columns)
    second = Instance(tmp_path / "second", seed=2)
    campaign = second.run(500)
    assert second.troubles == ["first: inputs that are not valid or solvable here are left out"]
    for table in ("findings", "seeds"):
        assert all(row["x0"] <= 1 for row in campaign.iterate(table))


def test_constraints_see_no_input_of_others_that_is_out_of_range():
    def constraint(inputs):
        if (np.abs(inputs) > 10).any():
            raise ValueError("out of range")
        return inputs[:, 0] < 0.5

    space = InputSpace((Real("x", 0, 1), Angle("direction")), constraint)
    target = replace(TARGET, inputs=space, solvable=None)
    inputs = np.array([[0.2, 3.0], [0.2, 1e300], [-1e300, 0.0], [0.7, 0.0], [0.3, 6.0]])
    assert _valid_and_solvable(target, inputs).tolist() == [True, False, False, False, True]
