"""The process of a command: its standard streams, its signals, and an end that no user code can change."""

import atexit
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, NoReturn, TextIO

from policyfuzz.cli.echo import echo
from policyfuzz.core.errors import PolicyFuzzError, interrupt

#: Seconds that exit handlers of user code and libraries get.
_GOODBYE_SECONDS = 10.0

_exit_now = os._exit


class OutputLost(PolicyFuzzError):
    """Results could not be written to standard output."""


class _Results(io.TextIOWrapper):
    """Standard output. A reader that has gone raises BrokenPipeError, any other trouble OutputLost."""

    def write(self, text: str) -> int:
        with _explained_loss():
            return super().write(text)

    def flush(self) -> None:
        with _explained_loss():
            super().flush()


class _Talk(io.TextIOWrapper):
    """Standard error. What cannot be written is dropped: a campaign continues without its log."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # of a stream that user code has closed
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            super().flush()


@contextmanager
def _explained_loss() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputLost(f"the results cannot be written to stdout: {reason}") from error


def prepare() -> None:
    """Make streams, signals and `os._exit` of this process safe; the command line calls this first."""
    _fill_missing_descriptors()
    results = _Results(**_like(sys.stdout, 1))
    # unbuffered, so that nothing is left over from a write that failed
    talk = _Talk(**_like(sys.stderr, 2), write_through=True)
    vars(sys).update(stdout=results, __stdout__=results, stderr=talk, __stderr__=talk)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    _Command.process = os.getpid()
    os._exit = _refuse_exit


def _fill_missing_descriptors() -> None:
    """Open /dev/null in place of closed standard streams: the next file would get their descriptor."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # stdout cannot be written: results that nobody gets are an error


def _like(stream: TextIO | None, descriptor: int) -> dict[str, Any]:
    """How to make a text stream like `stream`, which is None if the descriptor was closed."""
    if isinstance(stream, io.TextIOWrapper):
        how = {"encoding": stream.encoding, "errors": stream.errors, "line_buffering": stream.line_buffering}
    else:
        how = {"encoding": "utf-8", "errors": "backslashreplace", "line_buffering": False}
    raw = io.FileIO(descriptor, "w", closefd=False)
    return {"buffer": raw if descriptor == 2 else io.BufferedWriter(raw), **how}


def _refuse_exit(status: int) -> NoReturn:
    """Stands for `os._exit`: user code that calls it fails, as with sys.exit, and the command goes on."""
    if is_copy():  # or a child that user code forked
        _exit_now(status)
    if threading.current_thread() is threading.main_thread():
        raise SystemExit(f"os._exit({status})")
    _say(f"a thread of the target's code called os._exit({status})")
    _exit_now(3)


def is_copy() -> bool:
    """True if user code forked this process from that of the command."""
    return _Command.process not in (None, os.getpid())


def leave(code: int) -> NoReturn:
    """End the process with `code`, whatever threads and exit handlers user code has left behind."""
    if is_copy():
        _exit_now(0)
    code = _flushed(code)
    with suppress(BaseException):
        goodbye = threading.Timer(_GOODBYE_SECONDS, _exit_now, (code,))
        goodbye.daemon = True
        goodbye.start()
        atexit._run_exitfuncs()
    with suppress(BaseException):
        sys.stdout.flush()
    with suppress(BaseException):
        if "ctypes" in sys.modules:  # simulators that print from C have a buffer of their own
            sys.modules["ctypes"].CDLL(None).fflush(None)
    _exit_now(code)


def _flushed(code: int) -> int:
    """Flush stdout; `code`, or 2 if results are lost of which the code says nothing."""
    try:
        sys.stdout.flush()
    except OutputLost as error:
        if code == 0 and not _Command.has_told_loss:
            _say(str(error))
            return error.exit_code
    except Exception:  # the reader has gone, as in `policyfuzz show DIR | head`: not worth another exit code
        pass
    return code


class _Command:
    """What this process knows of its command."""

    process: int | None = None  #: its id, once `prepare` was called
    has_told_loss = False  #: the user knows that results are lost


def _say(line: str) -> None:
    with suppress(Exception):  # user code may have replaced the stream
        echo(f"policyfuzz: {line}", err=True)


@contextmanager
def verdict_stands() -> Iterator[None]:
    """Print results of a command whose exit code says the most: it holds even if they are lost."""
    try:
        yield
    except BrokenPipeError:
        pass
    except (OutputLost, ValueError) as error:
        if isinstance(error, ValueError) and not sys.stdout.closed:  # by user code
            raise
        _Command.has_told_loss = True
        _say(str(error))


@contextmanager
def user_prints_to_stderr() -> Iterator[None]:
    """Let what user code prints go to stderr: stdout is for results."""
    with redirect_stdout(sys.stderr):
        try:
            yield
        except BrokenPipeError as error:  # not that of stdout, which would be no error
            raise RuntimeError(f"a connection broke: {error}") from error
