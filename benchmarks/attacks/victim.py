"""The campaign that is attacked, the same one left alone, and how the two are compared."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz import CampaignReader
from policyfuzz.core.errors import CampaignError, PolicyFuzzError

RIPPLE = "ripple:dimensions=3,probability=0.003"
#: Columns that tell of time and of who ran episodes, by the end of their names; all others must be equal.
_OTHERWISE = ("seconds", "workers", "workers_ready", "restarts")
_TABLES = ("findings", "seeds", "errors", "batches")
#: Seconds between looks at a campaign.
_GLANCE = 0.003


class AttackFailed(PolicyFuzzError):
    """A campaign did something else than it must, before it could be compared."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one kind of attack."""

    attack: str
    times: int  #: that it was really done
    differences: tuple[str, ...] = ()
    remark: str = ""
    is_possible: bool = True  #: False where the machine does not permit it; the remark says why


@dataclass(slots=True)
class Victim:
    """A campaign of some episodes in folders under `work`; `seed` decides what it finds.

    The one left alone lies beside `work`, and serves all attacks.
    """

    work: Path
    seed: int
    executions: int = 8_000
    target: Sequence[str] = (RIPPLE,)
    environment: dict[str, str] | None = None
    _whole: dict[str, str] = field(default_factory=dict)

    @property
    def undisturbed(self) -> Path:
        """Folder of the campaign that is left alone."""
        return self.work.parent / f"whole-{self.executions}-{self.seed}"

    def command(self, folder: Path, *options: str) -> list[str]:
        """The command line that begins the campaign in `folder`, or goes on with it."""
        limits = ["--max-execs", str(self.executions), "--seed", str(self.seed), "--ui", "none", "--json"]
        resume = ["--resume"] if batches(folder) else []
        fuzz = [sys.executable, "-m", "policyfuzz", "fuzz", *self.target]
        return [*fuzz, *limits, *resume, "-o", str(folder), *options]

    def start(self, folder: Path, *options: str, **popen: Any) -> "subprocess.Popen[str]":
        """Start the campaign as a process."""
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        command = self.command(folder, *options)
        return subprocess.Popen(command, env=self.environment, **(pipes | popen))

    def finish(self, folder: Path, *options: str) -> list[str]:
        """Run the campaign in `folder` to its end; what then differs from the one left alone."""
        process = self.start(folder, *options)
        complain_unless(process, 0, 1)
        return self.differences(folder)

    def differences(self, folder: Path) -> list[str]:
        """Tables of the campaign in `folder` that are not those of the one left alone."""
        mine = digests(folder)
        return [f"{folder.name}: {name}" for name, whole in self.whole().items() if mine[name] != whole]

    def whole(self) -> dict[str, str]:
        """Digests of the campaign that nobody disturbs."""
        if not self._whole:
            if not self.undisturbed.exists():
                complain_unless(self.start(self.undisturbed), 0, 1)
            self._whole.update(digests(self.undisturbed))
        return self._whole

    def last_batch(self) -> int:
        """Number of the last batch of the whole campaign."""
        self.whole()
        return batches(self.undisturbed)

    def moments(self, count: int, rng: np.random.Generator) -> list[int]:
        """`count` different batches, in order, none so late that the campaign may end meanwhile."""
        return sorted(1 + rng.choice(self.last_batch() * 3 // 4, count, replace=False))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each table, without the columns that may differ, and its number of rows."""
    reader = CampaignReader(folder)
    try:
        return {name: _digest(reader, name) for name in _TABLES}
    finally:
        reader.close()


def _digest(reader: CampaignReader, table: str) -> str:
    digest, rows = hashlib.sha256(), 0
    for row in reader.iterate(table):
        rows += 1
        is_text_free = row.get("kind") in ("crashed", "hung")  # numbers of processes, places in memory
        kept = [
            (name, value)
            for name, value in row.items()
            if not name.endswith(_OTHERWISE) and not (is_text_free and name == "text")
        ]
        digest.update(repr(kept).encode())
    return f"{rows} rows, {digest.hexdigest()}"


def batches(folder: Path) -> int:
    """Batches that are stored in `folder`; 0 if there is no campaign yet."""
    with suppress(CampaignError):
        reader = CampaignReader(folder)
        try:
            return reader.progress().batch
        finally:
            reader.close()
    return 0


def reaches(process: "subprocess.Popen[str]", folder: Path, batch: int) -> bool:
    """Wait until `batch` is stored in `folder`; False if `process` has ended before."""
    while batches(folder) < batch:
        if process.poll() is not None:
            return False
        time.sleep(_GLANCE)
    return process.poll() is None


def complain_unless(process: "subprocess.Popen[str]", *codes: int) -> str:
    """Wait for the end of `process`, and raise if its exit code is another; what it said."""
    _, said = process.communicate()
    if process.returncode not in codes:
        raise AttackFailed(f"exit code {process.returncode}, expected {codes}: {said}")
    return said
