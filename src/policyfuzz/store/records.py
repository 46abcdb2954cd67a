"""Frozen records of a campaign: what is written to the store and read back."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import EpisodeError

#: Status of a finding.
NEW, CONFIRMED, FLAKY = "new", "confirmed", "flaky"
#: Number of a finding that was run again, its status, and whether it is distinct.
Verdict = tuple[int, str, bool]


@dataclass(frozen=True, slots=True)
class Finding:
    """A valid, solvable input whose episode crashed."""

    id: int
    status: str
    is_distinct: bool
    kind: str
    crash_step: int
    episode_return: float
    parent: int | None  #: corpus entry it was changed from
    case_seed: int
    batch: int
    execution: int  #: how many episodes had been run when it was found
    seconds: float  #: campaign time when it was found
    origin: str | None  #: name of the instance it was taken from, None for what was found here
    input: NDArray[np.float64]  #: (d,)


@dataclass(frozen=True, slots=True)
class FailedEpisode:
    """An episode that could not be run to its end, through no fault of the policy."""

    id: int
    kind: str  #: see `episode_error`
    step: int
    text: str  #: the traceback, or what was wrong
    purpose: str  #: what the episode was run for
    finding: int | None  #: that it is, or was to confirm
    case_seed: int
    batch: int
    execution: int  #: how many episodes had been run
    seconds: float  #: campaign time
    input: NDArray[np.float64]  #: (d,)

    @property
    def summary(self) -> str:
        """What went wrong, in one line."""
        return EpisodeError(self.kind, self.step, self.text).summary


@dataclass(frozen=True, slots=True)
class Progress:
    """Totals of a campaign after some batch."""

    batch: int = 0
    seconds: float = 0.0
    executions: int = 0
    samples: int = 0
    sample_crashes: int = 0
    mutants: int = 0
    mutant_crashes: int = 0
    imports: int = 0  #: episodes of what other instances found
    findings: int = 0  #: confirmed
    distinct_findings: int = 0
    imported_findings: int = 0  #: confirmed, taken from other instances
    flaky: int = 0
    unconfirmed: int = 0
    errors: int = 0  #: episodes that could not be run to their end for another reason than the next two
    hangs: int = 0  #: episodes that gave no answer
    simulator_crashes: int = 0  #: episodes that took their worker process with them
    corpus: int = 0
    drawn: int = 0
    invalid: int = 0
    unsolvable: int = 0
    simulate_seconds: float = 0.0
    validate_seconds: float = 0.0
    density_seconds: float = 0.0
    search_seconds: float = 0.0
    store_seconds: float = 0.0
    workers: int = 1  #: that were asked for; 1 where episodes are run in the campaign's own process
    workers_ready: int = 1  #: of these when the last batch was done
    worker_seconds: float = 0.0  #: that workers were there for
    busy_seconds: float = 0.0  #: of these that they ran episodes
    restarts: int = 0  #: workers that had to be replaced
    fresh_share: float = float("nan")  #: in the last batch
    fresh_threshold: float = float("nan")

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
        """Share of drawn inputs that were valid and solvable."""
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
    """All that one batch adds to the store, in one transaction."""

    progress: Progress
    findings: list[Finding] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    failed: list[FailedEpisode] = field(default_factory=list)
    seed_inputs: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))  #: (k, d)
    seed_columns: dict[str, NDArray[Any]] = field(default_factory=dict)  #: see search.corpus.COLUMNS
    #: (k,) names of the instances that they were taken from, None for what was kept here; or empty for that
    seed_origins: list[str | None] = field(default_factory=list)
    first_seed: int = 0  #: entry number of the first new seed
    energies: list[tuple[float, int]] = field(default_factory=list)  #: energy and older entry
    state: dict[str, NDArray[Any]] = field(default_factory=dict)  #: what is needed to go on
