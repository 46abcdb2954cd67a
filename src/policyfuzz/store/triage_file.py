"""What was learnt about findings after their campaign: a JSON file beside it, which locks nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.store.results_beside import read_beside, write_beside
from policyfuzz.store.triage_records import Avoidance, Boundary, Mode, Modes

FILE_NAME = "triage.json"
#: More than all findings of any campaign need.
_MOST_BYTES = 1_000_000_000
#: No finding is run more often.
_MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class FindingTriage:
    """What running a finding again has shown."""

    survived_by: tuple[str, ...] = ()  #: reference policies that do not crash
    not_survived_by: tuple[str, ...] = ()  #: reference policies that crash, too
    seeds_tried: int = 0  #: other case seeds that it was run with
    seeds: int = 0  #: of these, runs that came to their end
    seed_crashes: int = 0  #: how many of these crashed
    avoidance: Avoidance | None = None  #: could the crash be avoided? None if that was not tried
    boundary: Boundary | None = None  #: how far is it from safe? None if that was not tried

    def __post_init__(self) -> None:
        counts = 0, self.seed_crashes, self.seeds, self.seeds_tried, _MOST_RUNS
        if list(counts) != sorted(counts):
            raise ValueError(f"{self.seed_crashes} of {self.seeds} runs crashed")

    def added_to(self, finding: Finding) -> Finding:
        """`finding` with what is known of it now."""
        survived = ", ".join(dict.fromkeys([*filter(None, [finding.survived_by]), *self.survived_by])) or None
        if not self.seeds:
            return replace(finding, survived_by=survived)
        return replace(finding, survived_by=survived, reseeded=self.seeds, reseeded_crashes=self.seed_crashes)

    def merged(self, other: "FindingTriage") -> "FindingTriage":
        """What both say, by which has more of it."""
        seeds = max(self, other, key=lambda one: one.seeds_tried)
        return replace(
            seeds,
            survived_by=tuple(dict.fromkeys([*self.survived_by, *other.survived_by])),
            not_survived_by=tuple(dict.fromkeys([*self.not_survived_by, *other.not_survived_by])),
            avoidance=self.avoidance or other.avoidance,
            boundary=self.boundary or other.boundary,
        )


@dataclass(frozen=True, slots=True)
class Triage:
    """All that is known of a campaign's findings beyond the campaign itself."""

    instance: str  #: the campaign that it is about
    findings: dict[str, FindingTriage] = field(default_factory=dict)  #: by number of the finding, as text
    modes: Modes | None = None

    def __post_init__(self) -> None:
        if not all(number.isdecimal() and len(number) < 20 for number in self.findings):
            raise ValueError("a finding has no number")

    def of(self, number: int) -> FindingTriage:
        """What is known of the finding of this `number`."""
        return self.findings.get(str(number), FindingTriage())

    def mode_of(self, number: int) -> Mode | None:
        """The mode that the finding of this `number` belongs to, if that is known."""
        modes = () if self.modes is None else self.modes.modes
        return next((mode for mode in modes if number in mode.members), None)


def read_triage(folder: Path, instance: str) -> Triage:
    """What is known of the findings of the campaign `instance` in `folder`.

    Nothing without a file, or if it is of a campaign that was there before.
    """
    found = read_beside(folder, FILE_NAME, Triage, _MOST_BYTES)
    return found if found is not None and found.instance == instance else Triage(instance)


def triage_of(campaign: CampaignReader) -> Triage:
    """What is known of the findings of `campaign`."""
    return read_triage(campaign.folder, campaign.about.get("instance", ""))


def add_to_triage(
    folder: Path,
    instance: str,
    findings: Mapping[int, FindingTriage] | None = None,
    modes: Modes | None = None,
) -> Triage:
    """Write what was learnt, and return all that is known now: another command may write meanwhile, too."""
    known = read_triage(folder, instance)
    merged = dict(known.findings)
    for number, one in (findings or {}).items():
        merged[str(number)] = one.merged(known.of(number))
    triage = Triage(
        instance, dict(sorted(merged.items(), key=lambda item: int(item[0]))), modes or known.modes
    )
    write_beside(folder, FILE_NAME, triage)
    return triage
