"""What triage finds out about findings and the modes that they fail in: frozen records of plain values."""

import math
from dataclasses import dataclass

from policyfuzz.core.branches import Segment

#: Verdicts on whether a crash could be avoided. NONE_FOUND says nothing about whether that is possible.
WITNESS, DELAYS_ONLY, NONE_FOUND = "witness", "delays only", "none found"
#: Why there is a point of no return, or none.
DECIDED, FRAGILE, NOT_MEANINGFUL, NOT_KNOWN = "decided", "fragile", "not meaningful", "not known"


@dataclass(frozen=True, slots=True)
class Avoidance:
    """Whether the crash of a finding could be avoided, how, and up to when."""

    verdict: str  #: WITNESS, DELAYS_ONLY or NONE_FOUND
    episodes: int  #: that were run to find out
    branch: tuple[Segment, ...] = ()  #: what the witness does instead of the policy
    words: str = ""  #: the same for a reader: "strong left from step 12 on"
    steps: int = 0  #: that the witness was followed for, beyond the horizon
    episode_return: float = math.nan  #: of the witness, within the horizon
    usual_return: float = math.nan  #: what nearby passing episodes earn at least; NaN if that is not known
    disturbances: int = 0  #: small disturbances of the policy's actions that were tried
    survived: int = 0  #: of these, how many did not crash
    standing: str = NOT_KNOWN  #: DECIDED, FRAGILE, NOT_MEANINGFUL or NOT_KNOWN
    last_chance: int | None = (
        None  #: point of no return: the last step at which a witness can still branch off
    )
    last_branch: tuple[Segment, ...] = ()  #: the witness that branches off there
    point_episodes: int = 0  #: that were run to find the point
    blamed: str = ""  #: what the policy did there, and what would have saved it


@dataclass(frozen=True, slots=True)
class Change:
    """The smallest change of one dimension that was found to avoid the crash."""

    dimension: str
    value: float  #: of the dimension after the change, which passes
    amount: float  #: the change, in the unit of the dimension
    unit: str = ""
    not_enough: float = 0.0  #: the largest smaller change that was tried and still crashes; 0 if none was


@dataclass(frozen=True, slots=True)
class Boundary:
    """How far a finding is from safe. All that it says crashes or passes was run."""

    crashing: tuple[float, ...]  #: the last input that crashes on the way
    passing: tuple[float, ...]  #: the nearest input found that passes; empty if none was
    distance: float  #: of the finding to it, in the unit cube; NaN if none was found
    gap: float  #: between the two sides, in the unit cube
    changes: tuple[Change, ...]  #: where one dimension alone was found to avoid the crash, smallest first
    no_matter: tuple[str, ...]  #: dimensions of which no value tried avoids it, all over their range
    episodes: int
    not_known: tuple[str, ...] = ()  #: dimensions of which too few values were tried
    crashes: bool = True  #: False: the finding itself passes now, and nothing else was tried


@dataclass(frozen=True, slots=True)
class Rule:
    """A box around a finding in which random inputs crash, checked on fresh draws."""

    low: tuple[float, ...]  #: in the units of the input
    high: tuple[float, ...]  #: of an angle it may lie beyond one turn
    precision: float  #: share of fresh draws from it that crash
    precision_low: float  #: 95 % interval
    precision_high: float
    coverage: float  #: share of other findings that lie in it; NaN without any
    episodes: int
    draws: int  #: fresh ones that the precision comes from
    others: int  #: findings that the coverage comes from


@dataclass(frozen=True, slots=True)
class RuleSearch:
    """Whether there is a rule around a finding."""

    rule: Rule | None
    episodes: int
    reason: str = ""  #: why there is none


@dataclass(frozen=True, slots=True)
class Mode:
    """Findings that fail alike: what a person would call one bug."""

    number: int  #: from 1, the worst first
    kind: str  #: of crash
    representative: int  #: number of the finding that shows it best
    members: tuple[int, ...]  #: numbers of all findings of the mode
    roots: int  #: lineages among them
    severity: float  #: the largest depth beyond the threshold; NaN where the oracle has none
    words: str = ""  #: one line for a reader
    share: float = math.nan  #: of the failure probability, from random crashes assigned to modes
    share_low: float = math.nan  #: 95 % interval
    share_high: float = math.nan
    random_crashes: int = 0  #: that were assigned to it
    robustness: float = math.nan  #: share of near neighbours of the representative that crash
    neighbours: int = 0  #: that were run for it


@dataclass(frozen=True, slots=True)
class Modes:
    """How the findings of a campaign fall into modes."""

    modes: tuple[Mode, ...]
    is_stable: bool  #: halves of the findings give the same modes
    agreement: float  #: adjusted Rand index between halves
    findings: int  #: that were looked at
    random_crashes: int  #: independent ones that shares come from
    random_draws: int
    reason: str = ""  #: why there is only one mode, or no stable ones
    draws: int = 0  #: random draws that were asked for
    run_again: int = 0  #: findings that were run again at most
