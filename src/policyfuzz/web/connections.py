"""Connections that cannot be used up: how many there are, how slow clients are, how much they say."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at a time; more are closed as they come.
MOST_CONNECTIONS = 200
#: Seconds for the head of a request to arrive, and for an answer to be taken by the other side.
_HEAD_SECONDS, _STALL_SECONDS = 10.0, 20.0
#: Seconds after which an idle connection is closed, and bytes of the head of a request.
KEEP_ALIVE_SECONDS, MOST_HEAD_BYTES = 15, 16_384

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 5\r\n\r\n"
)


class LimitedConnection(H11Protocol):
    """A connection that ends when there are too many, or when the other side keeps us waiting."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._is_refused = True
            transport.write(_BUSY)
            transport.close()
            self._expect(_STALL_SECONDS)
        else:
            self._expect(_HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if self._is_waiting and self._deadline is None:  # the next request on the same connection
            self._expect(_HEAD_SECONDS)
        super().data_received(data)
        if not self._is_waiting:
            self._expect(None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect(_STALL_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect(None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():  # which waits for the other side to take the rest
            self._expect(_STALL_SECONDS)

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self._expect(_STALL_SECONDS)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect(_STALL_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        """True while no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _expect(self, seconds: float | None) -> None:
        """Something must happen within `seconds`; None: nothing needs to."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self.transport.abort()
