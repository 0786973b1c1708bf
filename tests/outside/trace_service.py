"""The service that W3C's Trace Context harness asks for: every call that it wants is a job.

A request names URLs. Each becomes a `POST /jobs` to our HTTP API with the headers of the request as they are, and the
job calls the URL with the trace context that it runs in. `python -m tests.outside.trace_service` prints its address.
"""

import asyncio
import json
import socket
import urllib.request
from collections.abc import Iterator, MutableMapping
from typing import Any, Final

import uvicorn
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider

from shiftwork import WorkerOrchestrator
from shiftwork.web.access import Visitor

CALL_SECONDS: Final = 10
OWN: Final = {b"content-length", b"content-type", b"transfer-encoding"}
"""The headers that belong to the body, which is ours."""

app = WorkerOrchestrator("memory://")
app.register_pool("calls", kind="thread", min_workers=4, max_workers=4)


@app.task(pool="calls", max_retries=0)
def call(url: str, arguments: list[Any]) -> int:
    """Post to a URL, in the trace of this run."""
    headers = {"Content-Type": "application/json"}
    propagate.inject(headers)
    request = urllib.request.Request(url, json.dumps(arguments).encode(), headers)
    with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
        return int(response.status)


def tester(_: Any) -> Visitor:
    """Let every visitor in."""
    return Visitor(name="harness", role="operate", via="host")


api = app.asgi(identify=tester)


async def service(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Answer a request of the harness once all calls that it asks for are made."""
    calls = json.loads(b"".join([part async for part in _body(receive)]))
    for wanted in calls:
        job = await app.get_job(await _enqueued(scope, wanted))
        await job.ended(CALL_SECONDS)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b"[]"})


async def _body(receive: Any) -> Any:
    more = True
    while more:
        message = await receive()
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _enqueued(scope: MutableMapping[str, Any], wanted: dict[str, Any]) -> str:
    """Send a request with the same headers to our API, and return the id of the job."""
    payload = {"url": wanted["url"], "arguments": wanted.get("arguments") or []}
    body = json.dumps({"worker": "call", "payload": payload}).encode()
    headers = [(name, value) for name, value in scope["headers"] if name not in OWN]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    parts: list[bytes] = []
    told: Iterator[dict[str, Any]] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(told)

    async def send(message: MutableMapping[str, Any]) -> None:
        parts.append(message.get("body", b""))

    path = "/api/v1/jobs"
    await api({**scope, "path": path, "raw_path": path.encode(), "headers": headers}, receive, send)
    return str(json.loads(b"".join(parts))["job"]["id"])


async def main() -> None:
    """Serve until the process is ended."""
    trace.set_tracer_provider(TracerProvider())
    await app.start()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/test", flush=True)
        await uvicorn.Server(uvicorn.Config(service, log_level="error", lifespan="off")).serve([listening])
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
