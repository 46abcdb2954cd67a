"""Result files: one for each part that is done; the page is written from these alone.

What a part found and what it cost are kept apart. The same part with the same code finds the same; what it
cost depends on the machine.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.store.plain_records import to_plain

#: Of the files; a change of their content or meaning makes a new one.
FORMAT = 1
#: What the name of a part begins with that is a campaign; its strategy follows.
CAMPAIGN = "campaign-"


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be equal for a stored result to be used instead of running a part again."""

    part: str
    label: str  #: of the scenario
    budget: str
    size: dict[str, int]
    seed: int
    policy_sha256: str
    rules: str  #: fingerprint of what counts as a finding, see `benchmarks.versus.rules`
    code: str  #: digest of the code that decides the numbers

    def differences(self, other: "Identity") -> str:
        """How `other` differs, for a reader; empty if it does not."""
        mine, its = asdict(self), asdict(other)
        return ", ".join(
            f"{name} was {its[name]!r}, now {mine[name]!r}" for name in mine if mine[name] != its[name]
        )

    def is_outdated(self, stored: "Identity") -> bool:
        """True if `stored` differs in nothing but the code."""
        return self != stored and self == replace(stored, code=self.code)


@dataclass(frozen=True, slots=True)
class Result:
    """What one part found, and what that cost."""

    identity: Identity
    found: dict[str, Any]  #: plain data, the same in every run
    costs: dict[str, Any]  #: seconds, and shares of them
    about: dict[str, Any] = field(default_factory=dict)  #: machine, versions, date, command

    def save(self, path: Path) -> None:
        """Write the file, all of it or nothing."""
        facts = {
            "format": FORMAT,
            "identity": asdict(self.identity),
            "found": to_plain(self.found),
            "costs": to_plain(self.costs),
            "about": self.about,
        }
        text = json.dumps(facts, indent=1, sort_keys=True, allow_nan=False)
        make_folder_of(path)
        with whole_file(path) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> Result:
    """The result in a file."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']}, this version writes {FORMAT}")
        identity = Identity(**facts["identity"])
        return Result(identity, dict(facts["found"]), dict(facts["costs"]), dict(facts["about"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CampaignError(
            f"{path} holds no result of the paper's bench: {error}", "delete it, and run the bench again"
        ) from error


def load_all(out: Path) -> list[Result]:
    """All results below `out`."""
    return [load(path) for path in sorted(out.glob("*/*/*.json"))]


@cache
def code_digest(folders: tuple[str, ...]) -> str:
    """The first digits of a hash of all code in `folders` of the package."""
    digest = hashlib.sha256()
    for folder in folders:
        for name, content in _sources(resources.files("policyfuzz").joinpath(folder), folder):
            digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:12]


def _sources(folder: Traversable, name: str) -> Iterable[tuple[str, bytes]]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _sources(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(".py"):
            yield f"{name}/{entry.name}", entry.read_bytes()
