"""Attacks on processes: the coordinator and its workers are killed and stopped, a second writer comes."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from benchmarks.attacks.victim import Outcome, Victim, batches, complain_unless, reaches
from benchmarks.soak.watch import descendants

#: Attacks on one campaign; with more of them it starts over with another seed.
_EACH = 6
_WITHIN = 0.02  #: seconds after the aim at most: a kill may fall at any moment of a batch
_TIMEOUT = 5.0  #: seconds for an episode, and less than a stop takes
_STOP = 6.0


def kill_coordinators(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """SIGKILL at random batches, resume, and again; every other campaign has workers."""
    done, differences = 0, []
    for seed, moments in _campaigns(work, times):
        victim, folder = Victim(work, seed), work / f"killed-{seed}"
        workers = ("-j", "2") if seed % 2 else ()
        for moment in victim.moments(moments, rng):
            process = victim.start(folder, *workers)
            if reaches(process, folder, moment):
                time.sleep(rng.uniform(0, _WITHIN))
                process.kill()
                process.communicate()
                is_real = process.returncode == -signal.SIGKILL and batches(folder) < victim.last_batch()
                done += is_real
            if batches(folder) < moment:
                differences.append(f"{folder.name}: batch {moment} was stored, and is lost")
        differences += victim.finish(folder, *workers)
    return Outcome("coordinator killed", done, tuple(differences))


def kill_workers(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """SIGKILL for one of two workers at random batches."""
    done, differences = 0, []
    for seed, moments in _campaigns(work, times):
        victim, folder = Victim(work, seed), work / f"worker-killed-{seed}"
        aims, last = victim.moments(moments, rng), 0
        process = victim.start(folder, "-j", "2")
        for moment in aims:
            # two batches later at the earliest: a case that several deaths hit would be called deadly
            if reaches(process, folder, max(moment, last + 2)) and (workers := _workers(process.pid)):
                last = batches(folder)
                with suppress(ProcessLookupError):  # it may just be replaced
                    os.kill(int(rng.choice(workers)), signal.SIGKILL)
                    done += last < victim.last_batch()
        complain_unless(process, 0, 1)
        differences += victim.differences(folder)
    return Outcome("worker killed", done, tuple(differences))


def stop_processes(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """SIGSTOP for the coordinator, for longer than an episode may take, then SIGCONT."""
    done, differences = 0, []
    for seed, moments in _campaigns(work, times):
        victim, folder = Victim(work, seed), work / f"stopped-{seed}"
        aims = victim.moments(moments, rng)
        process = victim.start(folder, "-j", "2", "--timeout", f"{_TIMEOUT:g}s")
        for moment in aims:
            if reaches(process, folder, moment):
                with _stopped(process.pid):
                    done += batches(folder) < victim.last_batch()
                    time.sleep(_STOP)
        complain_unless(process, 0, 1)
        differences += victim.differences(folder)
    return Outcome("coordinator stopped", done, tuple(differences))


def second_writers(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """A second process wants to go on with the campaign that the first is running."""
    done, differences = 0, []
    for seed, moments in _campaigns(work, times):
        victim, folder = Victim(work, seed), work / f"wanted-{seed}"
        aims = victim.moments(moments, rng)
        process = victim.start(folder)
        for moment in aims:
            if reaches(process, folder, moment):
                with _stopped(process.pid):  # so that it cannot end first, on a slow machine
                    said = complain_unless(victim.start(folder), 2)
                if "another process is writing" not in said:
                    differences.append(f"{folder.name}: the second writer was told {said!r}")
                done += 1
        complain_unless(process, 0, 1)
        differences += victim.differences(folder)
    return Outcome("second writer", done, tuple(differences))


def _campaigns(work: Path, times: int) -> Iterator[tuple[int, int]]:
    """Seed of each campaign, and how often it is attacked."""
    work.mkdir()
    for seed, begin in enumerate(range(0, times, _EACH)):
        yield seed, min(_EACH, times - begin)


def _workers(coordinator: int) -> list[int]:
    found = []
    for process in sorted(descendants(coordinator)):
        with suppress(OSError):
            if b"processes.worker" in (Path("/proc") / str(process) / "cmdline").read_bytes():
                found.append(process)
    return found


@contextmanager
def _stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        while _state(process) != "T":
            time.sleep(0.001)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _state(process: int) -> str:
    return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0]
