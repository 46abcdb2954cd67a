"""Runs two policies on the same cases: on findings, and on inputs that are drawn at random."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Run, Target
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.comparisons import ERROR, FAILS, PASSES, POOL, Ending, Endings
from policyfuzz.store.records import Finding

#: Inputs of the pool that are drawn together; a larger pool begins with a smaller one.
_DRAWN_AT_ONCE = 256
#: Added to the seed of the pool. A policy may have been trained on what campaigns drew, so their seeds, which
#: are small numbers, must not draw the pool.
_POOL_SEEDS = 2**64


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An input and a case seed, which both policies get."""

    group: str
    finding: int | None  #: its number in the campaign; None in the pool
    input: NDArray[np.float64]  #: (d,)
    case_seed: int

    @property
    def key(self) -> str:
        """The same for the same input and case seed only."""
        content = self.input.astype("<f8").tobytes() + self.case_seed.to_bytes(8, "little")
        return hashlib.sha256(content).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy that can be run."""

    run: Run
    kinds: tuple[str, ...]  #: of the oracle

    def endings(self, cases: Sequence[Case]) -> list[Ending]:
        """How it ends each of `cases`."""
        inputs = np.array([one.input for one in cases], np.float64)
        executions = self.run(inputs, np.array([one.case_seed for one in cases], np.uint64))
        sound = executions.sound
        return [
            Ending(FAILS, self.kinds[outcome.kind], outcome.step, outcome.episode_return)
            if has_crashed
            else Ending(PASSES if is_sound else ERROR, episode_return=outcome.episode_return)
            for outcome, has_crashed, is_sound in zip(
                executions.outcomes, executions.crashed.tolist(), sound.tolist(), strict=True
            )
        ]


def cases_of(findings: Sequence[Finding], group: str) -> list[Case]:
    """The cases of `findings`."""
    return [Case(group, one.id, one.input, one.case_seed) for one in findings]


def pool_of(target: Target, count: int, seed: int) -> list[Case]:
    """`count` valid inputs of `target`, solvable ones where it tests that, drawn as every search samples."""
    fuzzer = make_fuzzer("random", target, seed=_POOL_SEEDS + seed)
    cases: list[Case] = []
    while len(cases) < count:
        drawn = fuzzer.ask(_DRAWN_AT_ONCE)
        pairs = zip(drawn.inputs, drawn.seeds.tolist(), strict=True)
        cases += [Case(POOL, None, row, number) for row, number in pairs]
    return cases[:count]


def run_pairs(
    cases: Sequence[Case],
    known: Mapping[str, tuple[Ending, Ending]],
    contestants: tuple[Contestant, Contestant],
    size: int,
) -> Iterator[Endings]:
    """How both policies end `size` cases at a time, by their keys. What is `known` is not run again.

    The groups take turns, so that a comparison that is stopped has seen the same share of each.
    """
    keyed = {one.key: one for one in cases if one.key not in known}
    groups = groupby(sorted(keyed.values(), key=lambda one: one.group), key=lambda one: one.group)
    batches = [
        (start / len(members), members[start : start + size])
        for members in (list(some) for _, some in groups)
        for start in range(0, len(members), size)
    ]
    a, b = contestants
    for _, batch in sorted(batches, key=lambda one: one[0]):
        endings = zip(a.endings(batch), b.endings(batch), strict=True)
        yield dict(zip((one.key for one in batch), endings, strict=True))


def identity(a: Target, b: Target) -> str:
    """Differs between comparisons whose endings cannot be put together."""
    facts = [[one.name, one.policy_sha256 or one.policy_name, one.code_sha256] for one in (a, b)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def check_comparable(a: Target, b: Target) -> None:
    """Refuse targets that differ in more than their policy."""
    differences = [
        f"{what} {mine} and {its}"
        for what, mine, its in (
            ("inputs", a.inputs.dimensions, b.inputs.dimensions),
            ("kinds of crashes", a.oracle.kinds, b.oracle.kinds),
            ("horizons", a.horizon, b.horizon),
            ("returns that decay by", a.decay, b.decay),
        )
        if mine != its
    ]
    if differences:
        raise UsageError(
            f"{a.name} and {b.name} cannot be compared: they have {'; '.join(differences)}",
            "compare two policies in the same target, with the same inputs and the same oracle",
        )
