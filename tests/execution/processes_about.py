"""Finds the processes that a test has started, and their descendants, by a mark in their environment."""

import os
import time
from collections.abc import Callable
from pathlib import Path

#: Name of the environment variable that is the mark.
MARK = "POLICYFUZZ_TEST_MARK"
#: Seconds after which something that should happen never will, on a machine however busy.
PATIENCE = 300.0


def marked(mark: str) -> list[str]:
    """Command lines of the living processes that carry `mark`, by number."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append(f"{folder.name}: {command}")
            except OSError:  # gone, or somebody else's
                continue
    return found


def zombies() -> list[str]:
    """Numbers of children of this process that have ended, and of which nobody took note."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(parent) == os.getpid():
                found.append(folder.name)
    return found


def wait_until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"after {patience:g} s not yet: {what}"
        time.sleep(0.02)
