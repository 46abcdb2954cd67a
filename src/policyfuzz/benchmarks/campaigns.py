"""Whole campaigns in a folder that is thrown away, for benchmarks."""

import tempfile
from pathlib import Path

from policyfuzz.campaign.budget import Budget
from policyfuzz.campaign.config import CampaignConfig
from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.events import Listener
from policyfuzz.campaign.records import Progress
from policyfuzz.campaign.writer import CampaignWriter
from policyfuzz.executors.inline import InlineExecutor
from policyfuzz.executors.protocol import MakeExecutor
from policyfuzz.search.strategies import SearchSettings
from policyfuzz.target import Target


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
    with tempfile.TemporaryDirectory() as folder:
        store = CampaignWriter.create(Path(folder), config, target.inputs)
        try:
            budget = Budget(executions=executions)
            Campaign(target, store, budget, listener, make_executor=make_executor).run()
            return store.progress()
        finally:
            store.close()
