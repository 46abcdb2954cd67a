import errno
import os
import stat
from pathlib import Path

import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.whole_file import whole_file
from policyfuzz.report.tables import Table, write_table


def broken_rows():
    yield [1]
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_file_appears_once_it_is_complete(tmp_path):
    path = tmp_path / "t.csv"
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
        assert not path.exists()
        assert unfinished.suffix == ".csv"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", ["csv", "json", "npz"])
def test_full_disk_leaves_the_older_file_alone(tmp_path, form):
    path = tmp_path / "t"
    path.write_text("old")
    with pytest.raises(CampaignError, match=r"cannot write .*t: No space left on device") as caught:
        write_table(Table(["a"], broken_rows(), 2), form, path)
    assert "another disk" in caught.value.hint
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_really_full_device_is_told_as_such(form):
    with pytest.raises(CampaignError, match="cannot write /dev/full: No space left on device"):
        write_table(Table(["a"], [[1]], 1), form, Path("/dev/full"))


def test_device_is_written_and_stays_a_device():
    assert write_table(Table(["a"], [[1]], 1), "csv", Path("/dev/null")) == 1
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_pipe_is_written_directly(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_table(Table(["a"], [[1]], 1), "csv", path)
    assert os.read(reader, 100) == b"a\r\n1\r\n"
    os.close(reader)


def test_link_keeps_leading_to_the_file_that_is_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with whole_file(tmp_path / "link.csv") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_permissions_stay_as_they_were(tmp_path):
    path = tmp_path / "t"
    path.write_text("old")
    path.chmod(0o640)
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_to_itself_becomes_the_file(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert write_table(Table(["a"], [[1]], 1), "csv", tmp_path / "loop") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]
    assert not (tmp_path / "loop").is_symlink()
