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

    survived_by: str | None = None  #: a reference policy
    not_survived_by: tuple[str, ...] = ()  #: reference policies that crash, too
    seeds: int = 0  #: other case seeds that it was run with
    seed_crashes: int = 0  #: how many of these crashed

    def added_to(self, finding: Finding) -> Finding:
        """`finding` with what is known of it now."""
        survived = self.survived_by or finding.survived_by
        if not self.seeds:
            return replace(finding, survived_by=survived)
        return replace(finding, survived_by=survived, reseeded=self.seeds, reseeded_crashes=self.seed_crashes)


def read_second_looks(folder: Path) -> dict[int, SecondLook]:
    """What is known of the findings of the campaign in `folder`, by their number; nothing without a file."""
    path = folder / FILE_NAME
    if not path.is_file():
        return {}
    try:
        values = json.loads(read_regular(path, _MOST_BYTES, CampaignError))
        return {int(number): _look_of(**one) for number, one in values["findings"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}", hint="remove it, and run policyfuzz triage again"
        ) from error


def second_looks_text(looks: Mapping[int, SecondLook]) -> str:
    """The content of the file for these `looks`."""
    findings = {str(number): asdict(look) for number, look in sorted(looks.items())}
    return json.dumps({"findings": findings}, indent=1)


def _look_of(survived_by: Any, not_survived_by: Any, seeds: Any, seed_crashes: Any) -> SecondLook:
    """A look from the values of a file that a stranger may have written."""
    names = [survived_by or "", *not_survived_by]
    if not all(isinstance(name, str) for name in names) or isinstance(not_survived_by, str):
        raise ValueError("a policy has no name")
    counts = seed_crashes, seeds
    if any(type(one) is not int for one in counts) or not 0 <= seed_crashes <= seeds <= _MOST_RUNS:
        raise ValueError(f"{seed_crashes!r} of {seeds!r} runs crashed")
    return SecondLook(survived_by, tuple(not_survived_by), seeds, seed_crashes)
