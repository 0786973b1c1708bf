"""Events by HTTP to whoever shall be told: signed, tried again, and never in anybody's way.

Each address has a thread and a queue with an end. Whoever fires an event only puts it there.
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
"""How long one try may take."""
DELAYS: Final = (0.5, 1.5, 4.5, 13.5, 40.0)
"""How long to wait before each further try."""
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
                "app.alert: this is no address to post to; give one like https://host/path, without a password: "
                + (repr(url) if "@" not in url else f"{parts.scheme}://…@{parts.hostname}")
            )
        if not secret:
            raise ConfigurationError("app.alert needs a secret, so that whoever is told can check who tells it")
        self._host, self._port, self._tls = parts.hostname or "", parts.port, parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._name = f"{parts.scheme}://{parts.netloc}{parts.path}"
        """For the log: what stands behind the `?` may be a secret."""
        self._secret = secret.encode()
        self._queue: queue.Queue[tuple[Event, bytes, Future[None]]] = queue.Queue(LONGEST_QUEUE)
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> Awaitable[None] | None:
        """Take it over. What it answers with is done once the event is delivered, or given up on."""
        told = msgspec.to_builtins(event_shape(event))
        del told["seq"]  # the store gives it later, if it does
        body = msgspec.json.encode({"id": uuid.uuid4().hex, **told})
        done: Future[None] = Future()
        try:
            self._queue.put_nowait((event, body, done))
        except queue.Full:
            logger.error(  # noqa: TRY400 - where it happened says nothing
                "%s does not keep up with its alerts: it is not told: %s", self._name, event.message
            )
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="shiftwork alerts", daemon=True)
            self._thread.start()
        return wrap_future(done)

    def __repr__(self) -> str:
        return f"<alert to {self._name}>"

    def _work(self) -> None:
        while True:
            event, body, done = self._queue.get()
            try:
                self._deliver(event, body)
            except Exception:  # the next one has to be told all the same
                logger.exception("an alert to %s failed: %s", self._name, event.message)
            with suppress(Exception):  # nobody waits for it any more
                done.set_result(None)

    def _deliver(self, event: Event, body: bytes) -> None:
        for delay in (*DELAYS, None):
            wrong, hopeless = self._try(body)
            if wrong is None:
                return
            if hopeless or delay is None:
                logger.error("%s was not told, because %s: %s", self._name, wrong, event.message)
                return
            logger.warning("%s cannot be told, because %s; trying again in %.1f s", self._name, wrong, delay)
            time.sleep(delay * random.uniform(0.8, 1.2))

    def _try(self, body: bytes) -> tuple[str | None, bool]:
        """What is wrong, if anything; and whether it will be so the next time too."""
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
        return f"it answers {status}", status < _SERVER_FAILS and status not in _AGAIN


def _is_host(parts: SplitResult) -> bool:
    try:
        return bool(parts.hostname) and "@" not in parts.netloc and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        return False


def signed(secret: bytes, body: bytes, now: float) -> dict[str, Any]:
    """The headers of a message: when it was sent, and an HMAC of that and of the body, by SHA-256."""
    at = str(int(now))
    mark = hmac.new(secret, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "shiftwork",
        "Shiftwork-Timestamp": at,
        "Shiftwork-Signature": f"sha256={mark}",
    }
