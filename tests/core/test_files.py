import os

import pytest

from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.files import is_file, read_regular


def test_content_of_a_file_and_of_a_link_to_it_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file", 3) == read_regular(tmp_path / "link", 3) == b"abc"


def test_larger_file_is_refused_without_reading_it(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(PolicyError, match="1,099,511,627,776 bytes"):
        read_regular(tmp_path / "sparse", 1000, PolicyError)


def test_file_that_grows_after_it_was_opened_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"abcd")
    status = os.stat(tmp_path)  # noqa: PTH116 - some other one
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100644, *status[1:6], 0, *status[7:])))
    with pytest.raises(UsageError, match="4 bytes or more"):
        read_regular(tmp_path / "file", 3)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("fifo", "is a pipe"),
        ("/dev/zero", "is a device"),
        ("folder", "is a folder"),
        ("none", "cannot be opened"),
    ],
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind, message):
    path = tmp_path / "special"
    if kind == "fifo":
        os.mkfifo(path)  # nobody writes: to open it the usual way would wait for ever
    elif kind == "folder":
        path.mkdir()
    elif kind.startswith("/"):
        path.symlink_to(kind)
    with pytest.raises(UsageError, match=message):
        read_regular(path, 1000)
    assert not is_file(path)


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    assert not is_file(tmp_path / name)
    with pytest.raises(UsageError, match="cannot be opened"):
        read_regular(tmp_path / name, 1000)
