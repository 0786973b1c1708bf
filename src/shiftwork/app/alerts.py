"""Alerts: events posted over HTTP, signed, and retried until they are accepted.

Each address has a thread and a bounded queue. Firing an event only puts it into the queue.
"""

import hashlib
import hmac
import http.client
import logging
import queue
import random
import threading
import time
import uuid
from asyncio import wrap_future
from collections.abc import Awaitable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from shiftwork.core.model import Event
from shiftwork.errors import ConfigurationError
from shiftwork.views.shapes.system import event_shape

logger: Final = logging.getLogger("shiftwork")

PATIENCE_SECONDS: Final = 10.0
"""How long one attempt may take."""
DELAYS: Final = (0.5, 1.5, 4.5, 13.5, 40.0)
"""How long to wait before each further attempt."""
LONGEST_QUEUE: Final = 1_000
_AGAIN: Final = {408, 425, 429}
_ACCEPTED: Final = range(200, 300)
_SERVER_FAILS: Final = 500


class Alert:
    """A hook that posts events to an address."""

    def __init__(self, url: str, secret: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not _is_host(parts) or set(url) & set(" \n\r\t"):
            raise ConfigurationError(
                "app.alert: this is not an address to post to; give one like https://host/path, without a password: "
                + (repr(url) if "@" not in url else f"{parts.scheme}://…@{parts.hostname}")
            )
        if not secret:
            raise ConfigurationError("app.alert needs a secret, so that the receiver can check who sends")
        self._host, self._port, self._tls = parts.hostname or "", parts.port, parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._name = f"{parts.scheme}://{parts.netloc}{parts.path}"
        """The address as it is logged: the query may hold a secret."""
        self._secret = secret.encode()
        self._queue: queue.Queue[tuple[Event, bytes, Future[None]]] = queue.Queue(LONGEST_QUEUE)
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> Awaitable[None] | None:
        """Queue an event; return a future that is done once the event is delivered or given up."""
        shape = msgspec.to_builtins(event_shape(event))
        del shape["seq"]  # the store assigns it later
        body = msgspec.json.encode({"id": uuid.uuid4().hex, **shape})
        done: Future[None] = Future()
        try:
            self._queue.put_nowait((event, body, done))
        except queue.Full:
            logger.error(  # noqa: TRY400 - a traceback would say nothing
                "%s does not keep up with its alerts; not sent: %s", self._name, event.message
            )
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="shiftwork alerts", daemon=True)
            self._thread.start()
        return wrap_future(done)

    @property
    def pending(self) -> int:
        """How many events are neither delivered nor given up."""
        return self._queue.unfinished_tasks

    def __repr__(self) -> str:
        return f"<alert to {self._name}>"

    def _work(self) -> None:
        while True:
            event, body, done = self._queue.get()
            try:
                self._deliver(event, body)
            except Exception:  # the next event must be sent all the same
                logger.exception("an alert to %s failed: %s", self._name, event.message)
            with suppress(Exception):  # its loop may be closed
                done.set_result(None)
            self._queue.task_done()

    def _deliver(self, event: Event, body: bytes) -> None:
        for delay in (*DELAYS, None):
            wrong, hopeless = self._try(body)
            if wrong is None:
                return
            if hopeless:
                logger.error("alert to %s rejected with %s, not retried: %s", self._name, wrong, event.message)
                return
            if delay is None:
                logger.error("alert to %s failed (%s), given up: %s", self._name, wrong, event.message)
                return
            logger.warning("alert to %s failed (%s), trying again in %.1f s", self._name, wrong, delay)
            time.sleep(delay * random.uniform(0.8, 1.2))

    def _try(self, body: bytes) -> tuple[str | None, bool]:
        """Return what went wrong, if anything, and whether trying again is pointless."""
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", self._path, body, signed(self._secret, body, time.time()))
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}", False
        finally:
            connection.close()
        if status in _ACCEPTED:
            return None, False
        return f"HTTP {status}", status < _SERVER_FAILS and status not in _AGAIN


def _is_host(parts: SplitResult) -> bool:
    try:
        return bool(parts.hostname) and "@" not in parts.netloc and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is not a number
        return False


def signed(secret: bytes, body: bytes, now: float) -> dict[str, Any]:
    """Return the headers of a message: when it was sent, and a SHA-256 HMAC of that and of the body."""
    at = str(int(now))
    mark = hmac.new(secret, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "shiftwork",
        "Shiftwork-Timestamp": at,
        "Shiftwork-Signature": f"sha256={mark}",
    }
