"""The episodes that a monitor is fitted to and tested on: crashes, near-misses and nominal ones.

Crashes are confirmed findings. Near-misses are mutants that the search kept and that passed, though they came
nearer to a crash than nine of ten nominal episodes. Nominal are random draws that passed.

Findings of one lineage are near-clones. So every episode carries the name of its line, and lines are
held out as a whole. Those of campaigns with the same seed may begin with the same draw, and share names.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.decisions import Decisions, record_inside
from policyfuzz.core.target import Run, Target
from policyfuzz.monitors.monitor import ACTIVATIONS, OBSERVATIONS
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_file import triage_of
from policyfuzz.store.triage_records import DECIDED

#: Step of a crash, or of a point of no return, that is not there.
NONE = -1
#: Nominal episodes that come nearer to a crash than a near-miss may.
_NEAR_QUANTILE = 0.1
#: Mutants that are run for each near-miss that is wanted, at most.
_TRIED_PER_NEAR_MISS = 4
#: Draws at a time; a longer sequence of draws begins with a shorter one.
_DRAWN_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class MonitorCases:
    """Inputs and seeds of n episodes, and where they come from."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,)
    lineages: NDArray[np.uint64]  #: (n,) name of the lineage
    last_chances: NDArray[
        np.int64
    ]  #: (n,) decision up to which the crash could be avoided, NONE if not known

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "MonitorCases":
        return MonitorCases(self.inputs[rows], self.seeds[rows], self.lineages[rows], self.last_chances[rows])


@dataclass(frozen=True, slots=True)
class Episodes:
    """All decisions of n episodes before their crash, one episode after another."""

    starts: NDArray[np.int64]  #: (n + 1,) first frame of each episode, and the end
    crash_steps: NDArray[np.int64]  #: (n,) decisions before the crash, NONE where there is none
    margins: NDArray[np.float64]  #: (n,) of the oracle, NaN if it knows none
    lineages: NDArray[np.uint64]  #: (n,)
    last_chances: NDArray[np.int64]  #: (n,)
    frames: Mapping[str, NDArray[np.float64]]  #: (f, k) for each input that there is
    why_none: str = ""  #: why there are no activations

    def __len__(self) -> int:
        return len(self.crash_steps)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> "Episodes":
        """The episodes for which `chosen` (n,) is True."""
        lengths = np.diff(self.starts)
        kept = np.repeat(chosen, lengths)
        return Episodes(
            np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64),
            self.crash_steps[chosen],
            self.margins[chosen],
            self.lineages[chosen],
            self.last_chances[chosen],
            {name: array[kept] for name, array in self.frames.items()},
            self.why_none,
        )

    @property
    def rows(self) -> NDArray[np.int64]:
        """(f,) the episode of each frame."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def steps(self) -> NDArray[np.int64]:
        """(f,) the decision that each frame is, from 0."""
        return np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def leads(self) -> NDArray[np.int64]:
        """(f,) steps from each frame to the crash; large where there is none."""
        ahead = self.crash_steps[self.rows] - self.steps
        return np.where(self.crash_steps[self.rows] == NONE, np.iinfo(np.int64).max, ahead)


class Lineages:
    """Names of lineages, of which those that share an episode are one: one campaign imported it."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}  #: to another name of the same lineage; the name that stands has none

    @classmethod
    def of(cls, campaigns: Sequence[CampaignReader]) -> "Lineages":
        """Those of all findings and mutants of `campaigns`."""
        found, first_of = cls(), dict[bytes, int]()
        for campaign in campaigns:
            for finding in campaign.records(Finding, "findings", "status = ?", (CONFIRMED,)):
                name = lineage_name(campaign, finding.root)
                found.unite(first_of.setdefault(_episode(finding.input, finding.case_seed), name), name)
            for part, columns in campaign.corpus_parts():
                for row, root in enumerate(columns["root"].tolist()):
                    name = lineage_name(campaign, None if root < 0 else root)
                    episode = _episode(part[row], int(columns["case_seed"][row]))
                    found.unite(first_of.setdefault(episode, name), name)
        return found

    def name(self, name: int) -> int:
        """The one name that stands for the lineage `name`."""
        while name in self._next:
            name = self._next[name]
        return name

    def unite(self, first: int, second: int) -> None:
        """Say that two names are of one lineage."""
        first, second = self.name(first), self.name(second)
        if first != second:
            self._next[second] = first

    def all_names(self, names: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """All names of the lineages `names`, sorted."""
        standing = {self.name(one) for one in names.tolist()}
        others = {one for one in self._next if self.name(one) in standing}
        return np.array(sorted(standing | others), np.uint64)


def _episode(values: NDArray[np.float64], seed: int) -> bytes:
    return np.asarray(values, np.float64).tobytes() + seed.to_bytes(8, "big")


def crash_cases(
    campaigns: Sequence[CampaignReader], lineages: Lineages, most: int, rng: np.random.Generator
) -> MonitorCases:
    """At most so many findings, in turn from all lineages. What several campaigns have is there once."""
    found: list[tuple[Finding, int, int]] = []
    known: set[bytes] = set()
    for campaign in campaigns:
        triage = triage_of(campaign)
        for finding in campaign.records(Finding, "findings", "status = ?", (CONFIRMED,)):
            episode = _episode(finding.input, finding.case_seed)
            if episode in known:
                continue
            known.add(episode)
            name = lineages.name(lineage_name(campaign, finding.root))
            avoidance = triage.of(finding.id).avoidance
            is_decided = avoidance is not None and avoidance.standing == DECIDED and avoidance.last_chance
            # step k of a branch is the decision before state k
            last = avoidance.last_chance - 1 if avoidance and is_decided and avoidance.last_chance else NONE
            found.append((finding, name, last))
    names, width = [name for _, name, _ in found], len(campaigns[0].dimensions)
    order = _in_turn(names, rng)[:most]
    return MonitorCases(
        np.array([found[place][0].input for place in order]).reshape(len(order), width),
        np.array([found[place][0].case_seed for place in order], np.uint64),
        np.array([names[place] for place in order], np.uint64),
        np.array([found[place][2] for place in order], np.int64),
    )


def mutant_cases(
    campaigns: Sequence[CampaignReader], lineages: Lineages, most: int, rng: np.random.Generator
) -> MonitorCases:
    """At most so many mutants that campaigns kept and that did not crash, in turn from all lineages.

    What several campaigns have is there once.
    """
    inputs, seeds, names = [], [], []
    known: set[bytes] = set()
    for campaign in campaigns:
        for part, columns in campaign.corpus_parts():
            is_mutant = (columns["is_crash"] == 0) & (columns["parent"] >= 0)
            for row in np.flatnonzero(is_mutant).tolist():
                seed, root = int(columns["case_seed"][row]), int(columns["root"][row])
                episode = _episode(part[row], seed)
                if episode in known:
                    continue
                known.add(episode)
                inputs.append(part[row])
                seeds.append(seed)
                names.append(lineages.name(lineage_name(campaign, None if root < 0 else root)))
    order, width = _in_turn(names, rng)[:most], len(campaigns[0].dimensions)
    return MonitorCases(
        np.array([inputs[place] for place in order]).reshape(len(order), width),
        np.array([seeds[place] for place in order], np.uint64),
        np.array([names[place] for place in order], np.uint64),
        np.full(len(order), NONE, np.int64),
    )


def random_cases(target: Target, count: int, seed: int) -> MonitorCases:
    """`count` draws as every search samples, each a line of its own."""
    fuzzer = make_fuzzer("random", target, seed=seed)
    inputs, seeds, drawn = [], [], 0
    while drawn < count:
        cases = fuzzer.ask(_DRAWN_AT_ONCE)
        inputs.append(cases.inputs)
        seeds.append(cases.seeds)
        drawn += len(cases)
    return MonitorCases(
        np.concatenate(inputs)[:count],
        np.concatenate(seeds)[:count],
        np.arange(count, dtype=np.uint64),
        np.full(count, NONE, np.int64),
    )


def near_misses(
    target: Target, run: Run, mutants: MonitorCases, nominal_margins: NDArray[np.float64], most: int
) -> MonitorCases:
    """Of `mutants`, at most so many that pass, but come nearer to a crash than most of the nominal ones.

    Where the oracle knows no margins, all that pass count.
    """
    known = nominal_margins[~np.isnan(nominal_margins)]
    near = np.quantile(known, _NEAR_QUANTILE) if len(known) else np.inf
    tried = mutants[: most * _TRIED_PER_NEAR_MISS]
    found: list[NDArray[np.int64]] = []
    for start in range(0, len(tried), target.batch_size):
        some = tried[start : start + target.batch_size]
        runs = run(some.inputs, some.seeds)
        margins = runs.verdicts.margins
        is_near = runs.sound & ~runs.crashed & ~(margins > near)
        found.append(start + np.flatnonzero(is_near))
        if sum(map(len, found)) >= most:
            break
    return tried[np.concatenate([np.empty(0, np.int64), *found])[:most]]


def recorded(target: Target, cases: MonitorCases) -> Iterator[Episodes]:
    """The episodes of `cases`, some at a time, and only those that could be run."""
    for start in range(0, len(cases), target.batch_size):
        some = cases[start : start + target.batch_size]
        yield episodes_of(record_inside(target, some.inputs, some.seeds), some)


def episodes_of(inside: Decisions, cases: MonitorCases) -> Episodes:
    """What was recorded of `cases`, up to their crashes."""
    runs = inside.executions
    crash_steps = np.where(runs.crashed, runs.verdicts.steps, NONE)
    ends = np.where(runs.crashed, crash_steps, runs.lengths)
    kept = (runs.sound | runs.crashed)[inside.episodes] & (inside.steps < ends[inside.episodes])
    lengths = np.bincount(inside.episodes[kept], minlength=len(runs))
    frames = {OBSERVATIONS: inside.observations[kept]}
    if inside.activations is not None:
        frames[ACTIVATIONS] = inside.activations[kept].astype(np.float64)
    episodes = Episodes(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        crash_steps,
        runs.verdicts.margins,
        cases.lineages,
        cases.last_chances,
        frames,
        inside.why_none,
    )
    # a crash before the first decision has no frames, and cannot be warned of: it counts as missed
    return episodes[runs.crashed | (runs.sound & (lengths > 0))]


def joined(parts: Sequence[Episodes]) -> Episodes:
    """All episodes of `parts`, one after another."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    names = [name for name in parts[0].frames if all(name in part.frames for part in parts)]
    return Episodes(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([part.crash_steps for part in parts]),
        np.concatenate([part.margins for part in parts]),
        np.concatenate([part.lineages for part in parts]),
        np.concatenate([part.last_chances for part in parts]),
        {name: np.concatenate([part.frames[name] for part in parts]) for name in names},
        parts[0].why_none,
    )


def lineage_name(campaign: CampaignReader, root: int | None) -> int:
    """A number for the lineage that began with draw `root` of `campaign`."""
    config = campaign.config
    text = f"{config.target} {config.policy_sha256} {config.seed} {root}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _in_turn(names: Sequence[int], rng: np.random.Generator) -> list[int]:
    """All places of `names` in random order: one of each name, then a second one of each, and so on."""
    members: dict[int, list[int]] = {}
    for place in rng.permutation(len(names)).tolist():
        members.setdefault(names[place], []).append(place)
    turns = [(turn, place) for places in members.values() for turn, place in enumerate(places)]
    return [place for _, place in sorted(turns, key=lambda one: one[0])]
