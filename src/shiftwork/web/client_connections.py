"""Which connections a server keeps, and for how long: strangers can take neither all of them nor its memory.

    new ──▶ expendable ──▶ serving a visitor who is authenticated ──▶ expendable ──▶ …
                │
                └─ overdue, or the oldest when another one needs the room: closed

Everyone may connect, so a connection is worth nothing unless it serves an authenticated visitor. When there is no room,
the oldest of the others makes room for the new one: a probe is answered if it is quicker than the attack.
"""

import asyncio
import resource
import time
from typing import Any, Final

import h11
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from shiftwork.web.access import AUTHENTICATED, CONNECTION
from shiftwork.web.listening import RareWarning

SWEEP_SECONDS: Final = 1.0
_WHY: Final = (
    b'{"type":"urn:shiftwork:too-many-connections","title":"Not available","status":503,'
    b'"detail":"there are too many connections to this server; close some, or try again in a second"}'
)
REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n%s" % (len(_WHY), _WHY)
)


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """How many connections there may be, and how long one may take."""

    most: int = 256
    """In all. It is never more than half of the file descriptors that the process may have."""
    each: int = 128
    """From one address. Everyone behind a proxy has its address."""
    read_seconds: float = 10.0
    """How long a client may take to send a request, headers and body."""
    write_seconds: float = 30.0
    """How long a client may take to read the next 64 KiB of an answer."""


class ClientConnections:
    """The connections of one server."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self._limits = limits or ConnectionLimits()
        self._most = min(self._limits.most, max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 1))
        self._all: dict[GuardedProtocol, None] = {}
        """All connections, oldest first."""
        self._sweeping: asyncio.TimerHandle | None = None
        self.idle_since: float | None = time.monotonic()
        """Since when there has been no connection, by the monotonic clock; None while there is one."""

    def protocol(self, **options: Any) -> "GuardedProtocol":
        """Return the protocol for a new connection: what uvicorn calls."""
        return GuardedProtocol(self, **options)

    def enter(self, connection: "GuardedProtocol") -> bool:
        """Take a new connection in; return whether there is room for it."""
        alike = [one for one in self._all if one.peer == connection.peer]
        if len(alike) >= self._limits.each and not self._make_room(alike):
            return False
        if len(self._all) >= self._most and not self._make_room(list(self._all)):
            return False
        self._all[connection] = None
        self.idle_since = None
        self._sweep_later()
        return True

    def leave(self, connection: "GuardedProtocol") -> None:
        """Forget a connection that has ended."""
        self._all.pop(connection, None)
        if not self._all and self.idle_since is None:
            self.idle_since = time.monotonic()

    def _make_room(self, among: "list[GuardedProtocol]") -> bool:
        oldest = next((one for one in among if one.expendable), None)
        if oldest is not None:
            self._cut(oldest)
        return oldest is not None

    def _cut(self, connection: "GuardedProtocol") -> None:
        self.leave(connection)
        connection.transport.abort()

    def _sweep_later(self) -> None:
        if self._all and self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close what is overdue: without connections nothing is looked at, so an idle server does nothing."""
        self._sweeping = None
        now = time.monotonic()
        for connection in tuple(self._all):
            if connection.is_overdue(now, self._limits):
                self._cut(connection)
        self._sweep_later()


class GuardedProtocol(H11Protocol):
    """A connection that is watched."""

    def __init__(self, connections: ClientConnections, **options: Any) -> None:
        super().__init__(**options)
        self._guard = connections
        self._refused = False
        self._known: dict[str, bool] = {}
        """What is known about the connection, also to the requests that come over it."""
        self._reading_since: float | None = None
        """Since when a request has been coming in; None while none is."""
        self._taken_at = time.monotonic()
        """When the client last took what was sent to it."""

    @property
    def peer(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    @property
    def expendable(self) -> bool:
        """Whether it serves no request of a visitor who is authenticated."""
        cycle: RequestResponseCycle | None = self.cycle  # None until the first request
        idle = self._reading_since is not None or cycle is None or cycle.response_complete
        return idle or not self._known.get(AUTHENTICATED)

    def is_overdue(self, now: float, limits: ConnectionLimits) -> bool:
        """Return whether the client takes too long to send a request, or to read an answer."""
        if not self.transport.get_write_buffer_size():
            self._taken_at = now
        late_reading = self._reading_since is not None and now - self._reading_since > limits.read_seconds
        return late_reading or now - self._taken_at > limits.write_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        super().connection_made(transport)
        self._reading_since = self._taken_at = time.monotonic()
        self.app_state: dict[str, Any | dict[str, bool]] = {**self.app_state, CONNECTION: self._known}
        if not self._guard.enter(self):
            self._refused = True
            transport.write(REFUSAL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        if self._refused:
            return
        if self._reading_since is None:
            self._reading_since = time.monotonic()
            self._known.pop(AUTHENTICATED, None)
        super().data_received(data)
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._reading_since = None

    def resume_writing(self) -> None:
        """Go on sending: the client has read something."""
        self._taken_at = time.monotonic()
        super().resume_writing()


def throttle_accept_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log that no connection can be accepted once a minute: asyncio does it up to a hundred times a second."""
    warn = RareWarning()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "accept" in context.get("message", "") and isinstance(context.get("exception"), OSError):
            warn("cannot accept connections: %s; trying again every second", context["exception"])
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
