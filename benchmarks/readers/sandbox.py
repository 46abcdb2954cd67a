"""Runs one command line in this process and watches it: its exit code, its words, and whatever it touches."""

import io
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.cli.main import exit_code

#: Files that planted code makes, if it is ever run.
MARKER = "marker"
_GOOD_CODES = (0, 1, 2, 3, 130)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Events of the interpreter that change files, and which of their arguments are paths.
_CHANGES = {
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "shutil.rmtree": (0,),
    "shutil.move": (0, 1),
}
_STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.spawn", "pty.spawn")


@dataclass
class Watch:
    """What a command did that it should not have done."""

    folder: Path
    problems: list[str] = field(default_factory=list)
    is_on: bool = False

    def event(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Called by the interpreter for what it does to files and processes, and for code that it runs."""
        if not self.is_on:
            return
        self.is_on = False  # what happens here is ours
        try:
            problem = self._problem(name, arguments)
        finally:
            self.is_on = True
        if problem:
            self.problems.append(problem)

    def _problem(self, name: str, arguments: tuple[Any, ...]) -> str | None:
        if name == "open":
            path, mode, flags = arguments
            is_written = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & _WRITES
            )
            return f"writes {path}" if is_written and not self._is_allowed(path) else None
        if name in _CHANGES:
            bad = [arguments[place] for place in _CHANGES[name] if not self._is_allowed(arguments[place])]
            return f"{name} of {bad[0]}" if bad else None
        if name == "subprocess.Popen":
            command = (
                [str(word) for word in arguments[1]] if not isinstance(arguments[1], str) else [arguments[1]]
            )
            is_ours = (
                any(word.startswith("policyfuzz.") for word in command) and arguments[0] == sys.executable
            )
            is_ours = is_ours or Path(command[0]).name.startswith(
                ("fc-list", "ffmpeg", "gcc", "ldconfig", "uname")
            )
            return None if is_ours else f"starts {command}"
        if name in _STARTS:
            return f"{name} {arguments[:1]}"
        if name == "exec" and str(self.folder) in getattr(arguments[0], "co_filename", ""):
            return f"runs {arguments[0].co_filename}"
        return None

    def _is_allowed(self, path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return True
        text = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - links must not be followed
        inside = (str(self.folder), os.environ.get("TMPDIR", "/nowhere"))
        return (
            text.startswith(inside) or text in ("/dev/null", "/dev/tty", "/dev/zero") or "__pycache__" in text
        )


_WATCHES: list[Watch] = []


def _hook(name: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHES:
        _WATCHES[-1].event(name, arguments)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command line did."""

    code: int
    said: str  #: stdout and stderr
    problems: tuple[str, ...]


def run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run `policyfuzz` with `arguments` in `folder`."""
    if not _WATCHES:
        sys.addaudithook(_hook)  # can never be removed; without a watch it does nothing
    watch, out, err = Watch(folder), io.StringIO(), io.StringIO()
    _WATCHES.append(watch)
    try:
        with _inside(folder, environment or {}), redirect_stdout(out), redirect_stderr(err):
            watch.is_on = True
            try:
                code = exit_code(list(arguments))
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 1
                watch.problems.append(f"SystemExit {error.code}")
            except BaseException as error:  # a crash of the command line is a result here
                code = 4
                watch.problems.append(f"raises {type(error).__name__}: {error}")
            finally:
                watch.is_on = False
    finally:
        _WATCHES[-1] = Watch(folder)
    said = out.getvalue() + err.getvalue()
    return Outcome(code, said, (*watch.problems, *_judged(code, said, arguments, folder)))


def _judged(code: int, said: str, arguments: Sequence[str], folder: Path) -> Iterator[str]:
    if code not in _GOOD_CODES:
        line = next((line for line in said.splitlines() if "internal error" in line), said[-200:])
        yield f"exit code {code}: {line[:300]}"
    if "Traceback (most recent call last)" in said and "errors" not in " ".join(arguments):
        yield "a traceback"
    if code == 2 and not said.strip():
        yield "exit code 2 without a word"
    if code == 1 and "replay" not in arguments and not _has_confirmed(folder):
        yield "exit code 1 without a confirmed finding"
    if "\x1b]" in said or "\x1b[31m" in said:
        yield "escape sequences in the output"
    if any(folder.rglob(MARKER)):
        yield "planted code was run"


def _has_confirmed(folder: Path) -> bool:
    for path in folder.rglob("campaign.sqlite"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            if connection.execute("SELECT 1 FROM findings WHERE status = 'confirmed' LIMIT 1").fetchone():
                return True
    return False


@contextmanager
def _inside(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Stand in `folder`, which is home too, with these variables; then leave everything as it was."""
    before, variables, paths = Path.cwd(), dict(os.environ), list(sys.path)
    os.chdir(folder)
    os.environ |= {"HOME": str(folder), **environment}
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:] = paths
