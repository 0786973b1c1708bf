"""Run one function and return how it ended. Nothing here writes to a store or decides what happens next."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from shiftwork.core.retry import End, EndKind
from shiftwork.errors import JobCancelledError, PayloadDecodingError, ResultEncodingError
from shiftwork.runtime.engine.error_text import describe, trace_of
from shiftwork.runtime.engine.log_context import log_as
from shiftwork.runtime.engine.run import Run


async def run_async(run: Run) -> End:
    """Run a coroutine function on this event loop."""
    try:
        function, args, kwargs = _bound(run)
        value = await function(*args, **kwargs)
    except asyncio.CancelledError:
        return _cancelled(run)
    except (KeyboardInterrupt, GeneratorExit):  # meant for the event loop, not for the function
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a user's function raises is its outcome
        return _failed(run, error)
    return _returned(run, value)


def run_sync(run: Run) -> End | Coroutine[Any, Any, Any]:
    """Run a plain function in this thread. If it returns a coroutine, that is returned, to be run on the loop."""
    run.thread = threading.get_ident()
    try:
        function, args, kwargs = _bound(run)
        value = function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - as above; nothing interrupts this thread
        return _failed(run, error)
    return value if inspect.iscoroutine(value) else _returned(run, value)


async def run_rest(run: Run, rest: Coroutine[Any, Any, Any]) -> End:
    """Run the coroutine that a plain function returned."""
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
    assert run.callee is not None  # noqa: S101 - a local runner sets both before it calls us
    assert run.context is not None  # noqa: S101
    log_as(run.job.id, run.job.worker, run.job.attempt)
    return run.callee.function, *run.callee.bind(run.job.payload, run.context)


def _cancelled(run: Run) -> End:
    if run.stopped_as is not None:
        return End(run.stopped_as)
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # not by us: the event loop is shutting down
        return End(EndKind.DRAINED)
    return End(EndKind.RAISED, error="the function was cancelled from inside")


def _returned(run: Run, value: Any) -> End:
    if run.stopped_as in {EndKind.TIMED_OUT, EndKind.CANCELLED}:
        return End(run.stopped_as)
    try:
        return End(EndKind.RETURNED, result=run.callee.encode_result(value) if run.callee else None)
    except ResultEncodingError as error:
        return End(EndKind.UNENCODABLE, error=run.discreet(str(error)))
    except Exception as error:  # noqa: BLE001 - a user's class may have its own encoding
        return _with_traceback(run, EndKind.UNENCODABLE, error)


def _failed(run: Run, error: BaseException) -> End:
    if isinstance(error, PayloadDecodingError):
        return End(EndKind.UNDECODABLE, error=str(error))
    if run.stopped_as is not None and isinstance(error, JobCancelledError):
        return End(run.stopped_as)  # `Context.heartbeat` raised it, because the run was to stop
    return _with_traceback(run, run.stopped_as or EndKind.RAISED, error)


def _with_traceback(run: Run, kind: EndKind, error: BaseException) -> End:
    return End(kind, error=describe(error, run.discreet), traceback=trace_of(error, run.discreet))
