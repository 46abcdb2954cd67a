"""A crew of worker processes on the machines of a Ray cluster, seen from the coordinator."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import MissingExtra, PolicyFuzzError, UsageError, WorkersFailed
from policyfuzz.execution.choice import usable_cores
from policyfuzz.execution.pool import Message
from policyfuzz.execution.processes.reaper import kill_group
from policyfuzz.execution.ray import bridge as bridge_module
from policyfuzz.execution.ray.cluster import checked_address
from policyfuzz.execution.ray.node import Kill, Order, Send, Start

#: Seconds for Ray to connect, and to start a cluster of its own on a busy machine.
_CONNECT, _BEGIN = 30.0, 120.0
#: Seconds between two looks at what Ray says about that.
_LOOK = 0.5
#: What it says where a cluster is protected by a token.
_BAD_TOKEN = "InvalidAuthToken"
#: Seconds for it to end everything.
_END = 15.0
#: Characters of what Ray said last that are told.
_TOLD = 2_000


class RayCrew:
    """Workers on a cluster at `address` (HOST:PORT or auto).

    Without an address it is the cluster that this process is connected to already, or else one of its own
    on this machine, with a core for each of `workers`, that ends with the crew.
    """

    def __init__(self, shipment: bytes, address: str | None = None, workers: int | None = None) -> None:
        address = _address_in_use() if address is None else checked_address(address)
        self._address = address
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the crew)
        mine, its = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", bridge_module.__name__, str(its.fileno())],
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the coordinator
        )
        its.close()
        self._bridge: Connection[Any, Any] = Connection(mine.detach())
        try:
            self._bridge.send((shipment, address, workers or usable_cores()))
            self.cpus = max(1, self._connected())  #: cores of the cluster
        except BaseException:
            self.close()
            raise

    def start(self, worker: int) -> None:
        self._order(Start(worker))

    def send(self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        self._order(Send(worker, inputs, seeds))

    def wait(self, seconds: float | None) -> Sequence[Message]:
        messages: list[Message] = []
        try:
            while self._bridge.poll(0 if messages else seconds):
                messages.extend(self._received())
        except (EOFError, OSError, PolicyFuzzError) as error:
            raise self._cluster_lost(error) from error
        return messages

    def kill(self, worker: int) -> None:
        self._order(Kill(worker))

    def close(self) -> None:
        self._bridge.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END)
        kill_group(self._process.pid)
        self._process.wait()
        self._log.close()

    def _order(self, order: Order) -> None:
        try:
            self._bridge.send(order)
        except OSError as error:
            raise self._cluster_lost(error) from error

    def _received(self) -> Any:
        received = self._bridge.recv()
        if isinstance(received, Exception):
            raise received
        return received

    def _connected(self) -> int:
        """Cores of the cluster, once Ray has found it."""
        hint = "without --executor ray, -j N uses the cores of this machine"
        if self._address:
            hint = "`ray start --head` starts one, and `ray start --address=HOST:PORT` has a machine join it"
        deadline = time.monotonic() + (_CONNECT if self._address else _BEGIN)
        try:
            while time.monotonic() < deadline:
                if self._bridge.poll(_LOOK):
                    return int(self._received())
                if _BAD_TOKEN in self._last_words():  # which Ray tries again and again
                    hint = "set RAY_AUTH_MODE=token; `ray get-auth-token --help` tells where tokens are kept"
                    break
            reason = self._last_words()
        except MissingExtra:
            raise
        except (EOFError, OSError):
            reason = self._last_words()
        except PolicyFuzzError as error:
            reason = error.message
        kill_group(self._process.pid)  # it may be trying for minutes
        what = f"the Ray cluster at {self._address} cannot be used" if self._address else "Ray does not start"
        raise UsageError(f"{what}: {reason}", hint)

    def _cluster_lost(self, error: Exception) -> WorkersFailed:
        reason = error.message if isinstance(error, PolicyFuzzError) else self._last_words()
        return WorkersFailed(
            f"the connection to the Ray cluster is lost: {reason}",
            "all batches that were finished are saved; go on with --resume when the cluster is up again",
        )

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _TOLD))
        return self._log.read().decode(errors="replace").strip() or "it said nothing"


def _address_in_use() -> str | None:
    """Of the cluster that a notebook, say, has connected this process to."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    return str(ray.get_runtime_context().gcs_address)
