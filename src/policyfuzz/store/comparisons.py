"""What two policies did on the same cases: a JSON file that a comparison goes on from, and locks nothing."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.store.plain_records import to_plain

#: Groups of cases: findings of the campaign of each policy, and the random pool.
FINDINGS_OF_A, FINDINGS_OF_B, POOL = "findings of A", "findings of B", "pool"
#: What an episode came to. An error is a fault of the environment, and says nothing about the policy.
PASSES, FAILS, ERROR = "passes", "fails", "error"
#: More than any comparison needs.
_MOST_BYTES = 1_000_000_000
_KEY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Ending:
    """How one policy ended one episode."""

    what: str  #: PASSES, FAILS or ERROR
    kind: str | None = None  #: of the crash, None without one
    step: int | None = None  #: of the crash, None without one
    episode_return: float = math.nan

    @property
    def fails(self) -> bool:
        """True if the oracle fired."""
        return self.what == FAILS


#: Key of a case to how both policies ended it.
Endings = dict[str, tuple[Ending, Ending]]


def read_endings(path: Path, identity: str) -> Endings:
    """What the file at `path` knows of the comparison called `identity`; nothing without a file."""
    if not path.exists():
        return {}
    try:
        values = json.loads(read_regular(path, _MOST_BYTES, CampaignError))
        if type(values["comparison"]) is not str:
            raise ValueError("it does not say what was compared")
        endings = {_key(key): _pair(value) for key, value in values["cases"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CampaignError(
            f"{path} holds no comparison: {error!r:.100}", hint="name another file, or remove this one"
        ) from error
    if values["comparison"] != identity:
        raise CampaignError(
            f"{path} holds a comparison of other policies, or of another target",
            hint="name another file, or remove this one",
        )
    return endings


def endings_text(
    endings: Mapping[str, tuple[Ending, Ending]], identity: str, summary: Mapping[str, Any] | None = None
) -> str:
    """The content of the file for these `endings`, with the `summary` of a comparison that has ended."""
    cases = {key: [_values(one) for one in pair] for key, pair in endings.items()}
    known = {} if summary is None else {"summary": to_plain(summary)}
    return json.dumps({"comparison": identity, **known, "cases": cases}, allow_nan=False)


def _values(ending: Ending) -> list[Any]:
    known = ending.episode_return if math.isfinite(ending.episode_return) else None
    return [ending.what, ending.kind, ending.step, known]


def _key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key[:40]!r} is no case")
    return key


def _pair(value: Any) -> tuple[Ending, Ending]:
    """Two endings from the values of a file that a stranger may have written."""
    if type(value) is not list or len(value) != 2:
        raise ValueError("a case has not two endings")
    return _ending(*value[0]), _ending(*value[1])


def _ending(what: Any, kind: Any, step: Any, episode_return: Any) -> Ending:
    if what not in (PASSES, FAILS, ERROR):
        raise ValueError(f"an episode ended in {str(what)[:40]!r}")
    if (type(kind), type(step)) != ((str, int) if what == FAILS else (type(None), type(None))):
        raise ValueError(f"a crash is {kind!r:.40} at step {step!r:.40}")
    if type(episode_return) not in (float, int, type(None)):
        raise ValueError(f"a return is {episode_return!r:.40}")
    return Ending(what, kind, step, math.nan if episode_return is None else float(episode_return))
