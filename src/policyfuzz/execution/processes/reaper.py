"""Kills workers and everything they started when the coordinator is gone.

A worker may hang where none of its signal handlers and threads ever runs, and its children may have moved to
other sessions. So a separate process makes sure that nothing is left when the coordinator is killed.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

#: Environment variable with the mark of a worker.
VARIABLE = "POLICYFUZZ_WORKER"
#: Searches through all processes at most, and seconds between them if some have no environment yet.
_MAX_SEARCHES, _PAUSE_SECONDS = 20, 0.01
#: Age in seconds up to which a process without an environment may be executing a new program.
_EXEC_SECONDS = 5.0


def new_mark() -> str:
    """A mark that no other process has; it begins with that of this process, if it is marked itself."""
    return f"{os.environ.get(VARIABLE, '')}{uuid.uuid4().hex}."


def kill_marked(mark: str) -> None:
    """Kill every process whose mark begins with `mark`, in any group or session.

    Only Linux shows environments. Elsewhere this does nothing, and process groups have to suffice.
    """
    entry = f"{VARIABLE}={mark}".encode()
    for _ in range(_MAX_SEARCHES):
        found = {folder: _environment(folder) for folder in Path("/proc").glob("[0-9]*")}
        marked = [
            folder for folder, known in found.items() if known.startswith(entry) or b"\0" + entry in known
        ]
        for folder in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(folder.name), signal.SIGKILL)
        if not marked:
            if not any(not known and _is_executing(folder) for folder, known in found.items()):
                return
            time.sleep(_PAUSE_SECONDS)


def _environment(folder: Path) -> bytes:
    """Environment of a process; empty if it has ended, belongs to another user, or executes a new program."""
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""


def _is_executing(folder: Path) -> bool:
    """True if a process without an environment may get one soon: it has none during an exec."""
    try:
        (folder / "exe").readlink()  # kernel threads and processes that ended have none
        started = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return False
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK") < _EXEC_SECONDS


class Reaper:
    """A process that kills all workers, and all that carries their `mark`, when this one ends."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must not end it
        )

    def watch(self, group: int) -> None:
        """Kill a process group too."""
        self._write(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Do not kill a process group that is gone; another may get its id."""
        self._write(f"-{group}\n")

    def close(self) -> None:
        """End the reaper, which kills the groups that are still watched."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it was killed: no reason to stop the campaign
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Read the groups to watch until the coordinator is gone, then kill them."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        groups = groups | {group} if line[0] == "+" else groups - {group}
    for group in groups:
        kill_group(group)
    kill_marked(sys.argv[1])


if __name__ == "__main__":
    main()
