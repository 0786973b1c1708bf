"""Strangers get in nowhere: every route, without a token, with one that may only read, from a foreign page."""

from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import AsyncClient

from shiftwork.errors import ConfigurationError, DuplicateNameError
from shiftwork.web.access import COOKIE
from shiftwork.web.openapi import document
from shiftwork.web.routing import ROUTES, Route
from tests.web.conftest import JSON, Web

OUTSIDE: dict[str, Any] = {"peer": "203.0.113.9", "host": "shop.example"}
PUBLIC = {"/login", "/logout"}


def guarded(method: str | None = None) -> Iterator[Route]:
    return (route for route in ROUTES if route.path not in PUBLIC and method in {None, route.method})


async def ask(client: AsyncClient, route: Route, **headers: str) -> int:
    """Ask for something that does not exist: an authenticated visitor gets as far as 400, 404 or 200."""
    path = route.path.replace("{", "").replace("}", "").removeprefix("/")
    content = None if route.method == "GET" else b"{}"
    response = await client.request(route.method, path, content=content, headers=JSON | headers)
    return response.status_code


LET_IN = {200, 400, 404}


async def test_a_stranger_gets_in_nowhere(web: Web) -> None:
    walked = 0
    async with web.client(**OUTSIDE) as client:
        for route in guarded():
            assert await ask(client, route) == 401, route.path
            assert await ask(client, route, Authorization="Bearer sw_0000_none") == 401, route.path
            assert await ask(client, route, Cookie=f"{COOKIE}=0000_none") == 401, route.path
            walked += 1
    assert walked == len(ROUTES) - len(PUBLIC) > 25


async def test_a_name_that_leads_to_loopback_gets_in_nowhere(web: Web) -> None:
    """DNS rebinding: a page of evil.example has its own name point at 127.0.0.1; its Host gives it away."""
    async with web.client(host="evil.example:8421") as client:
        for route in guarded():
            assert await ask(client, route) == 401, route.path


async def test_of_two_hosts_both_must_be_loopback(web: Web) -> None:
    for hosts in (["127.0.0.1:8421", "evil.example"], ["evil.example", "127.0.0.1:8421"]):
        async with web.client() as client:
            answer = await client.get("me", headers=[("Host", host) for host in hosts])
        assert (answer.status_code, "evil.example" in answer.text) == (401, True)


PROXIES = [
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Prefix",
    "X-Forwarded",
    "Forwarded",
    "Forwarded-For",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "CF-Ray",
    "CDN-Loop",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "Fastly-Client-IP",
    "X-Original-Host",
    "X-Envoy-External-Address",
    "X-Amzn-Trace-Id",
    "X-Remote-Addr",
    "X-Forward-For",
    "X-Scheme",
    "X-ProxyUser-Ip",
    "Front-End-Https",
    "X-SSL-Client-Verify",
]


@pytest.mark.parametrize("header", PROXIES)
async def test_what_a_proxy_passes_on_is_not_loopback(web: Web, header: str) -> None:
    async with web.client() as client:
        for route in guarded():
            assert await ask(client, route, **{header: "127.0.0.1"}) == 401, route.path


async def test_loopback_may_be_made_to_show_a_token_too() -> None:
    from tests.web.conftest import shop

    web = Web(shop(), trust_loopback=False)
    async with web.client() as client:
        for route in guarded():
            assert await ask(client, route) == 401, route.path
    await web.site.close()
    await web.app.close()


async def test_a_read_token_reads_everything_and_changes_nothing(web: Web) -> None:
    token = await web.token("wall", "read")
    async with web.client(**OUTSIDE, headers={"Authorization": f"Bearer {token}"}) as client:
        for route in guarded("GET"):
            if route.role == "operate":
                assert await ask(client, route) == 403, route.path
                assert "403" in document()["paths"][route.path]["get"]["responses"], route.path
            elif route.media_type == "application/json":
                assert await ask(client, route) in LET_IN, route.path
        for route in guarded("POST"):
            assert await ask(client, route) == 403, route.path


async def test_an_operate_token_may_do_everything(web: Web) -> None:
    token = await web.token("ci", "operate")
    async with web.client(**OUTSIDE, headers={"Authorization": f"Bearer {token}"}) as client:
        for route in guarded():
            if route.media_type == "application/json":
                assert await ask(client, route) in LET_IN, route.path


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
async def test_a_foreign_page_changes_nothing(web: Web, headers: dict[str, str]) -> None:
    async with web.client() as client:
        for route in ROUTES:
            if route.method == "POST":
                assert await ask(client, route, **headers) == 403, route.path


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_foreign_page_does_not_even_keep_us_busy(web: Web, site: str) -> None:
    async with web.client() as client:
        for route in guarded("GET"):
            assert await ask(client, route, **{"Sec-Fetch-Site": site}) == 403, route.path
        assert (await client.get("http://127.0.0.1:8421/metrics", headers={"Sec-Fetch-Site": site})).status_code == 403


async def test_a_foreign_form_changes_nothing(web: Web) -> None:
    """Whatever a page can send without asking first is not JSON."""
    async with web.client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            for route in ROUTES:
                if route.method == "POST":
                    assert await ask(client, route, **{"Content-Type": kind}) == 415, route.path


async def test_our_own_page_changes_things_also_behind_a_proxy(web: Web) -> None:
    async with web.client() as client:
        own = {"Origin": "http://127.0.0.1:8421", "Sec-Fetch-Site": "same-origin"}
        assert (await client.post("pools/images/pause", json={}, headers=own)).status_code == 200
    token = await web.token("ci", "operate")
    async with web.client(host="10.0.0.7:8421", headers={"Authorization": f"Bearer {token}"}) as client:
        passed_on = {"Origin": "https://shop.example", "X-Forwarded-Host": "shop.example"}
        assert (await client.post("pools/images/resume", json={}, headers=passed_on)).status_code == 200


async def test_a_browser_logs_in_returns_its_csrf_token_and_logs_out(web: Web) -> None:
    token = await web.token("ada", "operate")
    async with web.client(**OUTSIDE, scheme="https") as client:
        assert (await client.post("login", json={"token": "sw_0_nonsense"})).status_code == 401
        response = await client.post("login", json={"token": token})
        cookie = response.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "secure", "path=/"))
        me = (await client.get("me")).json()
        assert (me["name"], me["role"]) == ("ada", "operate")

        assert (await client.post("pools/images/pause", json={})).status_code == 403
        wrong = {"X-CSRF-Token": "0" * 64}
        assert (await client.post("pools/images/pause", json={}, headers=wrong)).status_code == 403
        right = {"X-CSRF-Token": me["csrf"]}
        assert (await client.post("pools/images/pause", json={}, headers=right)).status_code == 200

        await client.post("logout", json={})
        assert (await client.get("me")).status_code == 401


async def test_a_token_is_kept_as_a_hash_and_ends_when_it_is_revoked_or_its_time_is_over(web: Web) -> None:
    from shiftwork.control.access.tokens import TokenCheck

    store = await web.app.control.store.open()
    tokens = web.app.control.tokens
    shown = await web.token("ci", "operate")
    secret = shown.rpartition("_")[2] if shown.count("_") == 2 else shown.split("_", 2)[2]
    assert secret.encode() not in b"".join(doc.body for doc in await store.docs())
    check = TokenCheck(tokens, web.app.control.now, seconds=0.0)
    assert (await check.admit(shown)) is not None
    assert (await check.admit(shown[:-1] + ("A" if shown[-1] != "A" else "B"))) is None
    await tokens.revoke("ci")
    assert (await check.admit(shown)) is None

    _, brief = await tokens.create("brief", "read", valid_seconds=100)
    assert (await check.admit(brief)) is not None
    late = TokenCheck(tokens, lambda: web.app.control.now() + 101, seconds=0.0)
    assert (await late.admit(brief)) is None


async def test_every_answer_has_the_headers_that_keep_a_browser_safe(web: Web) -> None:
    async with web.client() as client:
        for path in ("me", "nothing", "http://127.0.0.1:8421/", "http://127.0.0.1:8421/livez"):
            headers = (await client.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in headers


async def test_a_token_has_a_name_of_its_own_and_only_what_is_there_is_revoked(web: Web) -> None:
    tokens = web.app.control.tokens
    await tokens.create("ci", "read")
    with pytest.raises(DuplicateNameError, match="shiftwork token revoke ci"):
        await tokens.create("ci", "operate")
    with pytest.raises(ConfigurationError, match="not loopback"):
        await tokens.create("loopback", "operate")
    with pytest.raises(ConfigurationError, match="the audit log names local people USER@HOST"):
        await tokens.create("root@vm", "operate")
    with pytest.raises(ConfigurationError, match="did you mean 'ci'"):
        await tokens.revoke("cii")
    await tokens.revoke("ci")
    await tokens.create("ci", "operate")
    events = [(event.name, event.subject) for event in await web.app.events()]
    assert events == [("token.created", "ci"), ("token.revoked", "ci"), ("token.created", "ci")]
