"""What an app puts around its jobs: a lifespan around all jobs of a process, and context managers around each run.

Neither can change how a run ended without a trace: an exception that a context manager suppresses fails the job all
the same, and one that it raises itself fails the job, too. Where nothing is registered, a run costs one look at an
empty tuple.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from shiftwork.errors import ConfigurationError
from shiftwork.runtime.context.stay import Manager, Stay, enter, leave, settle_into

if TYPE_CHECKING:
    from shiftwork.runtime.context.context import Context, CurrentRun

logger: Final = logging.getLogger("shiftwork")

Lifespan = Callable[[], Manager | Iterator[Any] | AsyncIterator[Any]]
"""A function that yields once, plain or async, or that returns a context manager."""
AroundJob = Callable[["Context"], Manager | Iterator[Any] | AsyncIterator[Any]]
"""Likewise, for one run; it takes the run's context."""


class Surroundings:
    """What surrounds the jobs of this process."""

    def __init__(self) -> None:
        self.state: Any = None
        """What the lifespan yielded: `ctx.state`."""
        self.arounds: tuple[Callable[[Context], Manager], ...] = ()
        """What surrounds each run, the outermost first."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifespan: Callable[[], Manager] | None = None
        self._stay: Stay | None = None
        self._users = 0
        self._turn = asyncio.Lock()

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
        async with self._turn:
            self._loop = asyncio.get_running_loop()
            if self._lifespan is not None and not self._users:
                stay = Stay(_checked("@app.lifespan", self._lifespan()), self._loop)
                self.state = await asyncio.wrap_future(stay.enter())
                self._stay = stay
            self._users += 1

    async def leave(self) -> None:
        """Leave the lifespan when the last who needed it has left. What it raises then is logged."""
        async with self._turn:
            self._users -= 1
            if self._users or self._stay is None:
                return
            stay, self._stay = self._stay, None
            try:
                await asyncio.wrap_future(stay.leave())
            except Exception:
                logger.exception("the app's lifespan raised when it ended")
            self.state = None

    def forked(self) -> object:
        """Forget the lifespan of the parent, in a process that was just forked; return what is not ours to close."""
        inherited, self._stay = (self._stay, self.state), None
        self.state, self._users, self._turn = None, 0, asyncio.Lock()
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
    stay = Stay(manager, loop) if isinstance(manager, AbstractAsyncContextManager) else None
    _enter_here(manager, stay)
    try:
        value = call_within(arounds[1:], context, call, loop)
    except BaseException as error:
        if _leave_here(manager, stay, error):
            _report_suppressed(arounds[0], context, error)
        raise
    _leave_here(manager, stay, None)
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
    settling = settle_into(done, lambda: rest)
    del done  # an exception refers to this frame
    await settling


def _enter_here(manager: Manager, stay: Stay | None) -> None:
    if stay is not None:
        stay.enter().result()
    elif isinstance(manager, AbstractContextManager):
        manager.__enter__()


def _leave_here(manager: Manager, stay: Stay | None, error: BaseException | None) -> bool:
    if stay is not None:
        return stay.leave(error).result()
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
