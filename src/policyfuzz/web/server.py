"""Runs the page: the address that it listens on, the token that it asks for, and its end."""

import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from policyfuzz.core.errors import UsageError
from policyfuzz.web.app import Page, application, limit_threads
from policyfuzz.web.catalogue import Catalogue
from policyfuzz.web.connections import KEEP_ALIVE_SECONDS, MOST_HEAD_BYTES, LimitedConnection
from policyfuzz.web.guard import Access, Application, host_name, is_loopback
from policyfuzz.web.replays import Replays

LOOPBACK = "127.0.0.1"
#: Used if nobody chooses another; it stands for nothing.
PORT = 8347
#: Characters of a token at least: shorter ones can be guessed.
SHORTEST_TOKEN = 16
#: Seconds for answers that are under way when the server is told to end.
_GOODBYE_SECONDS = 1
#: Connections that wait to be accepted.
_BACKLOG = 128
#: Addresses that stand for all of a machine's.
_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the page listens, and who may look."""

    host: str = LOOPBACK
    port: int = PORT  #: 0: any that is free
    token: str | None = None  #: None: none is needed on loopback, elsewhere one is made
    allowed_hosts: tuple[str, ...] = ()  #: further names that the server is known by
    allow_replay: bool = False  #: run findings again to film them
    trust: bool = False  #: with `allow_replay`: also run code that only the campaign names

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not _is_plain(self.token)):
            raise UsageError(
                f"the token has {len(self.token)} characters, expected {SHORTEST_TOKEN} or more: letters,"
                " digits, - and _",
                "leave --token out, and one is made",
            )
        if self.trust and not self.allow_replay:
            raise UsageError("--trust is for replays", "add --allow-replay, or leave --trust out")

    @property
    def needs_token(self) -> bool:
        """True if other machines can reach the page."""
        return not is_loopback(self.host)


def _is_plain(token: str) -> bool:
    return token.isascii() and token.replace("-", "").replace("_", "").isalnum()


class WebServer:
    """A page about the campaigns in some folders: it listens from the start, and answers while it runs."""

    def __init__(self, folders: Sequence[Path], settings: ServerSettings | None = None) -> None:
        chosen = settings or ServerSettings()
        self._listener = _listener(chosen.host, chosen.port)
        port: int = self._listener.getsockname()[1]
        token = chosen.token or (secrets.token_urlsafe(24) if chosen.needs_token else None)
        is_everywhere = chosen.host in _EVERYWHERE
        own = (chosen.host, socket.gethostname()) if chosen.needs_token else (chosen.host,)
        names = {host_name(name) for name in (*chosen.allowed_hosts, *own)}
        access = Access(token, frozenset(names.difference(_EVERYWHERE, [""])), is_everywhere)
        self._replays = Replays(chosen.trust) if chosen.allow_replay else None
        self._server = uvicorn.Server(
            _config(application(Page(Catalogue.of(folders), self._replays), access))
        )
        shown = socket.gethostname() if is_everywhere else chosen.host
        shown = f"[{shown}]" if ":" in shown else shown
        #: What to open in a browser, with the token if there is one.
        self.address = f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._server.server_state.connections)

    def run(self) -> None:
        """Answer until `stop` is called, or the process is interrupted."""
        try:
            with suppress(KeyboardInterrupt):  # uvicorn ends well, and raises it then
                self._server.run([self._listener])
        finally:
            self._listener.close()
            if self._replays is not None:
                self._replays.close()

    def stop(self) -> None:
        """Let `run`, in another thread, come to its end."""
        self._server.should_exit = True


def serve(
    folders: Sequence[Path],
    settings: ServerSettings | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a page about the campaigns in `folders` until it is interrupted; `told` hears its address."""
    server = WebServer(folders, settings)
    told(server.address)
    server.run()


def _config(page: Application) -> uvicorn.Config:
    async def whole(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await limit_threads()
        await page(scope, receive, send)

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # not every odd request
    return uvicorn.Config(
        whole,
        http=LimitedConnection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        backlog=_BACKLOG,
    )


def _listener(host: str, port: int) -> socket.socket:
    """A socket at this address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)  # whoever is told the address may come at once
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "choose another address with --host, or another port with --port (0: any that is free)",
        ) from error
    return listener
