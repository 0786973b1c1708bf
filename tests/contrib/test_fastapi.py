"""FastAPI and Starlette: one call opens, closes and runs an orchestrator, and shows its dashboard to who logged in."""

import asyncio
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from httpx2 import ASGITransport, AsyncClient
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse

from shiftwork import ConfigurationError, Context, Job, ShiftworkError, UnknownJobError, WorkerOrchestrator
from shiftwork.contrib.fastapi import Visitor, attach, orchestrator
from tests.polling import wait_until
from tests.ports import free_port
from tests.web.conftest import as_ours


def client(web: Any) -> AsyncClient:
    """A client on this machine, whose connection is our own user's."""
    return AsyncClient(transport=ASGITransport(app=as_ours(web), client=("127.0.0.1", 1)), base_url="http://localhost")


class Order(BaseModel):
    number: int
    job: Job[int]


def shop(**options: Any) -> tuple[WorkerOrchestrator, FastAPI]:
    app = WorkerOrchestrator("memory://")
    web = FastAPI()
    attach(web, app, **options)
    Orchestrator = Annotated[WorkerOrchestrator, Depends(orchestrator)]  # noqa: N806 - a type

    @app.task
    async def pack(ctx: Context, card: str) -> int:
        ctx.progress(1, 2, "folding")
        return 7

    @web.post("/orders")
    async def order() -> Order:
        return Order(number=7, job=await pack.enqueue(card="4242-4242"))

    @web.get("/jobs/{job_id}")
    async def typed(job_id: str, app: Orchestrator) -> Job[int]:
        return await app.get_job(job_id)

    @web.get("/plain/{job_id}")
    async def untyped(job_id: str, app: Orchestrator):  # type: ignore[no-untyped-def]  # noqa: ANN202
        return {"job": await app.get_job(job_id)}

    return app, web


async def test_jobs_are_run_while_it_lives_and_encoded_in_responses() -> None:
    app, web = shop(run=True)
    async with web.router.lifespan_context(web), client(web) as browser:
        body = (await browser.post("/orders")).json()
        job_id = body["job"]["id"]
        assert (body["number"], body["job"]["worker"], body["job"]["status"]) == (7, "pack", "queued")
        await (await app.get_job(job_id)).ended(30)
        response = await browser.get(f"/jobs/{job_id}")
        told = response.json()
        assert (told["status"], told["attempt"]) == ("completed", 1)
        assert (told["progress"]["done"], told["progress"]["message"]) == (2, "folding")
        assert (await browser.get(f"/plain/{job_id}")).json() == {"job": told}
        assert "4242-4242" not in response.text
        schemas = (await browser.get("/openapi.json")).json()["components"]["schemas"]
        assert {"JobSummary", "JobProgress", "Order"} <= schemas.keys()
        unknown = await browser.get("/jobs/nonsense")
        assert (unknown.status_code, "no job has the id 'nonsense'" in unknown.json()["detail"]) == (404, True)
    assert asyncio.all_tasks() == {asyncio.current_task()}, "it is stopped"


def plainly(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"ours": type(error).__name__}, 410)


async def asynchronously(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"ours": type(error).__name__}, 410)


@pytest.mark.parametrize("handler", [plainly, asynchronously])
@pytest.mark.parametrize("kind", [ShiftworkError, UnknownJobError])
async def test_an_application_handles_our_errors_itself(kind: type[Exception], handler: Any) -> None:
    _, web = shop()
    web.add_exception_handler(kind, handler)
    async with web.router.lifespan_context(web), client(web) as browser:
        unknown = await browser.get("/jobs/nonsense")
    assert (unknown.status_code, unknown.json()) == (410, {"ours": "UnknownJobError"})


async def test_roles_of_the_applications_log_in_are_checked_once_the_visitor_is_known() -> None:
    async def identify(request: Request) -> Visitor | None:
        await asyncio.sleep(0)
        user = request.headers.get("x-user")
        return None if user is None else Visitor(name=user, role="operate" if user == "ada" else "read", via="host")

    app, web = shop(dashboard="/ops", identify=identify)
    async with web.router.lifespan_context(web), client(web) as browser:
        assert (await browser.get("/ops/api/v1/me")).status_code == 401
        assert (await browser.get("/ops/api/v1/me", headers={"X-User": "bob"})).json()["name"] == "bob"
        pause = "/ops/api/v1/pools/default/pause"
        assert (await browser.post(pause, json={}, headers={"X-User": "bob"})).status_code == 403
        assert (await browser.post(pause, json={}, headers={"X-User": "ada"})).status_code == 200
        assert (await app.events())[-1].data["by"] == "ada"
        assert "shiftwork history" in {task.get_name() for task in asyncio.all_tasks()}
    assert "shiftwork history" not in {task.get_name() for task in asyncio.all_tasks()}
    async with web.router.lifespan_context(web), client(web) as browser:  # a second life, as in tests
        assert (await browser.get("/ops/api/v1/me", headers={"X-User": "bob"})).status_code == 200
        assert "shiftwork history" in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_store_that_is_away_does_not_keep_it_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    web = Starlette()
    attach(web, WorkerOrchestrator(f"redis://127.0.0.1:{free_port()}/0"))
    async with web.router.lifespan_context(web):
        pass
    assert "the store is not available; the next request tries again" in caplog.text


def test_what_cannot_be() -> None:
    web, app = Starlette(), WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match="path below the root"):
        attach(web, app, dashboard="ops")
    with pytest.raises(ConfigurationError, match="another orchestrator already"):
        attach(web, WorkerOrchestrator("memory://"))


PROGRAM = """
from fastapi import FastAPI
from shiftwork import WorkerOrchestrator
from shiftwork.contrib.fastapi import attach

web = FastAPI()
attach(web, WorkerOrchestrator("memory://"), dashboard="/ops", trust_loopback=True)
"""


def test_an_open_dashboard_does_not_hold_up_the_servers_stop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "shop:web", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as output, subprocess.Popen(command, cwd=tmp_path, stderr=output, stdout=output) as server:
        try:
            wait_until(lambda: "Uvicorn running on" in log.read_text())
            page = HTTPConnection("127.0.0.1", port, timeout=60)
            page.request("GET", "/ops/api/v1/live")
            answer = page.getresponse()
            assert (answer.status, bool(answer.readline())) == (200, True)
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) in {0, -signal.SIGTERM}
            page.close()
        finally:
            server.kill()
    assert "Finished server process" in log.read_text()
