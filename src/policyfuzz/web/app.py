"""The addresses of the page, and what answers them."""

import functools
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from policyfuzz.core.errors import CampaignError, PolicyFuzzError
from policyfuzz.core.visible import visible
from policyfuzz.report.campaign_report.side_by_side import left_out_text
from policyfuzz.report.instances import Instance, groups_of, instance_at, together
from policyfuzz.report.quantities import format_rate
from policyfuzz.store.database import picture_file
from policyfuzz.store.plain_records import to_plain
from policyfuzz.store.reader import CampaignReader
from policyfuzz.web import campaigns, pages, rates
from policyfuzz.web.catalogue import Catalogue, Entry, NoSuchCampaign, Stamp, check_links, opened
from policyfuzz.web.films import TYPES, Part, open_media
from policyfuzz.web.guard import Access, Application, Guard
from policyfuzz.web.live import MOST_WATCHERS, Live
from policyfuzz.web.replays import DONE, FAILED, Order, Reel, Replays
from policyfuzz.web.words import short

#: Pages that are made at the same time; more wait.
_THREADS = 8
#: Answers that are kept for the next who asks, while the campaign has not changed.
_MOST_KEPT = 64
#: Digits of a number in an address.
_LONGEST_NUMBER = 18
#: Seconds for which a browser keeps scripts and styles; their address changes when they do.
_KEPT_SECONDS = 86_400
#: Files that the page consists of, and their types.
_STATIC = {
    "style.css": "text/css",
    "page.js": "text/javascript",
    "charts.js": "text/javascript",
    "map.js": "text/javascript",
    "episode.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
#: Pages of a campaign: the last part of their address, and their name.
_TABS = (
    ("", "Overview"),
    ("modes", "Modes"),
    ("findings", "Findings"),
    ("map", "Map"),
    ("coverage", "Coverage"),
    ("errors", "Errors"),
    ("workers", "Workers"),
    ("estimate", "Estimate"),
    ("policies", "Other policies"),
)


@dataclass(slots=True)
class _Cache:
    """Answers that took some time, as long as the campaign does not change."""

    _kept: OrderedDict[tuple[str, str], tuple[Stamp, Any]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, entry: Entry, what: str, make: Callable[[CampaignReader], Any]) -> Any:
        key, stamp = (entry.slug, what), Stamp.of(entry.folder)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == stamp:
                self._kept.move_to_end(key)
                return kept[1]
        with opened(entry.folder) as campaign:
            made = make(campaign)
        with self._lock:
            self._kept[key] = stamp, made
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return made


@dataclass(slots=True)
class Page:
    """Answers every request; nothing here changes a campaign."""

    catalogue: Catalogue
    replays: Replays | None = None  #: None: films are not made
    live: Live = field(init=False)
    _cache: _Cache = field(default_factory=_Cache)
    _templates: jinja2.Environment = field(init=False)

    def __post_init__(self) -> None:
        self.live = Live(self.catalogue, run_in_threadpool)
        self._templates = templates()

    # several campaigns

    def index(self, request: Request) -> Response:
        """All campaigns; if there is only one, its overview."""
        entries = self.catalogue.entries()
        if len(entries) == 1 and entries[0].group is None:
            return RedirectResponse(f"/c/{entries[0].slug}/", 303)
        found = self._instances(entries)
        rows = campaigns.campaign_rows(found)
        for row, entry in zip(rows, entries, strict=True):
            row |= {"name": short(entry.name, 80), "folder": str(entry.folder)}
        places = {id(one): entry for entry, (_, one) in zip(entries, found, strict=True)}
        several = [
            group
            for group in groups_of([one for _, one in found if isinstance(one, Instance)])
            if len(group) > 1
        ]
        # what all found together is only known from their inputs, which take longer to read
        groups = [_group_values([self._with_inputs(places[id(one)]) for one in group]) for group in several]
        return self._page("campaigns.html", title="Campaigns", rows=rows, groups=groups)

    def compare(self, request: Request) -> Response:
        """Several campaigns side by side."""
        entries = self.catalogue.entries()
        found = self._instances(entries)
        rows = campaigns.campaign_rows(found)
        for row, entry in zip(rows, entries, strict=True):
            row |= {"name": short(entry.name, 80)}
        compared = [
            self._compared(entry) for entry, (_, one) in zip(entries, found, strict=True) if _is_here(one)
        ]
        return self._page(
            "compare.html",
            title="Compare",
            rows=rows,
            contrasts=campaigns.contrast_rows(compared),
            left_out=left_out_text(compared),
        )

    def _compared(self, entry: Entry) -> campaigns.Compared:
        made: campaigns.Compared = self._cache.get(entry, "compared", campaigns.Compared.of)
        return made

    def _with_inputs(self, entry: Entry) -> Instance:
        """The campaign with its distinct findings."""
        made: Instance = self._cache.get(entry, "inputs", lambda campaign: instance_at(campaign.folder))
        return made

    def _instances(self, entries: list[Entry]) -> list[tuple[str, Instance | str]]:
        """Slug and campaign of all entries, or what is wrong with one."""
        found: list[tuple[str, Instance | str]] = []
        for entry in entries:
            try:
                check_links(entry.folder)
                found.append((entry.slug, instance_at(entry.folder, is_compared=False)))
            except (CampaignError, OSError) as error:
                found.append((entry.slug, pages.not_there(error)))
        return found

    # one campaign

    def campaign_page(self, tab: str, request: Request) -> Response:
        """The page `tab` of a campaign."""
        entry = self._entry(request)
        top = self._head(entry)
        given = dict(request.query_params)
        makers: dict[str, Callable[[CampaignReader], dict[str, Any]]] = {
            "": pages.overview,
            "modes": pages.modes,
            "findings": lambda campaign: pages.finding_list(campaign, given),
            "map": lambda campaign: {"total": campaign.progress().findings},
            "coverage": pages.coverage,
            "errors": lambda campaign: pages.errors(campaign, _number(given.get("page", ""), 1)),
            "workers": pages.workers,
            "estimate": rates.estimate,
            "policies": rates.compared_policies,
        }
        if top["host"] is not None:
            return self._page("elsewhere.html", entry=entry, head=top, tab=tab, title=dict(_TABS)[tab])
        with opened(entry.folder) as campaign:
            values = makers[tab](campaign)
        name = tab or "overview"
        return self._page(f"{name}.html", entry=entry, head=top, tab=tab, title=dict(_TABS)[tab], **values)

    def finding(self, request: Request) -> Response:
        """One finding."""
        entry, number = self._entry(request), _number(request.path_params["number"])
        top = self._head(entry)
        with opened(entry.folder) as campaign:
            values = pages.one_finding(campaign, number)
        reel = self._reel(entry, number)
        return self._page(
            "finding.html",
            entry=entry,
            head=top,
            tab="findings",
            title=f"Finding {number:,}",
            may_replay=self.replays is not None,
            reel=_reel_values(reel),
            **values,
        )

    def figure(self, request: Request) -> Response:
        """The numbers of a figure."""
        makers = {
            "discovery": pages.figure_discovery,
            "maps": pages.figure_maps,
            "histograms": pages.figure_histograms,
            "coverage": pages.figure_coverage,
        }
        entry, what = self._entry(request), request.path_params["what"]
        if what not in makers:
            raise HTTPException(404)
        text = self._cache.get(entry, what, lambda campaign: _json(to_plain(makers[what](campaign))))
        return Response(text, media_type="application/json")

    def media(self, request: Request) -> Response:
        """A film or picture that `replay` has left in the campaign."""
        entry, number = self._entry(request), _number(request.path_params["number"])
        ending = f".{request.path_params['ending']}"
        if ending not in TYPES:
            raise HTTPException(404)
        path = picture_file(entry.folder, f"{number}{ending}")
        return _part_response(open_media(path, request.headers.get("range", "")), TYPES[ending])

    # films on demand

    def ask_for_film(self, request: Request) -> Response:
        """Begin to make a film."""
        entry, number = self._entry(request), _number(request.path_params["number"])
        if self.replays is None:
            raise HTTPException(403, "films are made only if policyfuzz web was started with --allow-replay")
        with opened(entry.folder) as campaign:
            campaign.finding(number)  # or says that there is none
            order = Order(str(entry.folder), campaign.about.get("instance", ""), number)
        reel = self.replays.ask(order)
        if reel is None:
            raise HTTPException(503, "several films are being made; try again in a minute")
        return JSONResponse(_reel_values(reel), 202)

    def episode(self, request: Request) -> Response:
        """How far a film is, and when it is done the strips that move with it."""
        entry, number = self._entry(request), _number(request.path_params["number"])
        reel = self._reel(entry, number)
        if reel is None:
            raise HTTPException(404, "this film was not asked for")
        values = _reel_values(reel) or {}
        return Response(_json(values | {"episode": reel.episode}), media_type="application/json")

    def film(self, request: Request) -> Response:
        """A film that was made on demand."""
        reel = self._reel(self._entry(request), _number(request.path_params["number"]))
        film = None if reel is None or reel.state != DONE else reel.film
        if film is None:
            raise HTTPException(404, "there is no such film")
        return _part_response(open_media(film, request.headers.get("range", "")), TYPES[film.suffix])

    def _reel(self, entry: Entry, number: int) -> Reel | None:
        if self.replays is None:
            return None
        with opened(entry.folder) as campaign:
            instance = campaign.about.get("instance", "")
        return self.replays.get(Order(str(entry.folder), instance, number))

    # live numbers

    async def events(self, request: Request) -> Response:
        """Server-sent events about one campaign, or all."""
        slug = request.query_params.get("campaign")
        if self.live.watchers >= MOST_WATCHERS:
            raise HTTPException(503, "too many pages watch already")
        stream = self.live.watch(None if slug is None else [slug[:100]])
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    # scripts, styles and errors

    def static(self, request: Request) -> Response:
        """A script, a style or a picture of the page itself."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        headers = {"cache-control": f"private, max-age={_KEPT_SECONDS}"}
        return Response(_static(name), media_type=_STATIC[name], headers=headers)

    async def refused(self, request: Request, error: Exception) -> Response:
        """A kind page, or JSON for scripts, about what went wrong."""
        if isinstance(error, HTTPException):
            status, problem, hint = error.status_code, error.detail, ""
        elif isinstance(error, PolicyFuzzError):
            status = 404 if isinstance(error, NoSuchCampaign) else 503
            problem, hint = error.message, error.hint
            if isinstance(error, CampaignError) and error.message.startswith(("no finding", "no error")):
                status = 404
        else:
            status, problem, hint = 500, "this page could not be made", "the terminal says why"
        if _wants_json(request):
            return JSONResponse({"problem": visible(problem), "hint": visible(hint)}, status)
        response = self._page("problem.html", title="Not here", problem=problem, hint=hint, status=status)
        response.status_code = status
        return response

    def _entry(self, request: Request) -> Entry:
        return self.catalogue.find(request.path_params["slug"])

    def _head(self, entry: Entry) -> dict[str, Any]:
        check_links(entry.folder)
        return pages.head(entry.folder)

    def _page(self, name: str, **values: Any) -> HTMLResponse:
        several = len(self.catalogue.folders) > 1 or len(self.catalogue.entries()) > 1
        text = self._templates.get_template(name).render(tabs=_TABS, has_several=several, **values)
        return HTMLResponse(text)


def application(page: Page, access: Access) -> Application:
    """The page behind its guard."""
    tabs = [
        Route(f"/c/{{slug}}/{tab}", functools.partial(page.campaign_page, tab), methods=["GET"])
        for tab, _ in _TABS
    ]
    finding = "/c/{slug}/findings/{number}"
    routes = [
        Route("/", page.index),
        Route("/compare", page.compare),
        Route("/events", page.events),
        Route("/static/{version}/{name}", page.static),
        *tabs,
        Route(finding, page.finding),
        Route(f"{finding}/stored.{{ending}}", page.media),
        Route(f"{finding}/film", page.ask_for_film, methods=["POST"]),
        Route(f"{finding}/film", page.film),
        Route(f"{finding}/episode", page.episode),
        Route("/c/{slug}/figures/{what}", page.figure),
    ]
    handlers: Mapping[Any, Any] = {
        HTTPException: page.refused,
        PolicyFuzzError: page.refused,
        OSError: page.refused,
        Exception: page.refused,
    }
    made = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(made, access)


def templates() -> jinja2.Environment:
    """The templates of all pages: every text in them is escaped, and shows what a terminal would obey."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("policyfuzz.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            visible(str(value)) if type(value) is str or isinstance(value, Path) else value
        ),
    )
    made.globals["static"] = lambda name: f"/static/{_version()}/{name}"
    return made


async def limit_threads() -> None:
    """Make few pages at a time: each may read a large campaign."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS


@functools.cache
def _static(name: str) -> bytes:
    return (resources.files("policyfuzz.web") / "static" / name).read_bytes()


@functools.cache
def _version() -> str:
    """Changes when a script or style does."""
    import hashlib

    return hashlib.sha256(b"".join(map(_static, _STATIC))).hexdigest()[:12]


def _is_here(one: Instance | str) -> bool:
    """True if the campaign can be read on this machine."""
    return isinstance(one, Instance) and one.host is None


def _part_response(part: Part, kind: str) -> Response:
    is_part = (part.start, part.end) != (0, part.size)
    headers = {"accept-ranges": "bytes", "content-length": str(part.end - part.start)}
    if is_part:
        headers["content-range"] = f"bytes {part.start}-{max(part.end - 1, part.start)}/{part.size}"
    return StreamingResponse(part.chunks(), 206 if is_part else 200, headers, kind)


def _reel_values(reel: Reel | None) -> dict[str, Any] | None:
    if reel is None:
        return None
    is_done = reel.state == DONE
    return {
        "state": reel.state,
        "has_failed": reel.state == FAILED,
        "problem": short(reel.problem, 2000),
        "hint": short(reel.hint, 500),
        "film": reel.film.suffix[1:] if is_done and reel.film is not None else None,
        "not_filmed": short(reel.episode.get("not_filmed", ""), 300),
    }


def _group_values(group: list[Instance]) -> dict[str, Any]:
    """Sums of campaigns on one target and policy."""
    total = together(group)
    return {
        "target": short(group[0].config.target),
        "count": total.instances,
        "running": total.running,
        "executions": f"{total.executions:,}",
        "speed": format_rate(total.executions_per_second),
        "findings": f"{total.findings:,}",
        "distinct": f"{'' if total.distinct_is_exact else 'at least '}{total.distinct_findings:,}",
        "failure": str(total.failure_probability) if total.failure_probability is not None else "",
    }


def _number(text: str, otherwise: int | None = None) -> int:
    """The number that a part of an address is."""
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    if otherwise is None:
        raise HTTPException(404)
    return otherwise


def _wants_json(request: Request) -> bool:
    return "/figures/" in request.url.path or request.url.path.endswith(("/episode", "/film"))


def _json(value: Any) -> str:
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    """`value` with null for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if value in ("NaN", "Infinity", "-Infinity") else value
