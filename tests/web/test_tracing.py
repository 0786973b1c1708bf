"""A job that is added over HTTP continues the trace of its caller."""

import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.web.conftest import Web

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


async def _added(web: Web, *headers: tuple[str, str]) -> str | None:
    async with web.client() as client:
        answer = await client.post("jobs", json={"worker": "resize", "payload": {"path": "a"}}, headers=[*headers])
    assert answer.status_code == 200, answer.text
    return (await web.app.get_job(answer.json()["job"]["id"])).record.trace


@pytest.mark.parametrize(
    ("headers", "carried"),
    [
        ([("traceparent", PARENT)], PARENT),
        ([("TraceParent", f" {PARENT}\t"), ("TRACESTATE", "shop=a b")], f"{PARENT} shop=a b"),
        ([("traceparent", PARENT), ("tracestate", "shop=1"), ("tracestate", "bank=2")], f"{PARENT} shop=1,bank=2"),
        ([("traceparent", PARENT), ("traceparent", PARENT)], None),
        ([("tracestate", "shop=a")], None),
        ([("trace-parent", PARENT)], None),
        ([("traceparent", "nonsense")], None),
    ],
)
async def test_a_job_carries_the_callers_trace_even_without_tracing(
    web: Web, monkeypatch: pytest.MonkeyPatch, headers: list[tuple[str, str]], carried: str | None
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert await _added(web, *headers) == carried
    assert await _added(web) is None  # the next one has nothing to do with it


async def test_what_adds_the_job_is_a_span_of_the_callers_trace(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    carried = await _added(web, ("traceparent", PARENT))
    (sent,) = exporter.get_finished_spans()
    assert sent.parent is not None
    assert sent.context is not None
    assert trace.format_span_id(sent.parent.span_id) == SPAN
    assert carried == f"00-{TRACE}-{trace.format_span_id(sent.context.span_id)}-01"
    with trace.get_tracer("host").start_as_current_span("request") as request:  # a host that traces has read the header
        carried = await _added(web, ("traceparent", PARENT))
    assert (carried or "")[3:35] == trace.format_trace_id(request.get_span_context().trace_id)
    provider.shutdown()
