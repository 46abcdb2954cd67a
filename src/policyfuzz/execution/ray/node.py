"""One machine of the cluster: an actor with a pool of worker processes."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.execution.pool import Crew, Lost, Message
from policyfuzz.execution.processes.pool import ProcessCrew


@dataclass(frozen=True, slots=True)
class Start:
    """Have a new worker."""

    worker: int


@dataclass(frozen=True, slots=True)
class Send:
    """Give a worker cases (k, d) and (k,) to run."""

    worker: int
    inputs: NDArray[np.float64]
    seeds: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Kill:
    """End a worker whatever it is doing."""

    worker: int


Order = Start | Send | Kill


def carry_out(order: Order, crew: Crew) -> None:
    """Have `crew` do it."""
    match order:
        case Start(worker):
            crew.start(worker)
        case Send(worker, inputs, seeds):
            crew.send(worker, inputs, seeds)
        case Kill(worker):
            crew.kill(worker)


class Station:
    """Worker processes on one machine, told and heard from afar.

    The methods are called in threads of Ray, several at a time; one thread of our own has the crew.
    """

    def __init__(self, shipment: bytes) -> None:
        self._crew = ProcessCrew(shipment)
        self._changed = threading.Condition()
        self._orders: dict[int, Sequence[Order]] = {}  #: by their number, not yet carried out
        self._messages: list[Message] = []  #: not yet told
        self._failure: BaseException | None = None
        self._present: set[int] = set()  #: workers that were started and are not lost
        threading.Thread(target=self._serve, daemon=True).start()

    def obey(self, number: int, orders: Sequence[Order]) -> None:
        """Carry out `orders`, after all of smaller numbers: Ray does not keep the order of calls."""
        with self._changed:
            self._orders[number] = orders
        self._crew.wake()

    def listen(self, seconds: float) -> list[Message]:
        """All that workers have said since the last call; waits for something at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._messages or self._failure), seconds)
            if self._failure is not None:
                raise RuntimeError("no worker can be had here any more") from self._failure
            messages, self._messages = self._messages, []
            return messages

    def _serve(self) -> None:
        number = 0
        try:
            while True:
                self._tell(self._crew.wait(None))
                while (orders := self._next_orders(number)) is not None:
                    number += 1
                    for order in orders:
                        self._carry_out(order)
        except BaseException as failure:  # nobody else would hear of it: this is a thread
            with self._changed:
                self._failure = failure
                self._changed.notify_all()

    def _carry_out(self, order: Order) -> None:
        if isinstance(order, Start):
            self._present.add(order.worker)
        if order.worker not in self._present:
            return  # it is lost, which was not known where the order was given
        try:
            carry_out(order, self._crew)
        except OSError as error:
            self._tell([Lost(order.worker, f"no process can be started: {error}")])

    def _tell(self, messages: Sequence[Message]) -> None:
        self._present.difference_update(one.worker for one in messages if isinstance(one, Lost))
        with self._changed:
            self._messages.extend(messages)
            self._changed.notify_all()

    def _next_orders(self, number: int) -> Sequence[Order] | None:
        with self._changed:
            return self._orders.pop(number, None)
