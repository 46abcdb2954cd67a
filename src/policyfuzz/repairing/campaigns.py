"""Campaigns of a repair: those that look for crashes to learn from, and those that judge the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.launch import launch
from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.settings import Budget, CampaignOptions, StopReason
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import ExecutorChoice
from policyfuzz.repairing.states import Cases
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding


@dataclass(frozen=True, slots=True)
class Found:
    """What a campaign found."""

    distinct: int
    lineages: int
    inputs: NDArray[np.float64]  #: (n, d) of the distinct findings


@dataclass(frozen=True, slots=True)
class Campaigns:
    """Runs campaigns, and continues those that are there."""

    choice: ExecutorChoice

    def run(
        self, target: Target, episodes: int, seed: int, folder: Path, strategy: str | None = None
    ) -> CampaignReader:
        """The campaign in `folder` once it has run so many `episodes`."""
        launched = launch(
            target,
            Budget(executions=episodes),
            CampaignOptions(strategy=strategy, seed=seed),
            policy=target.policy_uri,
            folder=folder,
            resume=folder.exists(),
            make_executor=self.choice.make_executor,
            make_runner=self.choice.make_runner,
            force=True,
        )
        if launched.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if launched.reason is StopReason.UNHEALTHY:
            bad = "; ".join(one.message for one in launched.bad_diagnoses)
            raise UnhealthyTarget(f"a candidate cannot be fuzzed with a meaningful result: {bad}")
        return CampaignReader(launched.folder)

    def crashes(self, target: Target, episodes: int, seed: int, folder: Path) -> Cases:
        """Confirmed findings of a campaign with the default strategy."""
        return crashes_of(self.run(target, episodes, seed, folder))

    def found(self, target: Target, episodes: int, seed: int, folder: Path, strategy: str) -> Found:
        """What a campaign with a `strategy` finds."""
        campaign = self.run(target, episodes, seed, folder, strategy)
        progress = campaign.progress()
        return Found(progress.distinct_findings, progress.lineages, campaign.distinct_inputs())


def crashes_of(campaign: CampaignReader) -> Cases:
    """All confirmed findings of `campaign`."""
    found = list(campaign.records(Finding, "findings", "status = ?", (CONFIRMED,)))
    return cases_of(found, len(campaign.dimensions))


def cases_of(findings: Sequence[Finding], width: int) -> Cases:
    """The inputs, of so many dimensions, and the case seeds of `findings`."""
    return Cases(
        np.array([one.input for one in findings], np.float64).reshape(len(findings), width),
        np.array([one.case_seed for one in findings], np.uint64),
    )
