"""Whole campaigns for benchmarks: run in a folder that is thrown away, or large and made up."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from policyfuzz.campaign.events import Listener
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import Budget, CampaignOptions, StopReason
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import InlineExecutor, MakeExecutor
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, BatchRecord, Finding, Progress
from policyfuzz.store.writer import CampaignWriter
from policyfuzz.targets.registry import load_target

#: What large campaigns are made up of.
LARGE_TARGET = "ripple:dimensions=4,probability=0.3"
#: Findings that are written in one transaction, and of how many one is distinct.
_AT_ONCE, _PER_DISTINCT = 5000, 10


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


def write_large(folder: Path, size: int) -> Path:
    """A campaign that ran for a moment, with further findings up to `size`, as its writer stores them."""
    target = load_target(LARGE_TARGET)
    launch(target, Budget(executions=500), folder=folder, force=True)
    store, rng = CampaignWriter(folder), np.random.default_rng(0)
    now, first = store.progress(), (store.last_number("findings") or 0) + 1
    while first <= size:
        numbers = range(first, min(first + _AT_ONCE, size + 1))
        now = replace(
            now,
            batch=now.batch + 1,
            seconds=now.seconds + 1.0,
            executions=now.executions + 2 * len(numbers),
            findings=now.findings + len(numbers),
            distinct_findings=now.distinct_findings + sum(number % _PER_DISTINCT == 0 for number in numbers),
        )
        inputs = target.inputs.sample(rng, len(numbers))
        drawn = rng.random((len(numbers), 3))
        behaviours = rng.normal(size=(len(numbers), DESCRIPTOR_SIZE))
        found = [
            Finding(
                id=number,
                status=CONFIRMED,
                is_distinct=number % _PER_DISTINCT == 0,
                is_novel=number % _PER_DISTINCT == 0,
                kind=("caught", "late", "far out")[number % 3],
                crash_step=int(100 * step),
                episode_return=-10 * earned,
                margin=-margin,
                outcome=number,
                repeats=number % 7,
                root=number,
                behaviour=json.dumps(behaviour.tolist()),
                reseeded=None,
                reseeded_crashes=None,
                survived_by=None,
                parent=None,
                case_seed=number,
                batch=now.batch,
                execution=now.executions,
                seconds=now.seconds,
                origin=None,
                input=row,
            )
            for number, row, behaviour, (step, earned, margin) in zip(
                numbers, inputs, behaviours, drawn.tolist(), strict=True
            )
        ]
        store.commit(BatchRecord(now, findings=found))
        first = numbers[-1] + 1
    store.close()
    return folder
