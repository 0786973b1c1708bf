"""A `CallThread` as it really is, taking the steps of the model: its locks, its queue and its thread are the test's."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace, TracebackType
from typing import Any, Final

import pytest

from shiftwork.errors import LifecycleError
from shiftwork.store.sqlite.file import calls
from shiftwork.store.sqlite.file.calls import CallThread, QueuedCall
from tests.models.actors import Actor, come_to
from tests.models.calls import END, World
from tests.models.real_outbox import turn

LOCKS: Final = ("the lock", "its turn")
"""What a `CallThread` makes locks for, in this order."""
COMES_TO: Final = {
    "looks": "the lock",
    "hands over": "the lock",
    "serves": "to serve",
    "waits for calls": "the queue",
    "has calls": "its turn",
    "has the last calls": "its turn",
    "serves: has calls": "to serve",
    "serves: has the last calls": "to serve",
    "counts calls": "the lock",
    "counts the last calls": "the lock",
    "tends": "its turn",
    "tends at last": "its turn",
    "ends": "its turn",
    "refuses": "the lock",
}


class PausingLock:
    """Taken in the step after an actor has come to it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held = False

    def __enter__(self) -> None:
        come_to(self._name)
        assert self.acquire(blocking=False), f"{self._name} is taken"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def acquire(self, *, blocking: bool) -> bool:
        held, self._held = self._held, True
        return not held

    def release(self) -> None:
        self._held = False


class PausingQueue(list[Any]):
    """A queue at which its thread pauses, unless it has just seen that there is more."""

    more = False

    def put(self, group: list[QueuedCall] | None) -> None:
        self.append(group)

    def empty(self) -> bool:
        self.more = bool(self)
        return not self.more

    def get(self) -> Any:
        if not self.more:
            come_to("the queue")
        self.more = False
        return self.pop(0)


class Server:
    """Serves calls whose `todo` is their number; at once only if it can."""

    def __init__(self) -> None:
        self.served: list[int] = []
        self.closed = False
        self.can = True

    def serve(self, group: list[QueuedCall]) -> None:
        come_to("to serve")
        self.served += [number_of(call) for call in group]

    def serve_at_once(self, call: QueuedCall) -> bool:
        come_to("to serve")
        self.served += [number_of(call)] * (self.can and number_of(call) > 0)
        return self.can

    def outdated(self) -> None:
        return None

    def upkeep_due(self) -> bool:
        return False

    def upkeep(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def number_of(call: QueuedCall) -> int:
    number: Any = call.todo
    return int(number)


class RealCalls:
    """Takes the steps of the model one by one."""

    def __init__(self) -> None:
        names = iter(LOCKS)
        here = SimpleNamespace(Thread=self._made, Lock=lambda: PausingLock(next(names)), Event=Event)
        vars(calls).update(threading=here, SimpleQueue=PausingQueue)
        self._server = Server()
        self._loop = asyncio.new_event_loop()
        self._thread: Actor
        self._calls = CallThread("a thread", lambda: self._server)
        self._thread.step()
        self._caller: Actor | None = None
        self._other: Actor | None = None
        self._number = 0

    def _made(self, *, target: Callable[[], None], **_: object) -> Any:
        self._thread = Actor(target)
        return SimpleNamespace(start=lambda: None)

    def close(self) -> None:
        for actor in (self._caller, self._other, self._thread):
            if actor is not None:
                actor.abandon()
        self._loop.close()

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loop_calls(self) -> None:
        self._number += 1
        self._caller = Actor(self._call)
        self._caller.step()

    def _call(self) -> None:
        asyncio._set_running_loop(self._loop)
        number: Any = self._number
        try:
            future = self._calls.call(number, quick=True)
        except LifecycleError:
            return
        finally:
            asyncio._set_running_loop(None)
        future.add_done_callback(lambda done: done.exception())
        turn(self._loop)

    def _caller_goes_on(self) -> None:
        assert self._caller is not None
        self._caller.step()

    loop_looks_whether_it_may_serve = loop_serves = loop_hands_over = _caller_goes_on

    def loop_cannot_serve_at_once(self) -> None:
        self._server.can = False
        self._caller_goes_on()
        self._server.can = True

    def other_calls(self) -> None:
        number: Any = 0
        self._other = Actor(lambda: self._calls.call_here(number))
        self._other.step()

    def other_looks_whether_it_may_serve(self) -> None:
        assert self._other is not None
        self._other.step()

    other_serves = other_looks_whether_it_may_serve

    def the_end_is_announced(self) -> None:
        self._calls.end()

    def _thread_goes_on(self) -> None:
        self._thread.step()

    thread_takes_all_that_wait = thread_has_its_turn = thread_serves = thread_counts_what_it_has_served = (
        _thread_goes_on
    )
    thread_looks_after_the_file = thread_closes = thread_refuses_the_rest = _thread_goes_on

    def seen(self) -> Any:
        queue: Any = self._calls._queue
        return (
            tuple(self._server.served),
            tuple(END if group is None else number_of(group[0]) for group in queue),
            self._calls._unserved,
            self._server.closed,
            tuple("" if each is None else each.at for each in (self._caller, self._other, self._thread)),
        )


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    at = tuple(COMES_TO.get(does, "") for does in (world.loop, world.other, world.thread))
    return world.served, world.queue, world.unserved, world.closed, at


@contextmanager
def pausing() -> Iterator[None]:
    """Put back afterwards what the pieces above replace, and let no call take long."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("threading", "SimpleQueue"):
            patch.setattr(calls, name, getattr(calls, name))
        patch.setattr(calls, "time", SimpleNamespace(monotonic=lambda: 0.0))
        yield
