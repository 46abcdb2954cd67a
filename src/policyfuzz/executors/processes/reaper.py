"""A process that outlives the coordinator just long enough to kill its workers.

Workers may hang where no signal handler and no thread of theirs ever runs, and may have children of their
own; so somebody else has to see to it that nothing is left when the coordinator is killed.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress

from policyfuzz.executors.processes.marks import kill_marked


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
