"""A campaign beside instances whose files are damaged, hostile, or no files at all."""

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignReader
from policyfuzz.campaign.sync import files, synchronizer
from policyfuzz.cli.main import exit_code

RIPPLE = "ripple:dimensions=4,regions=3,probability=0.003"
BEYOND_SQLITE = np.uint64(2**63)


def fuzz(folder: Path | str, executions: int, *arguments: object) -> int:
    command = ["fuzz", RIPPLE, "-o", folder, "--max-execs", executions, "--ui", "plain", *arguments]
    return exit_code([str(argument) for argument in command])


def rows_of(folder: Path) -> list[list[dict]]:
    """Findings and seeds, but for the time at which they were found."""
    campaign = CampaignReader(folder)
    return [
        [{name: value for name, value in row.items() if name != "seconds"} for row in campaign.iterate(table)]
        for table in ("findings", "seeds")
    ]


@pytest.fixture(scope="module")
def good_peer(tmp_path_factory) -> Path:
    """A finished instance that others can import from."""
    shared = tmp_path_factory.mktemp("peers")
    assert fuzz(shared / "peer", 1500, "--sync", shared, "--seed", 9, "--strategy", "reward") in (0, 1)
    assert (shared / "peer" / "exchange" / "000001.npz").exists()
    return shared / "peer"


@pytest.fixture
def peer(good_peer, tmp_path):
    """Put a copy of an instance into the sync folder, under this name, with an identity of its own."""

    def put(name: str | bytes) -> Path:
        folder = tmp_path / "shared" / os.fsdecode(name)
        shutil.copytree(good_peer, folder)
        change_page(folder, "about.json", instance=f"copy {len(list((tmp_path / 'shared').iterdir()))}")
        return folder

    return put


def change_page(folder: Path, name: str, **values) -> None:
    path = folder / "exchange" / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def change_batches(folder: Path, **changes) -> None:
    """Write all sync batches again; each change gives a new array for the old."""
    for path in (folder / "exchange").glob("*.npz"):
        with np.load(path) as arrays:
            np.savez(path, **{name: changes.get(name, np.array)(array) for name, array in arrays.items()})


def replace_batches(folder: Path, put) -> None:
    """Remove all sync batches; `put` makes something else of each path."""
    for path in (folder / "exchange").glob("*.npz"):
        path.unlink()
        put(path)


def replace_page(name: str, put):
    def replace(folder: Path) -> None:
        (folder / "exchange" / name).unlink()
        put(folder / "exchange" / name)

    return replace


def text_in(name: str, text: str):
    return lambda folder: (folder / "exchange" / name).write_text(text)


def page_with(name: str, **values):
    return lambda folder: change_page(folder, name, **values)


def zero_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def bomb(path: Path) -> None:
    """Four arrays of a gigabyte that are some kilobytes as a file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("inputs", "seeds", "returns", "findings"):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros(1))
                for _ in range(16):
                    file.write(bytes(1 << 20))


def huge_shape(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, kind in (("inputs", "f8"), ("seeds", "u8"), ("returns", "f8"), ("findings", "i8")):
            header = io.BytesIO()
            shape = (10**12, 4) if name == "inputs" else (10**12,)
            values = {"descr": f"<{kind}", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(header, values)
            archive.writestr(f"{name}.npy", header.getvalue())


DEEP = "[" * 200_000
LEFT_OUT = "a part of it is left out: 0000"
#: What is wrong with an instance, how to make it so, and what is reported of it.
BAD_PEERS = {
    "seeds beyond sqlite": (
        lambda folder: change_batches(folder, seeds=lambda seeds: seeds | BEYOND_SQLITE),
        LEFT_OUT,
    ),
    "inputs that are NaN": (lambda folder: change_batches(folder, inputs=lambda x: x * np.nan), LEFT_OUT),
    "inputs out of range": (lambda folder: change_batches(folder, inputs=lambda x: x + 1e300), "not valid"),
    "pipe as batch": (lambda folder: replace_batches(folder, os.mkfifo), LEFT_OUT),
    "endless device as batch": (lambda folder: replace_batches(folder, zero_link), LEFT_OUT),
    "folder as batch": (lambda folder: replace_batches(folder, Path.mkdir), LEFT_OUT),
    "terabyte as batch": (lambda folder: replace_batches(folder, sparse), LEFT_OUT),
    "bomb as batch": (lambda folder: replace_batches(folder, bomb), LEFT_OUT),
    "huge shape in batch": (lambda folder: replace_batches(folder, huge_shape), LEFT_OUT),
    "loop as batch": (
        lambda folder: replace_batches(folder, loop),
        "skipped, will try again: Too many levels",
    ),
    "pipe as about": (replace_page("about.json", os.mkfifo), "skipped: about.json is a pipe"),
    "endless device as about": (replace_page("about.json", zero_link), "skipped: about.json is a device"),
    "folder as about": (replace_page("about.json", Path.mkdir), "skipped: about.json is a folder"),
    "terabyte as about": (
        replace_page("about.json", sparse),
        "skipped: about.json has 1,099,511,627,776 bytes",
    ),
    "loop as about": (replace_page("about.json", loop), "skipped, will try again: Too many levels"),
    "deep about": (text_in("about.json", DEEP), "skipped: about.json is damaged"),
    "binary about": (text_in("about.json", "\x00\x1b[2J"), "skipped: about.json is damaged"),
    "list as about": (text_in("about.json", "[1]"), "skipped: about.json is damaged"),
    "hostile format": (page_with("about.json", format="\x1b[2J" + "x" * 10_000), r"has format \x1b[2Jxxx"),
    "long identity": (page_with("about.json", instance="x" * 10**5), "instance has 100,000 characters"),
    "number as host": (page_with("about.json", host=7), "skipped: about.json is damaged"),
    "nothing as target": (page_with("about.json", target=None), "skipped: about.json is damaged"),
    "other target": (page_with("about.json", target="\x1b]0;x\x07" * 10_000), r"it fuzzes \x1b]0;x\x07"),
    "wild dimensions": (page_with("about.json", dimensions=[[1, 2, 3]]), "skipped: about.json is damaged"),
    "endless dimensions": (
        page_with("about.json", dimensions=[["x", "real", 0, 1e999]]),
        "skipped: about.json is damaged",
    ),
    "pipe as progress": (
        replace_page("progress.json", os.mkfifo),
        "skipped: progress.json is a pipe",
    ),
    "no progress": (
        replace_page("progress.json", lambda _path: None),
        "skipped, will try again: No such file",
    ),
    "deep progress": (text_in("progress.json", DEEP), "skipped: progress.json is damaged"),
    "too many batches": (page_with("progress.json", parcels=10**18), "skipped: progress.json is damaged"),
    "many missing batches": (page_with("progress.json", parcels=10**15), "a file is missing or locked"),
    "negative batches": (page_with("progress.json", parcels=-1), "skipped: progress.json is damaged"),
    "infinite batches": (
        page_with("progress.json", parcels=float("inf")),
        "skipped: progress.json is damaged",
    ),
    "text as batches": (page_with("progress.json", parcels="many"), "skipped: progress.json is damaged"),
    "number of 5,000 digits": (
        text_in("progress.json", '{"format": 1, "parcels": ' + "9" * 5000 + "}"),
        "skipped: progress.json is damaged",
    ),
}


@pytest.mark.slow
def test_no_bad_peer_disturbs_a_campaign_and_each_is_reported_once(peer, tmp_path, capsys):
    assert fuzz(tmp_path / "alone", 1500, "--seed", 1) == 1
    for name, (damage, _) in BAD_PEERS.items():
        damage(peer(name))
    (tmp_path / "shared" / "no exchange").mkdir()
    (tmp_path / "shared" / "exchange is a loop").mkdir()
    loop(tmp_path / "shared" / "exchange is a loop" / "exchange")
    capsys.readouterr()
    shared, mine = tmp_path / "shared", tmp_path / "shared" / "mine"
    assert fuzz(mine, 1500, "--seed", 1, "--sync", shared) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("instance ")]
    assert all(len(line) < 400 and line.isprintable() for line in said)
    for name, (_, expected) in BAD_PEERS.items():
        told = [line for line in said if line.startswith(f"instance {name}: ")]
        assert told, name
        assert all(expected in line for line in told), told
    assert len(said) == len(set(said))
    assert rows_of(mine) == rows_of(tmp_path / "alone")
    assert fuzz(mine, 1700, "--seed", 1, "--sync", shared, "--resume") == 1
    for name in BAD_PEERS:
        shutil.rmtree(shared / name)
    assert fuzz(mine, 1900, "--seed", 1, "--sync", shared, "--resume") == 1
    assert CampaignReader(mine).progress().executions == 1900


@pytest.mark.slow
def test_status_survives_bad_peers_on_another_machine(peer, tmp_path, capsys):
    hostile = {
        "elsewhere": lambda folder: None,
        "wrong totals": page_with("progress.json", progress={"executions": "many"}),
        "unknown totals": page_with("progress.json", progress={"\x1b[2J": 1}),
        "no totals": page_with("progress.json", progress=None),
        "endless time": page_with("progress.json", progress={"seconds": 1e999}, last_finding_seconds=1e999),
        "too many samples": page_with(
            "progress.json", progress={"samples": 10**18, "sample_crashes": 10**17}
        ),
        "more crashes than samples": page_with("progress.json", progress={"samples": 1, "sample_crashes": 9}),
        "number of no time": page_with("progress.json", at="now"),
        "choice of a million million": page_with(
            "about.json", dimensions=[["x", "choice", 0, 10**12]], target="other"
        ),
        "same dimension twice": page_with("about.json", dimensions=[["x", "real", 0, 1]] * 2),
        "range of nothing": page_with("about.json", dimensions=[["x", "real", 1, 1]]),
        "configuration of another kind": page_with("about.json", config='{"search": 1}'),
        "deep configuration": page_with("about.json", config=DEEP),
    }
    everything = BAD_PEERS | {name: (damage, "") for name, damage in hostile.items()}
    for name, (damage, _) in everything.items():
        folder = peer(name)
        change_page(folder, "about.json", host="elsewhere\x1b[2J")
        change_page(folder, "progress.json", stop_reason=None)
        damage(folder)
    (tmp_path / "shared" / os.fsdecode(b"\xff\x1b[2J")).mkdir()
    for form in ([], ["--json"]):
        assert exit_code(["status", str(tmp_path / "shared"), *form]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert "elsewhere" in out
        assert all(line.isprintable() for line in out.splitlines())


def test_folder_whose_name_is_no_text_can_be_imported_from(peer, tmp_path):
    peer(b"caf\xe9\x1b[2J")
    assert fuzz("mine", 3000, "--seed", 1, "--sync", tmp_path / "shared", "--strategy", "reward") == 1
    campaign = CampaignReader(tmp_path / "shared" / "mine")
    origins = {row["origin"] for row in campaign.iterate("findings", "origin IS NOT NULL")}
    assert origins == {r"caf\udce9\x1b[2J"}
    assert fuzz("mine", 3500, "--seed", 1, "--sync", tmp_path / "shared", "--resume") == 1


@pytest.mark.parametrize("has_peer", [True, False])
def test_campaign_that_died_of_a_bad_case_resumes_without_it(peer, tmp_path, monkeypatch, has_peer):
    folder = peer("bad")
    change_batches(folder, seeds=lambda seeds: seeds | BEYOND_SQLITE)
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(files, "is_storable", lambda _inputs, seeds: np.ones(len(seeds), np.bool_))
        assert fuzz("mine", 3000, "--seed", 1, "--sync", tmp_path / "shared", "--strategy", "reward") == 4
    if not has_peer:
        shutil.rmtree(folder)
    mine = tmp_path / "shared" / "mine"
    state = CampaignReader(mine).state()
    assert any((array >= BEYOND_SQLITE).any() for name, array in state.items() if name.endswith(".seeds"))
    assert fuzz("mine", 3000, "--sync", tmp_path / "shared", "--resume") == 1
    assert CampaignReader(mine).progress().executions == 3000
    assert CampaignReader(mine).progress().imports == 0


def test_every_instance_gets_its_turn_when_rounds_have_no_time(peer, tmp_path, monkeypatch):
    monkeypatch.setattr(synchronizer, "_MAX_ROUND_SECONDS", 0.0)
    monkeypatch.setattr(synchronizer.Synchronizer.__init__, "__defaults__", (0.0,))
    for number, name in enumerate(("first", "second", "third")):
        # a little apart, or all but the first would only repeat known outcomes
        change_batches(peer(name), inputs=lambda inputs, by=number: inputs + 1e-9 * by)
    assert fuzz("mine", 6000, "--seed", 1, "--sync", tmp_path / "shared", "--strategy", "reward") == 1
    campaign = CampaignReader(tmp_path / "shared" / "mine")
    origins = {row["origin"] for row in campaign.iterate("findings", "origin IS NOT NULL")}
    assert origins == {"first", "second", "third"}


def test_peer_that_changes_its_identity_all_the_time_is_left_out_in_the_end(
    peer, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("policyfuzz.campaign.queues.MAX_SOURCES", 3)
    monkeypatch.setattr(synchronizer, "MAX_SOURCES", 3)
    for number in range(5):
        peer(f"peer {number}")
    assert fuzz("mine", 1500, "--seed", 1, "--sync", tmp_path / "shared") == 1
    err = capsys.readouterr().err
    assert err.count("left out: cases of 3 instances have been imported already") == 2


def test_folders_of_a_sync_folder_are_counted_before_they_are_read(peer, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_FOLDERS", 2)
    for number in range(5):
        peer(f"peer {number}")
    assert len(list(files.instance_folders(tmp_path / "shared"))) == 2


def test_trouble_is_reported_up_to_a_number(peer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(synchronizer, "_MAX_REPORTS", 3)
    for number in range(6):
        text_in("about.json", "{}")(peer(f"peer {number}"))
    assert fuzz("mine", 1000, "--seed", 1, "--sync", tmp_path / "shared") in (0, 1)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("instance ")]
    assert len(said) == 4
    assert said[-1].endswith("(no further trouble is reported)")


@pytest.mark.parametrize("name", ["exchange", "exchange/about.json.new", "exchange/progress.json.new"])
def test_links_in_the_own_folder_are_not_written_through(tmp_path, name, capsys):
    behind = tmp_path / "behind"
    link = tmp_path / "shared" / "mine" / name
    link.parent.mkdir(parents=True)
    if name == "exchange":
        behind.mkdir()
    else:
        behind.write_text("mine")
    link.symlink_to(behind)
    assert fuzz("mine", 500, "--seed", 1, "--sync", tmp_path / "shared") in (0, 1)
    if name == "exchange":
        assert list(behind.iterdir()) == []
        assert "cannot write to exchange, will try again: it is a link" in capsys.readouterr().err
    else:
        assert behind.read_text() == "mine"
