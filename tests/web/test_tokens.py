"""Tokens over HTTP: none gives more rights than its maker has. And the doctor."""

from math import inf
from typing import Any

from httpx2 import Response

from shiftwork.control.access.tokens import TokenCheck, Tokens
from shiftwork.core.model.doc_types import Token
from tests.web.conftest import Web

OUTSIDE: dict[str, Any] = {"peer": "203.0.113.9", "host": "shop.example"}


async def _make(web: Web, token: str, **body: Any) -> Response:
    async with web.client(**OUTSIDE, headers={"Authorization": f"Bearer {token}"}) as client:
        return await client.post("tokens", json=body)


async def test_tokens_are_made_listed_and_revoked(web: Web) -> None:
    ci = await web.token("ci", "operate")
    assert (await _make(web, ci, name="wall", role="read")).status_code == 200
    assert (await web.post("tokens", {"name": "desk", "role": "read", "valid_seconds": 60})).status_code == 200
    listed = (await web.get("tokens"))["tokens"]
    assert [(one["name"], one["role"]) for one in listed] == [("ci", "operate"), ("wall", "read"), ("desk", "read")]
    assert "sw_" not in str(listed)
    assert (await web.post("tokens", {"name": "ci", "role": "read"})).status_code == 409
    assert (await web.post("tokens/wall/revoke")).json()["revoked_at"] is not None
    assert (await web.post("tokens/wall/revoke")).status_code == 404
    assert (await web.post("tokens", {"name": "loopback", "role": "read"})).status_code == 400
    told = [(event["name"], event["data"]["by"]) for event in (await web.get("events"))["events"]]
    assert told[1:] == [("token.created", "ci"), ("token.created", "loopback"), ("token.revoked", "loopback")]


async def test_a_token_makes_no_equal_and_none_that_outlives_it(web: Web) -> None:
    tokens = web.app.control.tokens
    own, operate = await tokens.create("ci", "operate", valid_seconds=3_600)
    _, read = await tokens.create("wall", "read")
    refused = await _make(web, operate, name="more", role="operate")
    assert (refused.status_code, "only tokens that read" in refused.json()["detail"]) == (403, True)
    assert (await _make(web, read, name="more", role="read")).status_code == 403
    assert own.expires_at is not None
    for name, asked in (("short", 60), ("long", 86_400), ("endless", None)):
        made = await _make(web, operate, name=name, role="read", valid_seconds=asked)
        assert made.status_code == 200, made.text
    ends = {one.name: one.expires_at or inf for one in await tokens.all()}
    assert max(ends[name] for name in ("short", "long", "endless")) <= own.expires_at + 1e-3
    assert ends["short"] < own.expires_at - 3_000


async def test_a_token_counts_at_once_where_it_was_made_and_no_more_where_it_was_revoked(web: Web) -> None:
    operate = await web.token("ci", "operate")
    made = (await _make(web, operate, name="wall", role="read")).json()
    async with web.client(**OUTSIDE, headers={"Authorization": f"Bearer {made['token']}"}) as client:
        assert (await client.get("me")).status_code == 200
        await web.post("tokens/wall/revoke")
        assert (await client.get("me")).status_code == 401


async def test_a_token_made_elsewhere_is_soon_known_and_strangers_do_not_keep_the_store_busy(web: Web) -> None:
    clock, looks = [1_000.0], 0
    control = web.app.control
    tokens = Tokens(control.store, lambda: clock[0], audit=control.audit)
    known = tokens.all

    async def counted() -> list[Token]:
        nonlocal looks
        looks += 1
        return await known()

    tokens.all = counted  # type: ignore[method-assign]
    door = TokenCheck(tokens, lambda: clock[0])
    for _ in range(100):
        assert await door.admit("sw_0000_none") is None
    assert looks == 1
    _, shown = await Tokens(control.store, lambda: clock[0], audit=control.audit).create("wall", "read")
    clock[0] += 0.3
    assert await door.admit(shown) is not None
    for _ in range(100):
        assert await door.admit(shown) is not None
    assert looks == 2


async def test_the_doctor_reports_what_the_command_does(web: Web) -> None:
    told = (await web.post("doctor")).json()
    assert told["findings"]["store"] == "memory"
    assert {"shiftwork", "latency", "clock"} <= told["findings"].keys()
    overview = await web.get("overview")
    assert told["status"] == overview["status"] == "failing"  # nobody serves this shop
    assert {one["code"] for one in told["problems"]} == {one["code"] for one in overview["problems"]}
