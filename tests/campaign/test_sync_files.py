import json

import numpy as np
import pytest

from policyfuzz.campaign.sync.files import (
    DamagedFile,
    SyncBatch,
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
