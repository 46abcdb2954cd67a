"""Connecting to a Ray cluster, or starting one on this machine."""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import UsageError
from policyfuzz.core.extras import load

AUTO = "auto"
#: Seconds for a computer to answer at an address.
_REACHABLE = 5.0
#: Sockets have short paths at most, so that a cluster's files cannot be in any folder for temporary ones.
_SHORT_FOLDER = Path("/tmp")


def checked_address(address: str) -> str:
    """`address`, if somebody answers there or Ray is to look for it by itself."""
    if address == AUTO:
        return address
    if "://" in address:
        raise UsageError(
            f"{address} is the address of a Ray client server, expected HOST:PORT or auto",
            "run the campaign on a machine of the cluster (ray attach, ray submit)",
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{address!r} is no address of a Ray cluster, expected HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), _REACHABLE).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"nobody answers at {address}, where a Ray cluster was expected: {error}",
            "start one with `ray start --head` there, or leave out the address for one on this machine",
        ) from error
    return address


@contextmanager
def connected(address: str | None, cores: int) -> Iterator[Any]:
    """The module `ray`, connected to a cluster; without `address` one of our own with as many `cores`."""
    if address is None:
        with _own_settings() as settings:
            yield from _connected(settings | {"address": "local", "num_cpus": cores})
    else:
        yield from _connected({"address": address})


def _connected(settings: dict[str, Any]) -> Iterator[Any]:
    ray = load("ray", "ray")
    ray.init(logging_level="ERROR", log_to_driver=False, **settings)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _own_settings() -> Iterator[dict[str, Any]]:
    """Settings of a cluster that nobody else can use, and that leaves no files.

    They are set before Ray is imported, which reads some of them then.
    """
    os.environ |= {
        # Ray would make a token otherwise, and leave it in the user's home for all later clusters
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        # the one switch that keeps a cluster off the network
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # workers that take too much memory are killed by the kernel; Ray would kill their station
        "RAY_memory_monitor_refresh_ms": "0",
    }
    parent = _SHORT_FOLDER if os.access(_SHORT_FOLDER, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="policyfuzz-ray-", dir=parent)
    try:
        yield {"include_dashboard": False, "_temp_dir": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
