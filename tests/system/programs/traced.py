"""An app that traces: a job in a process of its own, and one that fails there. Every span ends up in a file."""

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from shiftwork import JobFailedError, WorkerOrchestrator


class Lines(SpanExporter):
    """Writes what a test wants to know of each span as a line."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append them."""
        with Path(os.environ["SPANS"]).open("a") as file:
            file.writelines(json.dumps(_told(span)) + "\n" for span in spans)
        return SpanExportResult.SUCCESS


def _told(span: ReadableSpan) -> dict[str, Any]:
    return {
        "name": span.name,
        "trace": span.context.trace_id,
        "id": span.context.span_id,
        "parent": span.parent.span_id if span.parent else None,
        "pid": os.getpid(),
        "status": span.status.status_code.name,
        "attributes": dict(span.attributes or {}),
    }


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)

app = WorkerOrchestrator(os.environ["MILL_STORE"], enable_health_checks=False)
app.register_pool("apart", kind="process", max_workers=1)


@app.task(pool="apart", max_retries=0)
def crush(stone: str) -> None:
    """The user's own span, and then trouble, if it is to be."""
    with trace.get_tracer("quarry").start_as_current_span("swing"):
        if stone == "granite":
            raise ValueError(stone)


async def main() -> None:
    """Enqueue both within one span."""
    await app.start()
    with trace.get_tracer("quarry").start_as_current_span("morning"):
        jobs = [await crush.enqueue(stone) for stone in ("chalk", "granite")]
    for job in jobs:
        with suppress(JobFailedError):
            await job.result(timeout_seconds=30)
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
