"""Calls on their way from event loops to a thread, and their answers on the way back.

It owns the queue and the futures. It knows nothing of databases: a `Desk` is a thread that is handed groups of calls.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from windlass.errors import LifecycleError

T = TypeVar("T")
LARGEST_GROUP: Final = 256


class Call:
    """Something to be done by a thread for a future of an event loop."""

    __slots__ = ("error", "future", "loop", "todo", "value")

    def __init__(self, todo: Callable[[Any], Any]) -> None:
        self.todo = todo
        self.loop = asyncio.get_running_loop()
        self.future: Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Hand over the answer. On the event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def answer(group: list[Call]) -> None:
    """Hand the answers over, waking each event loop once."""
    by_loop: dict[AbstractEventLoop, list[Call]] = {}
    for call in group:
        by_loop.setdefault(call.loop, []).append(call)
    for loop, calls in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, calls)
        except RuntimeError:  # the loop is closed: nobody waits
            continue


def _settle(calls: list[Call]) -> None:
    for call in calls:
        call.settle()


class Service(Protocol):
    """What a desk's thread does for its callers."""

    def serve(self, group: list[Call]) -> None:
        """Give each call its value or its error. Raises nothing."""

    def close(self) -> None:
        """Release everything. On the thread that served."""


class Desk:
    """A thread that takes whatever calls are there, and has them served together."""

    def __init__(self, name: str, start: Callable[[], Service]) -> None:
        self.ended = False
        """Whether it takes no more calls."""
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._start = start
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, todo: Callable[[Any], T]) -> "Future[T]":
        """Have it done. Calls from one event loop are done in their order."""
        call = Call(todo)
        with self._lock:
            if self.ended:
                raise self._failure or LifecycleError("the store is closed")
            self._queue.put(call)
        return call.future

    def await_start(self) -> None:
        """Block until it serves. Raises what kept it from starting."""
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Take no more calls; stop when those that were made are served. Does not wait for that."""
        with self._lock:
            self.ended = True
            self._queue.put(None)

    def join(self) -> None:
        """Block until it has stopped."""
        self._thread.join()

    def _run(self) -> None:
        try:
            service = self._start()
        except Exception as error:  # noqa: BLE001 - whoever called has to hear it, whatever it is
            self._failure = error
            self._refuse(error)
            return
        finally:
            self._started.set()
        try:
            while group := self._take():
                service.serve(group)
                answer(group)
        finally:
            service.close()

    def _take(self) -> list[Call]:
        """The next calls, all that wait up to a bound; none at the end."""
        group: list[Call] = []
        call = self._queue.get()
        while call is not None:
            group.append(call)
            if len(group) == LARGEST_GROUP or self._queue.empty():
                return group
            call = self._queue.get()
        if group:
            self._queue.put(None)
        return group

    def _refuse(self, error: Exception) -> None:
        """Fail all calls: nobody will serve them."""
        with self._lock:
            self.ended = True
        refused: list[Call] = []
        while not self._queue.empty():
            call = self._queue.get()
            if call is not None:
                call.error = error
                refused.append(call)
        answer(refused)
