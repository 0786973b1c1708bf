"""Traces: a job carries the W3C trace context of its enqueue to its run.

Only the API of OpenTelemetry is used, and only if something else in the process has imported it already: a process
that traces nothing imports nothing, and pays one dict lookup. Libraries import it too, so where no provider is set
there are no spans: then a trace that comes from elsewhere is passed on, and that is all. Spans follow the semantic
conventions for messaging; the pool is the destination.

Headers that come in are checked: a traceparent that is wrong counts as none, and a tracestate never matters without
one.
"""

import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.core.jobs.retry import TIMEOUT, End, EndKind, error_name
from shiftwork.core.model.jobs import Claimed, NewJob

# ── the headers traceparent and tracestate ───────────────────────────────────────────────────────────────────────────

LONGEST_STATE: Final = 512
"""How much of a tracestate is passed on, as the specification asks for at the least."""
LARGE_STATE_ENTRY: Final = 128
"""Entries that are larger are the first to go."""
MOST_STATE_ENTRIES: Final = 32

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_ENTRY: Final = re.compile(
    r"(?P<key>[a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_SPACE: Final = " \t"


def carried_from(traceparent: str | None, tracestate: str | None) -> str | None:
    """Return what a job carries of these headers: both, separated by a space; None if they name no trace."""
    found = _TRACEPARENT.fullmatch((traceparent or "").strip(_SPACE))
    if found is None or not _is_valid(found):
        return None
    parent = f"00-{found['trace']}-{found['span']}-{found['flags']}"
    state = ",".join(_shortened(_entries(tracestate or "")))
    return f"{parent} {state}" if state else parent


def _is_valid(found: re.Match[str]) -> bool:
    """Check what the pattern does not: version 00 ends with its flags, later versions may have more, ff is invalid."""
    known = found["more"] is None if found["version"] == "00" else found["version"] != "ff"
    return known and bool(found["trace"].strip("0")) and bool(found["span"].strip("0"))


def _entries(tracestate: str) -> list[str]:
    """Return the entries of a tracestate, the first of each key; none if one is wrong, or there are too many."""
    entries = [entry for part in tracestate.split(",") if (entry := part.strip(_SPACE))]
    by_key: dict[str, str] = {}
    for entry in entries:
        read = _ENTRY.fullmatch(entry)
        if read is None or len(entries) > MOST_STATE_ENTRIES:
            return []
        by_key.setdefault(read["key"], entry)
    return list(by_key.values())


def _shortened(entries: list[str]) -> list[str]:
    """Leave out entries until the rest is short enough: large ones first, and then the last."""
    kept = entries
    while len(",".join(kept)) > LONGEST_STATE:
        large = [entry for entry in kept if len(entry) > LARGE_STATE_ENTRY]
        leaving = large[-1] if large else kept[-1]
        kept = [entry for entry in kept if entry != leaving]
    return kept


logger: Final = logging.getLogger("shiftwork")

_NO_ERROR: Final = {EndKind.RETURNED, EndKind.DRAINED, EndKind.SNOOZED, EndKind.CANCELLED}
_NO_EXCEPTION: Final = {EndKind.TIMED_OUT: TIMEOUT[0]}
"""The exception for which an end counts that is none; any other end has its own name."""
_HEADERS: Final = ("traceparent", "tracestate")
_ID_LENGTH: Final = 32
_caller: Final[ContextVar[str | None]] = ContextVar("shiftwork_caller", default=None)


def sending(jobs: Sequence[NewJob]) -> AbstractContextManager[Sequence[NewJob]]:
    """Open a span around adding jobs to the store, and yield the jobs with its context."""
    if "opentelemetry.trace" not in sys.modules and _caller.get() is None:
        return nullcontext(jobs)  # a generator would cost more than everything else here
    return _sending(jobs)


@contextmanager
def _sending(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    caller = _caller.get()
    if "opentelemetry.trace" not in sys.modules or not jobs:
        yield [replace(job, trace=caller) for job in jobs] if caller else jobs
        return
    from opentelemetry import trace  # noqa: PLC0415 - see above

    if caller is None and not _records(trace) and not trace.get_current_span().get_span_context().is_valid:
        yield jobs
        return
    workers = {job.worker for job in jobs}
    name = f"send {workers.pop()}" if len(workers) == 1 else "send"
    # If there is a current span, it continues the caller's trace already.
    parent = None if caller is None or trace.get_current_span().get_span_context().is_valid else _extracted(caller)
    with trace.get_tracer("shiftwork").start_as_current_span(
        name, context=parent, kind=trace.SpanKind.PRODUCER, attributes=_sent(jobs)
    ):
        carried = _carried() or caller
        created = _created(trace, jobs)
        yield [replace(job, trace=created.get(job.id) or carried) for job in jobs] if carried else jobs


def _created(trace: Any, jobs: Sequence[NewJob]) -> dict[str, str | None]:
    """Return the trace contexts of the jobs of flows among these, by their ids.

    Each gets a span of its own, with links to those of the jobs that it needs: so a trace shows what waits for what.
    """
    spans: dict[str, Any] = {}
    carried: dict[str, str | None] = {}
    for job in jobs:
        if job.flow is None:
            continue
        links = [trace.Link(spans[need.id].get_span_context()) for need in job.needs if need.id in spans]
        about = _about("create") | {
            "messaging.destination.name": job.pool,
            "messaging.message.id": job.id,
            "shiftwork.flow": job.flow,
        }
        span = spans[job.id] = trace.get_tracer("shiftwork").start_span(
            f"create {job.worker}", kind=trace.SpanKind.PRODUCER, attributes=about, links=links
        )
        with trace.use_span(span, end_on_exit=True):
            carried[job.id] = _carried()
    return carried


@contextmanager
def continuing(traceparent: str | None, tracestate: str | None) -> Iterator[None]:
    """Let jobs that are added inside continue the trace of these request headers. Invalid headers are ignored."""
    carried = carried_from(traceparent, tracestate)
    if carried is None:
        yield
        return
    token = _caller.set(carried)
    try:
        yield
    finally:
        _caller.reset(token)


class RunSpan:
    """The span of one run."""

    __slots__ = ("_raised", "_span", "variables")

    def __init__(self, span: Any, variables: Variables) -> None:
        self._span = span
        self._raised: str | None = None
        self.variables: Variables = variables
        """The context that the function must run in, so that its own spans are children of this one."""

    def raised(self, error: BaseException) -> None:
        """Note what the function has raised."""
        self._raised = error_name(type(error))

    def end(self, end: End) -> None:
        try:
            _close(self._span, end, self._raised or _NO_EXCEPTION.get(end.kind, str(end.kind)))
        except BaseException:  # span processors and exporters are the user's code
            logger.exception("the span of a run could not be ended")


def processing(job: Claimed) -> RunSpan | None:
    """Return the span of a run that starts now, in the trace of its enqueue; None if this process does not trace."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        return _open(job) if job.trace or _records(trace) else None
    except BaseException:  # samplers and span processors are the user's code
        logger.exception("the run of job %s of %s could not be traced", job.id, job.worker)
        return None


class StepSpan:
    """The span around a step of a durable function, a child of the run's; nothing where this process does not trace.

    A failure is noted by its class only: its text may have secrets of the job.
    """

    __slots__ = ("_current", "_name", "_span")

    def __init__(self, name: str) -> None:
        self._name = name
        self._span: Any = None
        self._current: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        trace = sys.modules.get("opentelemetry.trace")
        if trace is None or not _records(trace):
            return
        try:
            about = {"shiftwork.step": self._name}
            self._span = trace.get_tracer("shiftwork").start_span(f"step {self._name}", attributes=about)
            self._current = trace.use_span(self._span, record_exception=False, set_status_on_exception=False)
            self._current.__enter__()
        except BaseException:  # samplers and span processors are the user's code
            logger.exception("the step %r could not be traced", self._name)
            self._current = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._current is None:
            return
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

        try:
            self._current.__exit__(None, None, None)
            if kind is not None:
                self._span.set_attribute("error.type", error_name(kind))
                self._span.set_status(Status(StatusCode.ERROR))
            self._span.end()
        except BaseException:  # as above, and exporters
            logger.exception("the span of the step %r could not be ended", self._name)


def trace_id(carried: str | None) -> str | None:
    """Return the id of the trace that a job belongs to."""
    parts = (carried or "").split("-")
    return parts[1] if len(parts) > 1 and len(parts[1]) == _ID_LENGTH else None


def _records(trace: Any) -> bool:
    """Whether spans go anywhere. `trace` is the API, which something has imported."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _carried() -> str | None:
    """Return the current trace context as one text: the two W3C headers, separated by a space."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return " ".join(headers[name] for name in _HEADERS if name in headers) or None


def _sent(jobs: Sequence[NewJob]) -> dict[str, Any]:
    about: dict[str, Any] = _about("send")
    if len(jobs) == 1:
        about["messaging.message.id"] = jobs[0].id
    else:
        about["messaging.batch.message_count"] = len(jobs)
    pools = {job.pool for job in jobs}
    return about | ({"messaging.destination.name": pools.pop()} if len(pools) == 1 else {})


def _about(operation: str) -> dict[str, Any]:
    return {
        "messaging.system": "shiftwork",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _open(job: Claimed) -> RunSpan:
    from opentelemetry import context, trace  # noqa: PLC0415

    parent = _extracted(job.trace or "")
    about = _about("process") | {
        "messaging.destination.name": job.pool,
        "messaging.message.id": job.id,
        "shiftwork.worker": job.worker,
        "shiftwork.attempt": job.attempt,
        "shiftwork.cause": job.cause,
    }
    span = trace.get_tracer("shiftwork").start_span(
        f"process {job.worker}", context=parent, kind=trace.SpanKind.CONSUMER, attributes=about
    )
    variables = copy_context()
    variables.run(context.attach, trace.set_span_in_context(span, parent))
    return RunSpan(span, variables)


def _extracted(carried: str) -> Any:
    """Return the context that a text stands for, without what is current here: that belongs to the node's start."""
    from opentelemetry import context  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    headers = dict(zip(_HEADERS, carried.split(" ", 1), strict=False))
    return TraceContextTextMapPropagator().extract(headers, context=context.Context())


def _close(span: Any, end: End, error_type: str) -> None:
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415

    span.set_attribute("shiftwork.end", str(end.kind))
    if end.kind not in _NO_ERROR:
        error = end.error or str(end.kind)
        about = {"exception.type": error_type, "exception.message": error, "exception.stacktrace": end.traceback or ""}
        span.set_attribute("error.type", error_type)
        span.add_event("exception", about)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()
