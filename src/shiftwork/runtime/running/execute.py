"""Run one function and return how it ended. Nothing here writes to a store or decides what happens next.

Whatever the function, its arguments, its result or its exception raises, the run ends with a text. One exception
passes: the cancellation of a coroutine's task, because only the runner knows what cancelled it.

A child that the function forks ends where it leaves the function (`end_forked_child`). It has a copy of everything that
its parent runs: if it went on, it would report the end of its parent's job, and run the jobs that wait in its parent a
second time.
"""

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import CoroutineType
from typing import Any

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.errors import JobCancelledError, PayloadDecodingError, ResultEncodingError
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.context.current_run import ContextServices
from shiftwork.runtime.context.job_log import log_as
from shiftwork.runtime.context.middleware import await_within, call_within, finish_here
from shiftwork.runtime.context.retry_choice import chosen
from shiftwork.runtime.error_text import INDESCRIBABLE, describe, one_line, trace_of
from shiftwork.runtime.running.job_run import LocalRun


async def run_async(run: LocalRun, services: ContextServices) -> End:
    """Run a coroutine function on this event loop. One that was told to stop before it began does not begin."""
    if not run.begin(services.clock.monotonic()):
        return cancelled(run)
    recorder = services.recorder
    if recorder is not None:
        recorder.began(run.job)
    try:
        function, args, kwargs = _bound(run, services)
    except BaseException as error:  # noqa: BLE001 - whatever a user's code raises is its outcome
        return _unbound(run, error)
    try:
        value = await function(*args, **kwargs)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - as above: also SystemExit, KeyboardInterrupt, GeneratorExit
        return _failed(run, error)
    return _returned(run, value)


def run_sync(run: LocalRun, services: ContextServices) -> End | Coroutine[Any, Any, Any]:
    """Run a plain function in this thread, likewise. If it returns a coroutine, so do we: that runs on the loop."""
    if not run.begin(services.clock.monotonic()):
        return cancelled(run)
    recorder = services.recorder
    if recorder is not None:
        recorder.began(run.job)
    run.thread = threading.get_ident()
    try:
        function, args, kwargs = _bound(run, services)
    except BaseException as error:  # noqa: BLE001 - as above
        return _unbound(run, error)
    try:
        value = function(*args, **kwargs)
    except asyncio.CancelledError as error:
        return _failed(run, error) if run.stopped_as is None else End(run.stopped_as)
    except BaseException as error:  # noqa: BLE001 - as above; nothing interrupts this thread
        return _failed(run, error)
    # Not `isinstance`, which asks the value itself for its class.
    return value if type(value) is CoroutineType else _returned(run, value)


async def run_rest(run: LocalRun, rest: Coroutine[Any, Any, Any]) -> End:
    """Run the coroutine that a plain function returned."""
    log_as(run.job)
    try:
        value = await rest
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(run, error)
    return _returned(run, value)


def cancelled(run: LocalRun) -> End:
    """Return how a run ended whose task was cancelled."""
    if run.stopped_as is not None:
        return End(run.stopped_as)
    return End(EndKind.RAISED, error="the function was cancelled from inside")


def escaped(run: LocalRun, error: BaseException) -> End:
    """Return how a run ended whose exception got past everything here."""
    _note(run, error)
    return End(run.stopped_as or EndKind.RAISED, error=describe(error, run.discreet))


def _bound(run: LocalRun, services: ContextServices) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    assert run.callee is not None  # noqa: S101 - a local runner sets it before it calls us
    log_as(run.job)
    context, function = Context(run, services), run.callee.function
    args, kwargs = run.callee.bind(run.job.payload, context)
    arounds = services.middleware.arounds
    if not arounds:
        return function, args, kwargs
    call = partial(function, *args, **kwargs)
    if run.callee.is_async:
        return await_within, (arounds, context, call), {}
    loop = services.middleware.loop
    return call_within, (arounds, context, partial(_whole, run, call, loop), loop), {}


def _whole(run: LocalRun, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Call a plain function, and wait here for the coroutine that it may return: what is around it surrounds both."""
    return finish_here(run, call(), loop)


def _unbound(run: LocalRun, error: BaseException) -> End:
    if type(error) is PayloadDecodingError:
        _note(run, error)
        return End(EndKind.UNDECODABLE, error=one_line(str(error)))
    return _failed(run, error)


def _returned(run: LocalRun, value: Any) -> End:
    end_forked_child(run)
    if run.stopped_as in {EndKind.TIMED_OUT, EndKind.CANCELLED}:
        return End(run.stopped_as)
    if run.overruled is not None:
        return run.overruled
    forgotten = next((call.what for call in run.idle or () if call.is_forgotten), None)
    if forgotten is not None:
        error = f"StepError: {forgotten} was not awaited: write await {forgotten}"
        return End(EndKind.RAISED, error=error, final=True)
    try:
        return End(EndKind.RETURNED, result=run.callee.encode_result(value) if run.callee else None)
    except ResultEncodingError as error:
        _note(run, error)
        return End(EndKind.UNENCODABLE, error=one_line(str(error), run.discreet))
    except BaseException as error:  # noqa: BLE001 - a user's class may have its own encoding
        return _with_traceback(run, EndKind.UNENCODABLE, error)


def _failed(run: LocalRun, error: BaseException) -> End:
    end_forked_child(run, error)
    if run.stopped_as is not None and issubclass(type(error), JobCancelledError):
        return End(run.stopped_as)  # `Context.heartbeat` raised it, because the run was to stop
    end = _with_traceback(run, run.stopped_as or EndKind.RAISED, error)
    return end if run.stopped_as is not None else chosen(run, end, error)


def _with_traceback(run: LocalRun, kind: EndKind, error: BaseException) -> End:
    _note(run, error)
    try:
        return End(kind, error=describe(error, run.discreet), traceback=trace_of(error, run.discreet))
    except BaseException:  # noqa: BLE001 - out of memory, or of stack
        return End(kind, error=INDESCRIBABLE)


def _note(run: LocalRun, error: BaseException) -> None:
    if run.span is not None and run.stopped_as is not EndKind.TIMED_OUT:
        run.span.raised(error)


def end_forked_child(run: LocalRun, error: BaseException | None = None) -> None:
    """Return in the process in which the run began. End any other process, as `sys.exit` and `multiprocessing` do."""
    if os.getpid() == run.pid:
        return
    status = 1
    try:
        status = _status(error)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
    finally:
        os._exit(status)


def _status(error: BaseException | None) -> int:
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201 - what Python itself does
    else:
        traceback.print_exception(error)
    return 1
