"""The columns of the bench: what they are called, and which way is better."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.versus.diversity import RADII


@dataclass(frozen=True, slots=True)
class Column:
    """One metric, for readers."""

    head: str  #: of a table
    name: str  #: in a sentence: default has more ...
    is_lower_better: bool = False


#: Metric to column, the hardest first. In each of these `default` must be below nobody.
COLUMNS: Mapping[str, Column] = {
    "mass_near": Column(f"mass {RADII.near}", f"failure mass at {RADII.near}"),
    "mass_far": Column(f"mass {RADII.far}", f"failure mass at {RADII.far}"),
    "behaviours": Column("behaviours", "behaviours"),
    "courses": Column("courses", "outcomes that differ in terrain or obstacles reached"),
    "lineages": Column("lineages", "root lineages with a crash"),
    "regions": Column("regions", "crash regions"),
    "packed_far": Column(f"packing {RADII.far}", f"findings {RADII.far} apart"),
    "packed_near": Column(f"packing {RADII.near}", f"findings {RADII.near} apart"),
    "first_or_end": Column("first at", "episodes to the first crash", is_lower_better=True),
    "distinct": Column("distinct", "distinct findings"),
    "packed_close": Column(f"packing {RADII.close}", f"findings {RADII.close} apart"),
    "findings": Column("findings", "findings"),
}
#: What varied copies of one crash raise least, and what they raise most.
LEADING = (
    "mass_near",
    "mass_far",
    "behaviours",
    "courses",
    "lineages",
    "regions",
    "packed_far",
    "first_or_end",
)
FURTHER = ("packed_near", "packed_close", "distinct", "findings")
#: Metric to heading: at what cost.
COSTS = {"refused": "refused", "seconds": "seconds", "cpu_seconds": "CPU"}


def heads(metrics: tuple[str, ...]) -> dict[str, str]:
    """Heading to metric, for tables."""
    return {COLUMNS[metric].head: metric for metric in metrics}
