"""What could be done instead of what a policy does: candidates for witnesses, and small disturbances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace, Macro
from policyfuzz.core.branches import Segment
from policyfuzz.triage.trials import Branch

#: Pieces of an episode in which noise is constant.
_NOISE_PIECES = 8
#: Noise of a small disturbance, as a share of the range of each number.
SMALL_NOISE = 0.05
#: Length of a window shortly before the crash, as a share of the steps until the crash.
_LATE_WINDOW = 0.1
#: The longest window with another action, as a share of the horizon.
_LONGEST_WINDOW = 0.2


@dataclass(frozen=True, slots=True)
class Candidates:
    """Proposes branches for an episode that crashes at `crash_step`."""

    space: ActionSpace
    horizon: int
    crash_step: int

    @property
    def macros(self) -> list[Macro]:
        """The strongest first: spaces list the simplest first."""
        return list(reversed(self.space.macros))

    def held(self, numbers: Sequence[float], start: int = 1, stop: int | None = None) -> Branch:
        """One action from `start` on, up to the horizon, or to the step before `stop`."""
        return (Segment(start, self.horizon + 1 if stop is None else stop, tuple(numbers)),)

    def held_later(self, most: int) -> list[Branch]:
        """The strongest macros, at most `most`, from some later steps on."""
        starts = sorted({1 + self.crash_step * part // 4 for part in (1, 2, 3)} - {1})
        later = [self.held(macro.numbers, start) for macro in self.macros for start in starts]
        return later[:most]

    def late_windows(self, rng: np.random.Generator, count: int) -> list[Branch]:
        """Different macros, each over a short window that begins in the last third before the crash."""
        length = max(1, round(_LATE_WINDOW * self.crash_step))
        starts = rng.integers(1 + 2 * self.crash_step // 3, self.crash_step, count, endpoint=True).tolist()
        chosen = rng.permutation(len(self.space.macros)).tolist()
        pairs = zip(starts, chosen, strict=False)
        return [self.held(self.space.macros[one].numbers, start, start + length) for start, one in pairs]

    def window(self, rng: np.random.Generator) -> Branch:
        """A random macro over a random window before the crash; short windows are likelier."""
        longest = max(1.0, _LONGEST_WINDOW * self.horizon)
        length = round(float(np.exp(rng.uniform(0.0, np.log(longest)))))
        start = int(rng.integers(1, max(1, self.crash_step - length) + 1))
        macros = self.space.macros
        numbers = macros[int(rng.integers(len(macros)))].numbers if macros else self._anything(rng)
        return (Segment(start, start + length, numbers),)

    def noise(self, rng: np.random.Generator, share: float) -> Branch:
        """Noise of this `share` of the range on the policy's actions until the crash.

        Among choices, `share` is the part of pieces of the episode in which one step has another choice.
        """
        edges = np.linspace(1, self.crash_step + 1, min(_NOISE_PIECES, self.crash_step) + 1).astype(int)
        pieces = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        if self.space.is_whole.all():
            chosen = rng.permutation(len(pieces))[: max(1, round(share * len(pieces)))]
            steps = [int(rng.integers(*pieces[place])) for place in sorted(chosen.tolist())]
            return tuple(Segment(step, step + 1, self._other_choice(rng), is_added=True) for step in steps)
        spans = share * (self.space.high - self.space.low)
        return tuple(
            Segment(start, stop, tuple(self._offsets(rng, spans).tolist()), is_added=True)
            for start, stop in pieces
        )

    def small_disturbance(self, rng: np.random.Generator) -> Branch:
        """Another choice in one step, or noise of a few percent of the range."""
        return self.noise(rng, SMALL_NOISE)

    def _anything(self, rng: np.random.Generator) -> tuple[float, ...]:
        return tuple(self.space.sample(rng, 1)[0].tolist())

    def _offsets(self, rng: np.random.Generator, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """(a,) to be added; choices stay as they are."""
        return np.where(self.space.is_whole, np.nan, rng.uniform(-spans, spans))

    def _other_choice(self, rng: np.random.Generator) -> tuple[float, ...]:
        """What turns one of the choices, the others staying, into another."""
        numbers = np.full(len(self.space.low), np.nan)
        counts = (self.space.high - self.space.low + 1).astype(int)
        free = np.flatnonzero(counts > 1)
        if len(free):
            place = int(rng.choice(free))
            numbers[place] = float(rng.integers(1, counts[place]))
        return tuple(numbers.tolist())


class CrossEntropy:
    """A search over what to do in a few segments of the episode: the best so far decide what is drawn next.

    Where actions are choices it draws a macro for each segment, otherwise what is added to the policy's own.
    """

    SEGMENTS = 3
    #: Share of a round that the next one learns from, and how much of what was known before is kept.
    _ELITE, _KEPT = 0.25, 0.3
    #: First standard deviation of what is added, as a share of the range; and the least one.
    _WIDTH, _LEAST_WIDTH = 0.3, 0.05

    def __init__(self, candidates: Candidates) -> None:
        self._candidates, space = candidates, candidates.space
        last, stop = candidates.crash_step, candidates.horizon + 1
        inner = np.linspace(1, last + 1, self.SEGMENTS + 1).astype(int)[1:-1].tolist()
        self._edges = [1, *inner, max(stop, last + 1)]
        self._is_chosen = bool(space.is_whole.all()) and len(space.macros) > 0
        # rows are segments: chances of macros, or mean of what is added in units of the range
        count = max(1, len(space.macros))
        shape = (self.SEGMENTS, count if self._is_chosen else len(space.low))
        self._centre = np.full(shape, 1.0 / count) if self._is_chosen else np.zeros(shape)
        self._width = np.full(shape, self._WIDTH)

    def draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """(segments, m) a proposal, which `branch` turns into one: chosen macros, or what is added."""
        if not self._is_chosen:
            return self._centre + self._width * rng.standard_normal(self._centre.shape)
        one_of = [rng.choice(len(chances), p=chances) for chances in self._centre]
        return np.eye(self._centre.shape[1])[one_of]

    def branch(self, proposal: NDArray[np.float64]) -> Branch:
        """What `proposal` (segments, m) does."""
        space, pairs = self._candidates.space, zip(self._edges[:-1], self._edges[1:], strict=True)
        if self._is_chosen:
            rows = [space.macros[int(row.argmax())].numbers for row in proposal]
        else:
            spans = np.where(space.is_whole, np.nan, space.high - space.low)
            rows = [tuple((row * spans).tolist()) for row in proposal]
        return tuple(
            Segment(start, stop, numbers, is_added=not self._is_chosen)
            for (start, stop), numbers in zip(pairs, rows, strict=True)
        )

    def learn(self, proposals: Sequence[NDArray[np.float64]], scores: Sequence[float]) -> None:
        """Draw nearer to the best of `proposals` from now on; a score of minus infinity is no example."""
        order = [place for place in np.argsort(scores)[::-1].tolist() if np.isfinite(scores[place])]
        best = [proposals[place] for place in order[: max(2, round(self._ELITE * len(proposals)))]]
        if not best:
            return
        centre, width = np.mean(best, axis=0), np.std(best, axis=0)
        self._centre = self._KEPT * self._centre + (1 - self._KEPT) * centre
        self._width = np.maximum(self._KEPT * self._width + (1 - self._KEPT) * width, self._LEAST_WIDTH)


def amount_of_change(branch: Branch, space: ActionSpace, horizon: int) -> float:
    """How much `branch` interferes with the policy: steps, less for numbers that are only added a little."""
    span = np.where(space.high > space.low, space.high - space.low, 1.0)
    total = 0.0
    for one in branch:
        steps = max(0, min(one.stop, horizon + 1) - one.start)
        is_slight = one.is_added and not space.is_whole.all()
        total += steps * (float(np.nanmean(np.abs(one.numbers) / span)) if is_slight else 1.0)
    return total


def action_name(numbers: Sequence[float], space: ActionSpace) -> str:
    """`numbers` (a,) for a reader: the macro that they are or are nearest to."""
    given = np.array(numbers, np.float64)
    for macro in space.macros:
        if np.array_equal(np.array(macro.numbers), given, equal_nan=True):
            return macro.name
    nearest = space.nearest_macro(given)
    return "another action" if nearest is None else nearest.name


def branch_words(branch: Branch, space: ActionSpace, horizon: int) -> str:
    """What `branch` does, for a reader: "strong left from step 12 on"."""
    if any(one.is_added for one in branch):
        first, last = branch[0].start, min(branch[-1].stop - 1, horizon)
        if space.is_whole.all():
            steps = sorted({one.start for one in branch})
            some = ", ".join(map(str, steps[:3])) + (", ..." if len(steps) > 3 else "")
            return f"another choice than its own at step{'s' if len(steps) > 1 else ''} {some}"
        span = np.where(space.high > space.low, space.high - space.low, 1.0)
        share = max(float(np.nanmax(np.abs(one.numbers) / span)) for one in branch)
        return f"its own actions changed by up to {share:.0%} of their range {_when(first, last, horizon)}"
    return ", then ".join(
        f"{action_name(one.numbers, space)} {_when(one.start, one.stop - 1, horizon)}" for one in branch
    )


def _when(first: int, last: int, horizon: int) -> str:
    if last >= horizon:
        return f"from step {first} on"
    return f"at step {first}" if first == last else f"in steps {first} to {last}"
