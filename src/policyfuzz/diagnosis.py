"""What is said about the health of a target."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    GOOD = "good"
    WARNING = "warning"
    UNHEALTHY = "unhealthy"  #: the search would have no meaning


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at."""

    name: str
    level: Level
    message: str
    hint: str = ""
