"""Crashes, near misses, random mutants and normal episodes, each as one point of what the policy did inside.

A point is the mean over the last decisions before the crash. Of an episode that does not crash, it is the
mean over the same steps as of some crash: otherwise the time alone would tell them apart.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.decisions import Decisions, record_inside
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.search.behaviour import bounded
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.activations_file import CLASSES, CRASH, MUTATED, NEAR_MISS, NORMAL
from policyfuzz.store.records import Finding
from policyfuzz.triage.campaign_triage import Tell

#: Random cases for each normal one that is wanted, at most, and tries for each mutant that does not crash.
_MOST_DRAWS, _TRIES = 20, 5
#: Numbers of recorded decisions in memory at once.
_NUMBERS_AT_ONCE = 1 << 25
#: Streams of random numbers.
_MUTANTS, _NEAR_MISSES = 8_001, 8_002


@dataclass(frozen=True, slots=True)
class Points:
    """n episodes, one point each."""

    classes: NDArray[np.int64]  #: (n,) places in CLASSES
    lineages: NDArray[np.int64]  #: (n,) those of random episodes are negative
    modes: NDArray[np.int64]  #: (n,) of a crash, 0 if it is not known; 0 for others
    observations: NDArray[np.float64]  #: (n, o)
    activations: NDArray[np.float64] | None  #: (n, k), None if the policy has none
    why_none: str = ""

    def rows(self, *names: str) -> NDArray[np.int64]:
        """(m,) positions of the episodes of the classes called `names`."""
        return np.flatnonzero(np.isin(self.classes, [CLASSES.index(name) for name in names]))


@dataclass(frozen=True, slots=True)
class _Cases:
    """n cases."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,)
    lineages: NDArray[np.int64]  #: (n,)
    ends: NDArray[np.int64]  #: (n,) step before which decisions count

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "_Cases":
        return _Cases(self.inputs[rows], self.seeds[rows], self.lineages[rows], self.ends[rows])


@dataclass(frozen=True, slots=True)
class _Read:
    """Cases of one class, of which at least one was run and read."""

    cases: _Cases
    observations: NDArray[np.float64]  #: (n, o)
    activations: NDArray[np.float64]  #: (n, k); k is 0 if there are none


def collect_points(
    target: Target,
    findings: Sequence[Finding],
    modes: Sequence[int],
    count: int,
    window: int,
    seed: int,
    tell: Tell = lambda _what, _done, _count: None,
) -> Points:
    """Run `findings`, which belong to `modes`, and up to `count` episodes of each other class again.

    Means are taken over `window` decisions. Findings that do not crash at their step any more are left out.
    """
    reader = _Reader(target, window, tell)
    kept, crashed = reader.read(CRASH, _cases_of(findings), _crashed_there)
    if crashed is None:
        raise CampaignError(
            "no finding crashes as recorded after a decision of the policy",
            "has the policy or the target changed? Or do all crash at their start?",
        )
    normal = _normal_episodes(reader, target, crashed.cases.ends, count, seed)
    found = {
        CRASH: crashed,
        NORMAL: normal,
        MUTATED: _mutants(reader, target, MUTATED, normal.cases, [seed, _MUTANTS]),
        NEAR_MISS: _mutants(reader, target, NEAR_MISS, crashed.cases[:count], [seed, _NEAR_MISSES]),
    }
    read = {name: one for name, one in found.items() if one is not None}
    mode_of = np.zeros(sum(len(one.cases) for one in read.values()), np.int64)
    mode_of[: len(kept)] = np.array(modes, np.int64)[kept]
    return Points(
        np.concatenate([np.full(len(one.cases), CLASSES.index(name)) for name, one in read.items()]),
        np.concatenate([one.cases.lineages for one in read.values()]),
        mode_of,
        np.concatenate([one.observations for one in read.values()]),
        None if reader.why_none else np.concatenate([one.activations for one in read.values()]),
        reader.why_none,
    )


class _Reader:
    """Runs cases, some at a time, and keeps one point for each."""

    def __init__(self, target: Target, window: int, tell: Tell) -> None:
        self._target, self._window, self._tell = target, window, tell
        self._at_once = 1  # until it is known how many numbers a decision is
        self.why_none = ""

    def read(
        self, name: str, cases: _Cases, is_wanted: Callable[[Executions, _Cases], NDArray[np.bool_]]
    ) -> tuple[NDArray[np.int64], _Read | None]:
        """Run `cases`, and keep those that come out as wanted and decide something; also their positions."""
        kept, seen, inside = [np.empty(0, np.int64)], [], []
        done = 0
        while done < len(cases):
            some = cases[done : done + self._at_once]
            decisions = record_inside(self._target, some.inputs, some.seeds)
            self.why_none = self.why_none or decisions.why_none
            spans = self._spans(decisions, some.ends, is_wanted(decisions.executions, some))
            if spans:
                kept.append(done + np.array(list(spans)))
                seen.append(_means(decisions.observations, spans.values()))
                values = decisions.activations
                inside.append(np.empty((len(spans), 0)) if values is None else _means(values, spans.values()))
            done += len(some)
            self._plan(decisions)
            self._tell(name, done, len(cases))
        places = np.concatenate(kept)
        if not seen:
            return places, None
        return places, _Read(cases[places], np.concatenate(seen), np.concatenate(inside))

    def _spans(
        self, decisions: Decisions, ends: NDArray[np.int64], good: NDArray[np.bool_]
    ) -> dict[int, slice]:
        """Row of each `good` (n,) episode that decides something, to the decisions of its window."""
        counts = np.bincount(decisions.episodes, minlength=len(ends))
        firsts = np.cumsum(counts) - counts
        ends = np.minimum(ends, counts)
        return {
            row: slice(firsts[row] + max(0, ends[row] - self._window), firsts[row] + ends[row])
            for row in np.flatnonzero(good & (ends > 0)).tolist()
        }

    def _plan(self, decisions: Decisions) -> None:
        """Choose how many episodes to run at once, by how many numbers one is."""
        width = decisions.observations.shape[1] + decisions.executions.states.shape[2]
        width += 0 if decisions.activations is None else decisions.activations.shape[1]
        room = _NUMBERS_AT_ONCE // max(1, width * self._target.horizon)
        self._at_once = max(1, min(self._target.batch_size, room))


def _means(table: NDArray[Any], spans: Iterable[slice]) -> NDArray[np.float64]:
    """(m, k) mean of the rows of `table` (f, k) in each of m `spans`, without NaN."""
    return bounded(np.array([table[span].astype(np.float64).mean(axis=0) for span in spans]))


def _cases_of(findings: Sequence[Finding]) -> _Cases:
    """Each of its lineage; a finding of which none is known is a lineage by itself."""
    names = [f"finding {one.id}" if one.root is None else f"root {one.root}" for one in findings]
    lineages = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return _Cases(
        np.array([one.input for one in findings], np.float64),
        np.array([one.case_seed for one in findings], np.uint64),
        np.array([lineages[name] for name in names], np.int64),
        np.array([one.crash_step for one in findings], np.int64),
    )


def _crashed_there(executions: Executions, cases: _Cases) -> NDArray[np.bool_]:
    return np.asarray(executions.crashed & (executions.verdicts.steps == cases.ends))


def _passed(executions: Executions, _cases: _Cases) -> NDArray[np.bool_]:
    return np.asarray(executions.sound & ~executions.crashed)


def _normal_episodes(
    reader: _Reader, target: Target, ends: NDArray[np.int64], count: int, seed: int
) -> _Read:
    """The first `count` random episodes that do not crash, each looked at when some crash was."""
    fuzzer, parts, found, drawn = make_fuzzer("random", target, seed=seed), list[_Read](), 0, 0
    while found < count and drawn < _MOST_DRAWS * count:
        asked = fuzzer.ask(target.batch_size)[: count - found]
        numbers = drawn + np.arange(len(asked))
        drawn += len(asked)
        cases = _Cases(asked.inputs, asked.seeds, -1 - numbers, ends[numbers % len(ends)])
        _, some = reader.read(NORMAL, cases, _passed)
        if some is not None:
            parts.append(some)
            found += len(some.cases)
    if not parts:
        raise UsageError(
            f"none of {drawn:,} random episodes could be run without a crash",
            "is it the right policy? policyfuzz check says how often it fails",
        )
    return _joined(parts)


def _mutants(
    reader: _Reader, target: Target, name: str, origins: _Cases, seed: Sequence[int]
) -> _Read | None:
    """A mutant of each of `origins` that does not crash, where one was found.

    They are changed by the input space's own noise, and keep the case seed, as those of a search do.
    """
    space, rng = target.inputs, np.random.default_rng(list(seed))
    validator = Validator(space, target.solvable)
    parts = []
    for _ in range(_TRIES):
        inputs, found = validator.near(origins.inputs, lambda inputs: space.perturb(inputs, rng))
        places = np.flatnonzero(found)
        kept, some = reader.read(name, replace(origins, inputs=inputs)[places], _passed)
        if some is not None:
            parts.append(some)
        origins = origins[np.setdiff1d(np.arange(len(origins)), places[kept])]
        if not len(origins):
            break
    return _joined(parts) if parts else None


def _joined(parts: Sequence[_Read]) -> _Read:
    cases = [one.cases for one in parts]
    return _Read(
        _Cases(
            np.concatenate([one.inputs for one in cases]),
            np.concatenate([one.seeds for one in cases]),
            np.concatenate([one.lineages for one in cases]),
            np.concatenate([one.ends for one in cases]),
        ),
        np.concatenate([one.observations for one in parts]),
        np.concatenate([one.activations for one in parts]),
    )
