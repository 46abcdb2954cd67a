"""A pool of worker processes on the nodes of a Ray cluster, seen from the coordinator."""

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
from policyfuzz.execution.executor import usable_cores
from policyfuzz.execution.processes.reaper import kill_group
from policyfuzz.execution.ray import bridge as bridge_module
from policyfuzz.execution.ray.node import Command, Kill, Send, Start
from policyfuzz.execution.worker_pool import Message

#: The address with which Ray finds the cluster of this machine by itself.
_AUTO = "auto"
#: Seconds for a host to accept a connection.
_REACH_SECONDS = 5.0
#: Seconds for Ray to connect to a cluster, and to start one on a busy machine.
_CONNECT_SECONDS, _START_SECONDS = 30.0, 120.0
#: Seconds between two looks at Ray's output meanwhile.
_POLL_SECONDS = 0.5
#: What Ray prints if the cluster is protected by another token.
_BAD_TOKEN = "InvalidAuthToken"
#: Seconds for the bridge to end.
_CLOSE_SECONDS = 15.0
#: Characters of Ray's last output that error messages quote.
_QUOTED = 2_000


class RayPool:
    """Workers on a cluster at `address` (HOST:PORT or auto).

    Without an address it uses the cluster that this process is connected to, if any. Otherwise it starts a
    local cluster with a core for each of `workers`, which ends with the pool.
    """

    def __init__(self, shipment: bytes, address: str | None = None, workers: int | None = None) -> None:
        if address is None:
            address = _connected_address()
        else:
            check_address(address)
        self._address = address
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the pool)
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
            self.cpus = max(1, self._wait_for_cluster())  #: cores of the cluster
        except BaseException:
            self.close()
            raise

    def start(self, worker: int) -> None:
        self._send(Start(worker))

    def send(
        self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *branches: NDArray[Any]
    ) -> None:
        self._send(Send(worker, (inputs, seeds, *branches)))

    def wait(self, seconds: float | None) -> Sequence[Message]:
        messages: list[Message] = []
        try:
            while self._bridge.poll(0 if messages else seconds):
                messages.extend(self._receive())
        except (EOFError, OSError, PolicyFuzzError) as error:
            raise self._cluster_lost(error) from error
        return messages

    def kill(self, worker: int) -> None:
        self._send(Kill(worker))

    def close(self) -> None:
        self._bridge.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSE_SECONDS)
        kill_group(self._process.pid)
        self._process.wait()
        self._log.close()

    def _send(self, command: Command) -> None:
        try:
            self._bridge.send(command)
        except OSError as error:
            raise self._cluster_lost(error) from error

    def _receive(self) -> Any:
        received = self._bridge.recv()
        if isinstance(received, Exception):
            raise received
        return received

    def _wait_for_cluster(self) -> int:
        """The number of cores of the cluster, once Ray is connected."""
        hint = "without --executor ray, -j N uses the cores of this machine"
        if self._address:
            hint = "`ray start --head` starts one, and `ray start --address=HOST:PORT` has a machine join it"
        deadline = time.monotonic() + (_CONNECT_SECONDS if self._address else _START_SECONDS)
        try:
            while time.monotonic() < deadline:
                if self._bridge.poll(_POLL_SECONDS):
                    return int(self._receive())
                if _BAD_TOKEN in self._last_output():  # Ray would try again and again
                    hint = "set RAY_AUTH_MODE=token; `ray get-auth-token --help` tells where tokens are kept"
                    break
            reason = self._last_output()
        except MissingExtra:
            raise
        except (EOFError, OSError):
            reason = self._last_output()
        except PolicyFuzzError as error:
            reason = error.message
        kill_group(self._process.pid)  # it may keep trying for minutes
        what = f"the Ray cluster at {self._address} cannot be used" if self._address else "Ray does not start"
        raise UsageError(f"{what}: {reason}", hint)

    def _cluster_lost(self, error: Exception) -> WorkersFailed:
        reason = error.message if isinstance(error, PolicyFuzzError) else self._last_output()
        return WorkersFailed(
            f"the connection to the Ray cluster is lost: {reason}",
            "finished batches are saved; continue with --resume once the cluster is up again",
        )

    def _last_output(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _QUOTED))
        return self._log.read().decode(errors="replace").strip() or "it said nothing"


def check_address(address: str) -> None:
    """Raise UsageError unless `address` is auto, or HOST:PORT of a host that accepts connections."""
    if address == _AUTO:
        return
    if "://" in address:
        raise UsageError(
            f"{address} is the address of a Ray client server, expected HOST:PORT or auto",
            "run the campaign on a machine of the cluster (ray attach, ray submit)",
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{address!r} is no address of a Ray cluster, expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"no Ray cluster answers at {address}: {error}",
            "start one with `ray start --head` there, or leave out the address for one on this machine",
        ) from error


def _connected_address() -> str | None:
    """The cluster that this process is connected to already, in a notebook for example."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    return str(ray.get_runtime_context().gcs_address)
