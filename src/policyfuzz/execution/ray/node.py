"""One node of the cluster: a Ray actor with a pool of worker processes, and the commands it takes."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from policyfuzz.execution.processes.process_pool import ProcessPool
from policyfuzz.execution.worker_pool import Message, WorkerLost


@dataclass(frozen=True, slots=True)
class Start:
    """Start a new worker."""

    worker: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a worker cases (k, d) and (k,) to run, and the arrays of their branches if there are any."""

    worker: int
    arrays: tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a worker whatever it is doing."""

    worker: int


Command = Start | Send | Kill


class NodeActor:
    """Worker processes on one node, controlled from the bridge.

    Ray calls the methods in threads, several at a time; one thread of the actor owns the pool.
    """

    def __init__(self, shipment: bytes) -> None:
        self._pool = ProcessPool(shipment)
        self._changed = threading.Condition()
        self._commands: dict[int, Sequence[Command]] = {}  #: not yet executed, by their number
        self._messages: list[Message] = []  #: not yet returned by `receive`
        self._failure: BaseException | None = None
        self._present: set[int] = set()  #: workers that were started and are not lost
        threading.Thread(target=self._serve, daemon=True).start()

    def execute(self, number: int, commands: Sequence[Command]) -> None:
        """Execute `commands` after all with smaller numbers: Ray does not keep the order of calls."""
        with self._changed:
            self._commands[number] = commands
        self._pool.wake()

    def receive(self, seconds: float) -> list[Message]:
        """All messages of workers since the last call; waits for the first one up to `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._messages or self._failure), seconds)
            if self._failure is not None:
                raise RuntimeError("this node can start no more workers") from self._failure
            messages, self._messages = self._messages, []
            return messages

    def _serve(self) -> None:
        number = 0
        try:
            while True:
                self._add_messages(self._pool.wait(None))
                while (commands := self._next_commands(number)) is not None:
                    number += 1
                    for command in commands:
                        self._execute(command)
        except BaseException as failure:  # this is a thread: nothing else would report it
            with self._changed:
                self._failure = failure
                self._changed.notify_all()

    def _execute(self, command: Command) -> None:
        if isinstance(command, Start):
            self._present.add(command.worker)
        if command.worker not in self._present:
            return  # it was lost, but the sender did not know yet
        try:
            match command:
                case Start(worker):
                    self._pool.start(worker)
                case Send(worker, (inputs, seeds, *branches)):
                    self._pool.send(worker, inputs, seeds, *branches)
                case Kill(worker):
                    self._pool.kill(worker)
        except OSError as error:
            self._add_messages([WorkerLost(command.worker, f"no process can be started: {error}")])

    def _add_messages(self, messages: Sequence[Message]) -> None:
        self._present.difference_update(one.worker for one in messages if isinstance(one, WorkerLost))
        with self._changed:
            self._messages.extend(messages)
            self._changed.notify_all()

    def _next_commands(self, number: int) -> Sequence[Command] | None:
        with self._changed:
            return self._commands.pop(number, None)
