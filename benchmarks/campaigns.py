"""Whole campaigns in a folder that is thrown away, for benchmarks."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policyfuzz.campaign.events import Listener
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import Budget, CampaignOptions, StopReason
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import InlineExecutor, MakeExecutor
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress


def run_campaign(
    target: Target,
    executions: int,
    options: CampaignOptions,
    make_executor: MakeExecutor = InlineExecutor,
    listeners: tuple[Listener, ...] = (),
) -> Progress:
    """Totals of a campaign of so many episodes."""
    with finished_campaign(target, executions, options, make_executor, listeners) as campaign:
        return campaign.progress()


@contextmanager
def finished_campaign(
    target: Target,
    executions: int,
    options: CampaignOptions,
    make_executor: MakeExecutor = InlineExecutor,
    listeners: tuple[Listener, ...] = (),
    force: bool = False,
) -> Iterator[CampaignReader]:
    """A campaign of so many episodes that has been run; it can be read until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        launched = launch(
            target,
            Budget(executions=executions),
            options,
            folder=Path(folder),
            make_executor=make_executor,
            listeners=listeners,
            force=force,
        )
        if launched.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt  # half a campaign is no result
        yield CampaignReader(launched.folder)
