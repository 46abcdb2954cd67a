"""The nodes of a cluster, seen from the bridge: places workers, sends commands, notices nodes that fail."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from policyfuzz.core.extras import load
from policyfuzz.execution.ray.node import Command, Kill, NodeActor, Send, Start
from policyfuzz.execution.worker_pool import Message, WorkerLost

#: Seconds after which a node actor answers, even if it has no message.
_RECEIVE_SECONDS = 2.0
#: Seconds without an answer after which a node counts as failed: Ray itself takes a minute to notice a
#: machine that is frozen or cut off.
_NODE_TIMEOUT = 30.0
#: The same for an actor that is starting: interpreters may lie on a slow disk.
_START_TIMEOUT = 120.0
#: Seconds before a node that failed gets a new actor; it may be gone without Ray knowing yet.
_QUARANTINE = 20.0
#: Failures after which a node is not used any more.
_MAX_FAILURES = 3
#: Seconds between two queries for slots that were granted: at first, and at most.
_FIRST_POLL, _LONGEST_POLL = 0.02, 2.0


@dataclass(slots=True, eq=False)
class _Node:
    """A node with an actor of ours."""

    id: str
    actor: Any
    asked_at: float  #: time of the last call of `receive`
    is_up: bool = False  #: it has answered
    is_lost: bool = False
    sent: int = 0  #: lists of commands
    workers: set[int] = field(default_factory=set)
    commands: list[Command] = field(default_factory=list)  #: to be sent


@dataclass(frozen=True, slots=True)
class NodeReply:
    """The reply to a call of a node's actor."""

    node: _Node
    future: Any  #: of messages, or of an exception of Ray


class Cluster:
    """Runs one actor on each node that has a slot for a worker.

    `send_messages` takes what workers say. `send_reply` may be called in any thread; each reply must then be
    passed to `handle_reply` in the thread of all other methods.
    """

    def __init__(
        self,
        shipment: bytes,
        send_messages: Callable[[Sequence[Message]], None],
        send_reply: Callable[[NodeReply], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ray = load("ray", "ray")
        self._affinity = load("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        self._actor_class = self._ray.remote(NodeActor)
        self._shipment = self._ray.put(shipment)
        self._send_messages, self._send_reply, self._now = send_messages, send_reply, now
        self._slots = _WorkerSlots()
        self._nodes: dict[str, _Node] = {}  #: by Ray's id
        self._node_of: dict[int, _Node] = {}  #: by worker that was placed
        self._failed_at: dict[str, list[float]] = {}  #: times of failures, by node
        self._last_failure: dict[str, str] = {}
        self._poll_seconds, self._poll_at = _FIRST_POLL, 0.0

    def add_command(self, command: Command) -> None:
        """Queue a command; the next `advance` sends it."""
        match command:
            case Start(worker):
                self._slots.request(worker)
                self._poll_seconds, self._poll_at = _FIRST_POLL, self._now()
            case Kill(worker) if self._slots.is_pending(worker):
                self._slots.release(worker)
                self._send_messages([WorkerLost(worker, "it was killed before there was a core for it")])
            case Send(worker) | Kill(worker) if worker in self._node_of:  # others are lost, as was reported
                self._node_of[worker].commands.append(command)

    def handle_reply(self, reply: NodeReply) -> None:
        """Pass on the messages of a node and ask for the next ones, or find that the node has failed."""
        node = reply.node
        if node.is_lost:
            return
        try:
            messages: list[Message] = reply.future.result()
        except Exception as error:  # whatever Ray raises: the actor is gone or unreachable
            self._lose(node, error)
            return
        node.is_up = True
        for message in messages:
            if isinstance(message, WorkerLost):
                self._remove_worker(node, message.worker)
        self._receive(node)
        if messages:
            self._send_messages(messages)

    def advance(self) -> float:
        """Place workers, send commands, give up silent nodes. Returns the seconds until the next call."""
        self._lose_silent_nodes()
        if self._slots.has_pending and self._now() >= self._poll_at:
            self._place_workers()
            self._poll_at = self._now() + self._poll_seconds
            self._poll_seconds = min(2 * self._poll_seconds, _LONGEST_POLL)
        for node in self._nodes.values():
            if node.commands:
                node.actor.execute.remote(node.sent, node.commands)
                node.sent += 1
                node.commands = []
        return max(0.0, self._poll_at - self._now()) if self._slots.has_pending else _RECEIVE_SECONDS

    def _place_workers(self) -> None:
        for worker, node_id in self._slots.granted().items():
            failed_at = self._failed_at.get(node_id, [])
            if len(failed_at) >= _MAX_FAILURES:
                self._slots.release(worker)
                self._send_messages([WorkerLost(worker, self._last_failure[node_id])])
            elif not failed_at or self._now() - failed_at[-1] >= _QUARANTINE:
                node = self._nodes.get(node_id) or self._start_actor(node_id)
                self._slots.take(worker)
                self._node_of[worker] = node
                node.workers.add(worker)
                node.commands.append(Start(worker))

    def _start_actor(self, node_id: str) -> _Node:
        actor = self._actor_class.options(
            num_cpus=0,  # the slots of its workers count instead
            max_concurrency=4,  # to take commands while `receive` waits
            max_restarts=0,
            scheduling_strategy=self._affinity(node_id, soft=False),
        ).remote(self._shipment)
        node = self._nodes[node_id] = _Node(node_id, actor, self._now())
        self._receive(node)
        return node

    def _receive(self, node: _Node) -> None:
        node.asked_at = self._now()
        future = node.actor.receive.remote(_RECEIVE_SECONDS).future()
        future.add_done_callback(lambda done: self._send_reply(NodeReply(node, done)))

    def _lose_silent_nodes(self) -> None:
        for node in list(self._nodes.values()):
            timeout = _NODE_TIMEOUT if node.is_up else _START_TIMEOUT
            if self._now() - node.asked_at > _RECEIVE_SECONDS + timeout:
                self._lose(node, TimeoutError(f"no answer for {timeout:g} s"))

    def _lose(self, node: _Node, error: Exception) -> None:
        """A machine has failed, or at least our actor on it."""
        node.is_lost = True
        del self._nodes[node.id]
        self._ray.kill(node.actor)
        machine = self._describe(node.id)
        is_node_failure = not getattr(error, "actor_init_failed", False)
        if is_node_failure:
            text = f"{machine} was lost: {error}"
        else:
            text = f"no worker can be started on {machine}; is the same policyfuzz installed there?\n{error}"
        self._failed_at.setdefault(node.id, []).append(self._now())
        self._last_failure[node.id] = text
        workers = sorted(node.workers)
        for worker in workers:
            self._remove_worker(node, worker)
        self._send_messages([WorkerLost(worker, text, is_node_failure=is_node_failure) for worker in workers])

    def _remove_worker(self, node: _Node, worker: int) -> None:
        node.workers.discard(worker)
        self._node_of.pop(worker, None)
        self._slots.release(worker)

    def _describe(self, node_id: str) -> str:
        """The machine's name and address for a message to the user."""
        for one in self._ray.nodes():
            if one["NodeID"] == node_id:
                return f"machine {one['NodeManagerHostname']} ({one['NodeManagerAddress']})"
        return f"machine {node_id}"


class _WorkerSlots:
    """Reserves a core of the cluster for each worker, for as long as the worker is there.

    A slot is a placement group of one core. So Ray's scheduler decides where workers run and which have to
    wait, other users of the cluster see honest numbers, an autoscaler sees the demand, and the slot of a
    waiting worker moves on by itself when its machine fails.
    """

    def __init__(self) -> None:
        self._ray = load("ray.util", "ray")
        self._groups: dict[int, Any] = {}  #: placement group of each worker
        self._pending: dict[str, int] = {}  #: placement group to worker, of those that are not placed yet

    @property
    def has_pending(self) -> bool:
        """True if a worker waits for a slot."""
        return bool(self._pending)

    def is_pending(self, worker: int) -> bool:
        """True if `worker` waits for a slot."""
        return worker in self._pending.values()

    def request(self, worker: int) -> None:
        """Request a slot for `worker`."""
        group = self._ray.placement_group([{"CPU": 1}])
        self._groups[worker] = group
        self._pending[group.id.hex()] = worker

    def granted(self) -> dict[int, str]:
        """The waiting workers whose slot was granted, with the node it is on."""
        table = self._ray.placement_group_table()
        return {
            worker: table[group]["bundles_to_node_id"][0]
            for group, worker in self._pending.items()
            if table.get(group, {}).get("state") == "CREATED"
        }

    def take(self, worker: int) -> None:
        """`worker` uses its slot, and waits no more."""
        self._pending.pop(self._groups[worker].id.hex())

    def release(self, worker: int) -> None:
        """Return the slot of `worker`, if it has one or waits for one."""
        group = self._groups.pop(worker, None)
        if group is not None:
            self._pending.pop(group.id.hex(), None)
            self._ray.remove_placement_group(group)
