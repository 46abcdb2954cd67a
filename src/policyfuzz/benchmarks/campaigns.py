"""Whole campaigns in a folder that is thrown away, for benchmarks."""

import tempfile
from pathlib import Path

from policyfuzz.campaign.budget import Budget
from policyfuzz.campaign.config import CampaignConfig
from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.records import Progress
from policyfuzz.campaign.writer import CampaignWriter
from policyfuzz.search.strategies import SearchSettings
from policyfuzz.target import Target


def run_campaign(
    target: Target, executions: int, strategy: str = "mdpfuzz", search: SearchSettings | None = None
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
            Campaign(target, store, Budget(executions=executions)).run()
            return store.progress()
        finally:
            store.close()
