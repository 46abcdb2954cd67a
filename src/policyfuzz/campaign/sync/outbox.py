"""What an instance tells others about itself, and the numbered files in which it tells what it found."""

import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.campaign.sync.parcels import (
    ABOUT,
    FOLDER,
    PROGRESS,
    DamagedFile,
    Parcel,
    read_page,
    write_page,
    write_parcel,
)
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress


@dataclass(frozen=True, slots=True)
class About:
    """Who an instance is, as it says itself."""

    instance: str  #: the same for all its life, whatever its folder is called
    host: str  #: machine that it was last started on
    target: str
    policy_sha256: str
    code_sha256: str
    dimensions: list[list[Any]]  #: name, kind and range of each
    config: str  #: all of the configuration, as text

    @classmethod
    def of(cls, campaign: CampaignReader, host: str) -> "About":
        """Who the instance with this `campaign` is."""
        config = campaign.config
        return cls(
            instance=campaign.about["instance"],
            host=host,
            target=config.target,
            policy_sha256=config.policy_sha256,
            code_sha256=config.code_sha256,
            dimensions=[[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions],
            config=config.to_json(),
        )

    @classmethod
    def read(cls, folder: Path) -> "About":
        """Who the instance with the campaign in `folder` is."""
        page = read_page(folder, ABOUT)
        values: dict[str, Any] = {field.name: page.get(field.name) for field in fields(cls)}
        wrong = [name for name, value in values.items() if not isinstance(value, str)]
        if wrong != ["dimensions"] or not isinstance(values["dimensions"], list):
            raise DamagedFile(f"{ABOUT} is damaged: it does not say all that it should")
        return cls(**values)

    def page(self) -> dict[str, Any]:
        """As about.json says it."""
        return asdict(self)

    def settings(self) -> CampaignConfig:
        """All of the configuration."""
        try:
            return CampaignConfig.from_json(self.config)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{ABOUT} is damaged: its configuration cannot be read") from error

    def strangeness(self, other: "About") -> str | None:
        """Why nothing can be exchanged with the `other`, for a reader; None where it can."""
        if self.target != other.target:
            return f"it fuzzes {other.target}, not {self.target}"
        if self.policy_sha256 != other.policy_sha256:
            return "it tests another policy"
        if self.code_sha256 != other.code_sha256:
            return "the files that its target is written in differ from those here"
        if self.dimensions != other.dimensions:
            return "its inputs have other dimensions"
        return None


def instance_folders(folder: Path) -> Iterator[Path]:
    """Folders of instances in `folder`, by name; those that show nothing yet are left out."""
    yield from sorted(path.parent.parent for path in folder.glob(f"*/exchange/{ABOUT}"))


#: Cases of each sort in one parcel; the most recent ones if there are more. A fast search keeps more than
#: others can run, and writing it down would take time.
_MOST = 1024


@dataclass(slots=True)
class Outbox:
    """Writes the parcels of one instance. What came from others is not sent on."""

    store: CampaignReader  #: only read here
    about: About = field(init=False)
    _parcels: int = field(init=False, default=0)  #: sent so far
    _entries: int = field(init=False, default=0)  #: corpus entries that were looked through
    _findings: int = field(init=False, default=0)  #: number of the last one sent
    _is_open: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.about = About.of(self.store, platform.node())

    def show(self, progress: Progress, stop_reason: str | None) -> int:
        """Write what has come up since the last time; return how many cases that are."""
        is_first = not self._is_open
        if is_first:
            self._resume()
        sent = self._send(progress)
        self._show_progress(progress, stop_reason)
        if is_first:  # others look here once this file is there
            write_page(self.store.folder, ABOUT, self.about.page())
            self._is_open = True
        return sent

    def _resume(self) -> None:
        """Go on behind what earlier parts of the campaign have sent."""
        try:
            page = read_page(self.store.folder, PROGRESS)
            numbers = [int(page[name]) for name in ("parcels", "entries", "findings")]
            self._parcels, self._entries, self._findings = numbers
        except FileNotFoundError:
            pass  # there was none
        except (DamagedFile, KeyError, TypeError, ValueError):
            # others must not take new parcels for old ones; what was sent is sent again
            sent = (self.store.folder / FOLDER).glob("[0-9]*.npz")
            self._parcels = max((int(path.stem) for path in sent), default=0)

    def _send(self, progress: Progress) -> int:
        newer = f"id > {self._findings} AND is_distinct AND origin IS NULL"
        findings = list(self.store.latest("findings", newer, _MOST))
        # a sample says nothing that others would not sample themselves
        newer = f"id >= {self._entries} AND parent IS NOT NULL AND NOT is_crash AND origin IS NULL"
        entries = list(self.store.latest("seeds", newer, _MOST))
        if findings or entries:
            write_parcel(self.store.folder, self._parcels + 1, self._packed(findings, entries))
            self._parcels += 1
        self._findings = findings[0]["id"] if findings else self._findings
        self._entries = progress.corpus
        return len(findings) + len(entries)

    def _packed(self, findings: list[dict[str, Any]], entries: list[dict[str, Any]]) -> Parcel:
        rows = [*findings, *entries]
        columns = [str(dimension["column"]) for dimension in self.store.dimensions]
        nan = float("nan")
        return Parcel(
            np.array([[row[column] for column in columns] for row in rows], np.float64),
            np.array([row["case_seed"] for row in rows], np.uint64),
            np.array([nan if row["return"] is None else row["return"] for row in rows], np.float64),
            np.array([row["id"] for row in findings] + [0] * len(entries), np.int64),
        )

    def _show_progress(self, progress: Progress, stop_reason: str | None) -> None:
        last = next(self.store.latest("findings", f"status = '{CONFIRMED}'", 1), None)
        page = {
            "parcels": self._parcels,
            "entries": self._entries,
            "findings": self._findings,
            "at": time.time(),
            "stop_reason": stop_reason,
            "last_finding_seconds": last and last["seconds"],
            "progress": asdict(progress),
        }
        write_page(self.store.folder, PROGRESS, page)
