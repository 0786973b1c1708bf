"""`app.asgi()` inside other applications, and below a path."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.web.conftest import shop
from windlass import WorkerOrchestrator
from windlass.web import assets
from windlass.web.access import Visitor
from windlass.web.problems import Refused


@pytest.fixture
async def app() -> AsyncIterator[WorkerOrchestrator]:
    here = shop()
    await here.store()
    yield here
    await here.close()


def client(application: Any, peer: str = "127.0.0.1", host: str = "localhost") -> AsyncClient:
    return AsyncClient(transport=ASGITransport(app=application, client=(peer, 1)), base_url=f"http://{host}")


async def test_it_is_mounted_in_starlette_below_a_path(app: WorkerOrchestrator) -> None:
    inside = app.asgi()
    async with client(Starlette(routes=[Mount("/ops/windlass", app=inside)])) as browser:
        assert (await browser.get("/ops/windlass/api/v1/me")).json()["name"] == "loopback"
        assert "windlass" in (await browser.get("/ops/windlass/")).text
        assert (await browser.get("/ops/windlass")).headers["location"].endswith("/ops/windlass/")
        assert (await browser.get("/ops/windlass/livez")).text == "alive\n"
        paused = await browser.post("/ops/windlass/api/v1/pools/images/pause", json={})
        assert paused.json()["paused"] is True
    await inside.site.close()


async def test_the_cookie_is_kept_to_the_path_it_was_set_below(app: WorkerOrchestrator) -> None:
    from windlass.tokens import Tokens

    _, token = await Tokens(await app.store(), app.now).create("ada", "read")
    inside = app.asgi()
    async with client(Starlette(routes=[Mount("/ops", app=inside)]), "10.0.0.1", "shop.example") as browser:
        response = await browser.post("/ops/api/v1/login", json={"token": token})
        assert "Path=/ops/;" in response.headers["set-cookie"]
        assert (await browser.get("/ops/api/v1/me")).json()["name"] == "ada"
    await inside.site.close()


async def test_it_works_beside_django(app: WorkerOrchestrator) -> None:
    os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.urls import path

    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="x", DATABASES={})
    settings.ROOT_URLCONF = type("Urls", (), {"urlpatterns": [path("hello/", lambda _: HttpResponse("hello"))]})
    django = get_asgi_application()
    inside = app.asgi()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        prefix = "/windlass"
        if scope["type"] == "http" and scope["path"].startswith(prefix):
            await inside(dict(scope, root_path=prefix), receive, send)
        else:
            await django(scope, receive, send)

    async with client(application) as browser:
        assert (await browser.get("/hello/")).text == "hello"
        assert (await browser.get("/windlass/api/v1/pools")).json()["pools"]
    await inside.site.close()


async def test_the_host_application_says_who_asks(app: WorkerOrchestrator) -> None:
    def identify(scope: Any) -> Visitor | None:
        user = dict(scope["headers"]).get(b"x-user")
        return None if user is None else Visitor(name=user.decode(), role="operate", via="host")

    inside = app.asgi(identify=identify, trust_loopback=False)
    async with client(inside) as browser:
        assert (await browser.get("/api/v1/me")).status_code == 401
        headers = {"X-User": "ada"}
        assert (await browser.get("/api/v1/me", headers=headers)).json()["name"] == "ada"
        foreign = headers | {"Origin": "https://evil.example"}
        assert (await browser.post("/api/v1/pools/images/pause", json={}, headers=foreign)).status_code == 403
        await browser.post("/api/v1/pools/images/pause", json={}, headers=headers)
    assert (await app.events())[-1].data["by"] == "ada"
    await inside.site.close()


async def test_the_dashboards_files_are_served_and_nothing_else(
    app: WorkerOrchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text("<title>the dashboard</title>")
    (dist / "assets" / "index-abc.js").write_text("run()")
    (tmp_path / "secret.txt").write_text("hunter2")
    monkeypatch.setattr(assets, "DIST", dist)
    inside = app.asgi()
    async with client(inside) as browser:
        page = await browser.get("/")
        assert (page.text, page.headers["cache-control"]) == ("<title>the dashboard</title>", "no-cache")
        script = await browser.get("/assets/index-abc.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert "immutable" in script.headers["cache-control"]
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "/secret.txt"):
            assert (await browser.get(path)).status_code == 404
        assert (await browser.post("/", json={})).status_code == 405
    for path in ("../secret.txt", "assets/../../secret.txt", str(tmp_path / "secret.txt")):
        with pytest.raises(Refused):
            assets.asset(path)
    await inside.site.close()


async def test_without_its_files_a_page_says_how_to_build_them(
    app: WorkerOrchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "DIST", tmp_path / "none")
    inside = app.asgi()
    async with client(inside) as browser:
        assert "hatch_build.py" in (await browser.get("/")).text
    await inside.site.close()
