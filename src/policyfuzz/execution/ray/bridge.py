"""A process between coordinator and cluster.

Ray prints where it likes, handles signals, and ends a process that loses its cluster. Here it does so away
from the campaign; and this process sees to it that nothing is left when the coordinator is killed.
"""

import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from policyfuzz.core.errors import PolicyFuzzError, UsageError
from policyfuzz.execution.ray.cluster import connected
from policyfuzz.execution.ray.fleet import Fleet, Heard
from policyfuzz.execution.ray.node import Order

#: Seconds for a cluster of our own to be stopped in order.
_ORDERLY_END = 10.0


class _CoordinatorGone(Exception):
    """There is nobody to work for any more."""


def main() -> None:
    """Serve a coordinator at the other end of a socket, whose descriptor is the argument."""
    coordinator: Connection[Any, Any] = Connection(int(sys.argv[1]))
    shipment, address, cores = coordinator.recv()
    inbox: SimpleQueue[Order | Heard | None] = SimpleQueue()
    threading.Thread(target=_read, args=(coordinator, inbox), daemon=True).start()
    try:
        with connected(address, cores) as ray:
            coordinator.send(int(ray.cluster_resources().get("CPU", 0)))
            _serve(Fleet(shipment, coordinator.send, inbox.put), inbox)
    except (_CoordinatorGone, BrokenPipeError):
        pass
    except PolicyFuzzError as error:
        coordinator.send(error)
    except Exception as error:
        coordinator.send(UsageError(f"{type(error).__name__}: {error}"))
    finally:
        # what Ray has started is in our process group, and some of it stays for a minute otherwise
        os.killpg(0, signal.SIGKILL)


def _serve(fleet: Fleet, inbox: "SimpleQueue[Order | Heard | None]") -> None:
    while True:
        seconds = fleet.advance()
        try:
            item = inbox.get(timeout=seconds)
            while True:
                if item is None:
                    raise _CoordinatorGone
                if isinstance(item, Heard):
                    fleet.handle(item)
                else:
                    fleet.order(item)
                item = inbox.get_nowait()
        except Empty:
            continue


def _read(coordinator: "Connection[Any, Any]", inbox: "SimpleQueue[Order | Heard | None]") -> None:
    try:
        while True:
            inbox.put(coordinator.recv())
    except (EOFError, OSError):
        inbox.put(None)
        threading.Timer(_ORDERLY_END, os.killpg, (0, signal.SIGKILL)).start()


if __name__ == "__main__":
    main()
