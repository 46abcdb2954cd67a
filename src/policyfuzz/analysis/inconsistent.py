"""How many episodes crash when a share of a policy's decisions is replaced by others.

A policy that decides differently now and then is not yet in danger. That is why crashes, and not decisions
that differ from a reference, are what a fuzzer of policies looks for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import markup
from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.branches import Branches
from policyfuzz.core.errors import UsageError
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.target import RunBranches, Target
from policyfuzz.search.cases import Cases
from policyfuzz.search.strategies import make_fuzzer

#: Shares of decisions that the paper replaces (Pang, Yuan and Wang, ISSTA 2022, table 1), and the share of
#: episodes of its CARLA RL policy that crash then.
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)
PAPER_CRASH_RATES = (0.0, 0.015, 0.023, 0.06, 0.115)
#: Random episodes for each normal one that is wanted, and at least, before there are too few of those.
_MOST_DRAWS, _LEAST_DRAWS = 20, 200
#: Numbers of replaced actions in memory at once.
_NUMBERS_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True)
class ShareReplaced:
    """What came of replacing one share of the decisions."""

    share: float  #: of the decisions, each with this probability
    decisions: int  #: in all episodes
    replaced: int  #: of these
    episodes: int  #: that could be run
    crashes: int  #: of these
    low: float  #: ends of the exact 95 % interval of the crash rate
    high: float

    @property
    def crash_rate(self) -> float:
        """Share of the episodes that crash; NaN if none could be run."""
        return self.crashes / self.episodes if self.episodes else float("nan")


@dataclass(frozen=True, slots=True)
class InconsistentDecisions:
    """How many normal episodes crash when decisions in them are replaced."""

    target: str
    policy: str  #: for readers
    horizon: int
    seed: int
    draws: int  #: random valid inputs that were run to find the normal episodes
    episodes: int  #: that do not crash when nothing is replaced
    shares: tuple[ShareReplaced, ...]

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{one.share:.0%}",
                one.replaced,
                one.crashes,
                one.episodes,
                f"{one.crash_rate:.1%} (95 %: {one.low:.1%} to {one.high:.1%})",
            )
            for one in self.shares
        ]
        head = ["decisions replaced", "number", "crashes", "episodes", "crash rate"]
        title = f"{self.target}: {self.episodes:,} episodes that do not crash by themselves"
        return markup.heading(title) + markup.facts({"policy": self.policy}) + markup.table(head, rows)


def replace_decisions(
    target: Target,
    run: RunBranches,
    episodes: int,
    seed: int = 0,
    shares: Sequence[float] = SHARES,
    told: Callable[[str, int], None] = lambda _what, _done: None,
) -> InconsistentDecisions:
    """Replace `shares` of the decisions in normal `episodes`, and count crashes.

    Normal are random valid inputs (solvable ones where that is tested) on which the policy does not crash.
    Every decision is replaced with the probability of the share, by an action drawn evenly from all others
    among choices, and from the whole range among numbers. The same episodes serve all shares, and what a
    smaller share replaces, a larger one replaces too. `told` hears what is done, and how many episodes of it.
    """
    space = _checked(target, episodes, seed, shares)
    cases, draws = _normal_episodes(target, run, episodes, seed, lambda done: told("normal episodes", done))
    counts = np.zeros((len(shares), 4), np.int64)
    for first, some, others in _drawn(target, space, cases, seed):
        for place, share in enumerate(shares):
            runs = run(some.inputs, some.seeds, branches=others.branches(share))
            is_known = runs.sound | runs.crashed
            lengths = np.where(is_known, runs.lengths - 1, 0)
            replaced = others.is_replaced(share) & (np.arange(target.horizon) < lengths[:, None])
            counts[place] += [lengths.sum(), replaced.sum(), is_known.sum(), runs.crashed.sum()]
            told(f"episodes with {share:.0%} of the decisions replaced", first + len(some))
    found = []
    for share, (decisions, replaced_ones, known, crashes) in zip(shares, counts.tolist(), strict=True):
        low, high = exact_interval(crashes, known)
        found.append(ShareReplaced(share, decisions, replaced_ones, known, crashes, low, high))
    return InconsistentDecisions(
        target.name, target.policy_name, target.horizon, seed, draws, len(cases), tuple(found)
    )


@dataclass(frozen=True, slots=True)
class _Others:
    """For n episodes, at which steps decisions are replaced and by what."""

    chances: NDArray[np.float64]  #: (n, steps) the share from which on a decision is replaced
    #: (n, steps, a) each: what takes the place of numbers, and what is added to choices; NaN elsewhere
    numbers: NDArray[np.float64]
    added: NDArray[np.float64]

    def is_replaced(self, share: float) -> NDArray[np.bool_]:
        """(n, steps) True where a decision is replaced."""
        return self.chances < share

    def branches(self, share: float) -> Branches:
        """One segment for each step, empty where the decision stays."""
        replaced = self.is_replaced(share)
        parts = []
        for numbers, is_added in ((self.numbers, False), (self.added, True)):
            if np.isnan(numbers).all():
                continue
            starts = np.broadcast_to(np.arange(1, replaced.shape[1] + 1), replaced.shape)
            parts.append((starts, starts + replaced, numbers, np.full(replaced.shape, is_added)))
        return Branches(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


def _drawn(
    target: Target, space: ActionSpace, cases: Cases, seed: int
) -> Iterator[tuple[int, Cases, _Others]]:
    """Some of `cases` at a time, the position of the first, and what replaces their decisions.

    Each episode draws from a generator that only knows its number: how many are run at once changes nothing.
    """
    horizon, width = target.horizon, len(space.low)
    at_once = max(1, min(target.batch_size, _NUMBERS_AT_ONCE // (horizon * width)))
    for first in range(0, len(cases), at_once):
        some = cases[first : first + at_once]
        chances = np.empty((len(some), horizon))
        numbers, added = np.full((2, len(some), horizon, width), np.nan)
        for row in range(len(some)):
            rng = np.random.default_rng([seed, first + row])
            chances[row] = rng.random(horizon)
            numbers[row] = np.where(space.is_whole, np.nan, space.sample(rng, horizon))
            added[row] = np.where(space.is_whole, _other_choices(space, rng, horizon), np.nan)
        yield first, some, _Others(chances, numbers, added)


def _other_choices(space: ActionSpace, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, a) what turns choices into others when it is added to them; zero where a number is none."""
    sizes = np.where(space.is_whole, space.high - space.low + 1, 1.0).astype(np.int64)
    turns = rng.integers(0, sizes, (count, len(sizes)))
    while space.is_whole.all() and not (is_other := turns.any(axis=1)).all():
        turns[~is_other] = rng.integers(0, sizes, (int((~is_other).sum()), len(sizes)))
    return turns.astype(np.float64)


def _normal_episodes(
    target: Target, run: RunBranches, episodes: int, seed: int, told: Callable[[int], None]
) -> tuple[Cases, int]:
    """The first `episodes` random cases that do not crash, and how many were run to find them."""
    fuzzer = make_fuzzer("random", target, seed=seed)
    parts: list[Cases] = []
    waiting, found, draws = fuzzer.ask(target.batch_size), 0, 0
    while found < episodes:
        waiting = waiting if len(waiting) else fuzzer.ask(target.batch_size)
        cases, waiting = waiting[: episodes - found], waiting[episodes - found :]
        runs = run(cases.inputs, cases.seeds)
        parts.append(cases[runs.sound & ~runs.crashed])
        found, draws = found + len(parts[-1]), draws + len(cases)
        told(found)
        if found < episodes and draws >= max(_LEAST_DRAWS, _MOST_DRAWS * episodes):
            raise UsageError(
                f"only {found:,} of {draws:,} random episodes do not crash, expected {episodes:,}",
                "ask for fewer; or is it the right policy? policyfuzz check says how often it fails",
            )
    return Cases.concatenate(parts), draws


def _checked(target: Target, episodes: int, seed: int, shares: Sequence[float]) -> ActionSpace:
    """The actions of `target`; raises if there are no others, and for settings that mean nothing."""
    if episodes < 1 or seed < 0:
        raise UsageError(f"episodes is {episodes} and seed {seed}, expected at least 1 and 0")
    if not shares or not all(0 < share <= 1 for share in shares):
        raise UsageError(f"shares are {list(shares)}, expected numbers above 0 and at most 1")
    space = target.actions
    if space is None or (space.high <= space.low).all():
        raise UsageError(
            f"decisions of {target.name} cannot be replaced: it has no other actions",
            "a target of your own says which there are: Target(..., actions=ActionSpace.box(low, high))",
        )
    return space
