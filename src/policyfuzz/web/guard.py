"""Who may ask: checks every request before a page sees it, and says what a browser may do with the answer."""

import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Browsers keep the token under this name.
COOKIE = "policyfuzz_token"
#: Scripts send it with what changes something; a form on another site cannot.
ASKED_HEADER = "x-policyfuzz"
#: Bytes of a request's body: nothing here needs one.
MOST_BODY = 1024
#: Bytes of an address.
_LONGEST_ADDRESS = 2048
_METHODS = ("GET", "HEAD", "POST")
_PORT = re.compile(r":\d{1,5}$")

#: Everything comes from this server, and no text of a page can become a script.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may look."""

    token: str | None = field(default=None, repr=False)  #: None: everybody who reaches the server
    names: frozenset[str] = frozenset()  #: of hosts, beside loopback, that the server is known by
    any_address: bool = False  #: also every address in numbers, for a server on all interfaces

    def is_ours(self, host: str) -> bool:
        """True if a browser that sends `host` has come to us by a name of ours.

        A page elsewhere can give its own name our address, and would then be allowed to read our answers.
        """
        name = host_name(host)
        if name in ("localhost", "127.0.0.1", "::1") or name in self.names:
            return True
        if not self.any_address:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def lets_in(self, given: Iterable[str]) -> bool:
        """True if one of the tokens that were `given` is the right one."""
        if self.token is None:
            return True
        right = self.token.encode()
        # compared in the same time, however much of one is right
        return any(hmac.compare_digest(one.encode(errors="replace"), right) for one in given)


def host_name(host: str) -> str:
    """The name or address in a Host header, without port and brackets."""
    name = host.strip().lower()
    if name.startswith("[") or name.count(":") == 1:  # else it is an address of IPv6 alone
        name = _PORT.sub("", name)
    return name.removeprefix("[").removesuffix("]").removesuffix(".")


def is_loopback(address: str) -> bool:
    """True if only this machine can reach `address`."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets through what may be answered, and adds to every answer what a browser must know."""

    application: Application
    access: Access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.application(scope, receive, send)
            return  # no WebSockets here
        headers = _Headers.of(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                has = {name.lower() for name, _ in message.get("headers", ())}
                added = [(name.encode(), value.encode()) for name, value in _HEADERS]
                if b"cache-control" not in has:
                    added.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(guarded, *refusal)
        elif (token := self.access.token) is not None and _token_in(scope) is not None:
            # whoever comes here has given a right token, in the address or otherwise
            await _answer(guarded, 303, "", [_location_without_token(scope), _cookie(token)])
        else:
            await self.application(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: "_Headers") -> tuple[int, str] | None:
        """Status and reason if the request is not answered."""
        if scope["method"] not in _METHODS:
            return 405, "this server answers GET and HEAD"
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > _LONGEST_ADDRESS:
            return 414, "the address is too long"
        if headers.has_large_body:
            return 413, "this server takes no content"
        hosts = headers.all("host")
        if len(hosts) != 1 or not self.access.is_ours(hosts[0]):
            return 421, "this server is not known by that name; add it with --allow-host NAME"
        if not self._has_our_origin(scope, headers, hosts[0]):
            return 403, "another site asked for this"
        given = [*headers.bearer, *headers.cookies, *filter(None, [_token_in(scope)])]
        if not self.access.lets_in(given):
            return 401, "open the address that policyfuzz web has printed: it holds the token"
        return None

    def _has_our_origin(self, scope: Scope, headers: "_Headers", host: str) -> bool:
        """False for what another site has a browser ask; links that people follow are allowed."""
        origins = headers.all("origin")
        if any(urlsplit(origin).netloc.lower() != host.strip().lower() for origin in origins):
            return False
        is_elsewhere = headers.first("sec-fetch-site") in ("cross-site", "same-site")
        is_link = headers.first("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if is_elsewhere and not is_link:
            return False
        return scope["method"] != "POST" or headers.first(ASKED_HEADER) == "1"


@dataclass(frozen=True, slots=True)
class _Headers:
    """The headers of a request, as text."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, scope: Scope) -> "_Headers":
        return cls(
            tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
            )
        )

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    @property
    def has_large_body(self) -> bool:
        lengths = self.all("content-length")
        # of a body in chunks nobody knows the size
        return bool(self.all("transfer-encoding")) or any(
            not (one.isdecimal() and len(one) < 10 and int(one) <= MOST_BODY) for one in lengths
        )

    @property
    def bearer(self) -> list[str]:
        scheme, _, token = self.first("authorization").partition(" ")
        return [token.strip()] if scheme.lower() == "bearer" else []

    @property
    def cookies(self) -> list[str]:
        try:
            return [
                one.value
                for text in self.all("cookie")
                if (one := SimpleCookie(text).get(COOKIE)) is not None
            ]
        except CookieError:
            return []


def _token_in(scope: Scope) -> str | None:
    """The token in the address, if there is one."""
    query = scope["query_string"].decode("latin-1")
    return dict(parse_qsl(query, max_num_fields=20)).get("token") if query.count("&") < 20 else None


def _location_without_token(scope: Scope) -> tuple[bytes, bytes]:
    """The same address without the token, which must not stay in histories and screenshots."""
    rest = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != "token"]
    path = scope.get("raw_path", b"/").decode("latin-1")
    query = f"?{urlencode(rest)}" if rest else ""
    # never two slashes: that would be the address of another host
    return b"location", f"/{path.lstrip('/')}{query}".encode("latin-1", "replace")


def _cookie(token: str) -> tuple[bytes, bytes]:
    return b"set-cookie", f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict".encode()


async def _answer(send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """A short answer without a page."""
    body = text.encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
