"""What happens in a campaign. The engine emits events and never knows who listens."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.settings import Budget, CampaignConfig, StopReason
from policyfuzz.core.target import Diagnosis
from policyfuzz.store.records import FailedEpisode, Finding, Progress, SeedTrial, Verdict


@dataclass(frozen=True, slots=True)
class Started:
    """The campaign starts or resumes."""

    config: CampaignConfig
    budget: Budget
    folder: str
    progress: Progress  #: what earlier parts have done
    workers: int = 1  #: requested


@dataclass(frozen=True, slots=True)
class Examined:
    """The health check has examined the nominal episodes."""

    diagnoses: list[Diagnosis]


@dataclass(frozen=True, slots=True, eq=False)
class BatchEpisodes:
    """The n episodes of a batch that the search asked for or imported, in numbers."""

    returns: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  #: (n,)
    margins: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  #: (n,) NaN if not known
    is_random: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))  #: (n,) random draws
    emitters: Mapping[str, int] = field(default_factory=dict)  #: how many each proposed; empty if unnamed


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch has been run, learnt from and stored."""

    progress: Progress
    findings: list[Finding]  #: new ones
    failed: list[FailedEpisode]  #: episodes that could not be run to their end
    verdicts: list[Verdict] = field(default_factory=list)  #: on earlier findings that were run again
    trials: list[SeedTrial] = field(default_factory=list)  #: of findings with other case seeds that are over
    episodes: BatchEpisodes = field(default_factory=BatchEpisodes)


@dataclass(frozen=True, slots=True)
class Synced:
    """The campaign has synced with other instances."""

    instances: list[str]  #: names of the others
    written: int  #: cases of this campaign that the others can now read
    queued: int  #: cases of the others that now wait to be run here
    dropped: int  #: older cases of the others for which there was no room
    troubles: list[str]  #: what is wrong with some instances, each reported once


@dataclass(frozen=True, slots=True)
class Waiting:
    """No worker is ready to run the work: they are starting, or a cluster has no room for them."""

    workers: int  #: requested

    def __str__(self) -> str:
        return f"waiting for workers: none of {self.workers} is ready yet"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The campaign is over for now."""

    reason: StopReason
    progress: Progress


Event = Started | Examined | BatchDone | Synced | Waiting | Stopped
Listener = Callable[[Event], None]


class Stop(Exception):
    """Raised by a listener: the campaign ends after this batch and keeps everything it found."""
