"""Whole campaigns in a folder that is thrown away, for benchmarks."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.events import Listener
from policyfuzz.core.settings import Budget, CampaignConfig, SearchSettings, StopReason
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import InlineExecutor, MakeExecutor
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress
from policyfuzz.store.writer import CampaignWriter


def run_campaign(
    target: Target,
    executions: int,
    strategy: str = "mdpfuzz",
    search: SearchSettings | None = None,
    make_executor: MakeExecutor = InlineExecutor,
    listener: Listener = lambda _event: None,
) -> Progress:
    """Totals of a campaign of so many episodes."""
    config = CampaignConfig(
        target.name,
        strategy=strategy,
        batch_size=target.batch_size,
        search=search or SearchSettings(),
    )
    with finished_campaign(target, executions, config, make_executor, listener) as store:
        return store.progress()


@contextmanager
def finished_campaign(
    target: Target,
    executions: int,
    config: CampaignConfig,
    make_executor: MakeExecutor = InlineExecutor,
    listener: Listener = lambda _event: None,
    accept_unhealthy: bool = False,
) -> Iterator[CampaignReader]:
    """A campaign of so many episodes that has been run; it can be read until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        store = CampaignWriter.create(Path(folder), config, target.inputs)
        try:
            budget = Budget(executions=executions)
            campaign = Campaign(target, store, budget, listener, accept_unhealthy, make_executor)
            if campaign.run() is StopReason.INTERRUPTED:
                raise KeyboardInterrupt  # half a campaign is no result
            yield store
        finally:
            store.close()
