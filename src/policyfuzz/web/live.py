"""Numbers of campaigns while they run: read once for all who watch, and only if the files have changed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.report.instances import RUNNING, instance_at
from policyfuzz.web.catalogue import Catalogue, Entry, Stamp, check_links
from policyfuzz.web.words import numbers_of, state_text

#: Seconds between two looks at a campaign. Numbers on a page are older by this at most, and by one batch.
LOOK_SECONDS = 1.0
#: Share of a processor that looking may take, with hundreds of campaigns looks become rarer; and seconds
#: between two looks at least.
_MOST_SHARE, _SHORTEST_PAUSE = 0.1, 0.1
#: Browsers and proxies drop a connection that says nothing for long.
_SILENT_SECONDS = 15.0
#: Pages that watch at a time.
MOST_WATCHERS = 64


def live_numbers(folder: Path) -> dict[str, Any]:
    """What a page shows of the campaign in `folder` while it runs; what is wrong, if it cannot be read."""
    try:
        check_links(folder)
        one = instance_at(folder)
    except (CampaignError, OSError) as error:
        return {"state": "gone", "problem": str(error).splitlines()[0]}
    progress = one.progress
    return {
        "state": one.state,
        "state_text": state_text(one.state, one.stop_reason),
        "instance": one.identity,
        "texts": numbers_of(progress, one.is_solvability_tested, one.seconds_since_finding),
        "point": [progress.executions, progress.seconds, progress.findings, progress.distinct_findings],
        "is_running": one.state == RUNNING,
    }


@dataclass(slots=True)
class _Look:
    """The last look at one campaign."""

    at: float = -1e9
    stamp: Stamp | None = None
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Live:
    """Looks at campaigns for all who watch them."""

    catalogue: Catalogue
    run: Callable[..., Any]  #: runs a function in a thread, and can be awaited
    watchers: int = 0
    _looks: dict[str, _Look] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def watch(self, slugs: list[str] | None) -> AsyncIterator[str]:
        """Server-sent events about the campaigns of these `slugs`, None for all, until nobody listens."""
        self.watchers += 1
        try:
            told: dict[str, dict[str, Any]] = {}
            spoke = time.monotonic()
            yield "retry: 3000\n\n"
            while True:
                started = time.monotonic()
                async with self._lock:
                    now, cost = await self.run(self._timed_look, slugs)
                news = {slug: numbers for slug, numbers in now.items() if told.get(slug) != numbers}
                if news:
                    yield f"data: {json.dumps(news)}\n\n"
                    told, spoke = now, time.monotonic()
                elif time.monotonic() - spoke > _SILENT_SECONDS:
                    yield ": still here\n\n"
                    spoke = time.monotonic()
                took = time.monotonic() - started
                await asyncio.sleep(max(LOOK_SECONDS - took, cost / _MOST_SHARE, _SHORTEST_PAUSE))
        finally:
            self.watchers -= 1

    def _timed_look(self, slugs: list[str] | None) -> tuple[dict[str, dict[str, Any]], float]:
        """The numbers, and the seconds of the processor that they took: others may keep it busy."""
        started = time.thread_time()
        return self._look_at(slugs), time.thread_time() - started

    def _look_at(self, slugs: list[str] | None) -> dict[str, dict[str, Any]]:
        """The numbers of campaigns by slug; what was read a moment ago, or has not changed, is kept."""
        entries = {entry.slug: entry for entry in self.catalogue.entries()}
        wanted = list(entries) if slugs is None else slugs
        for gone in [slug for slug in self._looks if slug not in entries]:
            del self._looks[gone]
        missing = {"state": "gone", "problem": "the campaign is not there any more"}
        return {slug: self._numbers(entries[slug]) if slug in entries else missing for slug in wanted}

    def _numbers(self, entry: Entry) -> dict[str, Any]:
        look, now = self._looks.setdefault(entry.slug, _Look()), time.monotonic()
        if now - look.at >= LOOK_SECONDS / 2:
            stamp = Stamp.of(entry.folder)
            # a campaign that is killed changes no file, so one that runs is always looked at
            if stamp != look.stamp or look.numbers.get("is_running"):
                look.stamp, look.numbers = stamp, live_numbers(entry.folder)
            look.at = now
        return look.numbers
