"""What campaigns covered, as one record, and the file beside each of them that holds it."""

import math
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import read_beside, write_beside

FILE_NAME = "coverage.json"
#: Of the random episodes that campaigns are compared with.
RANDOM = "random sampling"
#: More campaigns than anybody compares, and more points than any picture shows.
_MOST_CAMPAIGNS, _MOST_POINTS = 1000, 100_000


@dataclass(frozen=True, slots=True)
class Ellipse:
    """Where a component of a mixture lies: two standard deviations around its mean."""

    x: float
    y: float
    long: float  #: half of the longer axis
    short: float
    angle: float  #: of the longer axis, in degrees to the left
    weight: float  #: of the component

    def __post_init__(self) -> None:
        if not _are_finite((self.x, self.y, self.long, self.short, self.angle, self.weight)):
            raise ValueError("an ellipse is not finite")


@dataclass(frozen=True, slots=True)
class CoverageCurve:
    """Numbers after so many episodes; all tuples are of one length."""

    episodes: tuple[int, ...]
    behaviours: tuple[int, ...]  #: reference behaviours that were reached
    cells: tuple[int, ...]  #: cells that states were in
    area: tuple[float, ...]  #: of the mixture's ellipses, in squared standard deviations

    def __post_init__(self) -> None:
        lengths = {len(self.episodes), len(self.behaviours), len(self.cells), len(self.area)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError("the numbers of a curve are not equally many, or there are none")


@dataclass(frozen=True, slots=True)
class CampaignCoverage:
    """What one campaign covered within the episodes that are compared."""

    name: str  #: of its folder
    group: str  #: of campaigns that differ in their seed alone
    instance: str  #: identifies the campaign
    seed: int
    known: int  #: episodes that its file knows, or all
    used: int  #: of these, that were looked at
    crashes: int  #: of these
    failed: int  #: of these, that could not be run to their end and do not count
    curve: CoverageCurve
    ellipses: tuple[Ellipse, ...]
    xs: tuple[float, ...]  #: some of the visited states on the projection
    ys: tuple[float, ...]
    crash_xs: tuple[float, ...]  #: last states of some crashes
    crash_ys: tuple[float, ...]

    def __post_init__(self) -> None:
        for xs, ys in ((self.xs, self.ys), (self.crash_xs, self.crash_ys)):
            if len(xs) != len(ys) or len(xs) > _MOST_POINTS or not _are_finite((*xs, *ys)):
                raise ValueError("the points of a campaign do not fit together")

    @property
    def behaviours(self) -> int:
        """Reference behaviours that were reached in the end."""
        return self.curve.behaviours[-1]

    @property
    def cells(self) -> int:
        """Cells of states in the end."""
        return self.curve.cells[-1]

    @property
    def area(self) -> float:
        """Of the mixture's ellipses in the end."""
        return self.curve.area[-1]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What campaigns on one target covered, side by side."""

    target: str
    policy: str  #: for readers
    seed: int  #: of the random episodes and of all choices
    episodes: int  #: of each campaign that are compared; what came later does not count
    is_every_episode: bool  #: False: only what the campaign files know
    most: int  #: episodes of each that were looked at, at most
    radius: float  #: reference behaviours are farther apart than this, in standard deviations
    cell: float  #: side of a cell, in standard deviations
    directions: int  #: of states that cells have sides along
    reference: int  #: reference behaviours: of all campaigns and of random sampling together
    axes: tuple[str, ...]  #: what the two directions of the projection are, for readers
    explained: tuple[float, ...]  #: share of the variance of states along each
    random: CampaignCoverage  #: random sampling
    campaigns: tuple[CampaignCoverage, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.campaigns) <= _MOST_CAMPAIGNS or len(self.axes) != 2 or self.reference < 1:
            raise ValueError("it compares no campaigns")
        if any(one.behaviours > self.reference for one in self.all):
            raise ValueError("a campaign reached more behaviours than there are")

    @property
    def all(self) -> tuple[CampaignCoverage, ...]:
        """All campaigns, random sampling last."""
        return (*self.campaigns, self.random)

    @property
    def groups(self) -> dict[str, tuple[CampaignCoverage, ...]]:
        """Campaigns by group, in their order, random sampling last."""
        names = dict.fromkeys(one.group for one in self.all)
        return {name: tuple(one for one in self.all if one.group == name) for name in names}

    def share(self, one: CampaignCoverage) -> float:
        """Of the reference behaviours that `one` reached."""
        return one.behaviours / self.reference


def read_coverage(folder: Path, instance: str) -> Coverage | None:
    """What is known of the coverage of the campaign `instance` in `folder`; None if nothing is.

    A file of a campaign that was there before does not count.
    """
    found = read_beside(folder, FILE_NAME, Coverage)
    is_its_own = found is not None and instance in {one.instance for one in found.campaigns}
    return found if is_its_own else None


def coverage_of(campaign: CampaignReader) -> Coverage | None:
    """What is known of the coverage of `campaign`; None if nothing is."""
    return read_coverage(campaign.folder, campaign.about.get("instance", ""))


def write_coverage(folder: Path, coverage: Coverage) -> None:
    """Write `coverage` beside the campaign in `folder`."""
    write_beside(folder, FILE_NAME, coverage)


def _are_finite(numbers: tuple[float, ...]) -> bool:
    return all(map(math.isfinite, numbers))
