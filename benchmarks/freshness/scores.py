"""How often a crash is fresher than another episode, if only random episodes have been learnt."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import DEFAULT_STRATEGY, DensitySettings
from policyfuzz.core.target import Runner, Target
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.search.cases import Cases
from policyfuzz.search.strategies import make_fuzzer

#: Scores n sequences by states (n, t, d) and lengths (n,).
Score = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
#: The scores of freshness, by the names of the option --freshness.
SCORES = {"transition": SequenceDensity.least_log_density, "mean": SequenceDensity.mean_log_density}
#: Crashes and near-misses that are compared, at most; more would change little.
_COMPARED = 300
#: Random episodes that are learnt, and as many others to compare with, at most.
_RANDOM = 1000
#: Added to the seed, so that random episodes are not those that the search begins with.
_OTHER_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class Areas:
    """Of one seed and one score: chances that a crash is fresher than another episode (AUC)."""

    target: str
    seed: int
    score: str
    crashes: int  #: that the search found
    random: float  #: than a random episode that does not crash
    near_miss: float  #: than one of the episodes of the search that came nearest to a crash


def measure(label: str, target: Target, episodes: int, seed: int) -> list[Areas]:
    """Both scores on `target`. Crashes and near-misses are those of the default search in `episodes`."""
    count = min(_RANDOM, episodes // 2)
    with threadpool_limits(1):
        run = Runner(target)
        draws = make_fuzzer("random", target, seed=seed + _OTHER_SEED)
        learnt, random = (run(cases.inputs, cases.seeds) for cases in (draws.ask(count), draws.ask(count)))
        crashed, missed, found = _searched(target, run, episodes, seed)
        if found == 0:
            return [Areas(label, seed, name, 0, float("nan"), float("nan")) for name in SCORES]
        crashes, near_misses = (run(cases.inputs, cases.seeds) for cases in (crashed, missed))
        density = SequenceDensity(DensitySettings())
        density.learn(learnt.states, learnt.lengths, np.random.default_rng(seed))
        groups = random[~random.crashed], near_misses
        return [
            Areas(label, seed, name, found, *(_area(partial(score, density), crashes, one) for one in groups))
            for name, score in SCORES.items()
        ]


def _area(score: Score, crashes: Executions, others: Executions) -> float:
    fresh, usual = (score(one.states, one.lengths) for one in (crashes, others))
    return area_under_curve(fresh, usual)


def area_under_curve(lower: NDArray[np.float64], higher: NDArray[np.float64]) -> float:
    """The chance that one of `lower` (n,) is below one of `higher` (m,), ties count half; NaN without any."""
    if not len(lower) or not len(higher):
        return float("nan")
    ranks = rankdata(np.concatenate([lower, higher]))[len(lower) :]
    return float((ranks.mean() - (len(higher) + 1) / 2) / len(lower))


def _searched(target: Target, run: Runner, episodes: int, seed: int) -> tuple[Cases, Cases, int]:
    """Some crashes of the default search, its near-misses, and how many crashes there were."""
    fuzzer = make_fuzzer(DEFAULT_STRATEGY, target, seed=seed)
    asked: list[Cases] = []
    distances: list[NDArray[np.float64]] = []
    crashed: list[NDArray[np.bool_]] = []
    left = episodes
    while left > 0:
        cases = fuzzer.ask(min(target.batch_size, left))
        executions = run(cases.inputs, cases.seeds)
        fuzzer.tell(cases, executions)
        margins = executions.verdicts.margins
        asked.append(cases)
        distances.append(np.where(np.isnan(margins), executions.returns, margins))
        crashed.append(executions.crashed)
        left -= len(cases)
    cases, is_crash = Cases.concatenate(asked), np.concatenate(crashed)
    found = np.flatnonzero(is_crash)
    compared = np.random.default_rng(seed).permutation(found)[:_COMPARED]
    nearest = np.argsort(np.where(is_crash, np.inf, np.concatenate(distances)), kind="stable")
    near = nearest[: min(_COMPARED, len(cases) - len(found))]
    return cases[compared], cases[near], len(found)
