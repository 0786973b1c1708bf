"""Alerts: events posted over HTTP, signed as Standard Webhooks are, and retried until they are accepted.

Each address has a thread and a bounded queue. Firing an event only puts it into the queue.
"""

import base64
import binascii
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
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from shiftwork.core.model.event import Event
from shiftwork.errors import ConfigurationError
from shiftwork.sentences import plain
from shiftwork.views.shapes.system import event_shape

logger: Final = logging.getLogger("shiftwork")

ALERT_PATIENCE_SECONDS: Final = 10.0
"""How long one attempt may take."""
DELAYS: Final = (0.5, 1.5, 4.5, 13.5, 40.0)
"""How long to wait before each further attempt."""
LONGEST_QUEUE: Final = 1_000
_AGAIN: Final = {408, 425, 429}
_ACCEPTED: Final = range(200, 300)
_SERVER_FAILS: Final = 500
_PREFIX: Final = "whsec_"
"""Begins a secret that is bytes in base64, as Standard Webhooks write it."""

AlertFormat = Literal["json", "slack"] | Callable[[Event], Any]
"""What is posted of an event; a function returns what is encoded as JSON, or None if this event is not posted."""


def check_events(events: Sequence[str]) -> None:
    """Raise `ConfigurationError` unless this is a list of names of events."""
    if isinstance(events, str) or not events:
        message = f'app.alert takes a list of events: events=["job.dead", "health.problem"], not {events!r}'
        raise ConfigurationError(message)


class _Message(NamedTuple):
    """What is posted, and the id by which the receiver recognises it when it arrives twice."""

    id: str
    body: bytes


class Alert:
    """A hook that posts events to an address."""

    def __init__(self, url: str, secret: str | None = None, format: AlertFormat = "json") -> None:  # noqa: A002
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not _is_host(parts) or set(url) & set(" \n\r\t"):
            raise ConfigurationError(
                "app.alert: this is not an address to post to; give one like https://host/path, without a password: "
                + (repr(url) if "@" not in url else f"{parts.scheme}://…@{parts.hostname}")
            )
        if secret == "":
            raise ConfigurationError("app.alert: the secret is empty; leave it out to post without a signature")
        if not callable(format) and format not in ALERT_FORMATS:
            message = f'app.alert: format is {format!r}, not "json", "slack" or a function that takes an event'
            raise ConfigurationError(message)
        self._host, self._port, self._tls = parts.hostname or "", parts.port, parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._name = f"{parts.scheme}://{parts.netloc}/" + (f"{first}/…" if (first := _first(parts.path)) else "")
        """The address as it is logged: the rest of the path and the query may hold a secret."""
        self._secret = None if secret is None else key_of(secret)
        self._format = format if callable(format) else ALERT_FORMATS[format]
        self._queue: queue.Queue[tuple[Event, _Message, Future[None]]] = queue.Queue(LONGEST_QUEUE)
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> Awaitable[None] | None:
        """Queue an event; return a future that is done once the event is delivered or given up."""
        content = self._format(event)
        if content is None:
            return None
        id = uuid.uuid4().hex
        if self._format is _as_json:
            content = {"id": id, **content}
        done: Future[None] = Future()
        try:
            self._queue.put_nowait((event, _Message(id, msgspec.json.encode(content)), done))
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
            event, message, done = self._queue.get()
            try:
                self._deliver(event, message)
            except Exception:  # the next event must be sent all the same
                logger.exception("an alert to %s failed: %s", self._name, event.message)
            with suppress(Exception):  # its loop may be closed
                done.set_result(None)
            self._queue.task_done()

    def _deliver(self, event: Event, message: _Message) -> None:
        for delay in (*DELAYS, None):
            wrong, hopeless = self._try(message)
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

    def _try(self, message: _Message) -> tuple[str | None, bool]:
        """Return what went wrong, if anything, and whether trying again is pointless."""
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=ALERT_PATIENCE_SECONDS)
        try:
            headers = {"Content-Type": "application/json", "User-Agent": "shiftwork"}
            if self._secret is not None:
                headers |= signed(self._secret, message.id, message.body, time.time())
            connection.request("POST", self._path, message.body, headers)
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


def _first(path: str) -> str:
    return path.strip("/").partition("/")[0]


def key_of(secret: str) -> bytes:
    """Return the bytes of a secret. Raises `ConfigurationError` if it has the prefix of a base64 secret and is not
    base64, or stands for no bytes.
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    written = secret.removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(written + "=" * (-len(written) % 4), validate=True)  # the libraries need no padding
    except binascii.Error:
        key = b""
    if not key:
        message = f"app.alert: the secret begins with {_PREFIX} and must continue in base64, and it does not"
        raise ConfigurationError(message)
    return key


def signed(key: bytes, id: str, body: bytes, now: float) -> dict[str, str]:
    """Return the headers of a message as in Standard Webhooks 1.0: its id, when it was sent, and an HMAC of all."""
    at = str(int(now))
    mark = hmac.digest(key, b".".join((id.encode(), at.encode(), body)), hashlib.sha256)
    return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": f"v1,{base64.b64encode(mark).decode()}"}


def _as_json(event: Event) -> dict[str, Any]:
    """Return what receivers of alerts are promised; the store assigns the number later."""
    shape: dict[str, Any] = msgspec.to_builtins(event_shape(event), enc_hook=plain)
    return {name: shape[name] for name in ("at", "name", "subject", "message", "data")}


def _as_slack(event: Event) -> dict[str, Any]:
    """Return a message of a Slack incoming webhook, which escapes three characters."""
    text = event.message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": f"*{event.name}*: {text}"}


ALERT_FORMATS: Final[dict[str, Callable[[Event], Any]]] = {"json": _as_json, "slack": _as_slack}
