"""What a client without a token learns, and how an application names its visitors."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shiftwork.errors import StoreUnavailableError
from shiftwork.web.access import Visitor
from shiftwork.web.visitor_limits import Rate
from tests.web.conftest import JSON, Web, shop

OUTSIDE: dict[str, Any] = {"peer": "203.0.113.9", "host": "shop.example"}
ADMIN = Visitor(name="ada", role="admin", via="host")  # type: ignore[arg-type]


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    here = Web(shop())
    yield here
    await here.site.close()
    await here.app.close()


@pytest.mark.parametrize(
    "asked",
    [
        ("GET", "http://shop.example/readyz", {}, None),
        ("POST", "login", JSON, b'{"token": "sw_1_2"}'),
        ("POST", "logout", JSON | {"Cookie": "shiftwork_session=1_2"}, b"{}"),
        ("GET", "me", {"Authorization": "Bearer sw_1_2"}, None),
        ("GET", "me", {"Cookie": "shiftwork_session=1_2"}, None),
        ("GET", "http://shop.example/metrics", {"Authorization": "Bearer sw_1_2"}, None),
    ],
)
async def test_while_the_store_is_away_strangers_do_not_learn_where_it_is(
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: tuple[str, str, dict[str, str], bytes | None],
) -> None:
    method, path, headers, body = asked

    async def away() -> None:
        message = "postgresql://shop@db.internal:5432/shop cannot be reached"
        raise StoreUnavailableError(message)

    monkeypatch.setattr(web.app.control.store, "open", away)
    async with web.client(**OUTSIDE) as client:
        for _ in range(3):
            answer = await client.request(method, path, headers=headers, content=body)
            assert answer.status_code == 503
            assert "internal" not in answer.text
    (line,) = [record.getMessage() for record in caplog.records if "db.internal" in record.getMessage()]
    assert line.startswith("requests are refused, because the store is not available: postgresql://shop@db.internal")


async def test_a_valid_token_signs_in_while_others_behind_the_same_proxy_guess() -> None:
    web = Web(shop(), rate=Rate(0.001, 3))
    token = await web.token("ada", "read")
    async with web.client(**OUTSIDE) as client:
        guesses = [(await client.post("login", json={"token": "sw_1_2"})).status_code for _ in range(5)]
        assert guesses == [401, 401, 401, 429, 429]
        assert (await client.post("login", json={"token": token})).status_code == 200
    await web.site.close()
    await web.app.close()


async def test_an_application_may_name_visitors_asynchronously() -> None:
    async def identify(scope: Any) -> Visitor | None:
        user = dict(scope["headers"]).get(b"x-user")
        return None if user is None else Visitor(name=user.decode(), role="read", via="host")

    web = Web(shop(), identify=identify)
    async with web.client(**OUTSIDE) as client:
        assert (await client.get("me", headers={"X-User": "ada"})).json()["name"] == "ada"
        assert (await client.get("me")).status_code == 401
    await web.site.close()
    await web.app.close()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (ADMIN, "returned the role 'admin' for 'ada'; a role is read or operate"),
        ("ada", "returned str, not a Visitor or None"),
    ],
)
async def test_a_role_that_does_not_exist_is_an_error_that_says_so(named: Any, words: str) -> None:
    web = Web(shop(), identify=lambda _: named)
    async with web.client(**OUTSIDE) as client:
        answer = await client.get("me")
        assert (answer.status_code, answer.json()["detail"]) == (500, f"the identify function {words}")
    await web.site.close()
    await web.app.close()
