"""Finds all that a worker has started, wherever that went: children inherit the environment."""

import os
import signal
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
