"""The web on every store: each page, the awkward names, tokens, and what changes."""

import asyncio
from contextlib import aclosing
from typing import Any

from shiftwork import WorkerOrchestrator
from tests.polling import eventually
from tests.store.conformance.lab import StoreFactory
from tests.web.conftest import Web

DEADLINE = 60.0
AWKWARD = 'it\'s 100 % "ready" / ½ ☃'
PAGES = (
    "overview",
    "history",
    "pools",
    "pools/default",
    "pools/default/scale",
    "workers",
    "workers/act",
    "graph",
    "jobs",
    "jobs?status=completed&status=dead&worker=act&pool=default",
    "jobs?error=no&key=k&unique_key=u&instance=i",
    "jobs?payload=x&created_after=2020-01-01T00:00:00Z&created_before=2999-01-01T00:00:00Z",
    "dead",
    "nodes",
    "events",
    "events?name=node.started&subject=x",
    "me",
)


async def test_every_page_and_every_change_works(factory: StoreFactory) -> None:
    app = WorkerOrchestrator(factory()(), lease_seconds=15.0)

    @app.task(max_retries=0)
    async def act(text: str) -> str:
        if text == "no":
            raise ValueError(AWKWARD)
        return text

    web = Web(app)
    await app.start()
    try:
        await _walk(web)
    finally:
        await web.site.close()
        await app.stop()


async def _walk(web: Web) -> None:
    async with aclosing(web.site.live.stream(0)) as stream, asyncio.timeout(DEADLINE):
        await anext(stream)
        body = {"worker": "act", "payload": {"text": AWKWARD}, "job_id": AWKWARD, "unique_key": AWKWARD}
        assert (await web.post("jobs", body)).json()["created"] is True
        assert (await web.post("jobs", body)).json()["created"] is False
        await (await web.app.get_job(AWKWARD)).ended(DEADLINE)
        dead = (await web.post("jobs", {"worker": "act", "payload": {"text": "no"}})).json()["job"]["id"]
        await (await web.app.get_job(dead)).ended(DEADLINE)
        for page in PAGES:
            await web.get(page)
        await _check(web, dead)
        async for piece in stream:
            if b"event: event" in piece:
                break


async def _check(web: Web, dead: str) -> None:
    async with web.client() as client:
        whole = (await client.get(f"jobs/{_quoted(AWKWARD)}")).json()
    assert (whole["status"], whole["result"]) == ("completed", AWKWARD)
    found = await web.get("jobs", error="100 %", status="dead")
    assert [job["id"] for job in found["jobs"]] == [dead]
    [group] = (await web.get("dead"))["groups"]
    assert group["error"] == f"ValueError: {AWKWARD}"
    alike: dict[str, Any] = {"filter": {"group": group["key"], "error": AWKWARD}}
    again = (await web.post("jobs/bulk", {"action": "retry", "rate": "10/s", "limit": 1} | alike)).json()
    assert (again["matched"], again["changed"], again["until"] is None) == (1, 1, False)
    await (await web.app.get_job(dead)).ended(DEADLINE)
    gone = {"matched": 1, "changed": 1, "until": None}
    assert (await web.post("jobs/bulk", {"action": "discard"} | alike)).json() == gone
    assert (await web.post("pools/default/bounds", {"min": 1, "max": 2})).json()["bounds_changed"] is True
    token = await web.token(AWKWARD, "operate")
    async with web.client(peer="203.0.113.9", headers={"Authorization": f"Bearer {token}"}) as client:
        assert (await client.post("workers/act/disable", json={"reason": AWKWARD})).json()["reason"] == AWKWARD
        metrics = (await client.get("http://127.0.0.1:8421/metrics")).text
    for counted in ('run_seconds_count{pool="default"} 3', 'wait_seconds_bucket{pool="default",le="+Inf"} 3'):
        assert f"shiftwork_{counted}\n" in metrics
    assert 'shiftwork_attempts_total{pool="default",end="raised"} 2\n' in metrics
    [disabled] = (await web.get("events", name="worker.disabled"))["events"]
    assert disabled["data"]["by"] == AWKWARD


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


async def test_what_a_job_is_doing_and_how_hard_its_node_works_comes_through_every_store(factory: StoreFactory) -> None:
    app = WorkerOrchestrator(factory()(), lease_seconds=3.0)
    began, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def act() -> None:
        began.set()
        await go.wait()

    async with asyncio.timeout(DEADLINE):
        await app.start()
        job = await act.enqueue()
        await began.wait()
        seen = await app.job_stack(job.id)
        assert (seen.job_id, "in act\n    await go.wait()" in seen.stack) == (job.id, True)

        async def measured() -> bool:
            node = (await app.nodes())[0]
            return None not in {node.store_seconds, node.cpu, node.lag}

        await eventually(measured)
        node = (await app.nodes())[0]
        assert (node.memory_used or 0) > 1_000_000
        go.set()
        await app.stop()
