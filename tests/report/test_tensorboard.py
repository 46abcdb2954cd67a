"""The log for TensorBoard, read back as TensorBoard reads it."""

import errno
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfuzz import BatchDone, Budget, CampaignReader, Progress, Started, Stopped
from policyfuzz.campaign.events import BatchEpisodes
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import CampaignConfig, StopReason
from policyfuzz.report import tensorboard
from policyfuzz.report.tensorboard import EventFile, TensorBoardLog
from policyfuzz.report.watching import watching
from policyfuzz.targets.registry import load_target

pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
RIPPLE = "ripple:dimensions=3,probability=0.01"


def events(folder: Path) -> Iterator[Any]:
    """All events of a campaign in the order of their files; checks what holds them together."""
    library = tensorboard.load_library()
    checksum = library.record_writer.masked_crc32c
    for path in sorted((folder / "tensorboard").iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            content = data[at + 12 : at + 12 + length]
            assert struct.unpack_from("<I", data, at + 8) == (checksum(data[at : at + 8]),)
            assert struct.unpack_from("<I", data, at + 12 + length) == (checksum(content),)
            yield library.event_type.FromString(content)
            at += length + 16


def values(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """Tag to steps and values."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for event in events(folder):
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            found.setdefault(value.tag, []).append((event.step, getattr(value, kind)))
    return found


def fuzz(folder: Path, executions: int, said: list[str], resume: bool = False) -> None:
    target = load_target(RIPPLE)
    with watching(target, ["tensorboard"], None, said.append) as listeners:
        launch(target, Budget(executions=executions), folder=folder, resume=resume, listeners=listeners)


@pytest.fixture(scope="module")
def logged(tmp_path_factory) -> Path:
    """A campaign that was logged without trouble."""
    folder, said = tmp_path_factory.mktemp("logged") / "c", []
    fuzz(folder, 1000, said)
    assert said == []
    return folder


def test_curves_end_with_the_totals_of_the_campaign(logged):
    progress, shown = CampaignReader(logged).progress(), values(logged)
    assert next(events(logged)).file_version == "brain.Event:2"
    assert shown["findings/confirmed"][-1] == (1000, progress.findings)
    assert shown["findings/distinct"][-1] == (1000, progress.distinct_findings)
    assert shown["findings/lineages"][-1] == (1000, progress.lineages)
    step, rate = shown["crash_rate/random_draws"][-1]
    assert (step, rate) == (1000, pytest.approx(progress.sample_crash_rate, rel=1e-6))
    assert shown["findings/modes_so_far"][-1][1] >= 1
    assert shown["emitters/random"][0][1] == 1.0, "the first batch is drawn at random"


def test_histograms_count_every_episode_of_the_search(logged):
    progress, shown = CampaignReader(logged).progress(), values(logged)
    for of in ("returns", "margins"):
        assert sum(one.num for _, one in shown[f"{of}/random"]) == progress.samples
        assert sum(one.num for _, one in shown[f"{of}/search"]) == progress.mutants
        assert all(sum(one.bucket) == one.num for _, one in shown[f"{of}/search"])


def test_resumed_campaign_continues_the_steps(tmp_path):
    fuzz(tmp_path / "c", 400, [])
    fuzz(tmp_path / "c", 800, [], resume=True)
    assert len(list((tmp_path / "c" / "tensorboard").iterdir())) == 2
    shown = values(tmp_path / "c")
    for name in ("findings/confirmed", "findings/modes_so_far", "health/corpus"):
        steps, curve = zip(*shown[name], strict=True)
        assert list(steps) == sorted(steps)
        assert list(curve) == sorted(curve)
    assert {400, 800} <= {step for step, _ in shown["findings/confirmed"]}


def a_batch(number: int, returns: list[float]) -> BatchDone:
    arrays = np.array(returns), np.full(len(returns), np.nan), np.zeros(len(returns), bool)
    progress = Progress(batch=number, executions=10 * number, seconds=float(number))
    return BatchDone(progress, [], [], episodes=BatchEpisodes(*arrays))


@pytest.fixture
def a_log(tmp_path):
    """A log of a campaign in tmp_path that writes a point for every batch, and what it says."""
    said: list[str] = []
    log = TensorBoardLog(load_target("ripple"), said.append, clock=iter(range(0, 10**6, 10)).__next__)
    log.take(Started(CampaignConfig("ripple"), Budget(), str(tmp_path), Progress()), [])
    yield log, said
    log.close()


def test_numbers_that_cannot_be_drawn_are_left_out_or_cut(a_log, tmp_path):
    log, said = a_log
    log.take(a_batch(1, [float("nan"), float("inf"), -1e308, 1e308, 5.0]), [])
    log.take(a_batch(2, [float("nan")]), [])
    log.take(a_batch(3, [0.0, 0.0]), [])
    shown = values(tmp_path)["returns/search"]
    assert said == []
    assert [(step, one.num) for step, one in shown] == [(10, 3), (30, 2)]
    assert shown[0][1].max == 1e100


def test_campaign_that_ends_before_its_first_batch_leaves_no_folder(a_log, tmp_path):
    log, _ = a_log  # it would keep a campaign that stored nothing from being started again
    log.take(Stopped(StopReason.UNHEALTHY, Progress()), [])
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_told_once_and_ends_the_log_only(a_log, monkeypatch):
    log, said = a_log

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(EventFile, "_record", full)
    for number in range(1, 5):
        log.take(a_batch(number, [1.0]), [])
    assert len(said) == 1
    assert "No space left on device" in said[0]


def test_folder_that_is_a_link_is_not_written(a_log, tmp_path):
    log, said = a_log
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tensorboard").symlink_to(tmp_path / "elsewhere")
    log.take(a_batch(1, [1.0]), [])
    assert "is a link" in said[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_torch_is_neither_imported_nor_lost():
    code = """if True:
        import sys
        from policyfuzz.report.tensorboard import load_library
        load_library()
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
