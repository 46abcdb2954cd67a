"""Triage of a whole campaign: its failure modes, then witnesses and boundaries of some findings of each."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import MakeBranchRunner, RunBranches, Target
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_file import FindingTriage, Triage, add_to_triage, triage_of
from policyfuzz.store.triage_records import Mode
from policyfuzz.triage.avoidance import find_witnesses
from policyfuzz.triage.boundary import find_boundary
from policyfuzz.triage.modes import ModeSettings, behaviours_of, find_modes
from policyfuzz.triage.point_of_no_return import recorded_actions
from policyfuzz.triage.replay import check_same_code, is_safe_to_run
from policyfuzz.triage.witness import Crash, WitnessSettings

#: Findings that are run one after another to see how long episodes take, while that takes no longer.
_TRIALS, _QUICK_SECONDS = (1, 1, 8, 64), 2.0
#: Share of a budget that modes may take, and the least of findings, draws and neighbours that they need.
_MODES_SHARE, _LEAST, _LEAST_NEIGHBOURS = 0.6, 20, 8
#: Called with what is being done, how much of it is done, and how much there is.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class TriageSettings:
    """How much to find out."""

    per_mode: int = 4  #: findings of each mode for which a witness is looked for
    max_execs: int | None = None  #: episodes at most, None for as many as it takes
    max_seconds: float | None = None
    modes: ModeSettings = field(default_factory=ModeSettings)
    witness: WitnessSettings = field(default_factory=WitnessSettings)


class BudgetSpent(Exception):
    """No more episodes may be run."""


class Meter:
    """Counts the episodes of some runners, and stops them when there have been enough."""

    def __init__(self, settings: TriageSettings, episodes: int = 0, seconds_spent: float = 0.0) -> None:
        """Begin after so many `episodes` and seconds."""
        self.episodes = episodes
        self.rate = 0.0  #: episodes per second, 0 before that was measured
        self._most = math.inf if settings.max_execs is None else settings.max_execs
        seconds = math.inf if settings.max_seconds is None else settings.max_seconds
        self._started = time.monotonic() - seconds_spent
        self._end = self._started + seconds

    @property
    def has_deadline(self) -> bool:
        """True if time is limited."""
        return not math.isinf(self._end)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._started

    @property
    def affordable(self) -> float:
        """Episodes that are left, by their number, and by the time that is left at the latest `rate`."""
        by_time = math.inf
        if not math.isinf(self._end):
            by_time = (self._end - time.monotonic()) * self.rate
        return max(0.0, min(self._most - self.episodes, by_time))

    def of(self, run: RunBranches) -> RunBranches:
        """`run`, counted; raises `BudgetSpent` instead of running more than is allowed."""

        def counted(
            inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *, branches: Branches | None = None
        ) -> Executions:
            if self.episodes + len(inputs) > self._most or time.monotonic() > self._end:
                raise BudgetSpent
            self.episodes += len(inputs)
            return run(inputs, seeds, branches=branches)

        return counted


@dataclass(frozen=True, slots=True)
class Triaged:
    """What triage has done."""

    triage: Triage  #: all that is known now
    episodes: int  #: that it took
    seconds: float
    is_complete: bool  #: False if the budget ended before


def triage_campaign(
    campaign: CampaignReader,
    target: Target,
    make_runner: MakeBranchRunner,
    settings: TriageSettings,
    tell: Tell = lambda _what, _done, _count: None,
) -> Triaged:
    """Find the failure modes of `campaign`, and look for witnesses and boundaries of some findings of each.

    What is found out is stored at once. What is stored already is not run again; modes are looked for again
    if there are new findings.
    """
    check_same_code(campaign, target)
    instance = campaign.about.get("instance", "")
    meter = Meter(settings)
    run = meter.of(make_runner(target))
    is_complete = True
    try:
        _find_modes(campaign, instance, target, run, meter, settings, tell)
        _find_witnesses(campaign, instance, target, run, make_runner, meter, settings, tell)
        _find_boundaries(campaign, instance, target, run, tell)
    except BudgetSpent:
        is_complete = False
    return Triaged(triage_of(campaign), meter.episodes, meter.seconds, is_complete)


def chosen_members(campaign: CampaignReader, mode: Mode, count: int) -> list[Finding]:
    """`count` findings of `mode`: its representative, then the worst of other lineages, then the worst.

    Distinct ones, if there are enough; a mode may have a hundred thousand members.
    """
    first = campaign.finding(mode.representative)
    members = set(mode.members) - {mode.representative}
    others = [one for one in campaign.records(Finding, "findings", "is_distinct") if one.id in members]
    if len(others) + 1 < count:
        further = sorted(members - {one.id for one in others})
        others += [campaign.finding(number) for number in further[: count - len(others) - 1]]
    others.sort(key=lambda one: (math.isnan(one.margin), one.margin, one.id))
    seen = {first.root}
    of_new_lines: list[Finding] = []
    rest: list[Finding] = []
    for one in others:
        (rest if one.root in seen else of_new_lines).append(one)
        seen.add(one.root)
    return [first, *of_new_lines, *rest][:count]


def _find_modes(
    campaign: CampaignReader,
    instance: str,
    target: Target,
    run: RunBranches,
    meter: Meter,
    settings: TriageSettings,
    tell: Tell,
) -> None:
    with campaign.snapshot():
        findings = list(campaign.records(Finding, "findings", "status = ?", (CONFIRMED,)))
        progress = campaign.progress()
        # a random draw that repeats a known outcome is no finding, so they cannot be counted then
        samples = 0 if progress.repeats else progress.samples
    known = triage_of(campaign).modes
    chosen = _within_budget(settings.modes, findings, run, meter)
    if known is not None and (known.modes or not findings):
        was_enough = known.draws >= chosen.draws and known.run_again >= min(chosen.findings, len(findings))
        if known.findings == len(findings) and was_enough:
            return
    modes = find_modes(
        target,
        findings,
        behaviours_of(campaign, findings),
        run,
        seed=campaign.config.seed,
        samples=samples,
        state_names=tuple(getattr(target.simulator(), "state_names", ())),
        settings=chosen,
        report=lambda done, count: tell("failure modes", done, count),
    )
    add_to_triage(campaign.folder, instance, modes=modes)


def _within_budget(
    wanted: ModeSettings, findings: Sequence[Finding], run: RunBranches, meter: Meter
) -> ModeSettings:
    """`wanted`, or less of everything if the budget is small; most of it goes to modes, which come first."""
    for count in _TRIALS if meter.has_deadline else ():  # the first compiles what is to be timed
        first, started, quick = findings[:count], time.monotonic(), meter.rate * _QUICK_SECONDS
        if not first or (meter.rate and count > quick):
            break
        run(np.array([one.input for one in first]), np.array([one.case_seed for one in first], np.uint64))
        meter.rate = len(first) / max(time.monotonic() - started, 1e-9)
    most = min(wanted.findings, len(findings))
    share = _MODES_SHARE * meter.affordable / (most + wanted.draws + 4 * wanted.neighbours)
    if share >= 1:
        return wanted
    return ModeSettings(
        findings=max(_LEAST, int(share * most)),
        draws=max(_LEAST, int(share * wanted.draws)),
        neighbours=max(_LEAST_NEIGHBOURS, int(share * wanted.neighbours)),
    )


def _find_witnesses(
    campaign: CampaignReader,
    instance: str,
    target: Target,
    run: RunBranches,
    make_runner: MakeBranchRunner,
    meter: Meter,
    settings: TriageSettings,
    tell: Tell,
) -> None:
    if target.actions is None:
        return
    triage = triage_of(campaign)
    modes = () if triage.modes is None else triage.modes.modes
    by_mode = [chosen_members(campaign, mode, settings.per_mode) for mode in modes]
    wanted = [one for turn in _in_turn(by_mode) for one in turn if triage.of(one.id).avoidance is None]
    if not wanted:
        return
    run_longer = meter.of(make_runner(target.prolonged(settings.witness.longer)))
    crashes = [
        Crash(one.input, one.case_seed, one.crash_step, one.kind, one.episode_return) for one in wanted
    ]
    # what the policy did is looked up in this process, which an episode may hang or kill
    look = recorded_actions(target) if is_safe_to_run(campaign) else None
    found = find_witnesses(target, crashes, run, run_longer, settings.witness, look)
    tell("witnesses", 0, len(wanted))
    for done, (place, avoidance) in enumerate(found, start=1):
        add_to_triage(campaign.folder, instance, {wanted[place].id: FindingTriage(avoidance=avoidance)})
        tell("witnesses", done, len(wanted))


def _find_boundaries(
    campaign: CampaignReader, instance: str, target: Target, run: RunBranches, tell: Tell
) -> None:
    triage = triage_of(campaign)
    modes = () if triage.modes is None else triage.modes.modes
    wanted = [one.representative for one in modes if triage.of(one.representative).boundary is None]
    for done, number in enumerate(wanted):
        tell("boundaries", done, len(wanted))
        finding = campaign.finding(number)
        boundary = find_boundary(target, run, finding.input, finding.case_seed)
        add_to_triage(campaign.folder, instance, {number: FindingTriage(boundary=boundary)})


def _in_turn(lists: Iterable[list[Finding]]) -> list[list[Finding]]:
    """The first of all `lists`, then the second of all, and so on."""
    given = list(lists)
    longest = max(map(len, given), default=0)
    return [[one[turn] for one in given if len(one) > turn] for turn in range(longest)]
