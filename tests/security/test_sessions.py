"""What a browser keeps is not the token: it expires, and ends with the log-out and with the token."""

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from httpx2 import AsyncClient

from shiftwork.control.access.tokens import MOST_SESSIONS, SESSION_SECONDS, TokenCheck
from tests.web.conftest import Web, shop

OUTSIDE: dict[str, Any] = {"peer": "203.0.113.9", "host": "shop.example"}


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    here = Web(shop())
    yield here
    await here.site.close()
    await here.app.close()


async def log_in(web: Web, token: str, scheme: Literal["http", "https"] = "http") -> tuple[AsyncClient, str]:
    """A browser that is logged in, and its cookie."""
    client = web.client(**OUTSIDE, scheme=scheme)
    response = await client.post("login", json={"token": token})
    assert response.status_code == 200, response.text
    return client, response.headers["set-cookie"]


async def status(web: Web, **headers: str) -> int:
    async with web.client(**OUTSIDE) as client:
        return (await client.get("me", headers=headers)).status_code


async def test_the_cookie_is_not_the_token_and_of_no_use_as_one(web: Web) -> None:
    token = await web.token("ada", "operate")
    _, cookie = await log_in(web, token)
    value = cookie.partition("=")[2].partition(";")[0]
    assert token.split("_", 2)[2] not in cookie
    assert await status(web, Cookie=f"shiftwork_session={value}") == 200
    assert await status(web, Cookie=f"shiftwork_session={token}") == 401
    assert await status(web, Authorization=f"Bearer {value}") == 401
    assert await status(web, Authorization=f"Bearer sw_{value}") == 401
    stored = b"".join(doc.body for doc in await (await web.app.control.store.open()).docs())
    assert value.partition("_")[2].encode() not in stored


async def test_logging_out_ends_the_session_and_no_other(web: Web) -> None:
    token = await web.token("ada", "read")
    one, cookie = await log_in(web, token)
    other, _ = await log_in(web, token)
    await one.post("logout", json={})
    assert await status(web, Cookie=cookie.partition(";")[0]) == 401
    assert (await other.get("me")).status_code == 200
    assert await status(web, Authorization=f"Bearer {token}") == 200


async def test_revoking_the_token_ends_its_sessions(web: Web) -> None:
    client, _ = await log_in(web, await web.token("ada", "read"))
    await web.app.control.tokens.revoke("ada")
    web.site.tokens_changed()
    assert (await client.get("me")).status_code == 401


async def test_a_session_expires_and_the_oldest_makes_place(web: Web) -> None:
    tokens, now = web.app.control.tokens, web.app.control.now
    made, _ = await tokens.create("ada", "read")
    oldest = await tokens.log_in(made.id)
    others = [await tokens.log_in(made.id) for _ in range(MOST_SESSIONS)]
    check = TokenCheck(tokens, now, seconds=0.0)
    assert await check.admit_session(oldest) is None
    assert all([await check.admit_session(one) for one in others])
    late = TokenCheck(tokens, lambda: now() + SESSION_SECONDS + 1, seconds=0.0)
    assert await late.admit_session(others[-1]) is None


async def test_a_session_that_began_elsewhere_is_known_at_once(web: Web) -> None:
    """Several processes may serve the same store behind a proxy."""
    made, shown = await web.app.control.tokens.create("ada", "read")
    check = TokenCheck(web.app.control.tokens, web.app.control.now, seconds=0.0)
    assert await check.admit(shown) is not None
    assert await check.admit_session(await web.app.control.tokens.log_in(made.id)) is not None


async def test_under_tls_no_other_host_can_set_the_cookie(web: Web) -> None:
    client, cookie = await log_in(web, await web.token("ada", "read"), "https")
    name, _, attributes = cookie.partition("=")
    assert name == "__Host-shiftwork_session"
    parts = {part.strip().lower() for part in attributes.split(";")[1:]}
    assert {"path=/", "secure", "httponly", "samesite=strict"} <= parts
    assert (await client.get("me")).status_code == 200
    await client.post("logout", json={})
    assert (await client.get("me")).status_code == 401
