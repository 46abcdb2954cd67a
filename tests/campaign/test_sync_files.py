import json
import os
from pathlib import Path

import numpy as np
import pytest

from policyfuzz.campaign.sync.files import (
    DamagedFile,
    SyncBatch,
    _read,
    numbered_batches,
    read_json,
    read_sync_batch,
    sync_batch_file,
    write_json,
    write_sync_batch,
)


def a_batch(count=3):
    rng = np.random.default_rng(count)
    seeds = rng.integers(0, 2**63, count, dtype=np.uint64)
    returns = np.array([np.nan, *rng.random(count - 1)])
    return SyncBatch(rng.random((count, 2)), seeds, returns, np.array([4, *[0] * (count - 1)]))


def test_sync_batch_comes_out_as_it_went_in(tmp_path):
    write_sync_batch(tmp_path, 1, a_batch())
    read = read_sync_batch(tmp_path, 1, 2)
    for name in ("inputs", "seeds", "returns", "findings"):
        np.testing.assert_array_equal(getattr(read, name), getattr(a_batch(), name))


def test_nothing_but_complete_files_is_left_behind(tmp_path):
    write_sync_batch(tmp_path, 1, a_batch())
    write_json(tmp_path, "about.json", {"target": "x"})
    assert sorted(path.name for path in (tmp_path / "exchange").iterdir()) == ["000001.npz", "about.json"]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 0.999])
def test_cut_off_sync_batch_is_called_damaged(tmp_path, share):
    write_sync_batch(tmp_path, 1, a_batch(50))
    path = sync_batch_file(tmp_path, 1)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DamagedFile, match=r"000001\.npz is damaged"):
        read_sync_batch(tmp_path, 1, 2)


def test_sync_batch_with_a_flipped_bit_is_called_damaged_or_is_as_it_was(tmp_path):
    write_sync_batch(tmp_path, 1, a_batch(50))
    path = sync_batch_file(tmp_path, 1)
    data = path.read_bytes()
    for position in range(0, len(data), 7):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        try:
            read = read_sync_batch(tmp_path, 1, 2)
        except DamagedFile:
            continue
        np.testing.assert_array_equal(read.inputs, a_batch(50).inputs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"inputs": np.zeros((3, 5))},
        {"inputs": np.full((3, 2), np.inf)},
        {"seeds": np.zeros(4, np.uint64)},
        {"seeds": np.zeros(3)},
        {"seeds": np.full(3, 2**63, np.uint64)},
        {"seeds": np.uint64(3)},
        {"returns": None},
        {"findings": np.array([{}, {}, {}], object)},
    ],
)
def test_sync_batch_of_something_else_is_called_damaged(tmp_path, wrong):
    names = ("inputs", "seeds", "returns", "findings")
    arrays = {name: getattr(a_batch(), name) for name in names} | wrong
    path = sync_batch_file(tmp_path, 1)
    path.parent.mkdir()
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(DamagedFile, match="damaged"):
        read_sync_batch(tmp_path, 1, 2)


@pytest.mark.parametrize("text", ["", "garbage", "[1, 2]", "{}", '{"format": 99}', "\xff\xfe", "[" * 100_000])
def test_page_that_makes_no_sense_is_called_damaged(tmp_path, text):
    write_json(tmp_path, "about.json", {})
    (tmp_path / "exchange" / "about.json").write_text(text, "latin-1")
    with pytest.raises(DamagedFile, match=r"about\.json"):
        read_json(tmp_path, "about.json")


def test_page_is_plain_json(tmp_path):
    write_json(tmp_path, "progress.json", {"parcels": 3})
    assert json.loads((tmp_path / "exchange" / "progress.json").read_text())["parcels"] == 3


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_read_even_if_they_were_just_replaced(tmp_path, monkeypatch, make):
    write_sync_batch(tmp_path, 1, a_batch())
    open_now = os.open

    def open_later(path, *arguments):
        Path(path).unlink()
        make(Path(path))
        return open_now(path, *arguments)

    monkeypatch.setattr(os, "open", open_later)
    with pytest.raises(DamagedFile, match=r"000001\.npz is a (folder|pipe|device), expected a regular file"):
        read_sync_batch(tmp_path, 1, 2)


def test_file_that_vanishes_before_it_is_opened_is_missing(tmp_path, monkeypatch):
    write_sync_batch(tmp_path, 1, a_batch())
    open_now = os.open

    def open_later(path, *arguments):
        Path(path).unlink()
        return open_now(path, *arguments)

    monkeypatch.setattr(os, "open", open_later)
    with pytest.raises(FileNotFoundError):
        read_sync_batch(tmp_path, 1, 2)


def test_file_without_a_size_is_read_up_to_the_limit():
    with pytest.raises(DamagedFile, match="version has 6 bytes or more, expected 5 at most"):
        _read(Path("/proc/version"), 5)


def test_regular_file_behind_a_link_is_read(tmp_path):
    (tmp_path / "a").mkdir()
    write_sync_batch(tmp_path / "a", 1, a_batch())
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert len(read_sync_batch(tmp_path / "b", 1, 2)) == 3


def test_numbers_of_sync_batches_are_those_of_their_files(tmp_path):
    for number in (1, 7):
        write_sync_batch(tmp_path, number, a_batch())
    for name in ("0abc.npz", "9" * 200 + ".npz", "000009.npz.new"):
        (tmp_path / "exchange" / name).touch()
    assert sorted(numbered_batches(tmp_path)) == [1, 7]
