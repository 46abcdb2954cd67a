"""Stills of findings while their campaign runs: the picture at the crash, made in a process beside it.

The campaign never waits for one. A simulator that crashes or hangs while it is pictured costs the pictures,
and nothing else.
"""

import io
import mmap
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from policyfuzz.core.target import Target
from policyfuzz.execution.processes.isolated_process import ONE_THREAD, IsolatedProcess
from policyfuzz.execution.processes.reaper import Reaper, new_mark
from policyfuzz.execution.processes.worker import anonymous_file, end_before_coordinator, explain_exits
from policyfuzz.execution.shipping import pack, pack_for_coordinator, unpack
from policyfuzz.store.records import Finding

#: Seconds for one still, the start of the process included; and for all that wait when the campaign ends.
STILL_SECONDS, LAST_SECONDS = 120.0, 10.0
#: Findings that may wait for their still; more are left out.
_MOST_WAITING = 16
#: Pixels; a wider picture is scaled down.
_WIDEST = 640
#: Yields the processor to the campaign.
_NICENESS = 10
#: Kinds of answers.
_PICTURE, _CANNOT, _FAILED = "picture", "cannot", "failed"

#: Gets a finding and its still, a PNG file.
Hear = Callable[[Finding, bytes], None]


class Stills:
    """Makes stills one after another in a process of its own; `look` hands them over."""

    def __init__(self, target: Target, hear: Hear, say: Callable[[str], None]) -> None:
        """`hear` gets the stills; `say` is told, once, why there are no more."""
        self._target, self._hear, self._say = target, hear, say
        self._waiting: deque[Finding] = deque()
        self._process: IsolatedProcess | None = None
        self._reaper: Reaper | None = None
        self._asked: tuple[Finding, float] | None = None  #: what is being pictured, and since when
        self._is_over = False

    def add(self, finding: Finding) -> None:
        """Picture `finding` when it is its turn."""
        if self._is_over or len(self._waiting) >= _MOST_WAITING:
            return
        if self._target.max_workers is not None:
            self._end(f"{self._target.name} runs in few places at a time, and the campaign has them")
            return
        self._waiting.append(finding)
        self.look()

    def look(self, seconds: float = 0.0) -> None:
        """Hand over a still that is ready within so many `seconds`, and begin the next."""
        if self._asked is not None and self._process is not None:
            finding, since = self._asked
            try:
                if self._process.connection.poll(seconds):
                    self._asked = None
                    self._take(finding, *self._process.connection.recv())
                elif time.monotonic() - since > STILL_SECONDS:
                    self._end(f"the one of finding {finding.id} was not ready after {STILL_SECONDS:g} s")
            except (EOFError, OSError):
                self._end(f"the process that makes them ended:\n{self._process.describe_end()}")
        if self._waiting and self._asked is None and not self._is_over:
            self._ask(self._waiting.popleft())

    @property
    def is_busy(self) -> bool:
        """True if a still is being made."""
        return self._asked is not None

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Wait for the stills that are due for at most so many `seconds`, and end the process."""
        end = time.monotonic() + seconds
        while self._asked is not None and (left := end - time.monotonic()) > 0:
            self.look(left)
        self._end()

    def _take(self, finding: Finding, kind: str, content: Any) -> None:
        if kind == _PICTURE:
            self._hear(finding, content)
        elif kind == _CANNOT:
            self._end()  # not worth a word: most simulators of one's own cannot
        else:
            self._end(str(content))

    def _ask(self, finding: Finding) -> None:
        try:
            if self._process is None:
                self._start()
            assert self._process is not None
            self._process.connection.send(finding)
        except Exception as error:  # it has died, or pickling ran a method that raised
            self._end(str(error))
            return
        self._asked = finding, time.monotonic()

    def _start(self) -> None:
        # in a file: sending a large target would wait until the new process has begun to read
        content = pack_for_coordinator(self._target, pack(self._target))
        descriptor = anonymous_file("target")
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(content)
            mark = new_mark()
            self._reaper = Reaper(mark)
            self._process = IsolatedProcess(__name__, mark, (descriptor,), ONE_THREAD)
            self._reaper.watch(self._process.group)
        finally:
            os.close(descriptor)

    def _end(self, why: str = "") -> None:
        """Make no more stills."""
        if why and not self._is_over:
            self._say(f"no pictures of new modes: {why}")
        self._is_over = True
        self._waiting.clear()
        self._asked = None
        if self._process is not None:
            self._process.kill()
            self._process.close()
            self._process = None
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None


def still(target: Target, finding: Finding) -> bytes:
    """The picture of `finding` at its crash, as PNG. Its simulator must render."""
    from PIL import Image

    from policyfuzz.core.recording import record
    from policyfuzz.report.film import Camera, Marks, caption
    from policyfuzz.triage.replay import Replay

    camera, shown = Camera(), [b""]
    marks = Marks(finding.crash_step, finding.crash_step)
    replay = Replay(
        target,
        finding,
        steps=finding.crash_step,
        crashes=True,
        is_identical=True,
        kind=finding.kind,
        crash_step=finding.crash_step,
        episode_return=finding.episode_return,
    )

    def look(step: int, simulator: Any) -> None:
        if step != finding.crash_step:
            return
        image = Image.fromarray(caption(camera.shoot(simulator), step, replay, marks))
        if image.width > _WIDEST:
            height = max(1, round(image.height * _WIDEST / image.width))
            image = image.resize((_WIDEST, height), Image.Resampling.BOX)
        file = io.BytesIO()
        image.save(file, "PNG")
        shown[0] = file.getvalue()

    record(target, finding.input, finding.case_seed, look)
    return shown[0]


def _answer(target: Target, finding: Finding) -> tuple[str, Any]:
    from policyfuzz.report.film import can_film

    try:
        if not can_film(target):
            return _CANNOT, None
        picture = still(target, finding)
    except BaseException as error:  # whatever user code raises
        return _FAILED, f"{type(error).__name__}: {error}"[:500]
    if not picture:
        return _FAILED, f"finding {finding.id} ended before its crash when it was run again"
    return _PICTURE, picture


def main() -> None:
    """Make stills of a target, whose descriptor is the second argument, for the process at the first."""
    end_before_coordinator()
    explain_exits()
    os.nice(_NICENESS)
    coordinator: Connection[Any, Any] = Connection(int(sys.argv[1]))
    with mmap.mmap(int(sys.argv[2]), 0, prot=mmap.PROT_READ) as memory:
        content = memory[:]
    target: Target | None = None
    with suppress(EOFError, OSError):  # the coordinator has ended
        while True:
            finding: Finding = coordinator.recv()
            try:
                target = target or unpack(content)
            except Exception as error:  # unpickling runs code of the target
                coordinator.send((_FAILED, f"{type(error).__name__}: {error}"[:500]))
                continue
            coordinator.send(_answer(target, finding))


if __name__ == "__main__":
    main()
