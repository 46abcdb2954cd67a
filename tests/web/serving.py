"""Campaigns to look at, and servers that show them."""

import atexit
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from policyfuzz import Budget, CampaignConfig, CampaignReader, CampaignWriter, load_target
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.report.tally import Counts, Tally
from policyfuzz.store.comparisons import FINDINGS_OF_A, POOL
from policyfuzz.web.server import ServerSettings, WebServer

TARGET = "ripple:dimensions=3,probability=0.1"


def write_campaign(folder: Path, executions: int = 600, seed: int = 0) -> Path:
    """A small campaign that has come to its end, or an empty one; those alike are copies of one."""
    shutil.copytree(_campaign(executions, seed), folder, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    return folder


def write_comparison(folder: Path, name: str, other: str = "npz:new.npz") -> None:
    """A comparison with a policy called `other`, which is worse, beside the campaign in `folder`."""
    config = CampaignReader(folder).config
    groups = {
        FINDINGS_OF_A: Counts(cases=40, fixed=30, still_failing=10),
        POOL: Counts(cases=2000, still_failing=12, newly_failing=30, both_pass=1956, errors_of_b=2),
    }
    tally = Tally(
        config.target, "the old one", other, groups, 2040, policy_sha256=(config.policy_sha256, "b" * 64)
    )
    (folder / name).write_text(json.dumps(tally.summary()))


@cache
def _campaign(executions: int, seed: int) -> Path:
    place = tempfile.mkdtemp(prefix="policyfuzz-tests-")
    atexit.register(shutil.rmtree, place)
    folder, target = Path(place, "c"), load_target(TARGET)
    if not executions:
        CampaignWriter.create(folder, CampaignConfig(target.name), target.inputs).close()
        return folder
    options = CampaignOptions(seed=seed, batch=128, samples=256)
    launch(target, Budget(executions=executions), options, folder=folder, force=True)
    return folder


@contextmanager
def serving(*folders: Path, **settings: Any) -> Iterator[WebServer]:
    """A server on a free port of loopback, in a thread."""
    server = WebServer(folders, ServerSettings(port=0, **settings))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def client_of(server: WebServer, **options: Any) -> httpx.Client:
    """Asks `server` without its token, and waits however busy the machine is."""
    return httpx.Client(base_url=server.address.partition("?")[0], timeout=60, **options)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Until `is_so`, for as long as a busy machine may need."""
    for _ in range(2400):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to that")
