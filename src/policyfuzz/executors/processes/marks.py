"""Finds all that a worker has started, wherever that went: children inherit the environment."""

import os
import signal
from contextlib import suppress
from pathlib import Path

#: Environment variable with the mark of a worker.
VARIABLE = "POLICYFUZZ_WORKER"
#: Looks at all processes at most: who is killed may have started another just before.
_ROUNDS = 5


def kill_marked(mark: str) -> None:
    """Kill every process whose mark begins with `mark`, also in another group or session.

    Only Linux tells environments; elsewhere nothing happens, and process groups have to do.
    """
    for _ in range(_ROUNDS):
        found = _marked(f"{VARIABLE}={mark}".encode())
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not found:
            return


def _marked(entry: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            environment = (folder / "environ").read_bytes()
            is_marked = environment.startswith(entry) or b"\0" + entry in environment
            if is_marked and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found
