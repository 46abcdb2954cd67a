"""What a campaign comes to, in sentences: the verdict, and how likely a failure is."""

from dataclasses import dataclass
from typing import Protocol

from policyfuzz.core.settings import CampaignConfig, StopReason
from policyfuzz.report.commands import POLICY_OF_TARGET
from policyfuzz.report.statistics import FailureProbability, percentage
from policyfuzz.store.records import Progress
from policyfuzz.triage.estimate import Estimate, short

#: Verdicts: it fails, nothing was found, or nothing can be said.
FAILS, NOTHING_FOUND, UNKNOWN = "fails", "nothing found", "unknown"
#: What ended a campaign, for a reader.
_STOPPED = {
    "max-time": "its time was up",
    "max-execs": "its episodes were used up",
    "max-findings": "enough was found",
    "interrupted": "it was interrupted",
    "exhausted": "every start had been tried",
    "search-ended": "the strategy had nothing left to try",
    "unhealthy": "the target failed its health check",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a campaign comes to."""

    level: str  #: FAILS, NOTHING_FOUND or UNKNOWN
    sentence: str


class Standing(Protocol):
    """How a campaign stands."""

    @property
    def config(self) -> CampaignConfig: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def stop_reason(self) -> str | None: ...
    @property
    def mode_count(self) -> int: ...
    @property
    def has_stable_modes(self) -> bool: ...
    @property
    def probability(self) -> FailureProbability: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def starts(self) -> tuple[int, int] | None: ...


def verdict(view: Standing) -> Verdict:
    """In one sentence, with what stands against it."""
    now = view.progress
    if view.stop_reason == StopReason.UNHEALTHY.value:
        return Verdict(UNKNOWN, "Nothing was searched: the target failed its health check.")
    if not now.completed:
        tried = f" None of {now.executions:,} episodes could be run." if now.executions else ""
        return Verdict(UNKNOWN, f"Nothing can be said yet: no episode has been run to its end.{tried}")
    episodes = f"{now.executions:,} episode{_s(now.executions)}"
    begin = "So far, the policy" if view.is_running else "The policy"
    if now.findings:
        found = f"{now.findings:,} confirmed failure{_s(now.findings)} in {episodes}"
        if view.has_stable_modes:
            count = view.mode_count
            ways = f"in {count:,} different ways" if count > 1 else "in one way"
            sentence = f"{begin} fails {ways}: {found}; {likelihood(view)}."
        else:
            parts = (
                f"{now.distinct_findings:,} of them distinct, from {now.lineages:,} lineage{_s(now.lineages)}"
            )
            sentence = f"{begin} fails: {found}, {parts}; {likelihood(view)}."
        return Verdict(FAILS, sentence + _against(view))
    begin = "So far, no failure" if view.is_running else "No failure"
    return Verdict(NOTHING_FOUND, f"{begin} was found in {episodes}; {likelihood(view)}.{_against(view)}")


def _against(view: Standing) -> str:
    """What a reader must know besides."""
    now, parts = view.progress, []
    if now.flaky:
        again = "when it was run again" if now.flaky == 1 else "when they were run again"
        parts.append(f"{now.flaky:,} more crash{'' if now.flaky == 1 else 'es'} did not repeat {again}")
    if now.failures:
        parts.append(f"{now.failures:,} episode{_s(now.failures)} could not be run")
    return f" Besides, {' and '.join(parts)}." if parts else ""


def likelihood(view: Standing) -> str:
    """How likely a failure is, as part of a sentence."""
    inputs = "valid, solvable inputs" if view.probability.of_solvable else "valid inputs"
    if view.starts is not None:
        total, crashing = view.starts
        return f"exactly {percentage(crashing / total)} of all {total:,} starts fail"
    if view.estimate is not None and not _is_wider(view.estimate, view.probability):
        if not view.estimate.probability > 0:
            return f"at most {_share(view.estimate.high)} of {inputs} fail (95 %)"
        interval = f"{_share(view.estimate.low)} to {_share(view.estimate.high)}"
        return f"about {_share(view.estimate.probability)} of {inputs} fail (95 %: {interval})"
    known = view.probability
    if not known.draws:
        return "the failure probability is not known"
    if not known.crashes:
        return f"at most {percentage(known.high)} of {inputs} fail (95 %)"
    interval = f"{percentage(known.low)} to {percentage(known.high)}"
    return f"about {percentage(known.probability)} of {inputs} fail (95 %: {interval})"


def _is_wider(estimate: Estimate, known: FailureProbability) -> bool:
    """True if the campaign's own random draws say more than the estimate beside it."""
    return bool(known.draws) and estimate.high - estimate.low > known.high - known.low


def _share(value: float) -> str:
    return percentage(value) if value >= 1e-4 else short(value)


def state_text(view: Standing) -> str:
    """Whether the campaign runs, or why it stopped; its subject is the campaign."""
    if view.is_running:
        return "is running"
    if view.stop_reason is None:
        return "did not stop cleanly; --resume continues it"
    return f"stopped, because {_STOPPED.get(view.stop_reason, view.stop_reason)}"


def policy_text(view: Standing) -> str:
    """What the policy is called."""
    return view.config.policy or POLICY_OF_TARGET


def _s(count: int) -> str:
    return "" if count == 1 else "s"
