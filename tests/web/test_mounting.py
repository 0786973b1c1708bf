"""`app.asgi()` inside other applications, and below a path."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount

from shiftwork import WorkerOrchestrator
from shiftwork.web import responses
from shiftwork.web.access import Visitor
from shiftwork.web.responses import Refused
from tests.web.conftest import as_ours, shop


@pytest.fixture
async def app() -> AsyncIterator[WorkerOrchestrator]:
    here = shop()
    await here.control.store.open()
    yield here
    await here.close()


def client(application: Any, peer: str = "127.0.0.1", host: str = "localhost") -> AsyncClient:
    return AsyncClient(transport=ASGITransport(app=as_ours(application), client=(peer, 1)), base_url=f"http://{host}")


@pytest.fixture(autouse=True)
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dashboard that need not be built."""
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the dashboard</title><script src='./assets/index-abc.js'></script>")
    (folder / "assets" / "index-abc.js").write_text("run()")
    monkeypatch.setattr(responses, "DIST", folder)
    return folder


async def first_change(application: Any, path: str) -> bytes:
    """The first that a stream says, from an application that is asked as a server would."""
    headers = [(b"host", b"localhost")]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
    }
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers}
    scope |= {"client": ("127.0.0.1", 1), "server": ("localhost", 80)}
    sent: asyncio.Queue[Any] = asyncio.Queue()
    gone = asyncio.Event()
    asked = False

    async def receive() -> Any:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    answering = asyncio.create_task(as_ours(application)(scope, receive, sent.put))
    async with asyncio.timeout(30):
        begun = await sent.get()
        assert dict(begun["headers"])[b"content-type"].startswith(b"text/event-stream")
        said: bytes = (await sent.get())["body"]
        gone.set()
        await answering
    return said


async def everything_is_there(application: Any, prefix: str) -> None:
    """The page, its script, the API, a change and the stream, all below a path."""
    async with client(application) as browser:
        assert (await browser.get(prefix)).headers["location"].endswith(f"{prefix}/")
        page = await browser.get(f"{prefix}/")
        assert "the dashboard" in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert (await browser.get(f"{prefix}/assets/index-abc.js")).text == "run()"
        assert (await browser.get(f"{prefix}/livez")).text == "alive\n"
        assert (await browser.get(f"{prefix}/api/v1/me")).json()["name"] == "loopback"
        assert (await browser.get(f"{prefix}/api/v1/nothing")).headers["content-type"] == "application/problem+json"
        body = {"worker": "resize", "payload": {"path": "a"}, "job_id": "orders/17"}
        assert (await browser.post(f"{prefix}/api/v1/jobs", json=body)).json()["created"] is True
        assert (await browser.get(f"{prefix}/api/v1/jobs/orders%2F17")).json()["id"] == "orders/17"
    assert b"event: change" in await first_change(application, f"{prefix}/api/v1/live")


async def test_it_is_mounted_in_starlette_below_a_path(app: WorkerOrchestrator) -> None:
    inside = app.asgi(trust_loopback=True)
    await everything_is_there(Starlette(routes=[Mount("/ops/shiftwork", app=inside)]), "/ops/shiftwork")
    await inside.close()


async def test_it_is_mounted_in_fastapi_beside_its_own_routes_and_lives_as_long() -> None:
    orchestrator = shop()
    inside = orchestrator.asgi(trust_loopback=True)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await orchestrator.start()
        yield
        await inside.close()
        await orchestrator.stop()

    api = FastAPI(lifespan=lifespan)

    @api.get("/orders/{number}")
    def order(number: int) -> dict[str, int]:
        return {"number": number}

    api.mount("/ops", inside)
    async with api.router.lifespan_context(api):
        await everything_is_there(api, "/ops")
        async with client(api) as browser:
            assert (await browser.get("/orders/7")).json() == {"number": 7}
            assert (await browser.get("/orders/seven")).status_code == 422  # its own errors stay its own
            assert list((await browser.get("/openapi.json")).json()["paths"]) == ["/orders/{number}"]
        job = await orchestrator.get_job("orders/17")
        assert await job.result(30) == "a at 100"
        left = {task.get_name() for task in asyncio.all_tasks()}
        assert "shiftwork history" in left
    assert "shiftwork history" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_the_cookie_is_kept_to_the_path_it_was_set_below(app: WorkerOrchestrator) -> None:
    _, token = await app.control.tokens.create("ada", "read")
    inside = app.asgi(trust_loopback=True)
    async with client(Starlette(routes=[Mount("/ops", app=inside)]), "10.0.0.1", "shop.example") as browser:
        response = await browser.post("/ops/api/v1/login", json={"token": token})
        assert "Path=/ops/;" in response.headers["set-cookie"]
        assert (await browser.get("/ops/api/v1/me")).json()["name"] == "ada"
    await inside.close()


async def test_it_works_beside_django(app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.urls import path

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="x", DATABASES={})
    settings.ROOT_URLCONF = type("Urls", (), {"urlpatterns": [path("hello/", lambda _: HttpResponse("hello"))]})
    django = get_asgi_application()
    inside = app.asgi(trust_loopback=True)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        prefix = "/shiftwork"
        if scope["type"] == "http" and f"{scope['path']}/".startswith(f"{prefix}/"):
            await inside(dict(scope, root_path=prefix), receive, send)
        else:
            await django(scope, receive, send)

    async with client(application) as browser:
        assert (await browser.get("/hello/")).text == "hello"
        assert (await browser.get("/shiftworky/")).status_code == 404  # Django's: it only begins alike
    await everything_is_there(application, "/shiftwork")
    await inside.close()


async def test_the_host_application_names_the_visitor(app: WorkerOrchestrator) -> None:
    def identify(scope: Any) -> Visitor | None:
        user = dict(scope["headers"]).get(b"x-user")
        return None if user is None else Visitor(name=user.decode(), role="operate", via="host")

    inside = app.asgi(identify=identify)
    async with client(inside) as browser:
        assert (await browser.get("/api/v1/me")).status_code == 401
        headers = {"X-User": "ada"}
        assert (await browser.get("/api/v1/me", headers=headers)).json()["name"] == "ada"
        foreign = headers | {"Origin": "https://evil.example"}
        assert (await browser.post("/api/v1/pools/images/pause", json={}, headers=foreign)).status_code == 403
        await browser.post("/api/v1/pools/images/pause", json={}, headers=headers)
    assert (await app.events())[-1].data["by"] == "ada"
    await inside.close()


async def test_the_application_that_mounts_it_may_look_up_the_visitor_in_a_database(app: WorkerOrchestrator) -> None:
    async def identify(_scope: Any) -> Visitor | None:
        await asyncio.sleep(0)
        return Visitor(name="ada", role="read", via="host")

    inside = app.asgi(identify=identify)
    async with client(inside) as browser:
        assert (await browser.get("/api/v1/me")).json()["name"] == "ada"
    await inside.close()


async def test_the_dashboards_files_are_served_and_nothing_else(app: WorkerOrchestrator, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hunter2")
    inside = app.asgi(trust_loopback=True)
    async with client(inside) as browser:
        page = await browser.get("/")
        assert ("the dashboard" in page.text, page.headers["cache-control"]) == (True, "no-cache")
        script = await browser.get("/assets/index-abc.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert "immutable" in script.headers["cache-control"]
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "/secret.txt"):
            assert (await browser.get(path)).status_code == 404
        assert (await browser.post("/", json={})).status_code == 405
    for path in ("../secret.txt", "assets/../../secret.txt", str(tmp_path / "secret.txt")):
        with pytest.raises(Refused):
            responses.asset(path)
    await inside.close()


async def test_without_its_files_a_page_says_how_to_build_them(
    app: WorkerOrchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "DIST", tmp_path / "none")
    inside = app.asgi(trust_loopback=True)
    async with client(inside) as browser:
        assert "hatch_build.py" in (await browser.get("/")).text
    await inside.close()
