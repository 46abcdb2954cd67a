"""Standard streams that fail: talk is dropped, lost results are told, and a verdict stands."""

import io
import os
import sys
from contextlib import suppress

import pytest

from policyfuzz.cli import process


def stream(kind, path):
    return kind(io.BufferedWriter(io.FileIO(path, "w")), encoding="utf-8")


def broken_pipe(kind):
    reader, writer = os.pipe()
    os.close(reader)
    return stream(kind, writer)


def discard(stream):
    """Close `stream`, which still holds what it could not write."""
    with suppress(OSError, process.OutputLost):
        stream.close()


def test_talk_is_dropped_where_it_cannot_be_written():
    for talk in (stream(process._Talk, "/dev/full"), broken_pipe(process._Talk)):
        assert talk.write("something\n") == 10
        talk.flush()
        discard(talk)


def test_results_that_are_lost_are_told():
    results = stream(process._Results, "/dev/full")
    results.write("something\n")
    with pytest.raises(process.OutputLost, match=r"cannot be written to stdout: No space left on device"):
        results.flush()
    discard(results)


def test_reader_that_has_gone_is_no_loss_of_ours():
    results = broken_pipe(process._Results)
    results.write("something\n")
    with pytest.raises(BrokenPipeError):
        results.flush()
    discard(results)


@pytest.mark.parametrize("error", [BrokenPipeError(), process.OutputLost("the disk is full")])
def test_verdict_stands_when_its_text_is_lost(error, monkeypatch):
    monkeypatch.setattr(process._Command, "has_told_loss", False)
    with process.verdict_stands():
        raise error
    assert process._Command.has_told_loss == isinstance(error, process.OutputLost)


def test_other_errors_of_printing_are_not_swallowed():
    with pytest.raises(ValueError, match="a fault of ours"), process.verdict_stands():
        raise ValueError("a fault of ours")


def test_user_code_prints_to_stderr_and_its_broken_connections_are_its_own(capsys):
    with process.user_prints_to_stderr():
        sys.stdout.write("from the target\n")
    with pytest.raises(RuntimeError, match="a connection broke"), process.user_prints_to_stderr():
        raise BrokenPipeError("socket")
    assert capsys.readouterr() == ("", "from the target\n")


def test_stream_is_made_like_the_one_that_was_there(tmp_path):
    with (tmp_path / "out").open("w", encoding="latin-1", errors="replace") as there:
        how = process._like(there, 1)
    assert (how["encoding"], how["errors"]) == ("latin-1", "replace")
    assert process._like(None, 2)["encoding"] == "utf-8"


def test_process_is_a_copy_only_after_a_fork(monkeypatch):
    monkeypatch.setattr(process._Command, "process", os.getpid())
    assert not process.is_copy()
    monkeypatch.setattr(process._Command, "process", os.getpid() + 1)
    assert process.is_copy()


def test_os_exit_of_user_code_raises_in_the_main_thread(monkeypatch):
    monkeypatch.setattr(process._Command, "process", os.getpid())
    with pytest.raises(SystemExit, match=r"os\._exit\(1\)"):
        process._refuse_exit(1)
    assert sys.stdout is not None
