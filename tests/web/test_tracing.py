"""A job that is added over HTTP continues the trace of whoever asked."""

import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.web.conftest import Web

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


async def _added(web: Web, **headers: str) -> str | None:
    answer = await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}}, **headers)
    assert answer.status_code == 200, answer.text
    return (await web.app.get_job(answer.json()["job"]["id"])).record.trace


@pytest.mark.parametrize(
    ("headers", "carried"),
    [
        ({"traceparent": PARENT}, PARENT),
        ({"traceparent": PARENT, "tracestate": "shop=a b,bank=1"}, f"{PARENT} shop=a b,bank=1"),
        ({"traceparent": PARENT, "tracestate": "x" * 513}, PARENT),
        ({"traceparent": f"cc-{TRACE}-{SPAN}-01-from-the-future"}, PARENT),
        ({"tracestate": "shop=a"}, None),
        ({"traceparent": f"{PARENT}-more"}, None),
        ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, None),
        ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, None),
        ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, None),
        ({"traceparent": PARENT.upper()}, None),
        ({"traceparent": "nonsense"}, None),
    ],
)
async def test_a_job_carries_the_callers_trace_also_where_nobody_traces(
    web: Web, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], carried: str | None
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert await _added(web, **headers) == carried
    assert await _added(web) is None  # the next one has nothing to do with it


async def test_what_adds_the_job_is_a_span_of_the_callers_trace(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    carried = await _added(web, traceparent=PARENT)
    (sent,) = exporter.get_finished_spans()
    assert sent.parent is not None
    assert sent.context is not None
    assert trace.format_span_id(sent.parent.span_id) == SPAN
    assert carried == f"00-{TRACE}-{trace.format_span_id(sent.context.span_id)}-01"
    with trace.get_tracer("host").start_as_current_span("request") as request:  # a host that traces has read the header
        carried = await _added(web, traceparent=PARENT)
    assert (carried or "")[3:35] == trace.format_trace_id(request.get_span_context().trace_id)
    provider.shutdown()
