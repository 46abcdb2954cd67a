"""What was learnt about findings after their campaign: a JSON file beside it, which locks nothing."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.store.records import Finding

FILE_NAME = "triage.json"
#: More than all findings of any campaign need.
_MOST_BYTES = 1_000_000_000
#: No finding is run more often.
_MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What running a finding again has shown."""

    survived_by: tuple[str, ...] = ()  #: reference policies that do not crash
    not_survived_by: tuple[str, ...] = ()  #: reference policies that crash, too
    seeds_tried: int = 0  #: other case seeds that it was run with
    seeds: int = 0  #: of these, runs that came to their end
    seed_crashes: int = 0  #: how many of these crashed

    def added_to(self, finding: Finding) -> Finding:
        """`finding` with what is known of it now."""
        survived = ", ".join(dict.fromkeys([*filter(None, [finding.survived_by]), *self.survived_by])) or None
        if not self.seeds:
            return replace(finding, survived_by=survived)
        return replace(finding, survived_by=survived, reseeded=self.seeds, reseeded_crashes=self.seed_crashes)

    def merged(self, other: "SecondLook") -> "SecondLook":
        """What both say, by which has more of it."""
        seeds = max(self, other, key=lambda one: one.seeds_tried)
        return replace(
            seeds,
            survived_by=tuple(dict.fromkeys([*self.survived_by, *other.survived_by])),
            not_survived_by=tuple(dict.fromkeys([*self.not_survived_by, *other.not_survived_by])),
        )


def read_second_looks(folder: Path, instance: str) -> dict[int, SecondLook]:
    """What is known of the findings of the campaign `instance` in `folder`, by their number.

    Nothing without a file, or if it is of a campaign that was there before.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return {}
    try:
        values = json.loads(read_regular(path, _MOST_BYTES, CampaignError))
        if values["instance"] != instance:
            return {}
        return {int(number): _look_of(**one) for number, one in values["findings"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}", hint="remove it, and run policyfuzz triage again"
        ) from error


def second_looks_text(looks: Mapping[int, SecondLook], instance: str) -> str:
    """The content of the file for these `looks` at the campaign `instance`."""
    findings = {str(number): asdict(look) for number, look in sorted(looks.items())}
    return json.dumps({"instance": instance, "findings": findings}, indent=1)


def _look_of(
    survived_by: Any, not_survived_by: Any, seeds_tried: Any, seeds: Any, seed_crashes: Any
) -> SecondLook:
    """A look from the values of a file that a stranger may have written."""
    if not all(type(names) is list for names in (survived_by, not_survived_by)):
        raise ValueError("policies are no list")
    if not all(type(name) is str for name in [*survived_by, *not_survived_by]):
        raise ValueError("a policy has no name")
    counts = seed_crashes, seeds, seeds_tried
    is_possible = all(type(one) is int for one in counts) and list(counts) == sorted(counts)
    if not is_possible or seed_crashes < 0 or seeds_tried > _MOST_RUNS:
        raise ValueError(f"{seed_crashes!r} of {seeds!r} runs crashed")
    return SecondLook(tuple(survived_by), tuple(not_survived_by), seeds_tried, seeds, seed_crashes)
