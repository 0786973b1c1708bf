"""What an app puts around its jobs: a lifespan around all jobs of a process, and context managers around each run.

Neither can silently change how a run ended: an exception that a context manager suppresses fails the job all
the same, and one that it raises itself fails the job, too. Where nothing is registered, a run costs one look at an
empty tuple.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from shiftwork.errors import ConfigurationError

if TYPE_CHECKING:
    from shiftwork.runtime.context.context import Context
    from shiftwork.runtime.context.current_run import CurrentRun


logger: Final = logging.getLogger("shiftwork")

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

Lifespan = Callable[[], Manager | Iterator[Any] | AsyncIterator[Any]]
"""A function that yields once, plain or async, or that returns a context manager."""
AroundJob = Callable[["Context"], Manager | Iterator[Any] | AsyncIterator[Any]]
"""The same for one run: a function that takes the run's context."""


class Middleware:
    """The lifespan of this process, and the context managers around each of its runs."""

    def __init__(self) -> None:
        self.state: Any = None
        """What the lifespan yielded: `ctx.state`."""
        self.arounds: tuple[Callable[[Context], Manager], ...] = ()
        """What surrounds each run, the outermost first."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifespan: Callable[[], Manager] | None = None
        self._entered: ManagerTask | None = None
        self._users = 0
        self._lock = asyncio.Lock()

    def set_lifespan(self, function: Lifespan) -> None:
        """Surround all jobs of a process. Raises `ConfigurationError` if there is a lifespan already."""
        if self._lifespan is not None:
            raise ConfigurationError("there is a lifespan already; let one function enter both (contextlib.ExitStack)")
        manager = _managing("@app.lifespan", function)
        _check_arguments("@app.lifespan calls its function without arguments", function)
        self._lifespan = manager

    def add_around(self, function: AroundJob) -> None:
        """Surround each run, inside those that were added before."""
        manager = _managing("@app.around_job", function)
        _check_arguments("@app.around_job calls its function with one argument, the Context", function, "ctx")
        self.arounds = (*self.arounds, manager)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop on which the jobs of this process run."""
        assert self._loop is not None  # noqa: S101 - jobs run only after `enter`
        return self._loop

    # ── lifespan ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def enter(self) -> None:
        """Enter the lifespan, once for all who need it here. Raises what the lifespan raises."""
        async with self._lock:
            self._loop = asyncio.get_running_loop()
            if self._lifespan is not None and not self._users:
                entered = ManagerTask(_checked("@app.lifespan", self._lifespan()), self._loop)
                self.state = await asyncio.wrap_future(entered.enter())
                self._entered = entered
            self._users += 1

    async def leave(self) -> None:
        """Leave the lifespan when the last who needed it has left. What it raises then is logged."""
        async with self._lock:
            self._users -= 1
            if self._users or self._entered is None:
                return
            entered, self._entered = self._entered, None
            try:
                await asyncio.wrap_future(entered.leave())
            except Exception:
                logger.exception("the app's lifespan raised when it ended")
            self.state = None

    def forked(self) -> object:
        """Forget the lifespan of the parent, in a process that was just forked; return what is not ours to close."""
        inherited, self._entered = (self._entered, self.state), None
        self.state, self._users, self._lock = None, 0, asyncio.Lock()
        return inherited


# ── around a run ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def await_within(
    arounds: Sequence[Callable[["Context"], Manager]], context: "Context", call: Callable[[], Awaitable[Any]]
) -> Any:
    """Await a run, surrounded by these."""
    if not arounds:
        return await call()
    manager = _checked("@app.around_job", arounds[0](context))
    await enter(manager)
    try:
        value = await await_within(arounds[1:], context, call)
    except BaseException as error:
        if await leave(manager, error):
            _report_suppressed(arounds[0], context, error)
        raise
    await leave(manager, None)
    return value


def call_within(
    arounds: Sequence[Callable[["Context"], Manager]],
    context: "Context",
    call: Callable[[], Any],
    loop: asyncio.AbstractEventLoop,
) -> Any:
    """Call a plain function, surrounded by these, in this thread. Asynchronous ones live on the event loop."""
    if not arounds:
        return call()
    manager = _checked("@app.around_job", arounds[0](context))
    task = ManagerTask(manager, loop) if isinstance(manager, AbstractAsyncContextManager) else None
    _enter_here(manager, task)
    try:
        value = call_within(arounds[1:], context, call, loop)
    except BaseException as error:
        if _leave_here(manager, task, error):
            _report_suppressed(arounds[0], context, error)
        raise
    _leave_here(manager, task, None)
    return value


def finish_here(run: "CurrentRun", value: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """Return what a plain function has returned; if that is a coroutine, run it on the loop and wait for it."""
    if type(value) is not CoroutineType:
        return value
    return _begun(run, value, loop).result()


def _begun(run: "CurrentRun", rest: Awaitable[Any], loop: asyncio.AbstractEventLoop) -> "Future[Any]":
    done: Future[Any] = Future()
    asyncio.run_coroutine_threadsafe(_tracked(run, rest, done), loop)
    return done


async def _tracked(run: "CurrentRun", rest: Awaitable[Any], done: "Future[Any]") -> None:
    run.task = asyncio.current_task()  # so that the run can be cancelled
    resolving = resolve(done, lambda: rest)
    del done  # an exception refers to this frame
    await resolving


def _enter_here(manager: Manager, task: "ManagerTask | None") -> None:
    if task is not None:
        task.enter().result()
    elif isinstance(manager, AbstractContextManager):
        manager.__enter__()


def _leave_here(manager: Manager, task: "ManagerTask | None", error: BaseException | None) -> bool:
    if task is not None:
        return task.leave(error).result()
    assert isinstance(manager, AbstractContextManager)  # noqa: S101 - `_checked` has seen it
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    return bool(manager.__exit__(kind, error, trace))


def _report_suppressed(around: object, context: "Context", error: BaseException) -> None:
    logger.warning(
        "%s suppressed %s of job %s of %s; the run counts as failed all the same",
        getattr(around, "__qualname__", around),
        type(error).__name__,
        context.job_id,
        context.worker.name,
        extra={"job_id": context.job_id, "worker": context.worker.name},
    )


# ── functions that yield, and others ─────────────────────────────────────────────────────────────────────────────────


def _managing(what: str, function: Any) -> Callable[..., Any]:
    """Return a function that makes a context manager. Raises `ConfigurationError` for one that cannot."""
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        return contextmanager(function)
    if not callable(function) or inspect.iscoroutinefunction(function):
        message = f"{what} needs a function that yields once, or that returns a context manager, not {function!r}"
        raise ConfigurationError(message)
    made: Callable[..., Any] = function
    return made


def _check_arguments(how: str, function: Any, *arguments: str) -> None:
    """Raise a `ConfigurationError` if a function cannot be called with these arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        message = f"{how}: {name}({', '.join(arguments)}); {error}"
        raise ConfigurationError(message) from None
    except ValueError:  # a function without a signature, in C
        return


def _checked(what: str, manager: Any) -> Manager:
    if not isinstance(manager, AbstractContextManager | AbstractAsyncContextManager):
        message = f"{what}: the function returned {type(manager).__name__}, not a context manager; let it yield once"
        raise ConfigurationError(message)
    return manager


class ManagerTask:
    """Enters and leaves a context manager in one task of this event loop. Both methods are safe from any thread.

    Many asynchronous context managers (task groups, timeouts) must be left by the task that has entered them. An app is
    started and stopped by different tasks, and a plain function runs in a thread, which has no task.
    """

    def __init__(self, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
        self._manager = manager
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._end: tuple[BaseException | None, Future[bool]] = None, Future()

    def enter(self) -> "Future[Any]":
        """Enter; the result is what the context manager yields."""
        entered: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._begin, entered)
        return entered

    def leave(self, error: BaseException | None = None) -> "Future[bool]":
        """Leave, with the exception that was raised inside, if any; the result is whether the manager suppresses it."""
        left: Future[bool] = Future()
        self._end = error, left
        self._loop.call_soon_threadsafe(self._over.set)
        return left

    def _begin(self, entered: "Future[Any]") -> None:
        self._task = self._loop.create_task(self._live(entered), name="shiftwork context manager")

    async def _live(self, entered: "Future[Any]") -> None:
        if await resolve(entered, partial(enter, self._manager)):
            await self._over.wait()
            # An exception refers to the frames that it passed, and they to us: we must not refer to it.
            (error, left), self._end = self._end, (None, Future())
            await resolve(left, partial(leave, self._manager, error))


async def resolve(future: "Future[Any]", act: Callable[[], Awaitable[Any]]) -> bool:
    """Call this, and resolve the future with what it returns or raises; return whether it returned.

    The future takes every exception: a SystemExit that left the task would end the event loop.
    """
    try:
        future.set_result(await act())
    except BaseException as error:  # noqa: BLE001 - a user's code
        future.set_exception(error)
        return False
    else:
        return True
    finally:
        del future, act  # the exception refers to this frame


async def enter(manager: Manager) -> Any:
    """Enter a context manager of either kind."""
    if isinstance(manager, AbstractAsyncContextManager):
        return await manager.__aenter__()
    return manager.__enter__()


async def leave(manager: Manager, error: BaseException | None) -> bool:
    """Leave a context manager of either kind; return whether it suppresses the exception."""
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    if isinstance(manager, AbstractAsyncContextManager):
        return bool(await manager.__aexit__(kind, error, trace))
    return bool(manager.__exit__(kind, error, trace))
