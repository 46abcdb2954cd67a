"""The target that is checked: its episodes, and short campaigns on it."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.campaign.events import BatchDone, Event, Listener
from policyfuzz.campaign.launch import launch
from policyfuzz.core.errors import PolicyFuzzError
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import Budget, CampaignOptions, StopReason
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.cases import Cases
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.targets.registry import load_target


class Violation(PolicyFuzzError):
    """A target breaks a guarantee that search and campaign rely on."""

    exit_code = 3


@dataclass(frozen=True)
class Subject:
    """The target called `name`, some of its episodes, and how long a campaign on it may be."""

    name: str
    policy: str | None = None
    episodes: int = 6
    executions: int = 24  #: of a campaign
    seed: int = 0
    trust: bool = False  #: load a policy from a file that can run code while it is loaded

    @cached_property
    def target(self) -> Target:
        """Built from its name, as workers and replays do."""
        return load_target(self.name, self.policy, self.trust)

    @property
    def policy_uri(self) -> str | None:
        """The URI that loads the same policy again."""
        return self.target.policy_uri or self.policy

    @cached_property
    def cases(self) -> Cases:
        """Valid and solvable draws."""
        return make_fuzzer("random", self.target, seed=self.seed).ask(self.episodes)

    @cached_property
    def runner(self) -> Runner:
        """Used by all checks, one after another."""
        return Runner(self.target)

    @cached_property
    def executions_together(self) -> Executions:
        """Of all `cases` in one batch."""
        return self.run(self.cases)

    def run(self, cases: Cases, runner: Runner | None = None) -> Executions:
        """Run `cases` in one batch."""
        return (runner or self.runner)(cases.inputs, cases.seeds)

    @cached_property
    def campaign(self) -> "CampaignResults":
        """Results of a short campaign without interruption."""
        return self.run_campaign()

    def run_campaign(self, listener: Listener = lambda _event: None, runs: int = 1) -> "CampaignResults":
        """Results of a short campaign, resumed until it was run `runs` times: `listener` may interrupt it."""
        options = CampaignOptions(
            seed=self.seed,
            batch=min(self.target.batch_size, max(self.executions // 6, 1)),
            samples=max(self.executions // 3, 1),
        )
        budget = Budget(executions=self.executions)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for run in range(runs):
                launched = launch(
                    self.target,
                    budget,
                    options,
                    policy=self.policy,
                    folder=folder,
                    resume=run > 0,
                    listeners=(listener,),
                )
                if launched.reason is StopReason.UNHEALTHY:
                    raise Violation("the health check refuses every campaign", "see the diagnoses above it")
            return CampaignResults.of(CampaignReader(folder))


@dataclass(frozen=True, slots=True)
class CampaignResults:
    """What a campaign found."""

    findings: list[Finding]
    rows: list[Any]  #: everything but times: must be the same in every run

    @staticmethod
    def of(campaign: CampaignReader) -> "CampaignResults":
        """The results of a campaign that has ended."""
        rows: list[Any] = [campaign.progress().executions]
        for table in ("findings", "seeds"):
            found = campaign.iterate(table)
            rows += [tuple(value for name, value in row.items() if name != "seconds") for row in found]
        return CampaignResults(campaign.findings(), rows)


def interrupt_after(batches: int) -> Callable[[Event], None]:
    """A listener that stops a campaign once, after so many batches."""
    left = iter((True,))

    def listen(event: Event) -> None:
        if isinstance(event, BatchDone) and event.progress.batch == batches and next(left, False):
            raise KeyboardInterrupt

    return listen


def differences(first: Executions, second: Executions) -> list[str]:
    """Names of the parts of the results that differ in any bit."""
    # states are padded to the longest episode of their batch; lengths tell where the padding begins
    common = min(first.states.shape[1], second.states.shape[1])
    pairs = {
        "length": (first.lengths, second.lengths),
        "return": (first.returns, second.returns),
        "states": (first.states[:, :common], second.states[:, :common]),
        "kind of crash": (first.verdicts.kinds, second.verdicts.kinds),
        "step of the crash": (first.verdicts.steps, second.verdicts.steps),
    }
    return [name for name, (one, two) in pairs.items() if one.shape != two.shape or not _is_equal(one, two)]


def _is_equal(one: Any, two: Any) -> bool:
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))
