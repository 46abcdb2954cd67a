"""Raw files: one for each judged trial and where it was run; reports are made from these alone."""

import hashlib
import json
import os
import platform
import shlex
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError

#: Of the files; a change of their content or meaning makes a new one.
FORMAT = 2
_ARRAYS = (
    "numbers",
    "times",
    "inputs",
    "unit",
    "seeds",
    "verdicts",
    "behaviours",
    "regions",
    "outcomes",
    "courses",
    "roots",
    "distinct",
    "close",
    "near",
    "far",
    "behaviour",
)

_PACKAGES = ("policyfuzz", "numpy", "scipy", "numba", "gymnasium", "mdpfuzz", "ribs", "torch")
#: Folders of the package that the findings of its strategies come from.
_SEARCHES = ("search", "density", "core", "campaign")


@dataclass(frozen=True, slots=True)
class Task:
    """One trial that is to be run, or was."""

    label: str  #: of the target, for readers and folders
    target: str  #: that the registry knows
    policy: str | None = field(compare=False)  #: URI, None for the target's own; may lie anywhere
    contestant: str
    seed: int
    episodes: int
    policy_sha256: str = ""  #: of its content
    rules: str = ""  #: fingerprint of what counts as a finding, see `rules`

    @property
    def judged_by(self) -> tuple[str, str, str]:
        """What must be equal for results to be compared: target, policy and rules."""
        return self.target, self.policy_sha256, self.rules

    def file(self, folder: Path) -> Path:
        """Where its result lies."""
        return folder / self.label / self.contestant / f"{self.seed}.npz"

    def failure_file(self, folder: Path) -> Path:
        """Where the reason lies if it has no result."""
        return self.file(folder).with_suffix(".failed.json")


@dataclass(frozen=True, slots=True)
class RawTrial:
    """A judged trial: f claims in the order of discovery."""

    task: Task
    episodes: int  #: that were run
    seconds: float
    cpu_seconds: float
    simulated_seconds: float  #: of `seconds`; NaN if unknown
    numbers: NDArray[np.int64]  #: (f,) episodes when each claim was made
    times: NDArray[np.float64]  #: (f,) seconds when each claim was made; NaN if unknown
    inputs: NDArray[np.float64]  #: (f, d)
    unit: NDArray[np.float64]  #: (f, d) inputs in the unit cube, NaN for no finding
    seeds: NDArray[np.uint64]  #: (f,) case seeds
    verdicts: NDArray[np.int8]  #: (f,) values of `judge.Verdict`
    behaviours: NDArray[np.float32]  #: (f, k), NaN for no finding
    regions: NDArray[np.int64]  #: (f,) crash region where the target's are known, or -1
    outcomes: NDArray[np.uint64]  #: (f,) hash of the episode up to its crash, 0 for no finding
    courses: NDArray[np.uint64]  #: (f,) hash of the ground up to the fall, 0 for no finding
    roots: NDArray[np.int64]  #: (f,) random draw that each claim descends from
    distinct: NDArray[np.bool_]  #: (f,) see `diversity.Novelty`
    close: NDArray[np.bool_]  #: (f,)
    near: NDArray[np.bool_]  #: (f,)
    far: NDArray[np.bool_]  #: (f,)
    behaviour: NDArray[np.bool_]  #: (f,)
    known_regions: int = 0  #: of the target, 0 where they are not known
    has_courses: bool = False  #: False where the target has none, and `courses` says nothing
    has_roots: bool = False  #: False where the contestant knows none, and `roots` says nothing
    about: dict[str, Any] = field(default_factory=dict)  #: machine, versions, date, radii

    @property
    def cpu_times(self) -> NDArray[np.float64]:
        """(f,) seconds of CPU time when each claim was made, had it been shared out evenly over the trial.

        On a busy machine, wall time says more about the neighbours than about the contestant.
        """
        return self.times * (self.cpu_seconds / self.seconds)

    def save(self, folder: Path) -> None:
        """Write the file, all of it or nothing."""
        path = self.task.file(folder)
        facts = {
            "format": FORMAT,
            "task": asdict(self.task),
            "episodes": self.episodes,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "simulated_seconds": self.simulated_seconds,
            "known_regions": self.known_regions,
            "has_courses": self.has_courses,
            "has_roots": self.has_roots,
            "about": self.about,
        }
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)
            partial.replace(path)
        except OSError as error:
            raise CampaignError(f"cannot write {path}: {error.strerror or error}") from error
        self.task.failure_file(folder).unlink(missing_ok=True)


def load(path: Path) -> RawTrial:
    """The trial in a raw file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            facts = json.loads(str(archive["facts"]))
            _check_format(path, facts.pop("format"))
            task = Task(**facts.pop("task"))
            return RawTrial(task=task, **facts, **{name: archive[name] for name in _ARRAYS})
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CampaignError(
            f"{path} holds no trial of the bench: {error}", "delete it, and run the bench again"
        ) from error


def _check_format(path: Path, written: object) -> None:
    """Refuse a file of another format: its numbers mean something else."""
    if written != FORMAT:
        raise CampaignError(
            f"{path} has format {written} of the bench, this version writes format {FORMAT};"
            " trials of both cannot be compared",
            "keep the old folder as it is, and give another one with -o",
        )


def load_all(folder: Path) -> Iterator[RawTrial]:
    """All trials below `folder`."""
    for path in sorted(folder.glob("*/*/*.npz")):
        if not path.name.startswith("."):  # half a file, of a run that was killed
            yield load(path)


def find(task: Task, folder: Path) -> RawTrial | None:
    """The result of `task`, if it has one; an error where that is of another task of the same name."""
    path = task.file(folder)
    if not path.exists():
        return None
    stored = load(path)
    if stored.task != task:
        raise CampaignError(
            f"{path} holds another trial: {_differences(stored.task, task)}",
            "choose another folder with -o, or delete the file",
        )
    return stored


def note_failure(task: Task, folder: Path, message: str) -> None:
    """Write down why `task` has no result."""
    path = task.failure_file(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"task": asdict(task), "message": message}), encoding="utf-8")


def failures(folder: Path) -> dict[tuple[str, str], str]:
    """Why trials have no result, by target and contestant."""
    found = {}
    for path in sorted(folder.glob("*/*/*.failed.json")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            found[facts["task"]["label"], facts["task"]["contestant"]] = str(facts["message"])
        except (ValueError, KeyError, TypeError) as error:
            raise CampaignError(f"{path} cannot be read: {error}", "delete it") from error
    return found


def surroundings() -> dict[str, Any]:
    """Command line, machine, versions and date, as plain data."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *map(_without_folders, sys.argv[1:])]),
        "machine": _machine(),
        "python": platform.python_version(),
        "versions": _versions(),
        "code": code_digest(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def code_digest() -> str:
    """The first digits of a hash of all code that decides what our strategies find."""
    digest = hashlib.sha256()
    for folder in _SEARCHES:
        for file in _sources(resources.files("policyfuzz").joinpath(folder)):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _without_folders(argument: str) -> str:
    """The name alone of an absolute path, as folders of this machine tell a reader nothing."""
    path = Path(argument)
    return path.name if path.is_absolute() else argument


def _differences(stored: Task, wanted: Task) -> str:
    was, now = asdict(stored), asdict(wanted)
    names = [name for name in was if was[name] != now[name] and name != "policy"]
    return ", ".join(f"{name} was {was[name]!r}, now {now[name]!r}" for name in names)


def _sources(folder: Traversable) -> list[Traversable]:
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(".py")), key=lambda file: file.name
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue  # an optional one
    return found


@cache
def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
