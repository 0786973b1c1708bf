"""Run one function and say how it ended. Nothing here writes to a store or decides what happens next."""

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from shiftwork.core.model import Claimed, LogLine, Outcome, WorkerConfig
from shiftwork.core.retry import End, EndKind
from shiftwork.errors import JobCancelledError, PayloadDecodingError, ResultEncodingError
from shiftwork.runtime.engine.log_context import log_as

if TYPE_CHECKING:
    from shiftwork.runtime.clock import Timer
    from shiftwork.runtime.engine.context import Context
    from shiftwork.runtime.engine.registry import Callee
    from shiftwork.telemetry.tracing import RunSpan

LONGEST_ERROR: Final = 1_000
LONGEST_TRACEBACK: Final = 20_000


class Run:
    """A job in the hands of this process, from claim to end."""

    __slots__ = (
        *("callee", "config", "context", "ended", "job", "log", "on_end", "outcome", "patience"),
        *("span", "started_at", "stopped_as", "task", "thread"),
    )

    def __init__(
        self, job: Claimed, config: WorkerConfig, started_at: float, on_end: Callable[["Run", End], None]
    ) -> None:
        self.job = job
        self.config = config
        self.started_at = started_at
        self.on_end = on_end
        """Called once it has ended, on the event loop."""
        self.ended = False
        self.stopped_as: EndKind | None = None
        """Why we ended it, if we did: the function's own opinion no longer counts then."""
        self.outcome: Outcome | None = None
        """What became of the job, if the function has ended it itself, in a transaction."""
        self.log: tuple[LogLine, ...] = ()
        """What the function has logged, as far as we know."""
        self.patience: Timer | None = None
        """Runs while we wait for it to do as it was told."""
        # Where the function runs in this process:
        self.callee: Callee | None = None
        self.context: Context | None = None
        self.span: RunSpan | None = None
        self.task: asyncio.Task[End] | None = None
        self.thread: int | None = None

    def discreet(self, text: str) -> str:
        """What the function says, without the secrets it was given."""
        return text if self.callee is None else self.callee.discreet(self.job.payload, text)


async def run_async(run: Run) -> End:
    """Run a coroutine function here, on this event loop."""
    try:
        function, args, kwargs = _bound(run)
        value = await function(*args, **kwargs)
    except asyncio.CancelledError:
        return _cancelled(run)
    except (KeyboardInterrupt, GeneratorExit):  # meant for the loop that we run on, not for the function
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a user's function raises is its outcome
        return _failed(run, error)
    return _returned(run, value)


def run_sync(run: Run) -> End | Coroutine[Any, Any, Any]:
    """Run a plain function in this thread. A coroutine that it answers with is handed back to be run on the loop."""
    run.thread = threading.get_ident()
    try:
        function, args, kwargs = _bound(run)
        value = function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - as above; nobody interrupts this thread
        return _failed(run, error)
    return value if inspect.iscoroutine(value) else _returned(run, value)


async def run_rest(run: Run, rest: Coroutine[Any, Any, Any]) -> End:
    """Run the coroutine that a plain function answered with."""
    log_as(run.job.id, run.job.worker, run.job.attempt)
    try:
        value = await rest
    except asyncio.CancelledError:
        return _cancelled(run)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(run, error)
    return _returned(run, value)


def _bound(run: Run) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    assert run.callee is not None  # noqa: S101 - whoever starts a run here has given it both
    assert run.context is not None  # noqa: S101
    log_as(run.job.id, run.job.worker, run.job.attempt)
    return run.callee.function, *run.callee.bind(run.job.payload, run.context)


def _cancelled(run: Run) -> End:
    if run.stopped_as is not None:
        return End(run.stopped_as)
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # by somebody else: the loop is being shut down
        return End(EndKind.DRAINED)
    return End(EndKind.RAISED, error="the function was cancelled from inside")


def _returned(run: Run, value: Any) -> End:
    if run.stopped_as in {EndKind.TIMED_OUT, EndKind.CANCELLED}:
        return End(run.stopped_as)
    try:
        return End(EndKind.RETURNED, result=run.callee.encode_result(value) if run.callee else None)
    except ResultEncodingError as error:
        return End(EndKind.UNENCODABLE, error=run.discreet(str(error)))
    except Exception as error:  # noqa: BLE001 - a user's class may have its own way to be encoded
        return _told(run, EndKind.UNENCODABLE, error)


def _failed(run: Run, error: BaseException) -> End:
    if isinstance(error, PayloadDecodingError):
        return End(EndKind.UNDECODABLE, error=str(error))
    if run.stopped_as is not None and isinstance(error, JobCancelledError):
        return End(run.stopped_as)  # `Context.heartbeat` told it, and it did as it was told
    return _told(run, run.stopped_as or EndKind.RAISED, error)


def _told(run: Run, kind: EndKind, error: BaseException) -> End:
    return End(kind, error=describe(error, run.discreet), traceback=trace_of(error, run.discreet))


def _as_it_is(text: str) -> str:
    return text


def describe(error: BaseException, discreet: Callable[[str], str] = _as_it_is) -> str:
    """An exception in one line."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - a user's code
        words = "(it cannot be shown)"
    # Before it is cut short: half a secret would not be known as one.
    text = discreet(f"{type(error).__qualname__}: {words}" if words else type(error).__qualname__)
    return storable(text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…")


def trace_of(error: BaseException, discreet: Callable[[str], str] = _as_it_is) -> str:
    """The traceback, from the user's function on."""
    behind_us = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, behind_us))
    return shortened(discreet(text))


def shortened(text: str) -> str:
    """As much of a traceback as is kept: its end says what it is about."""
    return storable(text if len(text) <= LONGEST_TRACEBACK else "…\n" + text[-LONGEST_TRACEBACK:])


def storable(text: str) -> str:
    """Text as UTF-8 can hold it: names of files may hold what it cannot, and then turn up in errors."""
    return text.encode("utf-8", "backslashreplace").decode()


class Threads:
    """Threads for plain functions, as many as there are jobs.

    Not a ThreadPoolExecutor: a thread that is given up on must neither count against the others nor keep the
    interpreter from ending.
    """

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread at once."""
        with self._lock:
            thread = self._idle.pop() if self._idle else None
        if thread is None:
            thread = _Thread(self)
            thread.start()
        thread.inbox.put((copy_context(), work))

    def close(self) -> None:
        """Let idle threads go; busy ones go when they are done, and hold nobody up."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.inbox.put(None)

    def rest(self, thread: "_Thread") -> bool:
        """A thread is free again. False: it should end."""
        with self._lock:
            if not self._closed:
                self._idle.append(thread)
            return not self._closed


class _Thread(threading.Thread):
    def __init__(self, home: Threads) -> None:
        super().__init__(name="shiftwork worker", daemon=True)
        self._home = home
        self.inbox: SimpleQueue[Any] = SimpleQueue()

    def run(self) -> None:
        while True:
            item = self.inbox.get()
            if item is None:
                return
            context, work = item
            context.run(work)
            del context, work, item
            if not self._home.rest(self):
                return
