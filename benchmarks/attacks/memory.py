"""Attack on memory: the kernel kills workers whose episodes want more than there is."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from benchmarks.attacks.greedy import STAND_IN
from benchmarks.attacks.victim import Outcome, Victim, complain_unless
from policyfuzz import CampaignReader

GREEDY = Path(__file__).with_name("greedy.py")
_TARGET = (f"gym:{GREEDY}:Greedy", "--policy", f"py:{GREEDY}:act", "--oracle", "terminated", "-j", "1")
_LIMIT = 600_000_000  #: bytes for coordinator and worker together
_EPISODES = 90


def out_of_memory(work: Path, times: int, _rng: np.random.Generator) -> Outcome:
    """Campaigns whose worst episodes are killed by the kernel, against the same killed by themselves."""
    work.mkdir()
    done, differences = 0, []
    try:
        with _memory_group() as group:
            for seed in range(times):
                stand_in = Victim(work, seed, _EPISODES, _TARGET, os.environ | {STAND_IN: "1"})
                folder = work / f"greedy-{seed}"
                greedy = Victim(work, seed, _EPISODES, _TARGET)
                complain_unless(_start_in(group, greedy.command(folder)), 0, 1)
                lost = sum("SIGKILL" in one.text for one in CampaignReader(folder).failed_episodes())
                done += lost
                differences += stand_in.differences(folder)
    except OSError as error:
        why = f"memory cannot be limited here: {error}"
        return Outcome("out of memory", 0, remark=why, is_possible=False)
    return Outcome("out of memory", done, tuple(differences), f"episodes in {times} campaigns")


def _start_in(group: Path, command: list[str]) -> "subprocess.Popen[str]":
    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=enter
    )


@contextmanager
def _memory_group() -> Iterator[Path]:
    """A group of processes that gets so much memory and no more."""
    version_1, version_2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    parent, limit = (version_1, "memory.limit_in_bytes") if version_1.is_dir() else (version_2, "memory.max")
    group = parent / f"policyfuzz-attacks-{os.getpid()}"
    group.mkdir()
    try:
        (group / limit).write_text(str(_LIMIT))
        yield group
    finally:
        for _ in range(100):  # processes that were killed take a moment to go
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)
