"""How apart crashes are inside a policy, as one record, and the file beside a campaign that holds it."""

import math
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import read_beside, write_beside

FILE_NAME = "activations.json"
#: What episodes are, in the order in which pictures draw them.
NORMAL, MUTATED, NEAR_MISS, CRASH = "normal", "mutated", "near miss", "crash"
CLASSES = (NORMAL, MUTATED, NEAR_MISS, CRASH)
#: What is looked at of a policy.
ACTIVATIONS, OBSERVATIONS = "activations", "observations"
#: How points come into the plane.
METHODS = ("tsne", "umap", "pca")
#: Lineages of crashes below which a separation means little: findings of one are near-clones.
FEWEST_LINEAGES = 10
_MOST_POINTS = 100_000


@dataclass(frozen=True, slots=True)
class Separation:
    """How well the nearest episodes of other lineages tell one class from another."""

    of: str  #: ACTIVATIONS or OBSERVATIONS
    positive: str  #: one of CLASSES
    negative: str
    auc: float  #: 1: always told apart, 0.5: chance; NaN if there are too few
    low: float  #: 95 % interval, by drawing lineages
    high: float
    shuffled: float  #: the same with shuffled classes, which should be near 0.5
    points: int  #: episodes of both classes
    lineages: int  #: of the positive class

    def __post_init__(self) -> None:
        if self.of not in (ACTIVATIONS, OBSERVATIONS) or not {self.positive, self.negative} <= {*CLASSES}:
            raise ValueError("it tells unknown classes apart")

    @property
    def means_little(self) -> bool:
        """True if there are too few lineages to say anything about new ones."""
        return self.lineages < FEWEST_LINEAGES


@dataclass(frozen=True, slots=True)
class ModeSeparation:
    """How well the crashes of one failure mode are told from other episodes."""

    of: str
    mode: int
    words: str
    negative: str
    auc: float
    findings: int
    lineages: int

    @property
    def means_little(self) -> bool:
        """True if there are too few lineages to say anything about new ones."""
        return self.lineages < FEWEST_LINEAGES


@dataclass(frozen=True, slots=True)
class ActivationMap:
    """Episodes of several classes by what went on inside the policy, in the plane and as numbers."""

    instance: str  #: the campaign that it is about
    target: str
    policy: str  #: for readers
    seed: int
    method: str  #: one of METHODS
    of: str  #: what the plane shows: ACTIVATIONS, or OBSERVATIONS of a policy without any
    why_none: str  #: why there are no activations
    width: int  #: numbers that each episode is
    window: int  #: decisions whose mean they are, before the crash or at the same steps
    findings: int  #: confirmed findings of the campaign, from which crashes were chosen
    explained: tuple[float, ...]  #: share of the variance along both axes, for pca
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    classes: tuple[int, ...]  #: places in CLASSES
    modes: tuple[int, ...]  #: number of the failure mode of a crash; 0 for others and if it is not known
    mode_words: dict[str, str]  #: number of a mode, as text, to one line for a reader
    separations: tuple[Separation, ...]
    mode_separations: tuple[ModeSeparation, ...] = ()
    mode_purity: float = math.nan  #: crashes whose nearest crash of another lineage has the same mode
    mode_chance: float = math.nan  #: the same if modes were shuffled

    def __post_init__(self) -> None:
        lengths = {len(self.xs), len(self.ys), len(self.classes), len(self.modes)}
        if len(lengths) != 1 or max(lengths) > _MOST_POINTS:
            raise ValueError("points, classes and modes are not equally many")
        if not all(map(math.isfinite, (*self.xs, *self.ys))):
            raise ValueError("a point is not finite")
        if self.method not in METHODS or not all(0 <= one < len(CLASSES) for one in self.classes):
            raise ValueError("a class or the method is not known")

    def count(self, name: str) -> int:
        """How many episodes there are of the class called `name`."""
        return self.classes.count(CLASSES.index(name))


def read_activations(folder: Path, instance: str) -> ActivationMap | None:
    """What is known of the activations of the campaign `instance` in `folder`; None if nothing is."""
    found = read_beside(folder, FILE_NAME, ActivationMap)
    return found if found is not None and found.instance == instance else None


def activations_of(campaign: CampaignReader) -> ActivationMap | None:
    """What is known of the activations of `campaign`; None if nothing is."""
    return read_activations(campaign.folder, campaign.about.get("instance", ""))


def write_activations(folder: Path, found: ActivationMap) -> None:
    """Write `found` beside the campaign in `folder`."""
    write_beside(folder, FILE_NAME, found)
