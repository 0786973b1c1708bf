"""Calls on their way from event loops to a thread, and their results on the way back.

    call ──▶ gathered until the event loop has nothing else to run ──▶ queue ──▶ the thread takes all there are
      │             └── a single quick call, while the thread is idle ──▶ served right here, on the event loop
      └── quick calls of the first task in an iteration of the loop, while the thread is idle ──▶ served at once
    call_here, of a thread without an event loop, while the thread is idle ──▶ served on the caller's thread

It owns the queue, the futures and the order: the calls of one event loop are served in the order in which they were
made. It knows nothing about databases: a `CallServer` is handed groups of calls.
"""

import asyncio
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from shiftwork.errors import LifecycleError

T = TypeVar("T")
LARGEST_GROUP: Final = 256
SLOW_CALL_SECONDS: Final = 0.01
"""A quick call that takes longer than this was not quick: the disk is slow, and the event loop had to wait for it."""
TRIES: Final = 3
"""How many outdated servers in a row are replaced before the calls fail."""
CALLS_SPARED: Final = 100
"""How many quick calls go to the thread after a slow one."""
CALLS_AT_ONCE: Final = 16
"""How many quick calls of a task are served in a row before the event loop runs others."""
CROWD: Final = 3
"""Once this many calls were gathered in one iteration of the loop, those of the next are gathered too: a transaction
for each would cost several times as much."""
CALLS_PER_CHECK: Final = 8
"""How many calls are served at once between two checks whether upkeep is due."""


class QueuedCall:
    """A function to run, and the future of an event loop that gets its result."""

    __slots__ = ("error", "future", "loop", "quick", "todo", "value")

    def __init__(self, todo: Callable[[Any], Any], loop: AbstractEventLoop | None = None, *, quick: bool) -> None:
        self.todo: Callable[[Any], Any] = todo
        self.quick: bool = quick
        self.loop: AbstractEventLoop | None = loop
        """None if its caller has no event loop: then it is never handed over."""
        self.future: Future[Any] | None = None
        """None while it is served at once: then its value goes straight to its caller."""
        self.value: Any = None
        self.error: BaseException | None = None

    def forget(self) -> None:
        """Drop its value and its error: it is served again."""
        self.value = self.error = None

    def answer(self) -> Any:
        """Return its value, or raise its error, once it was served."""
        if self.error is not None:
            raise self.error
        return self.value

    def resolve(self) -> None:
        """Set the future's result. Called on its event loop."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


class LoopBatch:
    """The calls of one iteration of an event loop."""

    __slots__ = ("at_once", "calls", "task", "tried")

    def __init__(self, task: "asyncio.Task[Any] | None", at_once: int) -> None:
        self.calls: list[QueuedCall] = []
        """Those that gather until the end of the iteration."""
        self.task: asyncio.Task[Any] | None = task
        """The task that made the first one. Its calls are served at once until another task has one."""
        self.at_once: int = at_once
        """How many may still be served at once."""
        self.tried: bool = False
        """Whether one could not be served at once: then it is not tried again."""


def resolve(calls: list[QueuedCall]) -> None:
    """Set the results of these calls. Called on the event loop of all of them."""
    for call in calls:
        call.resolve()


def resolve_on_loops(group: list[QueuedCall]) -> None:
    """Set the results of these calls from another thread, waking each event loop once."""
    by_loop: dict[AbstractEventLoop, list[QueuedCall]] = {}
    for call in group:
        if call.loop is not None:
            by_loop.setdefault(call.loop, []).append(call)
    for loop, calls in by_loop.items():
        try:
            loop.call_soon_threadsafe(resolve, calls)
        except RuntimeError:  # the loop is closed, so nothing waits
            continue


class CallServer(Protocol):
    """Serves the calls of a `CallThread`. Never used by two threads at a time."""

    def serve(self, group: list[QueuedCall]) -> None:
        """Give each call its value or its error. It raises nothing."""

    def serve_at_once(self, call: QueuedCall) -> bool:
        """Serve the call if that needs no waiting; otherwise do nothing and return False."""

    def outdated(self) -> Exception | None:
        """Return why this server must be replaced; None if it need not. A new one then serves its calls."""

    def upkeep_due(self) -> bool:
        """Return whether `upkeep` has something to do."""

    def upkeep(self) -> None:
        """Do maintenance that takes long and that no call waits for."""

    def close(self) -> None:
        """Release everything."""


def _serve(server: CallServer, group: list[QueuedCall]) -> None:
    """Have a group served. No call waits for ever, even if the server is broken."""
    try:
        server.serve(group)
    except Exception as error:  # noqa: BLE001 - each call has to report it, whatever it is
        for call in group:
            call.error = error


class CallThread:
    """A thread that has all waiting calls served together."""

    def __init__(self, name: str, start: Callable[[], CallServer]) -> None:
        self.ended: bool = False
        """Whether it accepts no more calls."""
        self._batches: dict[AbstractEventLoop, LoopBatch] = {}
        self._queue: SimpleQueue[list[QueuedCall] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._gathered = 0
        """How many calls the last iteration of an event loop has handed over."""
        self._unserved = 0
        """How many groups were handed to the thread and are not served yet. An empty one asks for upkeep."""
        self._serving = threading.Lock()
        self._server: CallServer | None = None
        self._spared = 0
        self._calls_to_check = CALLS_PER_CHECK
        self._start = start
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # ── on an event loop ─────────────────────────────────────────────────────────────────────────────────────────

    def call(self, todo: Callable[[Any], T], *, quick: bool = False) -> "Future[T]":
        """Run it on the thread. A quick one takes microseconds and usually waits for nothing."""
        loop = asyncio.get_running_loop()
        call = QueuedCall(todo, loop, quick=quick)
        call.future = loop.create_future()
        self._batch(loop).calls.append(call)
        return call.future

    def call_at_once(self, todo: Callable[[Any], Any]) -> QueuedCall | None:
        """Run a quick one right here, if no call has to be served before it; None if it must be `call`ed.

        A task that waits for nothing else needs no iteration of the loop for each call. Calls of several tasks are
        gathered, so that they share a transaction.
        """
        loop = asyncio.get_running_loop()
        batch = self._batch(loop)
        if not batch.at_once or batch.calls or batch.task is not asyncio.current_task(loop):
            return None
        batch.at_once -= 1
        call = QueuedCall(todo, loop, quick=True)
        if self._serve_here(call):
            return call
        batch.tried = True
        batch.at_once = 0
        return None

    def call_here(self, todo: Callable[[Any], Any]) -> QueuedCall | None:
        """Run it right here, on a thread that runs no event loop, if the thread is idle; otherwise return None."""
        call = QueuedCall(todo, quick=True)
        return call if self._serve_now(call) else None

    def _batch(self, loop: AbstractEventLoop) -> LoopBatch:
        batch = self._batches.get(loop)
        if batch is None:
            if self.ended:
                raise self._refusal()
            at_once = 0 if self._gathered >= CROWD else CALLS_AT_ONCE
            batch = self._batches[loop] = LoopBatch(asyncio.current_task(loop), at_once)
            loop.call_soon(self._hand_over, loop)
        return batch

    def _hand_over(self, loop: AbstractEventLoop) -> None:
        """Have the loop's calls served, now that it has nothing else to run."""
        batch = self._batches.pop(loop)
        group = batch.calls
        self._gathered = len(group)
        if not group:
            return
        if len(group) == 1 and group[0].quick and not batch.tried and self._serve_here(group[0]):
            group[0].resolve()
            return
        with self._lock:
            if not self.ended:
                self._unserved += 1
                self._queue.put(group)
                return
        for call in group:
            call.error = self._refusal()
        resolve(group)

    def _serve_here(self, call: QueuedCall) -> bool:
        """Serve the call on its event loop if the thread is idle. False if it has to go to the thread."""
        if self._spared:
            self._spared -= 1
            return False
        began = time.monotonic()
        served = self._serve_now(call)
        if time.monotonic() - began > SLOW_CALL_SECONDS:
            self._spared = CALLS_SPARED
        return served

    def _serve_now(self, call: QueuedCall) -> bool:
        """Serve the call on this thread if the other one is idle."""
        with self._lock:
            server = self._server
            if server is None or self.ended or self._unserved or not self._serving.acquire(blocking=False):
                return False
        try:
            served = server.serve_at_once(call)
            if served and server.outdated() is not None:
                call.forget()
                served = False
            upkeep_due = self._time_to_check() and server.upkeep_due()
        finally:
            self._serving.release()
        if upkeep_due:  # calls go to the thread until it is done, or a busy loop could put it off without end
            with self._lock:
                self._unserved += 1
                self._queue.put([])
        return served

    def _time_to_check(self) -> bool:
        self._calls_to_check = (self._calls_to_check or CALLS_PER_CHECK) - 1
        return self._calls_to_check == 0

    def _refusal(self) -> Exception:
        return self._failure or LifecycleError("the store is closed")

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def await_start(self) -> None:
        """Block until it serves calls. Raises what kept it from starting."""
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """Accept no more calls, and stop once those that were handed over are served, without waiting for that."""
        with self._lock:
            self.ended = True
            self._queue.put(None)

    def join(self) -> None:
        """Block until it has stopped."""
        self._thread.join()

    # ── on the thread ────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            self._server = self._start()
        except Exception as error:  # noqa: BLE001 - every caller has to get it, whatever it is
            self._failure = error
            self._refuse()
            return
        finally:
            self._started.set()
        try:
            while self._serve_next():
                pass
        finally:
            with self._serving:
                if self._server is not None:
                    self._server.close()
            self._refuse()

    def _serve_next(self) -> bool:
        """Serve the calls that wait. False at the end."""
        groups, last = self._take()
        group = [call for each in groups for call in each]
        if group:
            with self._serving:
                self._serve_together(group)
            self._count_served(sum(1 for each in groups if each))
            resolve_on_loops(group)
        with self._serving:
            if self._server is not None and self._server.upkeep_due():
                self._server.upkeep()
                self._calls_to_check = 1  # it may have failed
        self._count_served(sum(1 for each in groups if not each))
        return not last

    def _count_served(self, groups: int) -> None:
        if groups:
            with self._lock:
                self._unserved -= groups

    def _serve_together(self, group: list[QueuedCall]) -> None:
        """Have a group served, again if the server turns out to be outdated: no call has its answer before that."""
        error: Exception | None = None
        for _ in range(TRIES):
            try:
                server = self._server or self._restart()
            except Exception as failure:  # noqa: BLE001 - every caller has to get it, whatever it is
                error = failure
                break
            error = server.outdated()
            if error is None:
                _serve(server, group)
                error = server.outdated()
            if error is None:
                return
            for call in group:
                call.forget()
            self._server = None  # no other may open anything before this one has closed everything
            server.close()
        for call in group:
            call.error = error

    def _restart(self) -> CallServer:
        self._server = server = self._start()
        return server

    def _take(self) -> tuple[list[list[QueuedCall]], bool]:
        """Return the next groups, all that wait up to a bound, and whether they are the last ones."""
        groups: list[list[QueuedCall]] = []
        n = 0
        while not groups or (n < LARGEST_GROUP and not self._queue.empty()):
            group = self._queue.get()
            if group is None:
                return groups, True
            groups.append(group)
            n += len(group)
        return groups, False

    def _refuse(self) -> None:
        """Fail all calls that were handed over: they will not be served."""
        with self._lock:
            self.ended = True
        refused: list[QueuedCall] = []
        while not self._queue.empty():
            refused += self._queue.get() or []
        for call in refused:
            call.error = self._refusal()
        resolve_on_loops(refused)
