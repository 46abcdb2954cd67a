"""Ends workers and all that they started, wherever that went, when the coordinator is gone.

Workers may hang where no signal handler and no thread of theirs ever runs, and may have children of their
own; so somebody else has to see to it that nothing is left when the coordinator is killed.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

#: Environment variable with the mark of a worker.
VARIABLE = "POLICYFUZZ_WORKER"
#: Looks at all processes at most, and seconds between them where some cannot be told yet.
_ROUNDS, _PAUSE = 20, 0.01
#: Seconds for which a process without an environment may be one that is just becoming another program.
_YOUNG = 5.0


def kill_marked(mark: str) -> None:
    """Kill every process whose mark begins with `mark`, also in another group or session.

    Only Linux tells environments; elsewhere nothing happens, and process groups have to do.
    """
    entry = f"{VARIABLE}={mark}".encode()
    for _ in range(_ROUNDS):
        found = {folder: _environment(folder) for folder in Path("/proc").glob("[0-9]*")}
        marked = [
            folder for folder, known in found.items() if known.startswith(entry) or b"\0" + entry in known
        ]
        for folder in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(folder.name), signal.SIGKILL)
        if not marked:
            if not any(not known and _is_changing(folder) for folder, known in found.items()):
                return
            time.sleep(_PAUSE)


def _environment(folder: Path) -> bytes:
    """What a process was given; nothing where it has ended, is somebody else's, or is being made."""
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""


def _is_changing(folder: Path) -> bool:
    """True where a process without an environment may get one soon: the kernel takes it away meanwhile."""
    try:
        (folder / "exe").readlink()  # which neither the kernel's own processes have, nor those that ended
        started = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return False
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK") < _YOUNG


class Reaper:
    """Kills all workers and what has their `mark` when this process ends, in whatever way."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for it
        )

    def watch(self, group: int) -> None:
        """Take note of a process group."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """A process group is gone; another may get its number."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """End it, and whoever is still watched."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # somebody has killed it: no reason to stop
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def kill_group(group: int) -> None:
    """Kill all processes of a group, if there are any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    """Read what is to be watched until the coordinator has gone."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        groups = groups | {group} if line[0] == "+" else groups - {group}
    for group in groups:
        kill_group(group)
    kill_marked(sys.argv[1])


if __name__ == "__main__":
    main()
