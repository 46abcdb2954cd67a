"""Frozen records of a campaign, and the columns that store them.

A field `x: Annotated[int, Column("INTEGER NOT NULL", "what it means")]` is stored in column `x`. The tables
of the file, the rows that are written and the records that are read all follow from such fields, by name.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import EpisodeError

#: Status of a finding.
NEW, CONFIRMED, FLAKY, UNSOLVED = "new", "confirmed", "flaky", "unsolved"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    kind: str  #: its SQL type with constraints
    meaning: str  #: for readers of the file; docs/campaign-file.md repeats it
    name: str | None = None  #: if it differs from the name of the field


#: More than any campaign can count.
_LARGEST_TOTAL = 10**12

#: Of a total that earlier formats do not have.
_ADDED = "INTEGER NOT NULL DEFAULT 0"
_KEY, _INTEGER, _REAL, _TEXT = "INTEGER PRIMARY KEY", "INTEGER NOT NULL", "REAL NOT NULL", "TEXT NOT NULL"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a finding that was run again."""

    id: int
    status: str
    is_distinct: bool
    survived_by: str | None = None  #: a reference policy


@dataclass(frozen=True, slots=True)
class SeedTrial:
    """How often a finding crashed with other case seeds."""

    id: int
    runs: int
    crashes: int
    is_distinct: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """A valid input, solvable where the target tests that, whose episode crashed."""

    id: Annotated[int, Column(_KEY, "from 1, in the order of discovery")]
    status: Annotated[
        str,
        Column(_TEXT, "`new`, `confirmed`, `flaky`, or `unsolved`: no reference policy survives"),
    ]
    is_distinct: Annotated[
        bool, Column(_INTEGER, "1: confirmed, novel, and it holds where other case seeds were tried")
    ]
    is_novel: Annotated[
        bool, Column(_INTEGER, "1: unlike all earlier crashes, in input and behaviour, when it was found")
    ]
    kind: Annotated[str, Column(_TEXT, "kind of crash, as the oracle names it")]
    crash_step: Annotated[int, Column(_INTEGER, "step at which the oracle saw the crash")]
    episode_return: Annotated[float, Column("REAL", "sum of rewards; NULL if it was NaN", name="return")]
    margin: Annotated[
        float, Column("REAL", "of the oracle: below 0, how far beyond its threshold; NULL if it knows none")
    ]
    outcome: Annotated[
        int | None,
        Column("INTEGER", "hash of the episode up to its crash; only flaky findings may share it"),
    ]
    repeats: Annotated[int, Column(_ADDED, "later crashes with the same outcome, which are not listed")]
    root: Annotated[int | None, Column("INTEGER", "number of the draw or import that its lineage began with")]
    behaviour: Annotated[
        str | None, Column("TEXT", "behaviour descriptor, as a JSON list; NULL if it is not known")
    ]
    reseeded: Annotated[
        int | None, Column("INTEGER", "times it was run with another case seed; NULL if that was not tried")
    ]
    reseeded_crashes: Annotated[int | None, Column("INTEGER", "how many of these crashed")]
    survived_by: Annotated[
        str | None, Column("TEXT", "reference policy that does not crash; NULL without one")
    ]
    parent: Annotated[
        int | None, Column("INTEGER", "seed it was mutated from; NULL for a sample or an import")
    ]
    case_seed: Annotated[int, Column(_INTEGER, "random seed of the episode")]
    batch: Annotated[int, Column(_INTEGER, "batch that found it")]
    execution: Annotated[int, Column(_INTEGER, "number of the episode that found it, from 1")]
    seconds: Annotated[float, Column(_REAL, "campaign time when it was found")]
    origin: Annotated[
        str | None, Column("TEXT", "instance it was imported from; NULL for the campaign's own")
    ]
    input: NDArray[np.float64]  #: (d,)

    @property
    def needs_luck(self) -> bool:
        """True if other case seeds were tried, and crash too rarely for it to count."""
        return bool(self.reseeded) and not self.is_distinct


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """An episode that could not be run to its end, through no fault of the policy."""

    id: Annotated[int, Column(_KEY, "from 1")]
    kind: Annotated[str, Column(_TEXT, "`raised`, `numbers`, `endless`, `hung`, `state` or `crashed`")]
    step: Annotated[int, Column(_INTEGER, "step at which it failed; 0: the reset")]
    text: Annotated[str, Column(_TEXT, "the traceback, or what was wrong")]
    purpose: Annotated[str, Column(_TEXT, "why the episode was run: `sample`, `mutant`, `confirm`, ...")]
    finding: Annotated[int | None, Column("INTEGER", "finding that the episode is, or was to confirm")]
    case_seed: Annotated[int, Column(_INTEGER, "random seed of the episode")]
    batch: Annotated[int, Column(_INTEGER, "batch it was part of")]
    execution: Annotated[int, Column(_INTEGER, "how many episodes had been run")]
    seconds: Annotated[float, Column(_REAL, "campaign time")]
    input: NDArray[np.float64]  #: (d,)

    @property
    def summary(self) -> str:
        """What went wrong, in one line."""
        return EpisodeError(self.kind, self.step, self.text).summary


@dataclass(frozen=True, slots=True)
class Progress:
    """Totals of a campaign after some batch."""

    batch: Annotated[int, Column(_KEY, "number of the batch, from 1", name="id")] = 0
    seconds: Annotated[float, Column(_REAL, "campaign time")] = 0.0
    executions: Annotated[int, Column(_INTEGER, "episodes of all purposes")] = 0
    samples: Annotated[int, Column(_INTEGER, "random draws that could be run")] = 0
    sample_crashes: Annotated[int, Column(_INTEGER, "samples that crashed")] = 0
    mutants: Annotated[int, Column(_INTEGER, "mutants and probes")] = 0
    mutant_crashes: Annotated[int, Column(_INTEGER, "mutants and probes that crashed")] = 0
    imports: Annotated[int, Column(_INTEGER, "cases imported from other instances")] = 0
    findings: Annotated[int, Column(_INTEGER, "confirmed findings")] = 0
    distinct_findings: Annotated[int, Column(_INTEGER, "confirmed findings that are distinct")] = 0
    lineages: Annotated[int, Column(_ADDED, "lineages that confirmed findings belong to")] = 0
    repeats: Annotated[int, Column(_ADDED, "crashes whose outcome was known, no findings")] = 0
    lucky: Annotated[int, Column(_ADDED, "confirmed findings that need a lucky case seed")] = 0
    in_trial: Annotated[int, Column(_ADDED, "findings that are being run with other case seeds")] = 0
    unsolved: Annotated[int, Column(_ADDED, "crashes that no reference policy survives, no findings")] = 0
    imported_findings: Annotated[int, Column(_INTEGER, "confirmed findings from other instances")] = 0
    flaky: Annotated[int, Column(_INTEGER, "findings whose second run differed")] = 0
    unconfirmed: Annotated[int, Column(_INTEGER, "findings that wait for their second run")] = 0
    errors: Annotated[
        int, Column(_INTEGER, "episodes that failed otherwise than the next two, no findings")
    ] = 0
    hangs: Annotated[int, Column(_INTEGER, "episodes that gave no answer, no findings")] = 0
    simulator_crashes: Annotated[int, Column(_INTEGER, "episodes that killed their process, no findings")] = 0
    corpus: Annotated[int, Column(_INTEGER, "seeds in the corpus")] = 0
    drawn: Annotated[int, Column(_INTEGER, "inputs drawn")] = 0
    invalid: Annotated[int, Column(_INTEGER, "drawn inputs that were not valid")] = 0
    unsolvable: Annotated[int, Column(_INTEGER, "drawn inputs that were not solvable")] = 0
    simulate_seconds: Annotated[float, Column(_REAL, "spent on running episodes")] = 0.0
    validate_seconds: Annotated[float, Column(_REAL, "spent on drawing valid inputs")] = 0.0
    density_seconds: Annotated[float, Column(_REAL, "spent on the density")] = 0.0
    search_seconds: Annotated[float, Column(_REAL, "spent on the rest of the search")] = 0.0
    store_seconds: Annotated[float, Column(_REAL, "spent on this file and on the sync folder")] = 0.0
    workers: Annotated[int, Column(_INTEGER, "of this batch: workers asked for; 1 without a pool")] = 1
    workers_ready: Annotated[int, Column(_INTEGER, "of this batch: workers that were ready at its end")] = 1
    worker_seconds: Annotated[float, Column(_REAL, "for which workers were there")] = 0.0
    busy_seconds: Annotated[float, Column(_REAL, "of these, spent on episodes")] = 0.0
    restarts: Annotated[int, Column(_INTEGER, "workers that were replaced")] = 0
    fresh_share: Annotated[float, Column("REAL", "of this batch: share of fresh sequences")] = math.nan
    fresh_threshold: Annotated[float, Column("REAL", "of this batch: a log-density")] = math.nan

    @property
    def problem(self) -> str | None:
        """Why no campaign can have these totals; None if one can."""
        for name, (one, kind, _) in _stored_fields(Progress).items():
            value = getattr(self, one)
            if type(value) is not kind and not (kind is float and type(value) is int):
                return f"the total {name!r} is {value!r:.50}"
            if kind is int and not 0 <= value <= _LARGEST_TOTAL:
                return f"the total {name!r} is {value}"
        is_possible = self.sample_crashes <= self.samples and self.mutant_crashes <= self.mutants
        return None if is_possible else "more episodes crashed than were run"

    @property
    def failures(self) -> int:
        """Episodes that could not be run to their end, and are no findings."""
        return self.errors + self.hangs + self.simulator_crashes

    @property
    def completed(self) -> int:
        """Episodes that were run to their end, or are findings."""
        return self.executions - self.failures

    @property
    def utilisation(self) -> float:
        """Share of the workers' time in which they ran episodes; NaN before there was any."""
        return self.busy_seconds / self.worker_seconds if self.worker_seconds > 0 else float("nan")

    @property
    def valid_rate(self) -> float:
        """Share of drawn inputs that were valid, and solvable where the target tests that."""
        return 1 - (self.invalid + self.unsolvable) / self.drawn if self.drawn else 1.0

    @property
    def executions_per_second(self) -> float:
        """Episodes of all purposes per second of campaign time."""
        return self.executions / self.seconds if self.seconds > 0 else 0.0

    @property
    def sample_crash_rate(self) -> float:
        """Share of random samples that crashed; NaN before the first."""
        return self.sample_crashes / self.samples if self.samples else float("nan")

    @property
    def mutant_crash_rate(self) -> float:
        """Share of mutants and probes that crashed; NaN before the first."""
        return self.mutant_crashes / self.mutants if self.mutants else float("nan")

    @property
    def time_split(self) -> dict[str, float]:
        """Seconds per activity."""
        return {
            "simulate": self.simulate_seconds,
            "validate": self.validate_seconds,
            "density": self.density_seconds,
            "search": self.search_seconds,
            "store": self.store_seconds,
        }


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Everything that one batch adds to the file, in one transaction."""

    progress: Progress
    findings: list[Finding] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    trials: list[SeedTrial] = field(default_factory=list)  #: that are over
    repeated: list[int] = field(default_factory=list)  #: known outcomes that were seen again
    failed: list[FailedEpisode] = field(default_factory=list)
    seed_inputs: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  #: (k, d)
    seed_columns: dict[str, NDArray[Any]] = field(default_factory=dict)  #: (k,) by name, parent -1 for none
    #: (k,) instances that the seeds were imported from, None for the campaign's own; or empty if all are
    seed_origins: list[str | None] = field(default_factory=list)
    first_seed: int = 0  #: number of the first new seed
    energies: list[tuple[float, int]] = field(default_factory=list)  #: new energy and number of older seeds
    state: dict[str, NDArray[Any]] = field(default_factory=dict)  #: what the search needs to continue


class IsDataclass(Protocol):
    """Any record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Record = TypeVar("Record", bound=IsDataclass)


def columns_of(record: type[IsDataclass]) -> dict[str, Column]:
    """Name to column of all fields of `record` that are stored in columns, in order."""
    return {name: column for name, (_, _, column) in _stored_fields(record).items()}


def row_of(record: IsDataclass) -> dict[str, Any]:
    """The row that stores `record`. SQLite itself stores NaN as NULL."""
    return {name: getattr(record, field) for name, (field, _, _) in _stored_fields(type(record)).items()}


def record_of(kind: type[Record], row: Mapping[str, Any], **others: Any) -> Record:
    """The record of this `kind` that `row` stores; `others` are fields that have no column."""
    stored = _stored_fields(kind).items()
    return kind(**{field: _restored(type_, row[name]) for name, (field, type_, _) in stored}, **others)


@cache
def _stored_fields(record: type[IsDataclass]) -> dict[str, tuple[str, Any, Column]]:
    """Column name to the name, the type and the column of each field that has one."""
    stored = {}
    hints = get_type_hints(record, include_extras=True)
    for one in fields(record):
        for column in getattr(hints[one.name], "__metadata__", ()):
            stored[column.name or one.name] = one.name, hints[one.name].__origin__, column
    return stored


def _restored(kind: Any, value: Any) -> Any:
    """`value` as the field had it: SQLite knows neither NaN nor truth values."""
    if kind is float and value is None:
        return float("nan")
    return bool(value) if kind is bool else value
