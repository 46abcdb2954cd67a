from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette", reason="the extra web is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from tests.web.serving import client_of, serving, write_campaign


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A campaign with some hundred findings."""
    return write_campaign(tmp_path_factory.mktemp("web") / "finished", 2000)


@pytest.fixture(scope="session")
def empty(tmp_path_factory) -> Path:
    """A campaign that has not run yet."""
    return write_campaign(tmp_path_factory.mktemp("web") / "empty", 0)


@pytest.fixture(scope="module")
def client(finished) -> Iterator[httpx.Client]:
    """Asks a server that shows one finished campaign."""
    with serving(finished) as server, client_of(server) as asking:
        yield asking
