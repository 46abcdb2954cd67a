"""Local rules: a box around a finding in which nearly all inputs crash, checked on draws of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import SEED_END, Dimension, Inputs
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.target import Run, Target
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_records import Rule, RuleSearch
from policyfuzz.triage.neighbourhood import Neighbourhood

#: Episodes that a rule takes at most by default.
EPISODES = 1000
#: In more dimensions a box is refused: its volume is nothing, and no finding but its own lies in it.
MOST_DIMENSIONS = 6
#: Lower end of the interval of the precision that a rule needs, and the share that is aimed at.
_LEAST_PRECISION, _AIM = 0.8, 0.93
#: Half-widths of the first boxes, as shares of the range, and draws from each.
_FIRST_WIDTHS = 0.0001 * 2.0 ** np.arange(11)
_FIRST_DRAWS = 6
#: By how much a side moves out in a round, if the last one cut it and if not; draws of a round, and rounds.
_GROWTH_OF_CUT, _GROWTH, _ROUND_DRAWS, _ROUNDS = 1.25, 2.0, 90, 5
#: Fresh draws of a check.
_CHECK_DRAWS = 150
#: One round and one check.
_LEAST_EPISODES = len(_FIRST_WIDTHS) * _FIRST_DRAWS + _ROUND_DRAWS + _CHECK_DRAWS
#: Findings that a coverage comes from at most.
_MOST_OTHERS = 10_000
#: Kinds of dimensions that take whole numbers only, and the error of their ends.
_WHOLE, _ROUNDING = ("integer", "choice", "seed"), 1e-6
#: Draws to try for each that is valid, before a box is given up.
_TRIES = 50


@dataclass(frozen=True, slots=True)
class _Box:
    """A box in the unit cube; periodic coordinates may lie beyond it."""

    low: NDArray[np.float64]  #: (d,)
    high: NDArray[np.float64]  #: (d,)

    def contains(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where a point (n, d) lies in it."""
        return np.asarray(((unit >= self.low) & (unit <= self.high)).all(axis=1))


class _TooFewInputs(Exception):
    """Hardly any input in a box is valid and solvable."""


def find_rule(
    target: Target,
    run: Run,
    row: NDArray[np.float64],
    seed: int,
    others: Inputs,
    budget: int = EPISODES,
) -> RuleSearch:
    """A rule around the finding with input `row` (d,) and case `seed`, in at most `budget` episodes.

    Its coverage is that of `others` (n, d), findings besides this one. The case seed stays where it is part
    of the situation; elsewhere every draw has a seed of its own.
    """
    if len(row) > MOST_DIMENSIONS:
        reason = f"rules are for up to {MOST_DIMENSIONS} dimensions, and the input has {len(row)}"
        return RuleSearch(None, 0, reason)
    if budget < _LEAST_EPISODES:
        return RuleSearch(None, 0, f"a rule takes {_LEAST_EPISODES} episodes at least, and may take {budget}")
    around = Neighbourhood(target, run, np.array(row, np.float64), seed, budget)
    try:
        return _Growth(around).search(others)
    except _TooFewInputs:
        return RuleSearch(None, around.episodes, "hardly any input around it is valid and solvable")


def other_findings(campaign: CampaignReader, finding: Finding) -> Inputs:
    """(n, d) inputs of the confirmed findings of `campaign` besides `finding`, as many as matter."""
    others = campaign.records(
        Finding, "findings", "status = ? AND id <> ?", (CONFIRMED, finding.id), most=_MOST_OTHERS
    )
    rows = [one.input for one in others]
    return np.array(rows, np.float64).reshape(len(rows), len(finding.input))


@dataclass(slots=True)
class _Growth:
    """A box that grows from a finding, and all that was drawn for it."""

    around: Neighbourhood
    rng: np.random.Generator = field(init=False)
    centre: NDArray[np.float64] = field(init=False)  #: (d,) the finding in the unit cube
    points: NDArray[np.float64] = field(init=False)  #: (n, d) drawn so far, relative to the centre
    crashed: NDArray[np.bool_] = field(init=False)  #: (n,)

    def __post_init__(self) -> None:
        self.rng = self.around.generator()
        self.centre = self.around.space.to_unit(self.around.row[None])[0]
        self.points, self.crashed = np.empty((0, len(self.centre))), np.empty(0, np.bool_)

    def search(self, others: Inputs) -> RuleSearch:
        """Grow the box, and check it until a check holds or the episodes are used up."""
        box = self._first_box()
        if box is None:
            return self._none(f"inputs within {_FIRST_WIDTHS[0]:.2%} of the range around it pass")
        wider = box
        for _ in range(_ROUNDS):
            if self.around.left < _ROUND_DRAWS + _CHECK_DRAWS:
                break
            wider = self._grown(box, wider)
            try:
                self._learn(*self._drawn(wider, _ROUND_DRAWS))
            except _TooFewInputs:
                break  # it has grown beyond what is valid
            box = self._peeled(wider, _AIM)
        reached = 0.0
        while self.around.left >= _CHECK_DRAWS:
            points, crashed = self._drawn(box, _CHECK_DRAWS)
            low, high = exact_interval(int(crashed.sum()), len(crashed))
            reached = float(crashed.mean())
            if low >= _LEAST_PRECISION:
                return self._rule(box, len(crashed), reached, (low, high), others)
            self._learn(points, crashed)
            box = self._peeled(box, (1 + _AIM) / 2)
        return self._none(f"of fresh draws from the best box only {reached:.0%} crash")

    def _none(self, reason: str) -> RuleSearch:
        return RuleSearch(None, self.around.episodes, reason)

    def _first_box(self) -> _Box | None:
        """The largest cube around the finding all of whose draws crash; None if the smallest has none."""
        found, drawn = None, []
        boxes = [self._clipped(-width, width) for width in _FIRST_WIDTHS]
        for box in boxes:
            try:
                drawn.append(self._candidates(box, _FIRST_DRAWS))
            except _TooFewInputs:
                break  # it reaches beyond what is valid
        if not drawn:
            raise _TooFewInputs
        crashed = self._crashed(np.concatenate(drawn))
        for number, (box, points) in enumerate(zip(boxes, drawn, strict=False)):
            mine = crashed[number * _FIRST_DRAWS : (number + 1) * _FIRST_DRAWS]
            self._learn(points, mine)
            if not mine.all():
                break
            found = box
        return found

    @property
    def _is_whole(self) -> NDArray[np.bool_]:
        """(d,) True where a dimension takes whole numbers only."""
        return np.array([one.kind in _WHOLE for one in self.around.space.dimensions], np.bool_)

    def _clipped(self, low: float | NDArray[np.float64], high: float | NDArray[np.float64]) -> _Box:
        """The box from `low` to `high` relative to the finding, within the range and round whole numbers."""
        ends = [np.broadcast_to(end, self.centre.shape).astype(np.float64) for end in (low, high)]
        for place, dimension in enumerate(self.around.space.dimensions):
            first, last = (float(end[place]) for end in ends)
            if dimension.is_periodic:
                first, last = (-0.5, 0.5) if last - first >= 1 else (first, last)
            else:
                first, last = max(first, -self.centre[place]), min(last, 1 - self.centre[place])
            if self._is_whole[place]:
                count = dimension.high - dimension.low + 1
                first, last = ((self.centre[place] + end) * count for end in (first, last))
                first = math.floor(first + _ROUNDING) / count - self.centre[place]
                last = math.ceil(last - _ROUNDING) / count - self.centre[place]
                if dimension.kind != "integer" and (last - first) * count > 1.5:
                    first, last = -self.centre[place], 1 - self.centre[place]  # one option, or any
            ends[0][place], ends[1][place] = first, last
        return _Box(*ends)

    def _grown(self, box: _Box, uncut: _Box) -> _Box:
        """`box`, which was `uncut` before inputs that pass were cut off, with its sides farther out."""
        factors = (
            np.where(mine == before, _GROWTH, _GROWTH_OF_CUT)
            for mine, before in ((box.low, uncut.low), (box.high, uncut.high))
        )
        return self._clipped(box.low * next(factors), box.high * next(factors))

    def _candidates(self, box: _Box, count: int) -> NDArray[np.float64]:
        """(count, d) points of `box` whose inputs may be tried."""
        kept: list[NDArray[np.float64]] = []
        for _ in range(_TRIES):
            points = self.rng.uniform(box.low, box.high, (count, len(self.centre)))
            inputs = self._inputs(points)
            # whole numbers are where they are, so that a cut between two of them is one
            points = np.where(self._is_whole, self.around.space.to_unit(inputs) - self.centre, points)
            kept.append(points[self.around.allowed(inputs)])
            if sum(map(len, kept)) >= count:
                return np.concatenate(kept)[:count]
        raise _TooFewInputs

    def _inputs(self, points: NDArray[np.float64]) -> Inputs:
        """The inputs (n, d) of `points` (n, d)."""
        space = self.around.space
        return space.from_unit(space.into_cube(self.centre + points))

    def _crashed(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) whether the inputs at `points` (n, d) crash; what could not be run did not."""
        target = self.around.target
        seeds = self.rng.integers(0, SEED_END, len(points), dtype=np.uint64)
        answers = self.around.crashes(self._inputs(points), None if target.seed_is_situation else seeds)
        return np.array([crashes is True for crashes in answers], np.bool_)

    def _drawn(self, box: _Box, count: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        points = self._candidates(box, count)
        return points, self._crashed(points)

    def _learn(self, points: NDArray[np.float64], crashed: NDArray[np.bool_]) -> None:
        self.points, self.crashed = np.vstack([self.points, points]), np.append(self.crashed, crashed)

    def _peeled(self, box: _Box, share: float) -> _Box:
        """`box` without the sides that cost least, until this `share` of the known inputs in it crash.

        A cut at an input that passes takes away all that lies beyond it; the best one takes away the most
        passes for a crash.
        """
        while True:
            inside = box.contains(self.points)
            points, crashed = self.points[inside], self.crashed[inside]
            if crashed.sum() >= share * len(crashed):
                return box
            best: tuple[float, int, float] | None = None
            for point in points[~crashed]:
                for place in np.flatnonzero(point).tolist():
                    side = np.sign(point[place])
                    gone = side * points[:, place] >= side * point[place]
                    lost = (gone & crashed).sum()
                    value = float((gone & ~crashed).sum() / (lost + 1))
                    if best is None or value > best[0]:
                        best = value, place, float(point[place])
            assert best is not None, "there are inputs that pass"
            place, cut = best[1:]
            # halfway to the nearest crash that stays
            stay = points[crashed & (np.sign(cut) * (cut - points[:, place]) > 0), place]
            edge = (cut + np.max(np.append(stay * np.sign(cut), 0.0)) * np.sign(cut)) / 2
            low, high = box.low.copy(), box.high.copy()
            (high if cut > 0 else low)[place] = edge
            smaller = self._clipped(low, high)
            if box.low[place] == smaller.low[place] and box.high[place] == smaller.high[place]:
                return box  # whole numbers cannot be cut there
            box = smaller

    def _rule(
        self, box: _Box, draws: int, precision: float, interval: tuple[float, float], others: Inputs
    ) -> RuleSearch:
        dimensions = self.around.space.dimensions
        low, high = list[float](), list[float]()
        for dimension, first, last in zip(
            dimensions, self.centre + box.low, self.centre + box.high, strict=True
        ):
            if dimension.kind in _WHOLE:
                count = dimension.high - dimension.low + 1
                low.append(float(dimension.low + round(first * count)))
                high.append(float(dimension.low + round(last * count) - 1))
            else:  # of an angle without bringing it back into one turn
                low.append(float(dimension.low + first * (dimension.high - dimension.low)))
                high.append(float(dimension.low + last * (dimension.high - dimension.low)))
        covered = covers(low, high, others, self.around.space.dimensions)
        coverage = float(covered.mean()) if len(others) else math.nan
        episodes = self.around.episodes
        rule = Rule(tuple(low), tuple(high), precision, *interval, coverage, episodes, draws, len(others))
        return RuleSearch(rule, episodes)


def covers(
    low: Sequence[float], high: Sequence[float], inputs: Inputs, dimensions: tuple[Dimension, ...]
) -> NDArray[np.bool_]:
    """(n,) True where an input (n, d) lies in the box from `low` to `high`, in the units of the input."""
    inside = np.ones(len(inputs), np.bool_)
    for dimension, first, last, values in zip(dimensions, low, high, inputs.T, strict=True):
        if dimension.is_periodic:
            inside &= (values - first) % (dimension.high - dimension.low) <= last - first
        else:
            inside &= (values >= first) & (values <= last)
    return inside


def conditions(rule: Rule, dimensions: tuple[Dimension, ...]) -> list[str]:
    """What `rule` asks for, for a reader; nothing of dimensions that may have any value."""
    words = []
    for dimension, low, high in zip(dimensions, rule.low, rule.high, strict=True):
        if high - low >= (dimension.high - dimension.low) * (1 - 1e-9):
            continue
        if dimension.kind in _WHOLE:
            values = " to ".join(dict.fromkeys(dimension.describe(end) for end in (low, high)))
        else:
            values = " to ".join(_short(end, other) for end, other in ((low, high), (high, low)))
        words.append(f"{dimension.name} {values} {dimension.unit}".rstrip())
    return words


def _short(value: float, other: float) -> str:
    """`value` with as many digits as tell it from `other`, and two more."""
    digits = max(1 - math.floor(math.log10(abs(value - other))), 0)
    return f"{value:.{digits}f}"
