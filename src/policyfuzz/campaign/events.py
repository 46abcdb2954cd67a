"""What happens in a campaign. The engine emits events and never knows who listens."""

from collections.abc import Callable
from dataclasses import dataclass

from policyfuzz.campaign.budget import Budget, StopReason
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.core.target import Diagnosis
from policyfuzz.store.records import FailedEpisode, Finding, Progress


@dataclass(frozen=True, slots=True)
class Started:
    """The campaign begins, or goes on."""

    config: CampaignConfig
    budget: Budget
    folder: str
    progress: Progress  #: what earlier parts have done
    workers: int = 1  #: that were asked for

    @property
    def advice(self) -> str:
        """What the user had better know about so many workers; mostly nothing."""
        in_flight = self.config.batch_size * self.config.window
        if self.workers == 1 or in_flight >= 2 * self.workers:
            return ""
        return (
            f"{in_flight} episodes are in flight, too few to keep {self.workers} workers busy;"
            " a larger --batch or --window helps, and is another campaign"
        )


@dataclass(frozen=True, slots=True)
class Examined:
    """The nominal episodes have been looked at."""

    diagnoses: list[Diagnosis]


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch has been run, learnt and stored."""

    progress: Progress
    findings: list[Finding]  #: new ones
    failed: list[FailedEpisode]  #: what could not be run to its end


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The other instances have been looked at."""

    peers: list[str]  #: names of those that something is exchanged with
    shown: int  #: cases of this campaign that they can take from now on
    received: int  #: cases of theirs that wait to be run here
    left_out: int  #: older cases that were more than there is room for
    troubles: list[str]  #: what is wrong with some of them, each told once


@dataclass(frozen=True, slots=True)
class Waiting:
    """There is work and nobody to do it: workers are starting, or a cluster has no room for them."""

    workers: int  #: that were asked for

    def __str__(self) -> str:
        return f"waiting for workers: none of {self.workers} is ready yet"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The campaign is over for now."""

    reason: StopReason
    progress: Progress


Event = Started | Examined | BatchDone | Exchanged | Waiting | Stopped
Listener = Callable[[Event], None]
