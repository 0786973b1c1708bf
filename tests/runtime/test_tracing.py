"""One trace from the caller that enqueues to all that the function does; and nothing at all without tracing."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from shiftwork import Context, JobStatus
from shiftwork.core.model.jobs import Claimed
from shiftwork.runtime.clock import until_idle
from shiftwork.telemetry.tracing import continuing, processing, trace_id
from tests.polling import eventually
from tests.runtime.stage import Stage
from tests.system.conftest import PROGRAMS


class Spans:
    """What has been exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def all(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.all(name)
        return span


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """A tracer provider for this test alone."""
    found = Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found.exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield found
    provider.shutdown()


def parent(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def number(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def own_tracer() -> trace.Tracer:
    return trace.get_tracer("test")


@pytest.mark.parametrize("kind", ["async", "thread", "thread that returns a coroutine"])
async def test_one_trace_from_enqueue_to_the_functions_own_spans(stage: Stage, spans: Spans, kind: str) -> None:
    app = stage.app()

    async def work(n: int) -> None:
        with own_tracer().start_as_current_span("inner"):
            pass

    def work_in_thread(n: int) -> None:
        with own_tracer().start_as_current_span("inner"):
            pass

    def work_later(n: int) -> Any:
        return work(n)

    functions = {"async": work, "thread": work_in_thread}
    task = app.register_worker("work", functions.get(kind, work_later), execution_mode="triggered")
    with own_tracer().start_as_current_span("who starts it"):
        await app.start()
    with own_tracer().start_as_current_span("request"):
        job = await task.enqueue(1)
    await eventually(lambda: bool(spans.all("process work")))

    request, sent, run, inner = (spans.one(name) for name in ("request", "send work", "process work", "inner"))
    assert [parent(sent), parent(run), parent(inner)] == [number(request), number(sent), number(run)]
    assert (sent.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert run.status.status_code is StatusCode.UNSET
    assert sent.attributes is not None
    assert sent.attributes["messaging.message.id"] == job.id
    assert run.attributes is not None
    assert dict(run.attributes) == {
        "messaging.system": "shiftwork",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": job.id,
        "shiftwork.worker": "work",
        "shiftwork.attempt": 1,
        "shiftwork.cause": "enqueued",
        "shiftwork.end": "returned",
    }
    assert request.context is not None
    assert trace_id(job.record.trace) == f"{request.context.trace_id:032x}"


async def test_a_failure_is_the_status_of_its_span(stage: Stage, spans: Spans) -> None:
    app = stage.app()

    @app.task(max_retries=1)
    async def work() -> None:
        raise ValueError("no such order")

    await app.start()
    await work.enqueue()
    await until_idle()
    await stage.clock.advance(20)
    runs = spans.all("process work")
    assert [span.status.status_code for span in runs] == [StatusCode.ERROR] * 2
    assert [span.attributes and span.attributes["shiftwork.attempt"] for span in runs] == [1, 2]
    assert {parent(span) for span in runs} == {number(spans.one("send work"))}
    assert [span.attributes and span.attributes["error.type"] for span in runs] == ["ValueError"] * 2
    assert runs[0].status.description == "ValueError: no such order"
    event = runs[0].events[0]
    assert event.attributes is not None
    assert "raise ValueError" in str(event.attributes["exception.stacktrace"])


class CardError(Exception):
    """An exception of the app's own."""


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_the_exception_of_a_run_is_named_with_its_module(stage: Stage, spans: Spans, kind: str) -> None:
    app = stage.app()

    async def work() -> None:
        raise CardError

    def work_in_thread() -> None:
        raise CardError

    task = app.register_worker(
        "work", work if kind == "async" else work_in_thread, execution_mode="triggered", max_retries=0
    )
    await app.start()
    await task.enqueue()
    await eventually(lambda: bool(spans.all("process work")))
    run = spans.one("process work")
    assert run.attributes is not None
    assert run.attributes["error.type"] == f"{__name__}.CardError"
    assert run.events[0].attributes is not None
    assert run.events[0].attributes["exception.type"] == f"{__name__}.CardError"


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_the_steps_of_a_durable_function_have_spans(stage: Stage, spans: Spans, kind: str) -> None:
    app = stage.app()

    async def reserve() -> str:
        with own_tracer().start_as_current_span("inner"):
            return "r1"

    def reserve_in_thread() -> str:
        with own_tracer().start_as_current_span("inner"):
            return "r1"

    def charge(password: str) -> None:
        raise ValueError(password)

    async def work(ctx: Context) -> None:
        await ctx.step("reserve", reserve)
        await ctx.step("charge", charge, "hunter2")

    def work_in_thread(ctx: Context) -> None:
        ctx.blocking.step("reserve", reserve_in_thread)
        ctx.blocking.step("charge", charge, "hunter2")

    function = work if kind == "async" else work_in_thread
    task = app.register_worker("work", function, execution_mode="triggered", max_retries=1)
    await app.start()
    await task.enqueue()
    await eventually(lambda: bool(spans.all("process work")))
    await stage.clock.advance(20)
    await eventually(lambda: len(spans.all("process work")) == 2)
    first, second = spans.all("process work")
    reserved, charged = spans.one("step reserve"), spans.all("step charge")
    assert (parent(reserved), parent(spans.one("inner"))) == (number(first), number(reserved))
    assert [parent(span) for span in charged] == [number(first), number(second)], "a step that was kept runs once"
    assert reserved.status.status_code is StatusCode.UNSET
    assert [span.status.status_code for span in charged] == [StatusCode.ERROR] * 2
    assert [dict(span.attributes or {}) for span in charged] == [
        {"shiftwork.step": "charge", "error.type": "ValueError"}
    ] * 2
    assert not any("hunter2" in span.to_json() for span in charged), "an error's text may be secret"


async def test_the_jobs_of_a_flow_are_linked_to_those_they_need(stage: Stage, spans: Spans) -> None:
    app = stage.app()

    @app.task
    async def fetch(n: int) -> int:
        return n

    @app.task
    async def total(a: int, b: int) -> int:
        return a + b

    await app.start()
    one, two = fetch.call(1), fetch.call(2)
    flow = await app.enqueue_flow(total.call(one.output, two.output))
    assert await flow.result(timeout_seconds=30) == 3
    await eventually(lambda: bool(spans.all("process total")))
    fetches, joined, sent = spans.all("create fetch"), spans.one("create total"), spans.one("send")
    assert {link.context.span_id for link in joined.links} == {number(span) for span in fetches}
    assert {parent(span) for span in (*fetches, joined)} == {number(sent)}
    assert parent(spans.one("process total")) == number(joined)
    assert {parent(span) for span in spans.all("process fetch")} == {number(span) for span in fetches}
    assert joined.attributes is not None
    assert joined.attributes["shiftwork.flow"] == flow.id


async def test_what_took_too_long_has_failed(stage: Stage, spans: Spans) -> None:
    app = stage.app()

    @app.task(max_retries=0, timeout_seconds=5)
    async def work() -> None:
        await asyncio.Event().wait()

    await app.start()
    await work.enqueue()
    await until_idle()
    await stage.clock.advance(6)
    run = spans.one("process work")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes is not None
    assert run.attributes["error.type"] == "TimeoutError"


async def test_a_schedule_begins_traces_of_its_own(stage: Stage, spans: Spans) -> None:
    app = stage.app()

    async def tick() -> None: ...

    app.register_worker("tick", tick, interval_seconds=60)
    with own_tracer().start_as_current_span("who starts it"):
        await app.start()
    await until_idle()
    await stage.clock.advance(60)
    runs = spans.all("process tick")
    assert [parent(run) for run in runs] == [None, None]
    assert len({run.context.trace_id for run in runs if run.context}) == 2


async def test_many_at_once_are_sent_in_one_span(stage: Stage, spans: Spans) -> None:
    app = stage.app()

    @app.task
    async def work(n: int) -> None: ...

    await app.enqueue_many([work.call(n) for n in range(3)])
    sent = spans.one("send work")
    assert sent.attributes is not None
    assert sent.attributes["messaging.batch.message_count"] == 3


async def test_state_of_a_vendor_travels_too(stage: Stage, spans: Spans) -> None:
    app = stage.app()
    seen: list[str] = []

    @app.task
    async def work() -> None:
        seen.append(trace.get_current_span().get_span_context().trace_state.to_header())

    state = trace.TraceState([("vendor", "a b"), ("other", "1")])
    outside = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(1), trace_state=state)
    with trace.use_span(trace.NonRecordingSpan(outside)):
        await work.enqueue()
    await app.start()
    await until_idle()
    assert seen == ["vendor=a b,other=1"]


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
async def test_a_tracer_that_fails_harms_no_job(
    stage: Stage, spans: Spans, monkeypatch: pytest.MonkeyPatch, tolerated: list[str], error: type[BaseException]
) -> None:
    tolerated.append("could not be traced")
    app = stage.app()

    @app.task
    async def work() -> None: ...

    job = await work.enqueue()

    def broken() -> None:
        raise error

    monkeypatch.setattr(trace, "get_tracer_provider", broken)
    await app.start()
    await until_idle()
    assert (await job.refresh()).status is JobStatus.COMPLETED


def test_one_trace_through_a_process_of_its_own(tmp_path: Path) -> None:
    store, file = f"sqlite:///{tmp_path / 'shiftwork.db'}", tmp_path / "spans"
    environment = os.environ | {"MILL_STORE": store, "SPANS": str(file)}
    subprocess.run([sys.executable, "traced.py"], cwd=PROGRAMS, env=environment, check=True, timeout=90)
    spans = [json.loads(line) for line in file.read_text().splitlines()]
    named: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        named.setdefault(span["name"], []).append(span)
    (morning,) = named["morning"]
    assert {span["trace"] for span in spans} == {morning["trace"]}
    assert [span["parent"] for span in named["send crush"]] == [morning["id"]] * 2
    assert {span["parent"] for span in named["process crush"]} == {span["id"] for span in named["send crush"]}
    assert {span["parent"] for span in named["swing"]} == {span["id"] for span in named["process crush"]}
    assert morning["pid"] not in {span["pid"] for span in named["process crush"]}
    assert sorted(span["status"] for span in named["process crush"]) == ["ERROR", "UNSET"]


async def test_without_a_provider_there_are_no_spans_but_a_foreign_trace_is_passed_on(stage: Stage) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    app, seen = stage.app(), {}

    @app.task
    async def inner() -> None:
        seen["inner"] = trace.get_current_span().get_span_context().trace_id

    @app.task
    async def outer() -> None:
        seen["outer"] = trace.get_current_span().get_span_context().trace_id
        await inner.enqueue()

    await app.start()
    own = await outer.enqueue()
    await until_idle()
    assert own.record.trace is None
    assert seen == {"outer": 0, "inner": 0}
    with continuing("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None):
        await outer.enqueue()
    await until_idle()
    assert {f"{number:x}" for number in seen.values()} == {"af7651916cd43dd8448eb211c80319c"}


def test_without_a_provider_a_run_costs_no_span() -> None:
    job = Claimed(id="1", worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=0.0)
    assert processing(job) is None


UNTRACED = """
import asyncio, sys
{first}
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("memory://")

@app.task
async def double(n: int) -> int:
    return 2 * n

async def main():
    await app.start()
    job = await double.enqueue(21)
    print(await job.result(timeout_seconds=30), job.record.trace)
    await app.stop()

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry.")])
"""


@pytest.mark.parametrize("first", ['sys.modules["opentelemetry"] = None', ""], ids=["not there", "not used"])
def test_without_tracing_nothing_is_imported(first: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNTRACED.format(first=first)], text=True, capture_output=True, check=True, timeout=50
    )
    assert ended.stdout == "42 None\n[]\n"
