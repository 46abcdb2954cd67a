"""The numbers of the paper (Pang, Yuan and Wang, ISSTA 2022) that are not in its table of results."""

from collections.abc import Mapping
from dataclasses import dataclass

#: Hours of twelve that the fuzzer itself took, by scenario.
FUZZER_HOURS: Mapping[str, float] = {
    "acasxu": 9.15,
    "coopnavi": 9.87,
    "bipedal": 3.79,
    "driving-rl": 0.55,
    "driving-il": 0.79,
}
#: Area under the ROC curve of its detector (RQ4).
DETECTOR_AREAS: Mapping[str, float] = {
    "acasxu": 0.95,
    "coopnavi": 0.97,
    "bipedal": 0.97,
    "driving-rl": 0.78,
    "driving-il": 0.79,
}


@dataclass(frozen=True, slots=True)
class FreshnessCost:
    """A row of the paper's table 2, for sequences of 100 states of 17 numbers."""

    corpus: int  #: stored sequences
    distance_seconds: float  #: to compare one sequence with all of these
    mixture_seconds: float  #: to ask the mixtures instead


FRESHNESS_COSTS = (
    FreshnessCost(100, 5.31, 0.25),
    FreshnessCost(500, 26.10, 0.25),
    FreshnessCost(1000, 54.19, 0.25),
    FreshnessCost(3000, 156.87, 0.25),
)


@dataclass(frozen=True, slots=True)
class PublishedRepair:
    """What the repair of ACAS Xu did: fuzzed again for twelve hours, and 3,000 normal inputs."""

    crashes_before: int
    crashes_after: int
    return_before: float
    return_after: float


REPAIR = PublishedRepair(139, 29, 30.73, 30.74)
