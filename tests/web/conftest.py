"""A shop with its web, asked without a network."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from httpx2 import ASGITransport, AsyncClient, Response

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.doc_types import Role
from shiftwork.web.access import CONNECTION, OURS
from shiftwork.web.api import Api
from shiftwork.web.site import Site
from shiftwork.web.visitor_limits import Rate

JSON = {"Content-Type": "application/json"}


def shop() -> WorkerOrchestrator:
    """An app of a few workers; none runs unless it is started."""
    app = WorkerOrchestrator("memory://")
    app.register_pool("images", kind="thread", min_workers=1, max_workers=4)

    @app.task(pool="images", max_retries=0)
    def resize(path: str, width: int = 100) -> str:
        if width < 0:
            message = f"width {width} is negative"
            raise ValueError(message)
        return f"{path} at {width}"

    @app.worker(cron="0 3 * * *")
    def fetch() -> None: ...

    @app.worker(cron="0 4 * * *", depends_on=["fetch"], blocks=["sweep"])
    def report() -> None: ...

    @app.worker(cron="0 5 * * *")
    def sweep() -> None: ...

    return app


def as_ours(application: Any) -> Any:
    """The application, asked over a connection of this user: without a network, none has an owner."""

    async def ask(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, "state": {CONNECTION: {OURS: True}}}, receive, send)

    return ask


class Web:
    """The shop's web, and its visitors."""

    def __init__(self, app: WorkerOrchestrator, **options: Any) -> None:
        self.app = app
        defaults: dict[str, Any] = {"rate": Rate(1e6, 1e6), "step_seconds": 1_000.0}
        self.site = Site(app.control, **(defaults | options))
        self.api = Api(self.site)

    def client(
        self,
        peer: str = "127.0.0.1",
        host: str = "127.0.0.1:8421",
        headers: dict[str, str] | None = None,
        scheme: Literal["http", "https"] = "http",
    ) -> AsyncClient:
        """A visitor from this address, under this name."""
        transport = ASGITransport(app=as_ours(self.api), client=(peer, 4242))
        return AsyncClient(transport=transport, base_url=f"{scheme}://{host}/api/v1/", headers=headers)

    async def token(self, name: str, role: Role) -> str:
        """A new token, as its holder shows it."""
        _, shown = await self.app.control.tokens.create(name, role)
        return shown

    async def get(self, path: str, **query: Any) -> Any:
        """Send a request from this machine, and return the response."""
        async with self.client() as client:
            response = await client.get(path, params=query or None)  # none: keep those of the path
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, body: Any = None, **headers: str) -> Response:
        """Change something from this machine."""
        async with self.client() as client:
            return await client.post(path, json={} if body is None else body, headers=headers)


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    """The web of a shop that is not open: its jobs wait."""
    here = Web(shop())
    yield here
    await here.site.close()
    await here.app.close()


@pytest.fixture
async def open_web() -> AsyncIterator[Web]:
    """The web of a shop that is open."""
    here = Web(shop())
    await here.app.start()
    yield here
    await here.site.close()
    await here.app.stop()
