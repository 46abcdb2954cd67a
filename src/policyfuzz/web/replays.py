"""Films and strips on demand: made by a process of its own, one at a time, outside of the campaign."""

import json
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import PolicyFuzzError
from policyfuzz.execution.processes.isolated_process import IsolatedProcess
from policyfuzz.execution.processes.reaper import Reaper, new_mark

#: Seconds that a film may take, films that wait at most, and films that are kept.
_SECONDS, _MOST_WAITING, _MOST_KEPT = 300.0, 8, 64
#: Bytes of a worker's answer at most.
_MOST_ANSWER = 20_000_000
#: What a film can be.
WAITING, WORKING, DONE, FAILED = "waiting", "working", "done", "failed"
_WORKER = "policyfuzz.web.replay_worker"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be filmed."""

    folder: str
    instance: str  #: of the campaign, which may be replaced
    finding: int


@dataclass(slots=True)
class Reel:
    """A film that is being made, or was."""

    folder: Path  #: where it lies
    state: str = WAITING
    problem: str = ""
    hint: str = ""
    episode: dict[str, Any] = field(default_factory=dict)  #: the strips, and how film and steps go together

    @property
    def film(self) -> Path | None:
        """The film, if there is one."""
        return next(
            (path for name in ("film.mp4", "film.gif") if (path := self.folder / name).is_file()), None
        )


class Replays:
    """Makes films of findings, the next one when the last is done, and keeps the latest."""

    def __init__(self, trust: bool) -> None:
        self._trust = trust
        self._place = Path(tempfile.mkdtemp(prefix="policyfuzz-web-"))
        self._reels: OrderedDict[Order, Reel] = OrderedDict()
        self._waiting: list[Order] = []
        self._change = threading.Condition()
        self._is_closed = False
        self._count = 0
        self._thread = threading.Thread(target=self._work, name="films", daemon=True)
        self._thread.start()

    def get(self, order: Order) -> Reel | None:
        """The film of `order`, if it was asked for."""
        with self._change:
            return self._reels.get(order)

    def ask(self, order: Order) -> Reel | None:
        """Make a film; None if too many are waiting. One that failed is tried again."""
        with self._change:
            known = self._reels.get(order)
            if known is not None and known.state != FAILED:
                return known
            if len(self._waiting) >= _MOST_WAITING:
                return None
            self._count += 1
            reel = self._reels[order] = Reel(self._place / str(self._count))
            self._reels.move_to_end(order)
            self._waiting.append(order)
            self._change.notify()
            return reel

    def close(self) -> None:
        """End what is being made, and remove all films."""
        with self._change:
            self._is_closed = True
            self._change.notify()
        self._thread.join()
        shutil.rmtree(self._place, ignore_errors=True)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                order = self._waiting.pop(0)
                reel = self._reels[order]
                reel.state = WORKING
            try:
                reel.folder.mkdir(parents=True)
                reel.episode = self._made(order, reel)
                reel.state = DONE
            except (PolicyFuzzError, OSError, ValueError) as error:
                reel.problem = getattr(error, "message", None) or str(error)
                reel.hint, reel.state = getattr(error, "hint", ""), FAILED
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        with self._change:
            done = [order for order, reel in self._reels.items() if reel.state in (DONE, FAILED)]
            for order in done[: max(len(done) - _MOST_KEPT, 0)]:
                shutil.rmtree(self._reels.pop(order).folder, ignore_errors=True)

    def _made(self, order: Order, reel: Reel) -> dict[str, Any]:
        """What the worker has learnt of the episode; it has written the film."""
        mark = new_mark()
        reaper = Reaper(mark)
        process = IsolatedProcess(_WORKER, mark)
        reaper.watch(process.group)
        try:
            asked = {
                "folder": order.folder,
                "instance": order.instance,
                "finding": order.finding,
                "trust": self._trust,
                "out": str(reel.folder),
            }
            process.connection.send_bytes(json.dumps(asked).encode())
            answer = self._answer(process)
        finally:
            process.kill()
            process.close()
            reaper.forget(process.group)
            reaper.close()
        if "problem" in answer:
            raise PolicyFuzzError(str(answer["problem"]), str(answer.get("hint", "")))
        return answer

    def _answer(self, process: IsolatedProcess) -> dict[str, Any]:
        started = time.monotonic()
        while not process.connection.poll(0.2):
            if self._is_closed:
                raise PolicyFuzzError("the server has ended")
            if time.monotonic() - started > _SECONDS:
                raise PolicyFuzzError(f"the film was not done within {_SECONDS:g} s")
        try:
            # bytes and not objects: what the worker runs may send anything
            found = json.loads(process.connection.recv_bytes(_MOST_ANSWER))
        except (EOFError, OSError) as error:
            raise PolicyFuzzError(
                f"the process that made the film has died: {process.describe_end()}"
            ) from error
        if not isinstance(found, dict):
            raise PolicyFuzzError("the process that made the film gave no answer")
        return found
