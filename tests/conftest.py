import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# before torch is imported: on a busy machine its threads wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter, Target, load_target

sys.path.insert(0, str(Path(__file__).parent))
from browser import chromium

settings.register_profile("policyfuzz", deadline=None)  # a busy machine is no failure
settings.load_profile("policyfuzz")

#: Where files are kept in memory, and how much room tests may need there.
MEMORY, ROOM = "/dev/shm", 4 * 2**30


def pytest_configure() -> None:
    """Keep the files of tests in memory: a campaign waits a dozen times until a disk has its data."""
    if (
        os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free > ROOM
        and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests run what they write
    ):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


@pytest.fixture
def run_campaign(tmp_path: Path) -> Callable[..., CampaignReader]:
    """Run a campaign to the end in a new folder, and open it for reading."""

    def run(target: Target | str, name: str = "campaign", executions: int = 2000, **config: object):
        loaded = load_target(target) if isinstance(target, str) else target
        options: dict[str, Any] = {
            "batch_size": loaded.batch_size,
            "policy_sha256": loaded.policy_sha256,
        } | config
        store = CampaignWriter.create(tmp_path / name, CampaignConfig(loaded.name, **options), loaded.inputs)
        Campaign(loaded, store, Budget(executions=executions)).run()
        store.close()
        return CampaignReader(tmp_path / name)

    return run


@pytest.fixture(scope="module")  # while it is open, no other test of the process can have an event loop
def browser() -> Iterator[Any]:
    """A chromium for tests of pages."""
    with chromium() as running:
        yield running
