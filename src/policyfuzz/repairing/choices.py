"""What a policy that chooses among a few actions should have done on the way to a crash.

At moments before the crash every action is tried: held up to the horizon, and if that helps, as briefly as
will do. Where no action may be held for long, as when a balance has to be kept, all are tried briefly. What
holds well beyond the horizon becomes a label. A moment from which nothing saves the episode any more lies
behind the point of no return, and gets none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches, Segment
from policyfuzz.core.target import Runner, Target
from policyfuzz.repairing.states import Cases, Ends, Moments, States, ends_of, record_moments

#: Moments at which all actions are tried, as shares of the way to the crash.
_STARTS = (0.0, 0.04, 0.08, 0.15, 0.25, 0.4, 0.55, 0.7, 0.85)
#: Steps for which a saving action is held, the shortest that does is taken.
_HOLDS = (3, 10, 30)
#: A shorter hold does if it keeps this share of the margin, and so does a moment among all of a crash.
_ENOUGH = 0.7
#: A saving action is labelled if it keeps this share of the best margin of all moments of its crash.
_CLEAR = 0.5


@dataclass(frozen=True, slots=True)
class Runners:
    """Run episodes of a target with one policy."""

    target: Target
    short: Runner
    long: Runner  #: of the same episodes, continued beyond the horizon

    @classmethod
    def of(cls, target: Target, longer: int) -> "Runners":
        """For `target`, and for episodes `longer` times as long."""
        return cls(target, Runner(target), Runner(target.prolonged(longer)))


@dataclass(frozen=True, slots=True)
class Lessons:
    """What a policy should do differently, and where it should stay as it is."""

    changes: States  #: with the actions that save an episode
    kept: States  #: with the policy's own actions, where they are good enough
    saved: int  #: crashes for which something else was found
    episodes: int  #: that this took


@dataclass(frozen=True, slots=True)
class _Tried:
    """One thing to do instead at one moment of one crash."""

    crash: int
    start: int  #: step, from 1
    action: float
    hold: int


def learn_choices(runners: Runners, crashes: Cases) -> Lessons:
    """What a policy should have chosen in the episodes of `crashes`, all of which crash."""
    target, batch = runners.target, max(runners.target.batch_size, 64)
    own = record_moments(runners.short, crashes, batch)
    moments = {
        crash: _starts(int(own.ends.steps[crash])) for crash in range(len(crashes)) if own.ends.crashed[crash]
    }
    tried = _tries(target, moments, (target.horizon,))
    best = _best_by_moment(tried, _scores(runners.long, crashes, tried, batch))
    saved = {one.crash for one, _ in best}
    left = {crash: starts for crash, starts in moments.items() if crash not in saved}
    brief = _tries(target, left, _HOLDS)
    found = _briefest(brief, _scores(runners.long, crashes, brief, batch))
    shorter, shorter_scores = _shortened(runners, crashes, best, batch)
    found += _enough(best, shorter, shorter_scores)
    long = _scores(runners.long, crashes, [one for one, _ in found], batch)
    lasting = [pair for pair, score in zip(found, long.tolist(), strict=True) if score > 0]
    clear = _clear(lasting)
    changes, kept = _examples(runners, crashes, own, clear, batch)
    tries = len(tried) + len(brief) + len(shorter) + len(found)
    episodes = len(crashes) + tries + 2 * len({one.crash for one in clear})
    return Lessons(changes, kept, len({one.crash for one in clear}), episodes)


def _tries(target: Target, moments: Mapping[int, Sequence[int]], holds: Sequence[int]) -> list[_Tried]:
    """Every action at every one of the `moments` of each crash, held for each of `holds` steps."""
    return [
        _Tried(crash, start, action, hold)
        for crash, starts in moments.items()
        for start in starts
        for action in _choices(target)
        for hold in holds
    ]


def _choices(target: Target) -> list[float]:
    assert target.actions is not None
    low, high = int(target.actions.low[0]), int(target.actions.high[0])
    return [float(one) for one in range(low, high + 1)]


def _starts(crash_step: int) -> list[int]:
    return sorted({max(1, round(share * crash_step)) for share in _STARTS})


def _scores(run: Runner, crashes: Cases, tried: Sequence[_Tried], batch: int) -> NDArray[np.float64]:
    """(n,) how good each of `tried` is: above zero if it survives, by its margin if that is known."""
    rows = np.array([one.crash for one in tried], np.int64)
    segments = [(Segment(one.start, one.start + one.hold, (one.action,)),) for one in tried]
    ends = ends_of(run, crashes[rows], batch, Branches.of(segments, 1))
    return _score(ends)


def _score(ends: Ends) -> NDArray[np.float64]:
    """(n,) above zero where an episode survives, the larger the safer."""
    known = np.where(np.isnan(ends.margins), 1.0, np.maximum(ends.margins, 1e-9))
    return np.where(ends.passed, known, -1.0)


def _best_by_moment(tried: Sequence[_Tried], scores: NDArray[np.float64]) -> list[tuple[_Tried, float]]:
    """The best of all actions at each moment, where any survives."""
    best: dict[tuple[int, int], tuple[_Tried, float]] = {}
    for one, value in zip(tried, scores.tolist(), strict=True):
        key = (one.crash, one.start)
        if value > 0 and (key not in best or value > best[key][1]):
            best[key] = one, value
    return list(best.values())


def _briefest(tried: Sequence[_Tried], scores: NDArray[np.float64]) -> list[tuple[_Tried, float]]:
    """Of what survives at each moment, the briefest that is nearly as good as the best."""
    ways: dict[tuple[int, int], list[tuple[_Tried, float]]] = {}
    for one, value in zip(tried, scores.tolist(), strict=True):
        if value > 0:
            ways.setdefault((one.crash, one.start), []).append((one, value))
    return [
        min(
            (way for way in some if way[1] >= _ENOUGH * max(value for _, value in some)),
            key=lambda way: (way[0].hold, -way[1]),
        )
        for some in ways.values()
    ]


def _shortened(
    runners: Runners, crashes: Cases, best: Sequence[tuple[_Tried, float]], batch: int
) -> tuple[list[_Tried], NDArray[np.float64]]:
    shorter = [_Tried(one.crash, one.start, one.action, hold) for one, _ in best for hold in _HOLDS]
    return shorter, _scores(runners.long, crashes, shorter, batch)


def _enough(
    best: Sequence[tuple[_Tried, float]], shorter: Sequence[_Tried], scores: NDArray[np.float64]
) -> list[tuple[_Tried, float]]:
    """The shortest hold of each of `best` that is nearly as good."""
    found = []
    for place, (one, value) in enumerate(best):
        ways = range(place * len(_HOLDS), (place + 1) * len(_HOLDS))
        good = [(shorter[way], float(scores[way])) for way in ways if scores[way] >= _ENOUGH * value]
        found.append(good[0] if good else (one, value))
    return found


def _clear(lasting: Sequence[tuple[_Tried, float]]) -> list[_Tried]:
    """Those that are clearly better than a narrow escape, judged by the best of their crash."""
    most: dict[int, float] = {}
    for one, value in lasting:
        most[one.crash] = max(value, most.get(one.crash, 0.0))
    return [one for one, value in lasting if value >= _CLEAR * most[one.crash]]


def _examples(
    runners: Runners, crashes: Cases, own: Moments, clear: Sequence[_Tried], batch: int
) -> tuple[States, States]:
    """Labelled states on the way to the crash and on the way that avoids it, and states to be kept."""
    by_crash: dict[int, list[_Tried]] = {}
    for one in clear:
        by_crash.setdefault(one.crash, []).append(one)
    first = np.searchsorted(own.episodes, np.arange(len(crashes)))
    places: list[int] = []
    actions: list[float] = []
    for crash, some in by_crash.items():
        for one, following in zip(some, [*some[1:], None], strict=True):
            # up to the next moment that was tried, if that one agrees
            agrees = following is not None and following.action == one.action
            last = following.start if agrees and following is not None else one.start + 1
            places += range(first[crash] + one.start - 1, first[crash] + last - 1)
            actions += [one.action] * (last - one.start)
    on_own = own.states[np.array(places, np.int64)]
    on_own = States(on_own.observations, on_own.previous, np.array(actions).reshape(-1, 1))
    chosen = [one for some in by_crash.values() for one in {some[0], some[-1]}]
    chosen.sort(key=lambda one: (one.crash, one.start))
    rows = np.array([one.crash for one in chosen], np.int64)
    segments = [(Segment(one.start, one.start + one.hold, (one.action,)),) for one in chosen]
    other = record_moments(runners.short, crashes[rows], batch, Branches.of(segments, 1))
    starts = np.array([one.start for one in chosen], np.int64)[other.episodes]
    stops = starts + np.array([one.hold for one in chosen], np.int64)[other.episodes]
    is_changed = (other.steps >= starts) & (other.steps < stops)
    is_kept = other.steps >= stops
    return States.joined([on_own, other.states[is_changed]]), other.states[is_kept]
