"""Runs a command of the user's for each new mode while a campaign runs: a message, a ticket.

What the command gets to know goes into its environment and its standard input, and never into its text:
names of kinds and inputs come from targets and files, and a shell would obey what they say.
"""

import json
import math
import os
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from policyfuzz.campaign.new_modes import NewMode
from policyfuzz.core.inputs import Choice, InputSpace
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.core.target import IN_MEMORY
from policyfuzz.core.visible import visible_line
from policyfuzz.execution.processes.reaper import kill_group
from policyfuzz.store.records import row_of

#: What the commands print, in the folder of the campaign.
LOG_NAME = "on-finding.log"
#: Seconds that a command may take, and that all that wait have when the campaign is over.
COMMAND_SECONDS, LAST_SECONDS = 60.0, 30.0
#: New modes that may wait for their command; more are left out.
_MOST_WAITING = 100
#: New modes of a campaign that get a command, whatever parts it is run in: nobody reads more messages.
MOST_COMMANDS = 100
#: Bytes that one command may print, and of the whole log.
_MOST_PRINTED, _LARGEST_LOG = 1_000_000, 10_000_000
#: Seconds between two looks at a command that runs.
_LOOK_SECONDS = 0.05
#: Characters of a variable: systems allow some 128 kB for one.
_LONGEST_VALUE = 4000


def facts_of(
    mode: NewMode, folder: Path, config: CampaignConfig, space: InputSpace, trust: bool
) -> dict[str, Any]:
    """All that a command gets to know of `mode`; `trust` if its replay runs code that a name names."""
    finding, folder = mode.finding, folder.absolute()
    row = {name: value for name, value in row_of(finding).items() if name not in ("outcome", "behaviour")}
    inputs = {
        one.name: one.options[int(value)] if isinstance(one, Choice) else value
        for one, value in zip(space.dimensions, finding.input.tolist(), strict=True)
    }
    command = f"policyfuzz replay {shlex.quote(str(folder))} {finding.id}{' --trust' if trust else ''}"
    return {
        "campaign": str(folder),
        "target": config.target,
        "policy": config.policy,
        "strategy": config.strategy,
        "seed": config.seed,
        "mode": mode.number,
        "is_first_of_kind": mode.is_first_of_kind,
        "finding": _plain(row) | {"input": _plain(inputs)},
        # nobody can rebuild what lives in a Python program
        "replay": None if config.target.startswith(f"{IN_MEMORY}:") else command,
    }


def variables_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """The most important `facts` as environment variables, each on one line."""
    finding = facts["finding"]
    values = {
        "CAMPAIGN": facts["campaign"],
        "TARGET": facts["target"],
        "MODE": facts["mode"],
        "FINDING": finding["id"],
        "KIND": finding["kind"],
        "STEP": finding["crash_step"],
        "RETURN": finding["return"],
        "MARGIN": finding["margin"],
        "EXECUTION": finding["execution"],
        "REPLAY": facts["replay"],
    }
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    return {f"POLICYFUZZ_{name}": visible_line(text)[:_LONGEST_VALUE] for name, text in texts.items()}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` without NaN and infinities, which JSON does not know."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


@dataclass(slots=True)
class FindingCommands:
    """Runs `command` for new modes, one at a time, in a thread that only waits.

    A command that fails, hangs or cannot be started costs nothing but itself. `say` hears of it once.
    """

    command: str
    say: Callable[[str], None]
    command_seconds: float = COMMAND_SECONDS
    _waiting: "queue.Queue[tuple[Path, dict[str, Any]] | None]" = field(init=False)
    _thread: threading.Thread | None = field(init=False, default=None)
    _left_out: int = field(init=False, default=0)
    _untold: int = field(init=False, default=0)  #: new modes beyond MOST_COMMANDS
    _troubles: list[str] = field(init=False, default_factory=list)  #: of commands that failed
    _has_said: bool = field(init=False, default=False)
    _is_over: threading.Event = field(init=False, default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._waiting = queue.Queue(_MOST_WAITING)

    def add(self, folder: Path, facts: dict[str, Any]) -> None:
        """Run the command for the new mode of the campaign in `folder` that `facts` tell of."""
        if facts["mode"] > MOST_COMMANDS:
            if not self._untold:
                self.say(f"--on-finding: {MOST_COMMANDS:,} new modes were told, and no more will be")
            self._untold += 1
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait((folder, facts))
        except queue.Full:
            self._left_out += 1

    def look(self) -> None:
        """Say what went wrong, at the first time."""
        if self._troubles and not self._has_said:
            self._has_said = True
            self.say(f"--on-finding: {self._troubles[0]}")

    @property
    def is_busy(self) -> bool:
        """True if a command runs or waits."""
        return self._waiting.unfinished_tasks > 0

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Wait for what is due for at most so many `seconds`, and end the rest."""
        if self._thread is None:
            return
        end = time.monotonic() + seconds
        while self.is_busy and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        self._is_over.set()
        self._left_out += self._drained()
        self._thread.join()
        self._thread = None
        self.look()
        if len(self._troubles) > 1:
            self.say(f"--on-finding: {len(self._troubles):,} commands failed, see {LOG_NAME}")
        if self._left_out:
            self.say(f"--on-finding: for {self._left_out:,} new modes there was no time to run the command")

    def _drained(self) -> int:
        """Empty the queue, tell the thread to end, and return how many were left out."""
        count = 0
        while True:
            try:
                self._waiting.get_nowait()
                count += 1
            except queue.Empty:
                self._waiting.put(None)
                return count

    def _work(self) -> None:
        while (due := self._waiting.get()) is not None:
            folder, facts = due
            try:
                if trouble := self._run(folder, facts):
                    self._troubles.append(f"{trouble} for finding {facts['finding']['id']}")
            except Exception as error:  # no trouble of a command is worth a campaign
                self._troubles.append(f"the command cannot be run: {error}")
            self._waiting.task_done()

    def _run(self, folder: Path, facts: dict[str, Any]) -> str:
        """Run the command; return what went wrong, empty if nothing did."""
        with TemporaryFile() as given, os.fdopen(_open_log(folder), "ab", buffering=0) as log:
            given.write(json.dumps(facts, allow_nan=False).encode() + b"\n")
            given.seek(0)
            log.write(f"--- finding {facts['finding']['id']}\n".encode())
            process = subprocess.Popen(
                self.command,
                shell=True,  # it is the user's own text, and nothing is put into it
                stdin=given,
                stdout=log,
                stderr=log,
                env=os.environ | variables_of(facts),
                start_new_session=True,  # Ctrl-C is for the campaign
            )
            trouble = self._watch(process, log.fileno())
            if trouble:
                log.write(f"--- {trouble}\n".encode())
        return f"{trouble}, see {folder / LOG_NAME}," if trouble else ""

    def _watch(self, process: "subprocess.Popen[bytes]", log: int) -> str:
        """Wait for `process`, and end it when it takes too long or prints too much."""
        end, first = time.monotonic() + self.command_seconds, os.fstat(log).st_size
        trouble = ""
        while not trouble:
            try:
                code = process.wait(_LOOK_SECONDS)
                return f"the command ended with exit code {code}" if code else ""
            except subprocess.TimeoutExpired:
                pass
            if time.monotonic() > end:
                trouble = f"the command was ended after {self.command_seconds:g} s"
            elif os.fstat(log).st_size - first > _MOST_PRINTED:
                trouble = f"the command was ended because it printed more than {_MOST_PRINTED:,} bytes"
            elif self._is_over.is_set():
                trouble = "the command was ended with the campaign"
        kill_group(process.pid)
        process.wait()
        return trouble


def _open_log(folder: Path) -> int:
    """Descriptor of the log in `folder`, which begins anew when it is large; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    log = os.open(folder / LOG_NAME, flags, 0o666)
    if os.fstat(log).st_size > _LARGEST_LOG:
        os.ftruncate(log, 0)
    return log
