"""The boundary of a finding: the nearest input that passes, and the smallest change of each dimension."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Run, Target
from policyfuzz.store.triage_records import Boundary, Change
from policyfuzz.triage.neighbourhood import Neighbourhood
from policyfuzz.triage.rays import WITHOUT_ORDER, Ray, advance, axis_rays, ray_towards
from policyfuzz.triage.screening import Screening

#: Episodes that a boundary takes at most by default.
EPISODES = 40
#: Dimensions are tried one by one if their first round takes no more than this share of the episodes.
_FIRST_ROUND = 0.65
#: Shares of the episodes that are kept for later: by the screening of many dimensions, and by single ones
#: for directions between them and for the last steps.
_AFTER_SCREENING, _AFTER_AXES = 0.45, 0.25
#: Random inputs, near ones and far ones, that are tried where no dimension alone helps.
_DRAWS = 8
#: Distance in the unit cube below which nothing is told apart.
_SMALLEST = 1e-9
#: The two sides of a pair are close when the gap is this share of the distance; even steps in between.
_CLOSE, _STEPS = 0.05, 16


def find_boundary(
    target: Target, run: Run, row: NDArray[np.float64], seed: int, budget: int = EPISODES
) -> Boundary:
    """The boundary of the finding with input `row` (d,) and case `seed`, in at most `budget` episodes.

    Only inputs that are valid, and solvable where `target` tests that, are tried, all with the same seed.
    """
    if budget < 1:
        raise UsageError(f"a boundary may take {budget} episodes", "give it 1 or more; 40 are usual")
    around = Neighbourhood(target, run, np.array(row, np.float64), seed, budget)
    if around.crashes(around.row[None]) != [True]:
        return Boundary((), tuple(around.row.tolist()), 0.0, 0.0, (), (), around.episodes, crashes=False)
    search = _Search(around)
    search.run()
    return search.found()


class _Search:
    """The search for the boundary of one finding."""

    def __init__(self, around: Neighbourhood) -> None:
        self._around, self._rng = around, around.generator()
        self._axes: list[Ray] = []  #: along one dimension each
        self._others: list[Ray] = []  #: along several at once
        self._later: list[Ray] = []  #: along single dimensions that screening did not come to
        self._no_matter: set[int] = set()  #: dimensions, by screening

    def run(self) -> None:
        """Use the episodes."""
        around = self._around
        every = range(len(around.row))
        self._axes = [ray for place in every for ray in axis_rays(around, place, self._rng)]
        if len(self._axes) > _FIRST_ROUND * around.left:
            self._screen()
        self._advance_axes(int(_AFTER_AXES * around.budget))
        if self._nearest is None:
            self._try_draws()
        self._try_between_axes()
        self._sharpen()
        self._advance_axes(0)
        if self._later:
            self._axes += self._later
            self._advance_axes(0)

    def found(self) -> Boundary:
        """What is known now."""
        names = self._around.space.names
        crashing, passing, distance, gap = self._pair()
        # what helps only together with others is not known by itself
        changed = set(np.flatnonzero(self._around.row != passing).tolist() if passing else ())
        changes, no_matter, not_known = [], [], []
        for place, name in enumerate(names):
            rays = [ray for ray in self._axes if ray.dimensions == (place,)]
            best = min(rays, key=lambda ray: ray.high_distance, default=None)
            if best is not None and best.high is not None:
                changes.append((best.high_distance, self._change(best, place)))
            elif place not in changed and (place in self._no_matter or _are_hopeless(rays)):
                no_matter.append(name)
            else:
                not_known.append(name)
        changes.sort(key=lambda pair: pair[0])
        smallest = tuple(change for _, change in changes)
        return Boundary(
            crashing,
            passing,
            distance,
            gap,
            smallest,
            tuple(no_matter),
            self._around.episodes,
            not_known=tuple(not_known),
        )

    @property
    def _nearest(self) -> Ray | None:
        """The ray with the nearest input that passes."""
        passing = [ray for ray in (*self._axes, *self._others) if ray.high is not None]
        return min(passing, key=lambda ray: ray.high_distance, default=None)

    def _pair(self) -> tuple[tuple[float, ...], tuple[float, ...], float, float]:
        """The two sides, the distance of the finding to the one that passes, and the gap between them."""
        ray = self._nearest
        if ray is None or ray.high is None:
            return tuple(self._around.row.tolist()), (), np.nan, np.nan
        crashing = self._around.row if ray.low is None else ray.inputs[ray.low]
        passing = ray.inputs[ray.high]
        gap = float(self._around.space.distance(crashing[None], passing[None])[0])
        return tuple(crashing.tolist()), tuple(passing.tolist()), ray.high_distance, gap

    def _change(self, ray: Ray, place: int) -> Change:
        assert ray.high is not None, "only what passes is a change"
        dimension = self._around.space.dimensions[place]
        value = float(ray.inputs[ray.high][place])
        not_enough = 0.0 if ray.low is None else self._amount(place, float(ray.inputs[ray.low][place]))
        return Change(dimension.name, value, self._amount(place, value), dimension.unit, not_enough)

    def _amount(self, place: int, value: float) -> float:
        """By how much `value` differs from that of the finding, the short way round."""
        dimension, amount = self._around.space.dimensions[place], value - float(self._around.row[place])
        if not dimension.is_periodic:
            return amount
        period = dimension.high - dimension.low
        return (amount + period / 2) % period - period / 2

    def _screen(self) -> None:
        """Leave only the dimensions to try one by one that avoid the crash by themselves."""
        screening = Screening(self._around, self._rng)
        screening.run(int(_AFTER_SCREENING * self._around.left))
        self._no_matter = screening.no_matter
        known = screening.alone | screening.no_matter
        self._later = [ray for ray in self._axes if ray.dimensions[0] not in known]
        self._axes = [ray for ray in self._axes if ray.dimensions[0] in screening.alone]
        for row in screening.passing:
            self._add_passing(row)
        keep = int(_AFTER_AXES * self._around.budget)
        if (nearest := self._nearest) is not None:
            self._finish(nearest, keep)

    def _advance_axes(self, keep: int) -> None:
        """Try single dimensions, round by round: first those that nothing is known to pass of."""
        is_open = True
        while is_open:
            best: dict[int, float] = {}
            for ray in self._axes:
                (place,) = ray.dimensions
                best[place] = min(best.get(place, np.inf), ray.high_distance)
            # the other way round is nearer already
            rays = [ray for ray in self._axes if ray.low_distance < best[ray.dimensions[0]]]
            rays.sort(key=lambda ray: (np.isfinite(best[ray.dimensions[0]]), -_uncertainty(ray)))
            is_open = advance(self._around, rays, keep)

    def _finish(self, ray: Ray, keep: int) -> None:
        """Find out all about one ray, and keep this many episodes."""
        while advance(self._around, [ray], keep):
            pass

    def _try_draws(self) -> None:
        """Go towards the nearest of some random inputs that passes."""
        draws = self._around.draws(self._rng)
        count = min(_DRAWS, len(draws), self._around.left)
        some = draws[np.linspace(0, len(draws) - 1, count, dtype=int)]
        for row, crashes in zip(some, self._around.crashes(some), strict=True):
            if crashes is False:
                self._add_passing(row)
        if (nearest := self._nearest) is not None:
            self._finish(nearest, 0)

    def _add_passing(self, row: NDArray[np.float64]) -> None:
        """Remember the way to `row` (d,), which passes."""
        for ray in ray_towards(self._around, row):
            ray.answers[len(ray.inputs) - 1] = False
            self._others.append(ray)

    def _try_between_axes(self) -> None:
        """Go straight through the plane that the smallest changes of single dimensions span.

        If the boundary is flat, that is the shortest way: nearer than any change of a single dimension.
        """
        nearest, space = self._nearest, self._around.space
        normal = np.zeros(len(self._around.row))
        for ray in self._axes:
            (place,) = ray.dimensions
            dimension = space.dimensions[place]
            if ray.high is None or dimension.kind in WITHOUT_ORDER:
                continue
            size = np.sqrt(max(ray.low_distance, ray.high_distance / 4) * ray.high_distance)
            if 1 / size > abs(normal[place]):
                amount = self._amount(place, float(ray.inputs[ray.high][place]))
                normal[place] = np.sign(amount) / size
        if nearest is None or np.count_nonzero(normal) < 2:
            return
        expected = 1 / float(np.linalg.norm(normal))
        unit = space.to_unit(self._around.row[None])[0] + nearest.high_distance * expected * normal
        other = np.where(normal == 0, self._around.row, space.from_unit(unit[None])[0])
        for ray in ray_towards(self._around, other, expected / 8):
            ray.first = 1.2 * expected
            self._others.append(ray)
            self._finish(ray, 0)

    def _sharpen(self) -> None:
        """Bring the two sides of the pair together."""
        while (ray := self._nearest) is not None and ray.is_ordered and self._around.left:
            if ray.high_distance - ray.low_distance <= _CLOSE * ray.high_distance:
                return
            if ray.following is None:
                fine = ray.sharpened(self._around, _STEPS)
                if fine.following is None:
                    return
                rays = self._axes if ray in self._axes else self._others
                rays[rays.index(ray)] = ray = fine
            advance(self._around, [ray], 0)


def _uncertainty(ray: Ray) -> float:
    """How much is open between the last crash and the first pass of a ray, as a ratio."""
    return float(ray.high_distance / max(ray.low_distance, ray.distances[0] / 2, _SMALLEST))


def _are_hopeless(rays: list[Ray]) -> bool:
    """True if nothing along a dimension passes, as far as anybody tries."""
    return bool(rays) and all(ray.is_hopeless for ray in rays)
