"""A real browser for tests of pages: Debian's chromium, driven by Playwright; skipped where it is missing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

#: Width and height in pixels of a telephone and of a desk.
TELEPHONE, DESK = (390, 844), (1440, 900)
#: Every look that pages must have: width, height, colour scheme.
LOOKS = [(*size, scheme) for size in (TELEPHONE, DESK) for scheme in ("light", "dark")]
#: Impacts of axe-core that count.
_SERIOUS = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Any]:
    """A Playwright browser; skips the test, with a reason, where it cannot be had."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if program is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as running:
        # its sandbox needs rights that containers and root do not have
        browser = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class OpenPage:
    """A page, and all that went wrong on it."""

    page: Any
    problems: list[str] = field(default_factory=list)  #: console errors, exceptions, failed requests

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width

    def serious(self) -> list[str]:
        """What axe-core calls serious or critical."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
        found = axe.Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            if one["impact"] in _SERIOUS
            for node in one["nodes"]
        ]


def _failure(request: Any) -> list[str]:
    """What went wrong with a `request`; nothing if it was only given up because the page was left."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.failure}: {request.url[:200]}"]


@contextmanager
def opened(browser: Any, url: str, look: tuple[int, int, str], **options: Any) -> Iterator[OpenPage]:
    """The page at `url` in a window of its own; `options` are those of a Playwright context."""
    width, height, scheme = look
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **options
    )
    try:
        seen = OpenPage(context.new_page())
        seen.page.on("console", lambda one: seen.problems.extend([one.text] * (one.type == "error")))
        seen.page.on("pageerror", lambda error: seen.problems.append(str(error)))
        seen.page.on("requestfailed", lambda one: seen.problems.extend(_failure(one)))
        seen.page.goto(url, wait_until="load")
        yield seen
    finally:
        context.close()
