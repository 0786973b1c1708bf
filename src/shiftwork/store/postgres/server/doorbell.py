"""Bells across processes: a thread with one connection, which listens for notifications and sends them.

NOTIFY takes a lock that all commits of the server share, so no call includes one. Topics are gathered, and each is sent
at most once in a few milliseconds. A notification need not survive a crash of the server, so its commit does not wait
for the disk. Notifications can be lost, when a process dies between its commit and its NOTIFY or a connection breaks.
So every bell also rings at intervals without one. LISTEN does not work behind a proxy that pools by transaction: there,
bells ring at intervals only.
"""

import random
import selectors
import socket
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import psycopg
from msgspec import MsgspecError, json

from shiftwork.store.bells import Bells, LoopBell
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.connecting import hang_up

DEBOUNCE_SECONDS: Final = 0.006
"""How long a topic is not sent again after it was sent."""
POOL_DEBOUNCE_SECONDS: Final = 0.002
"""How long the topic of a pool is not sent again: shorter, because a job waits for it."""
MAX_NOTIFICATION_BYTES: Final = 7_000
"""The largest notification that is sent; the server allows 8,000 bytes."""
FALLBACK_SECONDS: Final = (4.0, 6.0)
"""The interval at which bells ring without a notification while notifications work, random within these bounds."""
POLL_SECONDS: Final = (0.1, 0.2)
"""The interval at which bells ring while notifications do not work."""
READY_TIMEOUT: Final = 10.0
LAST_SEND_SECONDS: Final = 1.0
"""How long the last notifications may take when the store is closed."""


class Doorbell:
    """The bells of one store in this process, and their link to other processes."""

    def __init__(self, address: PostgresAddress) -> None:
        self.listens: bool = False
        """Whether notifications arrive."""
        self._address = address
        self._bells = Bells()
        self._channel: str | None = None
        self._sender = uuid4().hex
        self._lock = threading.Lock()
        self._pending: set[str] = set()
        self._sent_at: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._closing = False
        self._conn: psycopg.Connection[Any] | None = None
        self._wakes: tuple[socket.socket, socket.socket] | None = None
        """The socket that the thread waits on, and the one that others write to in order to wake it."""

    def listen(self, topics: Collection[str]) -> LoopBell:
        return self._bells.listen(topics)

    def ring(self, topics: Iterable[str]) -> None:
        """Ring these topics at once in this process and soon in others; from any thread."""
        topics = set(topics)
        if not topics:
            return
        self._bells.ring(topics)
        if self._address.transaction_pooling:
            return
        with self._lock:
            asleep = not self._pending
            self._pending |= topics
            if asleep:
                self._wake()

    def _wake(self) -> None:
        if self._wakes is not None:
            with suppress(BlockingIOError):  # it is full, so the thread wakes
                self._wakes[1].send(b"x")

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, channel: str) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            if self._thread is not None:
                return
            self._channel = channel
            self._closing = False
            self._ready.clear()
            self._wakes = socket.socketpair()  # not a pipe: on Windows, only sockets can be waited for
            for end in self._wakes:
                end.setblocking(False)  # noqa: FBT003 - its only parameter
            self._thread = threading.Thread(
                target=self._run, args=self._wakes[:1], name="shiftwork doorbell", daemon=True
            )
            self._thread.start()

    @property
    def started(self) -> bool:
        """Whether the thread runs. All bells ring when it has connected, so nothing written before that is missed."""
        return self._thread is not None

    def wait_ready(self) -> None:
        """Wait until the thread listens, or has failed once."""
        self._ready.wait(READY_TIMEOUT)

    def stop(self) -> None:
        """Send what is pending, and end the thread."""
        with self._lock:
            thread = self._thread
            self._closing = True
            self._wake()
        if thread is not None:
            thread.join(LAST_SEND_SECONDS)
            if thread.is_alive():
                self.reconnect()  # breaks the connection; the thread opens no other, because it is closing
                thread.join(LAST_SEND_SECONDS)
            if thread.is_alive():  # it is about to connect, and ends after that
                return
        with self._lock:
            self._thread = None
            for end in self._wakes or ():
                end.close()
            self._wakes = None

    def reconnect(self) -> None:
        """Break the connection, because the server does not answer: the thread opens another one. From any thread."""
        conn = self._conn
        if conn is not None:
            hang_up(conn)

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self, wakes: socket.socket) -> None:
        while not self._closing:
            if not self._address.transaction_pooling:
                with suppress(psycopg.Error, OSError):
                    self._serve_connected(wakes)
            self.listens = False
            self._ready.set()
            if not self._closing:
                self._pause(random.uniform(*POLL_SECONDS), wakes)
                self._bells.ring_all()

    def _pause(self, seconds: float, wakes: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(wakes, selectors.EVENT_READ)
            until = time.monotonic() + seconds
            while not self._closing and (left := until - time.monotonic()) > 0:
                if selector.select(left):
                    _drain(wakes)

    def _serve_connected(self, wakes: socket.socket) -> None:
        conn = psycopg.Connection.connect("", autocommit=True, prepare_threshold=None, **self._address.options)
        try:
            conn.add_notify_handler(lambda notify: self._receive(notify.payload))
            self._conn = conn
            conn.execute(f'SET synchronous_commit = off; LISTEN "{self._channel}"'.encode())
            self.listens = True
            self._ready.set()
            self._bells.ring_all()  # nothing notifies of what was written before
            self._serve(conn, wakes)
        finally:
            self._conn = None
            conn.close()

    def _serve(self, conn: psycopg.Connection[Any], wakes: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(conn.fileno(), selectors.EVENT_READ, conn)
            selector.register(wakes, selectors.EVENT_READ)
            fallback_at = time.monotonic() + random.uniform(*FALLBACK_SECONDS)
            while True:
                wait = self._send_due(conn)
                if self._closing and wait is None:
                    return
                now = time.monotonic()
                for key, _ in selector.select(max(0.0, min(fallback_at - now, wait if wait is not None else 60.0))):
                    if key.data is None:
                        _drain(wakes)
                    else:
                        self._read_notifications(conn)
                if time.monotonic() >= fallback_at:
                    self._bells.ring_all()
                    fallback_at = time.monotonic() + random.uniform(*FALLBACK_SECONDS)

    def _send_due(self, conn: psycopg.Connection[Any]) -> float | None:
        """Send the topics that are due, and return the seconds until the next ones are; None if there are none."""
        now = time.monotonic()
        with self._lock:
            free_at = {topic: self._sent_at.get(topic, 0.0) + _debounce(topic) for topic in self._pending}
            held = set() if self._closing else {topic for topic, at in free_at.items() if now < at}
            due, self._pending = self._pending - held, held
            next_at = min((free_at[topic] for topic in held), default=None)
        if due:
            for payload in _payloads(self._sender, sorted(due)):
                conn.execute("SELECT pg_notify(%s, %s)", (self._channel, payload))
            sent_at = time.monotonic()
            self._sent_at = {topic: at for topic, at in self._sent_at.items() if at + 1.0 > sent_at}
            self._sent_at |= dict.fromkeys(due, sent_at)
        return None if next_at is None else max(0.0, next_at - now)

    def _read_notifications(self, conn: psycopg.Connection[Any]) -> None:
        conn.pgconn.consume_input()
        while (note := conn.pgconn.notifies()) is not None:
            self._receive(note.extra.decode())

    def _receive(self, payload: str) -> None:
        try:
            sender, *topics = json.decode(payload, type=list[str])
        except (MsgspecError, ValueError):
            self._bells.ring_all()  # not ours, or damaged
            return
        if sender != self._sender:
            self._bells.ring(topics)


def _drain(wakes: socket.socket) -> None:
    with suppress(BlockingIOError):
        wakes.recv(4096)


def _debounce(topic: str) -> float:
    return POOL_DEBOUNCE_SECONDS if topic.startswith("pool:") else DEBOUNCE_SECONDS


def _payloads(sender: str, topics: list[str]) -> Iterable[str]:
    """Yield notifications that carry all topics."""
    batch: list[str] = []
    size = 0
    for topic in topics:
        length = len(json.encode(topic)) + 1
        if batch and size + length > MAX_NOTIFICATION_BYTES:
            yield payload(sender, batch)
            batch, size = [], 0
        batch.append(topic)
        size += length
    if batch:
        yield payload(sender, batch)


def payload(sender: str, topics: list[str]) -> str:
    """Return the text of one notification."""
    return json.encode([sender, *topics]).decode()


def channel(schema: str, namespace: int) -> str:
    """Return the channel of a namespace. Databases have separate channels anyway."""
    return f"shiftwork:{schema[:40]}:{namespace}"
