"""One connection for callers that have no event loop, used by one thread at a time.

A call through an event loop in another thread wakes two threads, which takes as long as the server does. This
connection spares that for the one plain call that a store sends on it. Other calls, and those of a caller that finds
the connection in use, go through the event loop, where the jobs of many callers are added together.
"""

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Link = TypeVar("Link")
Request = TypeVar("Request")
Reply = TypeVar("Reply")

CALLS_BEFORE: Final = 2
"""How many calls go through the event loop first: a program that makes one or two needs no connection of its own."""


class BlockingConnection(ABC, Generic[Link, Request, Reply]):
    """A connection that is opened when it pays, and dropped when a call on it fails."""

    def __init__(self) -> None:
        self.has_input: Callable[[], object] = list
        """Whether there is something to read, set by `connect`: the server sends nothing unasked, but it may close."""
        self._lock = threading.Lock()
        self._calls = 0
        self._link: Link | None = None

    @abstractmethod
    def connect(self) -> Link | None:
        """Connect. None if that fails or is not supported: others report it better."""

    @abstractmethod
    def ask(self, link: Link, request: Request) -> Reply | None:
        """Send a request and return the reply; None if the server has done nothing, after which it is dropped."""

    @abstractmethod
    def end(self, link: Link) -> None:
        """Close a connection."""

    def run(self, request: Request) -> Reply | None:
        """Send a request and return the reply; None if nothing was done, and an event loop has to send it."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            link = self._link
            if link is None or self.has_input():
                link = self._renewed()
            reply = None if link is None else self.ask(link, request)
        except BaseException:  # also an interrupt: the reply is still to come
            self._drop()
            raise
        else:
            if reply is None and link is not None:
                self._drop()
            return reply
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection. The next calls open another one."""
        with self._lock:
            self._drop()

    def _renewed(self) -> Link | None:
        if self._link is not None:
            self._drop()
        if self._calls >= CALLS_BEFORE:
            self._calls = 0
            self._link = self.connect()
        self._calls += 1
        return self._link

    def _drop(self) -> None:
        link, self._link = self._link, None
        self._calls = 0
        if link is not None:
            self.end(link)
