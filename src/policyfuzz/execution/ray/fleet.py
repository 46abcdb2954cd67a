"""The stations of a cluster: where workers sit, what they are told, and what is heard of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from policyfuzz.core.extras import load
from policyfuzz.execution.pool import Lost, Message
from policyfuzz.execution.ray.node import Kill, Order, Send, Start, Station


class Seats:
    """Asks the cluster for a core per worker, and keeps it for as long as the worker is there.

    A seat is a placement group of one core. So the scheduler of Ray decides who sits where and who has to
    wait, other users of the cluster see honest numbers, an autoscaler knows what is wanted, and the seat of
    a worker that waits moves on by itself when the machine it was to be on goes.
    """

    def __init__(self) -> None:
        self._ray = load("ray.util", "ray")
        self._groups: dict[int, Any] = {}  #: of all workers
        self._waiting: dict[str, int] = {}  #: placement group to worker, of those that do not sit yet

    @property
    def are_awaited(self) -> bool:
        """True where somebody waits for a seat."""
        return bool(self._waiting)

    def is_awaited_by(self, worker: int) -> bool:
        """True where `worker` waits for a seat."""
        return worker in self._waiting.values()

    def ask(self, worker: int) -> None:
        """Ask for a seat for `worker`."""
        group = self._ray.placement_group([{"CPU": 1}])
        self._groups[worker] = group
        self._waiting[group.id.hex()] = worker

    def granted(self) -> dict[int, str]:
        """Workers that wait and may be seated, and the machine that each would be on."""
        table = self._ray.placement_group_table()
        return {
            worker: table[group]["bundles_to_node_id"][0]
            for group, worker in self._waiting.items()
            if table.get(group, {}).get("state") == "CREATED"
        }

    def take(self, worker: int) -> None:
        """`worker` is where its seat is, and waits no more."""
        self._waiting.pop(self._groups[worker].id.hex())

    def give_back(self, worker: int) -> None:
        """`worker` needs its seat no more."""
        group = self._groups.pop(worker, None)
        if group is not None:
            self._waiting.pop(group.id.hex(), None)
            self._ray.remove_placement_group(group)


#: Seconds after which a station answers, also if there is nothing to say.
_LISTEN = 2.0
#: Seconds without any answer after which a station is believed to be gone: Ray itself takes a minute to
#: notice a machine that is frozen or cut off.
_SILENT = 30.0
#: The same for one that is being started: interpreters may lie on a slow disk.
_SLOW_START = 120.0
#: Seconds before a machine whose station was lost gets another; it may be gone, and nobody knows yet.
_QUARANTINE = 20.0
#: Stations that may be lost on one machine before it is not used any more.
_STRIKES = 3
#: Seconds between two looks at who got a seat: the first, and the longest.
_FIRST_LOOK, _LONGEST_LOOK = 0.02, 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What has come of a call to a station."""

    station: "_Station"
    answer: Any  #: a future: messages, or an exception of Ray


@dataclass(slots=True, eq=False)
class _Station:
    """A station, seen from here."""

    node: str
    actor: Any
    asked_at: float  #: when it was last asked what there is
    is_up: bool = False  #: it has answered
    is_lost: bool = False
    sent: int = 0  #: lists of orders
    workers: set[int] = field(default_factory=set)
    orders: list[Order] = field(default_factory=list)  #: to be sent


class Fleet:
    """One station on each machine that has a seat for a worker.

    `hear` takes what comes of calls to stations, in any thread, and has it given to `handle` in the thread
    of all other methods.
    """

    def __init__(
        self,
        shipment: bytes,
        tell: Callable[[Sequence[Message]], None],
        hear: Callable[[Heard], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ray = load("ray", "ray")
        self._affinity = load("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        self._make = self._ray.remote(Station)
        self._shipment = self._ray.put(shipment)
        self._tell, self._hear, self._now = tell, hear, now
        self._seats = Seats()
        self._stations: dict[str, _Station] = {}  #: by machine
        self._place: dict[int, _Station] = {}  #: of workers that sit
        self._strikes: dict[str, list[float]] = {}  #: times at which a machine has lost its station
        self._last_loss: dict[str, str] = {}
        self._look, self._look_at = _FIRST_LOOK, 0.0

    def order(self, order: Order) -> None:
        """Take an order; it goes out with the next `advance`."""
        match order:
            case Start(worker):
                self._seats.ask(worker)
                self._look, self._look_at = _FIRST_LOOK, self._now()
            case Kill(worker) if self._seats.is_awaited_by(worker):
                self._seats.give_back(worker)
                self._tell([Lost(worker, "it was told to end before there was a place for it")])
            case Send(worker) | Kill(worker) if worker in self._place:  # else it is lost, and that was told
                self._place[worker].orders.append(order)

    def handle(self, heard: Heard) -> None:
        """Pass on what a station has said, and ask again; or find that it is gone."""
        station = heard.station
        if station.is_lost:
            return
        try:
            messages: list[Message] = heard.answer.result()
        except Exception as error:  # whatever Ray raises: it is gone, or cannot be talked to
            self._lose(station, error)
            return
        station.is_up = True
        for message in messages:
            if isinstance(message, Lost):
                self._dismiss(station, message.worker)
        self._ask(station)
        if messages:
            self._tell(messages)

    def advance(self) -> float:
        """Send orders, seat workers, miss stations; gives the seconds until there may be more to do."""
        self._miss_the_silent()
        if self._seats.are_awaited and self._now() >= self._look_at:
            self._seat()
            self._look_at = self._now() + self._look
            self._look = min(2 * self._look, _LONGEST_LOOK)
        for station in self._stations.values():
            if station.orders:
                station.actor.obey.remote(station.sent, station.orders)
                station.sent += 1
                station.orders = []
        return max(0.0, self._look_at - self._now()) if self._seats.are_awaited else _LISTEN

    def _seat(self) -> None:
        for worker, node in self._seats.granted().items():
            strikes = self._strikes.get(node, [])
            if len(strikes) >= _STRIKES:
                self._seats.give_back(worker)
                self._tell([Lost(worker, self._last_loss[node])])
            elif not strikes or self._now() - strikes[-1] >= _QUARANTINE:
                station = self._stations.get(node) or self._open(node)
                self._seats.take(worker)
                self._place[worker] = station
                station.workers.add(worker)
                station.orders.append(Start(worker))

    def _open(self, node: str) -> _Station:
        actor = self._make.options(
            num_cpus=0,  # its workers have seats
            max_concurrency=4,  # to be told something while it is asked
            max_restarts=0,
            scheduling_strategy=self._affinity(node, soft=False),
        ).remote(self._shipment)
        station = self._stations[node] = _Station(node, actor, self._now())
        self._ask(station)
        return station

    def _ask(self, station: _Station) -> None:
        station.asked_at = self._now()
        answer = station.actor.listen.remote(_LISTEN).future()
        answer.add_done_callback(lambda future: self._hear(Heard(station, future)))

    def _miss_the_silent(self) -> None:
        for station in list(self._stations.values()):
            patience = _SILENT if station.is_up else _SLOW_START
            if self._now() - station.asked_at > _LISTEN + patience:
                self._lose(station, TimeoutError(f"no answer for {patience:g} s"))

    def _lose(self, station: _Station, error: Exception) -> None:
        """A machine has gone, or at least the process there that started workers."""
        station.is_lost = True
        del self._stations[station.node]
        self._ray.kill(station.actor)
        where = self._where(station.node)
        if getattr(error, "actor_init_failed", False):
            is_blameless = False
            text = f"no worker can be started on {where}; is the same policyfuzz installed there?\n{error}"
        else:
            is_blameless = True
            text = f"{where} was lost: {error}"
        self._strikes.setdefault(station.node, []).append(self._now())
        self._last_loss[station.node] = text
        lost = partial(Lost, text=text, is_blameless=is_blameless)
        workers = sorted(station.workers)
        for worker in workers:
            self._dismiss(station, worker)
        self._tell([lost(worker) for worker in workers])

    def _dismiss(self, station: _Station, worker: int) -> None:
        station.workers.discard(worker)
        self._place.pop(worker, None)
        self._seats.give_back(worker)

    def _where(self, node: str) -> str:
        """A machine, for a reader."""
        for one in self._ray.nodes():
            if one["NodeID"] == node:
                return f"machine {one['NodeManagerHostname']} ({one['NodeManagerAddress']})"
        return f"machine {node}"
