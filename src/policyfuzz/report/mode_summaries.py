"""Failure modes of a campaign, with what triage knows of their findings."""

import math
from dataclasses import dataclass
from statistics import median

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_file import Triage
from policyfuzz.store.triage_records import (
    DECIDED,
    DELAYS_ONLY,
    FRAGILE,
    NONE_FOUND,
    WITNESS,
    Avoidance,
    Mode,
)

#: Of a mode that is named on a command line: M3.
_PREFIX = "m"
#: Digits of a number at most: SQLite knows no larger ones.
_LONGEST_NUMBER = 18


@dataclass(frozen=True, slots=True)
class ModeSummary:
    """One failure mode: what its findings have in common, and what became of those that were tried."""

    mode: Mode
    representative: Finding
    avoidance: Avoidance | None  #: of the representative
    tried: int  #: findings for which a witness was looked for
    witnesses: int
    delays_only: int
    none_found: int
    fragile: int  #: findings that nearly any small disturbance saves
    decided: int  #: findings with a point of no return
    steps_before_crash: float  #: median of these: from the point of no return to the crash; NaN without one

    @property
    def counts(self) -> dict[str, float]:
        """What became of the findings that were tried, by name."""
        names = (
            "tried",
            "witnesses",
            "delays_only",
            "none_found",
            "fragile",
            "decided",
            "steps_before_crash",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def avoidable_text(self) -> str:
        """Whether its crashes could have been avoided, for a reader."""
        if not self.tried:
            return "not known whether it can be avoided"
        parts = [f"{self.witnesses} of {self.tried} tried can be avoided"]
        parts += [f"{self.delays_only} only delayed"] if self.delays_only else []
        parts += [f"for {self.none_found} no way was found, which proves nothing"] if self.none_found else []
        return ", ".join(parts)

    @property
    def decided_text(self) -> str:
        """How long before the crash it was decided, for a reader; empty if that is not known."""
        parts = []
        if self.decided:
            of = "" if self.decided == self.tried else f"{self.decided} of {self.tried} "
            parts.append(f"{of}decided {self.steps_before_crash:.0f} steps before the crash (median)")
        if self.fragile:
            parts.append(f"{self.fragile} of {self.tried} fragile: nearly any small disturbance saves them")
        return ", ".join(parts)


def mode_summaries(campaign: CampaignReader, triage: Triage) -> list[ModeSummary]:
    """All failure modes of `campaign`, the worst first; none if they are not known."""
    return [] if triage.modes is None else [summary_of(campaign, triage, one) for one in triage.modes.modes]


def summary_of(campaign: CampaignReader, triage: Triage, mode: Mode) -> ModeSummary:
    """`mode` with what is known of its findings."""
    members = frozenset(mode.members)  # there may be many, and few of them have been tried
    tried = {
        int(number): known.avoidance
        for number, known in triage.findings.items()
        if known.avoidance is not None and int(number) in members
    }
    verdicts = [one.verdict for one in tried.values()]
    before = [
        campaign.finding(number).crash_step - one.last_chance
        for number, one in tried.items()
        if one.standing == DECIDED and one.last_chance is not None
    ]
    return ModeSummary(
        mode=mode,
        representative=campaign.finding(mode.representative),
        avoidance=triage.of(mode.representative).avoidance,
        tried=len(tried),
        witnesses=verdicts.count(WITNESS),
        delays_only=verdicts.count(DELAYS_ONLY),
        none_found=verdicts.count(NONE_FOUND),
        fragile=sum(one.standing == FRAGILE for one in tried.values()),
        decided=len(before),
        steps_before_crash=median(before) if before else math.nan,
    )


def find_mode(triage: Triage, name: str) -> Mode | None:
    """The mode that `name`, such as M3, names; None if it names no mode but perhaps a finding."""
    if not name.lower().startswith(_PREFIX):
        return None
    number = name[len(_PREFIX) :]
    modes = () if triage.modes is None else triage.modes.modes
    if not modes:
        raise CampaignError("the failure modes are not known yet", "run policyfuzz triage DIR first")
    found = next((one for one in modes if number == str(one.number)), None)
    if found is None:
        raise UsageError(f"there is no mode {name!r}", f"expected M1 to M{len(modes)}")
    return found


def error_number(name: str) -> int:
    """The number of an error that `name` is."""
    if not name.isdecimal() or len(name) > _LONGEST_NUMBER:
        raise UsageError(f"{name!r} is no number of an error", "policyfuzz show DIR --errors lists them")
    return int(name)


def finding_named(campaign: CampaignReader, triage: Triage, name: str) -> Finding:
    """The finding that `name` names: its number, or the mode that it represents."""
    mode = find_mode(triage, name)
    if mode is not None:
        return campaign.finding(mode.representative)
    if not name.isdecimal() or len(name) > _LONGEST_NUMBER:
        raise UsageError(
            f"{name!r} names no finding",
            "give its number, or a failure mode such as M1, see policyfuzz show DIR",
        )
    return campaign.finding(int(name))
