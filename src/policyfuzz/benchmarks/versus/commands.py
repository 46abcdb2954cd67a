"""The commands that give results again."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace

from policyfuzz.benchmarks.versus.contestants import SLOW_PEERS, contestant_names, episodes_of
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.benchmarks.versus.targets import ENTRIES, find_entry


def commands(results: Results) -> list[str]:
    """One where everybody had the same, else as few as that takes; all write to the same folder."""
    runs = [run for label in results.labels for run in _joined(_runs(results, label))]
    return [run.text for run in _joined(runs)]


@dataclass(frozen=True, slots=True)
class _Run:
    """All of some contestants on all of some targets."""

    targets: tuple[str, ...]
    contestants: tuple[str, ...]
    seeds: frozenset[int]  #: what the option must be: at most one number, none where nobody asks
    peer_seeds: frozenset[int]  #: the same for slow peers
    episodes: frozenset[int | None]  #: what the option may be, None for leaving it out

    @property
    def text(self) -> str:
        parts = ["policyfuzz bench versus"]
        if set(self.targets) != set(ENTRIES):
            parts += [f"--target {shlex.quote(name)}" for name in self.targets]
        if set(self.contestants) != set(contestant_names()):
            parts += [f"--contestant {name}" for name in self.contestants]
        parts += [f"--seeds {count}" for count in self.seeds]
        parts += [f"--peer-seeds {count}" for count in self.peer_seeds]
        if None not in self.episodes:
            parts.append(f"--episodes {min(one for one in self.episodes if one is not None)}")
        if "acasxu-public" in self.targets:
            parts.append("--public-networks DIR")
        return " ".join(parts)

    def joined(self, other: "_Run") -> "_Run | None":
        """Both at once, if one command can say so."""
        both = replace(
            self,
            targets=tuple(dict.fromkeys(self.targets + other.targets)),
            contestants=tuple(dict.fromkeys(self.contestants + other.contestants)),
            seeds=self.seeds | other.seeds,
            peer_seeds=self.peer_seeds | other.peer_seeds,
            episodes=self.episodes & other.episodes,
        )
        is_whole = self.targets == other.targets or self.contestants == other.contestants
        is_one = max(len(both.seeds), len(both.peer_seeds)) <= 1 and both.episodes
        return both if is_whole and is_one else None


def _joined(runs: Iterable[_Run]) -> list[_Run]:
    done: list[_Run] = []
    for run in runs:
        for place, earlier in enumerate(done):
            both = earlier.joined(run)
            if both is not None:
                done[place] = both
                break
        else:
            done.append(run)
    return done


def _runs(results: Results, label: str) -> list[_Run]:
    """One for each contestant that ran on a target, or tried to."""
    tasks = [trial.task for trial in results.trials if trial.task.label == label]
    target = label if label in ENTRIES else tasks[0].target
    runs = []
    for name in contestant_names():
        length = results.length(label, name)
        if length or (label, name) in results.failures:
            is_slow, count = name in SLOW_PEERS, frozenset({_seeds(results, label, name)})
            none: frozenset[int] = frozenset()
            seeds, peer_seeds = (none, count) if is_slow else (count, none)
            runs.append(_Run((target,), (name,), seeds, peer_seeds, _options(results, target, name, length)))
    return runs


def _seeds(results: Results, label: str, contestant: str) -> int:
    """How many seeds a contestant had; where it could not run, as many as the like of it anywhere."""
    is_slow = contestant in SLOW_PEERS
    own = [trial.task.seed for trial in results.of(label, contestant)]
    alike = [one.task.seed for one in results.trials if (one.task.contestant in SLOW_PEERS) == is_slow]
    return max(own or alike, default=0) + 1


def _options(results: Results, target: str, contestant: str, length: int) -> frozenset[int | None]:
    """What --episodes may be to give a contestant trials of this `length`; anything where it has none."""
    entry = find_entry(target)
    lengths = {trial.task.episodes for trial in results.trials}
    if not length:
        return frozenset({None, *lengths})
    given = {option: episodes_of(contestant, entry.with_episodes(option)) for option in lengths}
    fitting: set[int | None] = {option for option, episodes in given.items() if episodes == length}
    if episodes_of(contestant, entry) == length:
        fitting.add(None)
    return frozenset(fitting or {length})
