"""Attacks on files: campaigns are copied while they run, their logs are cut, their disks are full."""

import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.attacks.victim import Outcome, Victim, batches, complain_unless, reaches
from policyfuzz.store.database import FILE_NAME

_EACH = 6  #: copies and cuts of one campaign
#: Bytes that a campaign has before its first batch, or nearly so: smaller disks hold none.
_LEAST = 300_000


def hot_copies(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """Copies of a folder that is being written; each is resumed to the end."""
    work.mkdir()
    done, differences = 0, []
    for seed, begin in enumerate(range(0, times, _EACH)):
        victim, folder = Victim(work, seed), work / f"copied-{seed}"
        moments = victim.moments(min(_EACH, times - begin), rng)
        process, copies = victim.start(folder), []
        for number, moment in enumerate(moments):
            if reaches(process, folder, moment):
                copies.append(work / f"copy-{seed}-{number}")
                shutil.copytree(folder, copies[-1])
        complain_unless(process, 0, 1)
        differences += victim.differences(folder)
        for copy in copies:
            stored = batches(copy)
            done += stored < victim.last_batch()
            differences += victim.finish(copy) if stored else [f"{copy.name}: cannot be read"]
    return Outcome("copied while it ran", done, tuple(differences))


def cut_logs(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """The write-ahead log that a killed campaign leaves is cut at any byte."""
    work.mkdir()
    done, differences = 0, []
    for seed, begin in enumerate(range(0, times, _EACH)):
        victim, folder = Victim(work, seed), work / f"logged-{seed}"
        (moment,) = victim.moments(1, rng)
        process = victim.start(folder)
        if not reaches(process, folder, moment):
            differences.append(f"{folder.name}: ended before it could be killed")
            continue
        process.kill()
        process.communicate()
        log = folder / f"{FILE_NAME}-wal"
        for number in range(min(_EACH, times - begin)):
            copy = Path(shutil.copytree(folder, work / f"cut-{seed}-{number}"))
            kept = int(rng.integers(log.stat().st_size))
            with (copy / log.name).open("r+b") as file:
                file.truncate(kept)
            done += 1
            if not batches(copy):  # nothing is left to go on with
                shutil.rmtree(copy)
            differences += [f"{one}, log of {kept} bytes" for one in victim.finish(copy)]
    return Outcome("log cut", done, tuple(differences))


def full_disks(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """A disk of a few hundred kilobytes, mounted for the campaign alone."""

    def run(victim: Victim, folder: Path, size: int) -> "subprocess.Popen[str]":
        disk = folder.with_name(f"disk-of-{folder.name}")
        disk.mkdir()
        mount = f"mount -t tmpfs -o size={size} tmpfs {shlex.quote(str(disk))}"
        campaign = shlex.join(victim.command(disk / "c"))
        # the disk is gone with its name space, so that the campaign is copied from inside
        keep = f"cp -r {shlex.quote(str(disk / 'c'))} {shlex.quote(str(folder))}"
        script = f"{mount} && {{ {campaign}; code=$?; {keep}; exit $code; }}"
        command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    work.mkdir()
    probe = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", str(work)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode:
        return Outcome("disk full", 0, remark="no small disk can be mounted here", is_possible=False)
    return _starve("disk full", run, work, times, rng)


def limited_files(work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """Writes beyond a size of file fail (RLIMIT_FSIZE)."""

    def run(victim: Victim, folder: Path, size: int) -> "subprocess.Popen[str]":
        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return victim.start(folder, preexec_fn=limit)

    work.mkdir()
    return _starve("file cannot grow", run, work, times, rng)


Run = Callable[[Victim, Path, int], "subprocess.Popen[str]"]


def _starve(attack: str, run: Run, work: Path, times: int, rng: np.random.Generator) -> Outcome:
    """Campaigns with too little room must say so, stay readable, and end the same with more room."""
    victim = Victim(work, seed=0)
    victim.whole()
    room = 2 * sum(path.stat().st_size for path in victim.undisturbed.iterdir())
    done, differences = 0, []
    while done < times:
        folder, size = work / f"starved-{done}", int(rng.integers(_LEAST, room))
        process = run(victim, folder, size)
        _, said = process.communicate()
        if process.returncode in (0, 1):  # it had enough room after all
            room = size
            shutil.rmtree(folder)
            shutil.rmtree(work / f"disk-of-{folder.name}", ignore_errors=True)
            continue
        done += 1
        if process.returncode != 2 or "disk full?" not in said or "Traceback" in said:
            differences.append(f"{folder.name}, {size} bytes: exit code {process.returncode}, {said!r}")
        if not batches(folder):  # it had no room for its first batch
            shutil.rmtree(folder, ignore_errors=True)
        differences += [f"{one}, {size} bytes" for one in victim.finish(folder)]
    return Outcome(attack, done, tuple(differences))
