"""Judges crashes before they count: whether they happen again, are luck, or kill every reference."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.health import NOISE, UNUSED
from policyfuzz.campaign.outcomes import OutcomeSet
from policyfuzz.campaign.queues import Confirmations
from policyfuzz.campaign.seed_trials import REWARDED, SeedTrials, holds
from policyfuzz.campaign.tracker import ProgressTracker
from policyfuzz.core.executions import Executions, Outcome
from policyfuzz.core.target import MakeRunner, Run, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.state import State, prefixed, substate
from policyfuzz.store.records import CONFIRMED, FLAKY, NEW, UNSOLVED, Finding, SeedTrial, Verdict
from policyfuzz.store.writer import CampaignWriter


@dataclass(frozen=True, slots=True)
class Besides:
    """Episodes that were run besides a batch, each for the case at one of its rows."""

    rows: NDArray[np.int64]  #: (m,)
    cases: Cases
    executions: Executions

    def places(self, found: Mapping[int, int], repeats: Set[int]) -> tuple[dict[int, int], set[int]]:
        """`found`, findings by row of the batch, and `repeats`, rows of it, by place among these episodes."""
        rows = list(enumerate(self.rows.tolist()))
        return {place: found[row] for place, row in rows if row in found}, {
            place for place, row in rows if row in repeats
        }


@dataclass(slots=True)
class FindingsJudge:
    """Keeps the findings that wait for a judgement, and judges them in the order of their runs."""

    store: CampaignWriter
    fuzzer: Fuzzer
    references: Sequence[Target]  #: the same target with other policies
    make_runner: MakeRunner  #: for the references
    clock: TimeSplit
    confirmations: Confirmations = field(init=False)
    trials: SeedTrials = field(init=False)
    outcomes: OutcomeSet = field(init=False, default_factory=OutcomeSet)  #: of all but flaky findings
    lineages: set[int] = field(init=False, default_factory=set)  #: roots of confirmed findings
    _findings: dict[int, Finding] = field(init=False, default_factory=dict)  #: without a verdict
    _candidates: int = field(init=False, default=0)  #: confirmed findings that were novel
    _run_references: list[Run] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        dimensions = len(self.fuzzer.space.dimensions)
        self.confirmations = Confirmations(dimensions)
        self.trials = SeedTrials(dimensions, self.fuzzer.seed)

    def add(self, findings: list[Finding], outcomes: list[Outcome], emitters: NDArray[np.int64]) -> None:
        """Take new `findings` of `emitters` (n,), whose second run should have the same `outcomes`."""
        self._findings |= {finding.id: finding for finding in findings}
        self.confirmations.add(findings, outcomes, emitters)

    def verdicts(
        self, cases: Cases, executions: Executions, tracker: ProgressTracker
    ) -> tuple[list[Verdict], list[Besides]]:
        """Judge the findings whose second run this was; return also the runs of reference policies."""
        judged = self.confirmations.judge(cases, executions)
        findings = [self._findings.pop(number) for number, _ in judged]
        statuses = [status for _, status in judged]
        is_confirmed = np.array([status == CONFIRMED for status in statuses], np.bool_)
        survivors, compared = self._survivors(cases, is_confirmed)
        verdicts, imported = [], 0
        for row, finding in enumerate(findings):
            if self.references and is_confirmed[row] and survivors[row] is None:
                statuses[row] = UNSOLVED
            if statuses[row] == FLAKY and finding.outcome is not None:
                self.outcomes.discard(finding.outcome)
            is_finding = statuses[row] == CONFIRMED
            if is_finding:
                imported += finding.origin is not None
                self.lineages.add(-1 if finding.root is None else finding.root)
            is_candidate = is_finding and finding.is_novel
            self._candidates += is_candidate
            is_tried = is_candidate and (self.fuzzer.is_noisy or self._is_doubted)
            if is_tried:
                is_rewarded = not self.fuzzer.is_noisy or finding.origin is not None
                emitter = REWARDED if is_rewarded else int(cases.emitters[row])
                self.trials.add(finding, emitter)
            is_distinct = is_candidate and not is_tried
            verdicts.append(Verdict(finding.id, statuses[row], is_distinct, survivors[row]))
        tracker.count_verdicts(verdicts, imported)
        return verdicts, compared

    def _survivors(self, cases: Cases, wanted: NDArray[np.bool_]) -> tuple[list[str | None], list[Besides]]:
        """The first reference policy that survives each of the `wanted` (n,) cases, None where none does.

        Returns also what was run to find out.
        """
        survivors: list[str | None] = [None] * len(cases)
        compared: list[Besides] = []
        left = np.flatnonzero(wanted)
        for place, reference in enumerate(self.references):
            if not len(left):
                break
            if place == len(self._run_references):  # built when it is needed
                self._run_references.append(self.make_runner(reference))
            with self.clock.activity("simulate"):
                runs = self._run_references[place](cases.inputs[left], cases.seeds[left])
            purposes = np.full(len(left), int(Purpose.COMPARE), np.int64)
            compared.append(Besides(left, replace(cases[left], purposes=purposes), runs))
            survives = runs.sound & ~runs.crashed
            for row in left[survives].tolist():
                survivors[row] = reference.policy_uri or reference.policy_name
            left = left[~survives]
        return survivors, compared

    @property
    def _is_doubted(self) -> bool:
        """True if the latest candidate, the 1st, 2nd, 4th or so on, is tried though the seed looks unused."""
        is_unused = self.store.about.get("case_seed") == UNUSED
        return is_unused and self._candidates & (self._candidates - 1) == 0

    def _doubt_all(self, tracker: ProgressTracker) -> list[SeedTrial]:
        """The seed makes noise after all: begin trials of everything that was called distinct without one."""
        self.store.note("case_seed", NOISE)
        self.fuzzer.is_noisy = True
        untried = list(self.store.records(Finding, "findings", "is_distinct AND reseeded IS NULL"))
        for finding in untried:
            self.trials.add(finding, REWARDED)
        tracker.doubt(len(untried))
        return [SeedTrial(finding.id, 0, 0, False) for finding in untried]

    def luck(
        self, cases: Cases, runs: Executions, tracker: ProgressTracker
    ) -> tuple[list[SeedTrial], NDArray[np.int64]]:
        """The trials that these `runs` with other case seeds end, and the entries with a new energy."""
        rate = tracker.progress.sample_crash_rate
        over = self.trials.learn(cases, runs)
        trials = [
            SeedTrial(one.finding, one.runs, one.crashes, holds(one.crashes, one.runs, rate)) for one in over
        ]
        tracker.count_trials(runs, trials)
        if not self.fuzzer.is_noisy and any(one.crashes < one.runs for one in over):
            trials += self._doubt_all(tracker)
        held = [
            one.case
            for one, trial in zip(over, trials, strict=False)
            if trial.is_distinct and one.case.emitters[0] != REWARDED
        ]
        if not held:
            return trials, np.empty(0, np.int64)
        return trials, self.fuzzer.credit(Cases.concatenate(held))

    def state(self) -> dict[str, NDArray[Any]]:
        """What waits, as arrays; the findings themselves are in the campaign file."""
        return {
            "candidates": np.array([self._candidates]),
            **prefixed("confirm.", self.confirmations.state()),
            **prefixed("trials.", self.trials.state()),
        }

    def restore(self, state: State) -> None:
        """Continue from a `state` and the campaign file."""
        self._candidates = int(state["candidates"][0])
        self.outcomes.restore(self.store.whole_numbers("outcome", "status <> ?", (FLAKY,)))
        self.lineages = set(self.store.whole_numbers("root", "status = ?", (CONFIRMED,)).tolist())
        self.confirmations.restore(substate("confirm.", state))
        self.trials.restore(substate("trials.", state))
        waiting = self.store.records(Finding, "findings", "status = ?", (NEW,))
        self._findings = {finding.id: finding for finding in waiting}
        if not self.confirmations.numbers <= self._findings.keys():
            raise ValueError("findings that wait for a second run are not stored as new")
