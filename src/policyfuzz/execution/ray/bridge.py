"""The bridge: a process between coordinator and cluster, the only one that imports Ray on this side.

Ray prints where it likes, handles signals, and ends a process that loses its cluster. Here it does so away
from the campaign. The bridge also makes sure that nothing is left when the coordinator is killed.
"""

import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from policyfuzz.core.errors import PolicyFuzzError, UsageError
from policyfuzz.core.extras import load
from policyfuzz.execution.ray.cluster import Cluster, NodeReply
from policyfuzz.execution.ray.node import Command

#: Seconds for Ray to shut down before it is killed.
_SHUTDOWN_SECONDS = 10.0
#: The path of a socket must be short, so the files of a cluster cannot lie in any temporary folder.
_SHORT_FOLDER = Path("/tmp")


class _CoordinatorGone(Exception):
    """The coordinator has closed the connection."""


#: None if the coordinator has gone.
_Inbox = SimpleQueue[Command | NodeReply | None]


def main() -> None:
    """Serve a coordinator at the other end of a socket, whose descriptor is the argument."""
    coordinator: Connection[Any, Any] = Connection(int(sys.argv[1]))
    shipment, address, cores = coordinator.recv()
    inbox: _Inbox = SimpleQueue()
    threading.Thread(target=_read_commands, args=(coordinator, inbox), daemon=True).start()
    try:
        with _connected_ray(address, cores) as ray:
            coordinator.send(int(ray.cluster_resources().get("CPU", 0)))
            _serve(Cluster(shipment, coordinator.send, inbox.put), inbox)
    except (_CoordinatorGone, BrokenPipeError):
        pass
    except PolicyFuzzError as error:
        coordinator.send(error)
    except Exception as error:
        coordinator.send(UsageError(f"{type(error).__name__}: {error}"))
    finally:
        # processes that Ray started are in our group, and some would stay for a minute
        os.killpg(0, signal.SIGKILL)


def _serve(cluster: Cluster, inbox: _Inbox) -> None:
    while True:
        seconds = cluster.advance()
        try:
            item = inbox.get(timeout=seconds)
            while True:
                if item is None:
                    raise _CoordinatorGone
                if isinstance(item, NodeReply):
                    cluster.handle_reply(item)
                else:
                    cluster.add_command(item)
                item = inbox.get_nowait()
        except Empty:
            continue


def _read_commands(coordinator: "Connection[Any, Any]", inbox: _Inbox) -> None:
    try:
        while True:
            inbox.put(coordinator.recv())
    except (EOFError, OSError):
        inbox.put(None)
        threading.Timer(_SHUTDOWN_SECONDS, os.killpg, (0, signal.SIGKILL)).start()


@contextmanager
def _connected_ray(address: str | None, cores: int) -> Iterator[Any]:
    """The module `ray`, connected to the cluster at `address`, or to a new local one with so many `cores`."""
    if address is None:
        with _local_cluster_settings() as settings:
            yield from _run_ray(settings | {"address": "local", "num_cpus": cores})
    else:
        yield from _run_ray({"address": address})


def _run_ray(settings: dict[str, Any]) -> Iterator[Any]:
    ray = load("ray", "ray")
    ray.init(logging_level="ERROR", log_to_driver=False, **settings)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _local_cluster_settings() -> Iterator[dict[str, Any]]:
    """Settings of a private cluster that leaves no files behind.

    The environment variables are set before Ray is imported, because Ray reads some of them then.
    """
    os.environ |= {
        # otherwise Ray makes a token and leaves it in the user's home for all later clusters
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        # the one switch that keeps a cluster off the network
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # the kernel kills workers that take too much memory; Ray would kill the actor of their node
        "RAY_memory_monitor_refresh_ms": "0",
    }
    parent = _SHORT_FOLDER if os.access(_SHORT_FOLDER, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="policyfuzz-ray-", dir=parent)
    try:
        yield {"include_dashboard": False, "_temp_dir": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
