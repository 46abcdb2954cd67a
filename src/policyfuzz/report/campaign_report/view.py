"""All that a report says of one campaign, read at one moment and without running anything."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.figures.history import Discovery, discovery
from policyfuzz.report.figures.sample import FindingSample, sample_findings
from policyfuzz.report.mode_summaries import ModeSummary, mode_summaries
from policyfuzz.report.ranking import representatives
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.database import is_being_written
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FLAKY, UNSOLVED, FailedEpisode, Finding, Progress
from policyfuzz.store.triage_file import Triage, triage_of
from policyfuzz.triage.estimate import Estimate
from policyfuzz.triage.stored_estimate import estimate_or_problem

#: Failure modes that are shown in full, and findings where there are no modes.
MOST_MODES, MOST_FINDINGS = 20, 8
#: Findings of each kind that do not count, and errors of each kind, that are listed.
_MOST_REJECTED, _MOST_ERROR_GROUPS = 10, 10
#: Errors that are looked at, the first ones: there may be as many as episodes.
_MOST_ERRORS = 2000


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Episodes that could not be run, and that failed alike."""

    kind: str
    summary: str
    count: int
    first: FailedEpisode


@dataclass(frozen=True, slots=True)
class Film:
    """A film or picture that shows a finding, or why there is none."""

    reason: str = ""  #: why there is no film; empty if there is one
    mime_type: str = ""
    data: bytes = field(default=b"", repr=False)
    still: bytes = field(default=b"", repr=False)  #: JPEG of the crash; empty without one


@dataclass(frozen=True, slots=True)
class CampaignView:
    """One campaign of a report."""

    campaign: CampaignReader
    name: str  #: its folder as it was given
    progress: Progress
    is_running: bool
    stop_reason: str | None
    triage: Triage
    modes: tuple[ModeSummary, ...]  #: the worst first, at most MOST_MODES
    examples: tuple[Finding, ...]  #: findings that stand for all, where modes are not known or not stable
    probability: FailureProbability
    estimate: Estimate | None  #: that lies beside the campaign
    estimate_problem: str  #: why it cannot be read, or empty
    starts: tuple[int, int] | None  #: how many there are and how many crash, if all were tried
    curve: Discovery
    sample: FindingSample
    flaky: tuple[Finding, ...]  #: the first of them
    unsolved: tuple[Finding, ...]
    lucky: tuple[Finding, ...]
    errors: tuple[ErrorGroup, ...]  #: the most frequent first
    errors_seen: int  #: errors that were looked at
    films: Mapping[int, Film] = field(default_factory=dict)  #: by number of the finding

    @property
    def config(self) -> CampaignConfig:
        """How it was set up."""
        return self.campaign.config

    @property
    def mode_count(self) -> int:
        """Failure modes that triage found; 0 before triage."""
        return 0 if self.triage.modes is None else len(self.triage.modes.modes)

    @property
    def has_stable_modes(self) -> bool:
        """True if triage found modes on which halves of the findings agree."""
        return self.triage.modes is not None and self.triage.modes.is_stable and bool(self.modes)

    @property
    def shown_findings(self) -> tuple[Finding, ...]:
        """Those that films are made of, the worst first."""
        return tuple(
            {one.id: one for one in (*(m.representative for m in self.modes), *self.examples)}.values()
        )


def read_view(folder: Path) -> CampaignView:
    """The campaign in `folder` as it is now; another process may be writing it."""
    campaign = CampaignReader(folder)
    is_running = is_being_written(folder)
    with campaign.snapshot():
        progress, triage = campaign.progress(), triage_of(campaign)
        stable = triage.modes is not None and triage.modes.is_stable
        errors, seen = _error_groups(campaign)
        estimate, problem = estimate_or_problem(campaign)
        return CampaignView(
            campaign=campaign,
            name=str(folder),
            progress=progress,
            is_running=is_running,
            stop_reason=None if is_running else campaign.stop_reason(),
            triage=triage,
            modes=tuple(mode_summaries(campaign, triage)[:MOST_MODES]),
            examples=() if stable or not progress.findings else tuple(_examples(campaign)),
            probability=FailureProbability.of_campaigns([progress], campaign.is_solvability_tested),
            estimate=estimate,
            estimate_problem=problem,
            starts=campaign.starts() if campaign.stop_reason() == "exhausted" else None,
            curve=discovery(campaign),
            sample=sample_findings(campaign, triage),
            flaky=_some(campaign, progress.flaky, f"status = '{FLAKY}'"),
            unsolved=_some(campaign, progress.unsolved, f"status = '{UNSOLVED}'"),
            lucky=_some(campaign, progress.lucky, "reseeded > 0 AND NOT is_distinct"),
            errors=errors,
            errors_seen=seen,
        )


def _examples(campaign: CampaignReader) -> list[Finding]:
    """Distinct findings that stand for all; the first ones where none is distinct."""
    return representatives(campaign, MOST_FINDINGS) or list(
        campaign.records(Finding, "findings", "status = 'confirmed'", most=MOST_FINDINGS)
    )


def _some(campaign: CampaignReader, total: int, where: str) -> tuple[Finding, ...]:
    """The first findings for which `where` holds; the table is not searched if `total` is 0."""
    return (
        tuple(campaign.records(Finding, "findings", where, most=min(total, _MOST_REJECTED))) if total else ()
    )


def _error_groups(campaign: CampaignReader) -> tuple[tuple[ErrorGroup, ...], int]:
    """Errors by what happened, and how many were looked at."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], FailedEpisode] = {}
    for one in campaign.failed_episodes(most=_MOST_ERRORS):
        key = one.kind, one.summary
        counts[key] += 1
        first.setdefault(key, one)
    groups = [ErrorGroup(*key, count, first[key]) for key, count in counts.most_common(_MOST_ERROR_GROUPS)]
    return tuple(groups), sum(counts.values())
