"""Reference sets: crashes of independent random inputs, to measure how much of the failures a search covers.

A set is kept for each target whose random inputs crash often enough. Its seeds are nobody's else, so no
contestant can have drawn it. What it was made of stands in the file, and it is refused for anything else.
"""

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus import targets
from benchmarks.versus.raw import Task, code_digest
from benchmarks.versus.rules import Rules
from benchmarks.versus.targets import Entry
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.distinct import tree_of, wrapped

#: Where the sets of the bench lie.
FOLDER = Path(__file__).parent / "references"
#: Random crashes that a set should have: a share of half is then known to 4 per cent points (95 %).
CRASHES = 500
#: Number of a crash that no finding covers.
NEVER = np.iinfo(np.int64).max

_FORMAT = 1
_ARRAYS = ("inputs", "unit", "seeds", "periods")
#: First words of the key of every draw. Contestants draw from keys of other shapes.
_SEED, _STREAM = 20_240_607, 0x726566
#: Inputs that are drawn at once, and checked before the next are.
_ROUND = 65_536


@dataclass(frozen=True, slots=True)
class Origin:
    """What a set was made of."""

    label: str  #: of the target in the bench
    target: str  #: with its options
    policy_sha256: str
    rules: str  #: fingerprint, see `Rules`
    solvable: str  #: name of the solvability test
    oracle: str
    seed: int = _SEED

    @classmethod
    def of(cls, entry: Entry, target: Target) -> "Origin":
        """That of a set which would be made now."""
        rules = Rules.of(target)
        sha256 = target.policy_sha256
        return cls(entry.label, entry.target, sha256, rules.sha256, rules.solvable, rules.oracle)


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """m crashes of random inputs that are valid and solvable."""

    origin: Origin
    rounds: int  #: of draws that were made
    episodes: int  #: of valid random inputs that were run
    code: str  #: state of our code that ran them
    inputs: NDArray[np.float64]  #: (m, d)
    unit: NDArray[np.float64]  #: (m, d) in the unit cube
    seeds: NDArray[np.uint64]  #: (m,) case seeds
    periods: NDArray[np.float64]  #: (d,) see `InputSpace.periods`

    def __len__(self) -> int:
        return len(self.inputs)

    def first_covered(
        self, unit: NDArray[np.float64], numbers: NDArray[np.int64], radius: float
    ) -> NDArray[np.int64]:
        """(m,) lowest of `numbers` (f,) of findings at `unit` (f, d) within `radius`; NEVER without one."""
        first = np.full(len(self), NEVER)
        if len(unit):
            near = tree_of(wrapped(unit, self.periods), self.periods).query_ball_point(
                wrapped(self.unit, self.periods), radius
            )
            for row, found in enumerate(near):
                if found:
                    first[row] = numbers[found].min()
        return first

    def check(self, task: Task) -> None:
        """Raise an error if `task` is about another target, policy or rules than this set."""
        for what in ("target", "policy_sha256", "rules"):
            ours, theirs = getattr(self.origin, what), getattr(task, what)
            if ours != theirs:
                raise CampaignError(
                    f"the reference set of {task.label} was made for another {_WORDS[what]}:"
                    f" {ours[:60]!r}, now {theirs[:60]!r} (solvable by {self.origin.solvable or 'no test'})",
                    f"make it again: python -m benchmarks versus-reference --target {task.label}",
                )

    def save(self, path: Path) -> None:
        """Write the file, all of it or nothing."""
        facts = {
            "format": _FORMAT,
            "origin": asdict(self.origin),
            "rounds": self.rounds,
            "episodes": self.episodes,
            "code": self.code,
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


_WORDS = {"target": "target", "policy_sha256": "policy", "rules": "oracle or rule of what is solvable"}


def load(path: Path) -> ReferenceSet:
    """The set in a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            facts = json.loads(str(archive["facts"]))
            if facts.pop("format") != _FORMAT:
                raise ValueError("another version of the bench has written it")
            origin = Origin(**facts.pop("origin"))
            return ReferenceSet(origin, **facts, **{name: archive[name] for name in _ARRAYS})
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CampaignError(
            f"{path} holds no reference set: {error}", "make it again: python -m benchmarks versus-reference"
        ) from error


def find(label: str, folder: Path = FOLDER) -> ReferenceSet | None:
    """The set of a target of the bench, if there is one."""
    path = folder / f"{label}.npz"
    return load(path) if path.exists() else None


def collect(entry: Entry, crashes: int, folder: Path, say: Callable[[str], None]) -> ReferenceSet:
    """Draw random inputs of a target until `crashes` of them crashed, and write the set to `folder`.

    What has been drawn is kept after every round, so that a stopped collection goes on where it was.
    """
    target = targets.load(entry)
    origin, path = Origin.of(entry, target), folder / f"{entry.label}.npz"
    partial = path.with_suffix(".partial.npz")
    found = _empty(origin, target)
    if partial.exists() and (earlier := load(partial)).origin == origin:
        found = earlier
    run = Runner(target)
    while len(found) < crashes:
        found = _joined(found, target, _round(target, run, found.rounds))
        found.save(partial)
        say(f"{entry.label}: {len(found):,} crashes in {found.episodes:,} random episodes")
    found.save(path)
    partial.unlink(missing_ok=True)
    return found


def _empty(origin: Origin, target: Target) -> ReferenceSet:
    nothing, periods = np.empty((0, len(target.inputs.dimensions))), target.inputs.periods
    return ReferenceSet(origin, 0, 0, code_digest(), nothing, nothing, np.empty(0, np.uint64), periods)


def _round(target: Target, run: Runner, number: int) -> tuple[int, NDArray[np.float64], NDArray[np.uint64]]:
    """Episodes that were run in round `number`, and inputs (c, d) and seeds (c,) of those that crashed."""
    rng = np.random.default_rng([_SEED, _STREAM, number])
    inputs = target.inputs.sample(rng, _ROUND)
    seeds = rng.integers(0, 2**63, _ROUND, dtype=np.uint64)
    valid = target.inputs.is_valid(inputs)
    inputs, seeds = inputs[valid], seeds[valid]
    size = target.batch_size
    parts = [slice(start, start + size) for start in range(0, len(inputs), size)]
    crashed = np.concatenate(
        [np.empty(0, np.bool_), *(run(inputs[one], seeds[one]).crashed for one in parts)]
    )
    crashes, crash_seeds = inputs[crashed], seeds[crashed]
    # only crashes are asked whether they could be avoided: that may cost more than the episode
    if target.solvable is not None and len(crashes):
        solvable = np.asarray(target.solvable(crashes), np.bool_)
        crashes, crash_seeds = crashes[solvable], crash_seeds[solvable]
    return len(inputs), crashes, crash_seeds


def _joined(
    found: ReferenceSet,
    target: Target,
    new: tuple[int, NDArray[np.float64], NDArray[np.uint64]],
) -> ReferenceSet:
    episodes, inputs, seeds = new
    return replace(
        found,
        rounds=found.rounds + 1,
        episodes=found.episodes + episodes,
        inputs=np.concatenate([found.inputs, inputs]),
        unit=np.concatenate([found.unit, target.inputs.to_unit(inputs)]),
        seeds=np.concatenate([found.seeds, seeds]),
    )
