"""What each route answers, and what it changes."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork import JobStatus, ShiftworkError, WorkerOrchestrator, errors
from shiftwork.control.access.audit import acting_as
from shiftwork.control.system import events as event_pages
from shiftwork.core.doc_kinds import GATES, WORKER
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import CheckedJobOptions, JobPriority, JobRecord, NewJob
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.core.values.job_limits import BEGINNING, Limit
from shiftwork.core.workers.admission import Gates
from shiftwork.store.flow_failures import stranded_flows
from shiftwork.views.formats import iso
from shiftwork.web.responses import problem
from shiftwork.web.routes import events as web_events
from shiftwork.web.routing import ROUTES
from tests.runtime.stage import Faults, FaultyStore, Hatch, worker_of
from tests.web.conftest import JSON, Web


async def job_that(web: Web, **payload: Any) -> str:
    job, _ = await web.app.control.jobs.enqueue("resize", {"path": "a.png"} | payload)
    return job.id


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_overview_counts_jobs_and_says_what_is_wrong(web: Web) -> None:
    await job_that(web)
    await web.app.disable_worker("fetch", "broken")
    seen = await web.get("overview")
    assert (seen["counts"]["queued"], seen["counts"]["workers"], seen["counts"]["disabled"]) == (1, 4, 1)
    assert {"pool_unserved", "no_leader"} <= {problem["code"] for problem in seen["problems"]}
    (unserved,) = [problem for problem in seen["problems"] if problem["code"] == "pool_unserved"]
    assert unserved["target"] == "pool:images"
    assert 0 <= web.app.control.now() - unserved["since"] < 60
    assert next(pool for pool in seen["pools"] if pool["name"] == "images")["queued"] == 1


async def test_a_pool_shows_its_members_and_its_steps(open_web: Web) -> None:
    await open_web.app.scale_pool("images", 2, 3)
    pool = await open_web.get("pools/images")
    assert (pool["min_workers"], pool["max_workers"], pool["bounds_changed"]) == (2, 3, True)
    assert [one["pool"] for one in pool["instance_list"]] == ["images"]
    assert "pool.bounds" in [event["name"] for event in pool["events"]]


async def test_keda_gets_how_many_slots_are_wanted(open_web: Web) -> None:
    scale = await open_web.get("pools/images/scale")
    assert scale == {"wanted": 1, "current": 1, "queued": 0}


async def test_a_worker_shows_what_it_takes_and_its_latest_jobs_that_ran(open_web: Web) -> None:
    web = open_web
    ids = [await job_that(web, width=width) for width in (1, 2)]
    for id in ids:
        await (await web.app.get_job(id)).result(timeout_seconds=30)
    await web.app.pause_pool("images")
    await job_that(web, width=3)
    worker = await web.get("workers/resize")
    assert worker["payload_schema"]["properties"]["width"] == {"type": "integer", "default": 100}
    assert worker["payload_schema"]["required"] == ["path"]
    assert [run["id"] for run in worker["runs"]] == ids[::-1]
    assert (worker["config"]["pool"], worker["schedule"]) == ("images", "on demand")
    assert (await web.get("workers/fetch"))["payload_schema"] is None


async def test_workers_come_in_pages(web: Web) -> None:
    first = await web.get("workers", limit=3)
    second = await web.get("workers", limit=3, after=first["next_after"])
    names = [worker["name"] for page in (first, second) for worker in page["workers"]]
    assert (names, second["next_after"]) == (["fetch", "report", "resize", "sweep"], None)


async def test_the_graph_has_dependencies_and_conflicts(web: Web) -> None:
    graph = await web.get("graph")
    assert {(edge["from"], edge["to"], edge["kind"]) for edge in graph["edges"]} == {
        ("report", "fetch", "depends_on"),
        ("report", "sweep", "blocks"),
    }
    assert {node["name"] for node in graph["nodes"]} == {"resize", "fetch", "report", "sweep"}


async def test_jobs_come_in_pages_newest_first(web: Web) -> None:
    ids = [await job_that(web, width=width) for width in range(5)]
    first = await web.get("jobs", limit=3)
    second = await web.get("jobs", limit=3, after=first["next_after"])
    assert [job["id"] for page in (first, second) for job in page["jobs"]] == ids[::-1]
    assert second["next_after"] is None


async def test_jobs_are_found_by_status_worker_time_and_payload(web: Web) -> None:
    wanted = await job_that(web, path="needle.png")
    other = await job_that(web)
    await web.app.cancel_job(other)

    async def found(**query: Any) -> list[str]:
        return [job["id"] for job in (await web.get("jobs", **query))["jobs"]]

    assert await found(status="queued") == [wanted]
    assert await found(status=["queued", "cancelled"]) == [other, wanted]
    assert await found(payload="needle") == [wanted]
    assert await found(worker="fetch") == []
    assert await found(created_before="2000-01-01T00:00:00Z") == []
    assert await found(created_before="2999-01-01T00:00:00Z") == [other, wanted]
    assert await found(created_after="2999-01-01T00:00:00+01:00") == []


async def test_a_search_by_payload_looks_at_a_bounded_number_and_continues(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.web.job_search.SEARCH_PAGE", 2)
    monkeypatch.setattr("shiftwork.web.job_search.MOST_PAYLOADS", 4)
    wanted = await job_that(web, path="needle.png")
    for width in range(5):
        await job_that(web, width=width)
    first = await web.get("jobs", payload="needle")
    assert first["jobs"] == []
    second = await web.get("jobs", payload="needle", after=first["next_after"])
    assert [job["id"] for job in second["jobs"]] == [wanted]


async def test_a_page_of_one_job_reads_it_once() -> None:
    from tests.web.conftest import shop

    app, faults = shop(), Faults()
    store: Any = FaultyStore(await app.control.store.open(), faults)
    web = Web(WorkerOrchestrator(store))
    await app.control.jobs.enqueue("resize", {"path": "a.png"}, CheckedJobOptions(job_id="one"))
    assert (await web.get("jobs/one"))["why"].startswith("waits: ")
    assert faults.calls["get"] == 1
    await web.site.close()
    await app.close()


async def test_a_list_has_the_beginnings_of_large_payloads(web: Web) -> None:
    ids = [await job_that(web, path="x" * 500_000 + f"needle {n}") for n in range(6)]
    page = await web.get("jobs", limit=500)
    assert [job["id"] for job in page["jobs"]] == ids[::-1]
    assert len(json.dumps(page)) < 20_000
    for job in page["jobs"]:
        assert job["payload_truncated"]
        assert job["payload_bytes"] > 500_000
        assert job["payload"]["path"].startswith("xxx")
        assert job["payload"]["path"].endswith("x…")
    whole = await web.get(f"jobs/{ids[2]}")
    assert not whole["payload_truncated"]
    assert whole["payload"]["path"].endswith("needle 2")


async def test_a_list_of_jobs_that_wait_for_others_reads_no_whole_job(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now = await web.app.control.store.open(), web.app.control.now()
    payload = msgpack.encode({"path": "x" * 500_000})
    bad = NewJob(id="bad", worker="resize", pool="images", payload=payload, run_at=now, flow="f")
    waiting = [replace(bad, id=f"{n}", needs=(Need("bad"),)) for n in range(3)]
    await store.add([bad, *waiting], now)
    await web.app.cancel_job("bad")

    async def get(ids: Any, **_: Any) -> Any:
        raise AssertionError(f"{ids} were read whole")

    monkeypatch.setattr(store, "get", get)
    page = await web.get("jobs", status="waiting")
    assert [(job["id"], job["stranded"]) for job in page["jobs"]] == [("2", True), ("1", True), ("0", True)]
    assert len(json.dumps(page)) < 10_000
    [problem] = await stranded_flows(store)
    assert (problem.flow, problem.jobs, problem.job_id) == ("f", 3, "bad")


async def test_a_search_looks_into_whole_payloads_and_shows_their_beginnings(web: Web) -> None:
    ids = [await job_that(web, path="x" * 50_000 + f"needle {n}") for n in range(3)]
    found = await web.get("jobs", payload="needle 1", limit=500)
    assert [job["id"] for job in found["jobs"]] == [ids[1]]
    assert len(json.dumps(found)) < 5_000


async def test_a_search_reads_few_large_payloads_at_a_time(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [await job_that(web, path="x" * size + "needle") for size in (1, 2_000, 2_000, 2_000, 1, 2_000)]
    store = await web.app.control.store.open()
    genuine, read = store.find, list[int]()

    async def find(wanted: JobFilter) -> list[JobRecord]:
        found = await genuine(wanted)
        read.append(sum(len(job.payload) for job in found))
        return found

    monkeypatch.setattr(store, "find", find)
    monkeypatch.setattr("shiftwork.web.job_search.MOST_PAGE_BYTES", 5_000)
    monkeypatch.setattr("shiftwork.web.job_search.ENOUGH_SECONDS", 0.0)
    told, after, requests = list[str](), dict[str, str](), 0
    while requests < 20:
        answer = await web.get("jobs", payload="needle", limit=500, **after)
        told += [job["id"] for job in answer["jobs"]]
        requests += 1
        if answer["next_after"] is None:
            break
        after["after"] = answer["next_after"]
    assert told == ids[::-1]
    assert requests > 1
    assert max(read) <= 6 * BEGINNING


async def test_a_signal_that_finds_no_room_is_a_conflict(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftwork.core.jobs.durable_functions.SIGNALS", Limit(1, 100))
    id = await job_that(web, path="x")
    await web.post(f"jobs/{id}/signals", {"name": "go", "value": 1})
    refused = await web.post(f"jobs/{id}/signals", {"name": "go", "value": 2})
    told = refused.json()
    assert (refused.status_code, told["type"]) == (409, "urn:shiftwork:signals-full")
    assert "no room for another signal" in told["detail"]
    assert [signal["name"] for signal in (await web.get(f"jobs/{id}"))["signals"]] == ["go"]


async def test_a_search_that_no_index_answers_stops_in_time_and_continues(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every match is listed once, even if it was created at the very instant between two stretches of time."""
    store, now = await web.app.control.store.open(), web.app.control.now()
    ages = [-5.0, 0.0, 1.0, 300.0, 300.0, 301.0, 2_700.0, 2_750.0, 2_999.0, 3_001.0]
    await store.restore([_dead(n, now - age, "needle" if n % 4 else "hay") for n, age in enumerate(ages)], now)
    monkeypatch.setattr(web.app.control, "now", lambda: now)
    monkeypatch.setattr("shiftwork.web.job_search.ENOUGH_SECONDS", 0.0)
    told, after, requests = [], {"created_after": iso(now - 3_000)}, 0
    while requests < 100:
        answer = await web.get("jobs", error="needle", limit=2, **after)
        told += [job["id"] for job in answer["jobs"]]
        requests += 1
        if answer["next_after"] is None:
            break
        after["after"] = answer["next_after"]
    assert told == ["dead-1", "dead-2", "dead-3", "dead-5", "dead-6", "dead-7"]
    assert requests > 5


def _dead(number: int, created: float, error: str) -> JobRecord:
    return JobRecord(
        id=f"dead-{number}",
        worker="fetch",
        pool="default",
        status=JobStatus.DEAD,
        payload=b"\x80",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=created,
        rank=created,
        created_at=created,
        ended_at=created,
        error=error,
    )


async def test_a_job_is_returned_whole(open_web: Web) -> None:
    job, _ = await open_web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": -1})
    await job.ended(30)
    told = await open_web.get(f"jobs/{job.id}")
    assert (told["status"], told["error"]) == ("dead", "ValueError: width -1 is negative")
    assert "raise ValueError" in told["attempts"][0]["traceback"]
    assert told["why"].startswith("dead since")
    assert (await open_web.get(f"jobs/{job.id}/explanation"))["status"] == "dead"


async def test_where_a_job_is_and_when_it_will_start(open_web: Web) -> None:
    await open_web.app.pause_pool("images", "migration")
    jobs = [(await open_web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": 1}))[0] for _ in range(2)]
    for path in (f"jobs/{jobs[1].id}", f"jobs/{jobs[1].id}/explanation"):
        told = await open_web.get(path)
        assert (told["position"], told["position_exact"], told["estimate"]) == (2, True, None)
        assert told["estimate_basis"] == "no estimate: pool images is paused: migration"


async def test_dead_letters_are_summed_up_by_what_went_wrong(open_web: Web) -> None:
    jobs = [
        (await open_web.app.control.jobs.enqueue("resize", {"path": "a.png", "width": width}))[0] for width in (-1, -22)
    ]
    for job in jobs:
        await job.ended(30)
    dead = await open_web.get("dead")
    (group,) = dead["groups"]
    assert (dead["total"], group["worker"], group["count"]) == (2, "resize", 2)
    assert set(group["sample_ids"]) == {job.id for job in jobs}


async def test_a_worker_that_is_gone_is_forgotten(web: Web) -> None:
    store = await web.app.control.store.open()
    await store.put([Doc("worker", "gone", WORKER.encode(WorkerConfig(name="gone")))])
    refused = await web.post("workers/fetch/forget")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "this app registers worker fetch; remove it from the code first",
    )
    forgotten = await web.post("workers/gone/forget")
    assert (forgotten.status_code, forgotten.json()) == (200, {"worker": "gone"})
    assert (await web.post("workers/gone/forget")).status_code == 404


async def test_events_are_found_by_name_subject_and_number(web: Web) -> None:
    await web.app.pause_pool("images")
    await web.app.disable_worker("fetch")
    await web.app.resume_pool("images")
    events = (await web.get("events"))["events"]
    assert [event["name"] for event in events] == ["pool.paused", "worker.disabled", "pool.resumed"]
    assert [one["seq"] for one in (await web.get("events", before=events[2]["seq"], limit=1))["events"]] == [
        events[1]["seq"]
    ]
    assert (await web.get("events", after=events[1]["seq"]))["events"] == events[2:]
    assert (await web.get("events", subject="images", name="pool.paused"))["events"] == events[:1]


async def test_events_are_found_by_worker_pool_person_and_time(web: Web) -> None:
    store = await web.app.control.store.open()
    died = {"worker": "resize", "error": "KeyError: 5", "kind": "raised"}
    dead = [Event(at=100.0 + n, name="job.dead", subject=f"j{n}", message="m", data=died) for n in range(70)]
    early = Event(at=2.0, name="pool.paused", subject="mail", message="paused")
    await store.record([early, Event(at=10.0, name="pool.scaled", subject="images", message="2 → 3"), *dead])
    with acting_as("ada@host"):
        await web.app.disable_worker("fetch", "too loud")
    (folded, *_) = found = (await web.get("events", worker="resize"))["events"]
    assert [(event["subject"], event["count"]) for event in found] == [("j8", 9), ("j69", 61)]
    assert (folded["first_at"], folded["by"]) == (iso(100.0), None)
    assert found[1]["text"] == "61 jobs of resize died within 60 s; the newest: KeyError: 5"
    assert [event["name"] for event in (await web.get("events", pool="images"))["events"]] == [
        "pool.scaled",
        "job.dead",
        "job.dead",
    ]
    (disabled,) = (await web.get("events", by="ada"))["events"]
    assert (disabled["by"], disabled["text"]) == ("ada@host", "worker fetch is disabled: too loud")
    between = await web.get("events", since="1970-01-01T00:00:05Z", until="1970-01-01T00:00:20Z")
    assert [event["name"] for event in between["events"]] == ["pool.scaled"]
    several = await web.get("events", name=["pool.scaled", "worker.disabled"])
    assert len(several["events"]) == 2


async def test_an_unknown_name_in_a_filter_of_events_is_named_with_the_nearest(web: Web) -> None:
    async with web.client() as client:
        for query, words in (
            ("worker=resiez", "there is no worker 'resiez': did you mean 'resize'?"),
            ("pool=imagse", "there is no pool 'imagse': did you mean 'images'?"),
            ("name=worker.disable", "there is no event 'worker.disable': did you mean 'worker.disabled'?"),
            ("name=job.completed", "never kept"),
        ):
            response = await client.get(f"events?{query}")
            assert (response.status_code in {400, 404}, words in response.json()["detail"]) == (True, True), query


async def test_an_unknown_name_in_a_filter_of_jobs_is_named_with_the_nearest(web: Web) -> None:
    async with web.client() as client:
        for query, words in (
            ("worker=resiez", "there is no worker 'resiez': did you mean 'resize'?"),
            ("worker=resiez&payload=x", "there is no worker 'resiez': did you mean 'resize'?"),
            ("pool=imagse", "there is no pool 'imagse': did you mean 'images'?"),
            ("flow=nope", "no flow has the id 'nope'"),
            ("status=dad", "'dad'"),
            ("order=latest", "'latest'"),
        ):
            response = await client.get(f"jobs?{query}")
            assert (response.status_code in {400, 404}, words in response.json()["detail"]) == (True, True), query
        for dry_run in (True, False):
            body = {"action": "cancel", "filter": {"worker": "resiez"}, "dry_run": dry_run}
            response = await web.post("jobs/bulk", body)
            assert (response.status_code, "did you mean 'resize'?" in response.json()["detail"]) == (404, True), dry_run
            response = await web.post("jobs/bulk", {"action": "cancel", "filter": {"flow": "nope"}, "dry_run": dry_run})
            assert (response.status_code, "no flow has the id" in response.json()["detail"]) == (404, True), dry_run
    assert (await web.get("jobs", worker="resize"))["jobs"] == [], "a worker that has no jobs"


async def test_jobs_outlive_their_worker_and_are_found_by_it(web: Web) -> None:
    await web.post("jobs", {"worker": "resize", "payload": {"path": "a.png", "width": 1}, "job_id": "left"})
    store = await web.app.control.store.open()
    await store.restore([replace(one, worker="gone", id="of gone") for one in await store.get(["left"]) if one], 1.0)
    assert [job["id"] for job in (await web.get("jobs", worker="gone"))["jobs"]] == ["of gone"]
    assert (await web.get("jobs", worker="gone", status="dead"))["jobs"] == [], "it has none of these, but it had jobs"


async def test_jobs_are_listed_oldest_first_page_by_page_with_their_number(web: Web) -> None:
    ids = [f"j{n}" for n in range(5)]
    for id in ids:
        await web.post("jobs", {"worker": "resize", "payload": {"path": id, "width": 1}, "job_id": id})
    newest = await web.get("jobs", limit=3, status="queued")
    assert ([job["id"] for job in newest["jobs"]], newest["total"], newest["next_after"]) == (ids[:1:-1], 5, "j2")
    oldest = await web.get("jobs", limit=3, status="queued", order="oldest")
    assert ([job["id"] for job in oldest["jobs"]], oldest["total"], oldest["next_after"]) == (ids[:3], 5, "j2")
    rest = await web.get("jobs", limit=3, status="queued", order="oldest", after="j2")
    assert ([job["id"] for job in rest["jobs"]], rest["total"], rest["next_after"]) == (ids[3:], 5, None)
    assert [job["id"] for job in (await web.get("jobs", order="oldest", payload="j", limit=2))["jobs"]] == ids[:2]
    for query in ({"unique_key": "none"}, {"key": "none"}, {"error": "none", "after": "j1"}):
        assert (await web.get("jobs", order="oldest", **query))["jobs"] == [], query
    assert (await web.get("jobs", limit=3))["total"] is None, "the store does not count all jobs"
    assert (await web.get("jobs"))["total"] == 5, "all of them are on the page"
    assert await web.app.control.bulk.count("cancel", status="queued", flow="f") == 0, "not those outside the flow"


async def test_a_breaker_is_listed_held_open_and_closed(web: Web) -> None:
    store = await web.app.control.store.open()
    await store.put([Doc("gates", "resize", GATES.encode(Gates(worker="resize", pool="images", breaker="disk")))])
    (disk,) = (await web.get("breakers"))["breakers"]
    assert (disk["name"], disk["workers"], disk["state"], disk["since"]) == ("disk", ["resize"], "closed", None)
    held = (await web.post("breakers/disk/open", {"reason": "moving it"})).json()
    assert (held["state"], held["forced_by"], held["reason"], held["until"]) == ("open", "loopback", "moving it", None)
    assert (await web.get("breakers"))["breakers"] == [held], "at once, although the overview is shared"
    assert (await web.get("pools/images"))["breakers"] == [held]
    assert (await web.get("workers/resize"))["guarded_by"] == held
    assert (await web.get("workers/fetch"))["guarded_by"] is None
    (problem,) = [one for one in (await web.get("overview"))["problems"] if one["code"] == "breaker_open"]
    assert problem["subject"] == "disk"
    timed = (await web.post("breakers/disk/open", {"for_seconds": 60})).json()
    assert timed["until"] is not None
    assert (await web.post("breakers/disk/close", {"reason": "done"})).json()["state"] == "closed"
    events = (await web.get("events", worker="resize"))["events"]
    assert events == [], "the worker's own definition names no breaker"
    events = (await web.get("events", subject="disk"))["events"]
    assert [event["text"] for event in events] == [
        "breaker disk is held open until it is closed by hand: moving it",
        "breaker disk is held open for 60 s",
        "breaker disk is closed by hand: done",
    ]
    async with web.client() as client:
        assert (await client.post("breakers/disc/close", json={})).status_code == 404


async def test_a_bulk_change_records_its_reason_and_which_jobs_were_meant(web: Web) -> None:
    await job_that(web)
    wanted = {"status": ["queued", "scheduled"], "worker": "resize"}
    await web.post("jobs/bulk", {"action": "cancel", "filter": wanted, "reason": "wrong batch"})
    (event,) = (await web.get("events", name="jobs.amended"))["events"]
    assert event["text"] == "1 job was cancelled (status queued, scheduled, worker resize): wrong batch"
    assert event["data"] == {
        "by": "loopback",
        "reason": "wrong batch",
        "status": "queued, scheduled",
        "worker": "resize",
        "limit": "100000",
    }


async def test_older_events_come_page_by_page(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pages, "EVENT_PAGE", 4)
    monkeypatch.setattr(web_events, "MOST_EVENTS_READ", 8)
    store = await web.app.control.store.open()
    rare, odd, even = "node.lost", "pool.paused", "pool.resumed"
    names = [rare if number == 2 else odd if number % 2 else even for number in range(20)]
    await store.record([Event(at=1.0, name=name, subject="s", message="") for name in names])

    async def pages(**query: Any) -> list[list[int]]:
        found: list[list[int]] = []
        before: dict[str, int] = {}
        while True:
            page = await web.get("events", **query, **before)
            found.append([event["seq"] for event in page["events"]])
            if page["next_before"] is None:
                return found
            before = {"before": page["next_before"]}

    assert await pages(limit=8) == [[*range(13, 21)], [*range(5, 13)], [*range(1, 5)]]
    assert await pages(limit=3, name=odd) == [[16, 18, 20], [10, 12, 14], [4, 6, 8], [2]]
    assert await pages(limit=3, name=rare) == [[], [], [3]]
    assert (await web.get("events", after=18))["next_before"] is None


async def test_the_history_counts_what_ended_between_two_looks(open_web: Web) -> None:
    await open_web.site.history.sample()
    job, _ = await open_web.app.control.jobs.enqueue("resize", {"path": "a.png"})
    await job.ended(30)
    await open_web.site.history.sample()
    history = await open_web.get("history", seconds=600)
    images = history["pools"]["images"]
    assert {len(series) for series in images.values()} == {len(history["at"])}
    assert images["completed"][-1] == 1
    assert images["completed"][0] is None
    assert images["workers"][-1] == 1


async def test_a_name_may_hold_a_slash(web: Web) -> None:
    await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}, "job_id": "orders/17"})
    assert (await web.get("jobs/orders%2F17"))["id"] == "orders/17"


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pool_is_paused_resumed_and_bounded(web: Web) -> None:
    paused = (await web.post("pools/images/pause", {"reason": "moving"})).json()
    assert (paused["paused"], paused["reason"]) == (True, "moving")
    assert (await web.post("pools/images/resume")).json()["paused"] is False
    bounded = (await web.post("pools/images/bounds", {"min": 2, "max": None})).json()
    assert (bounded["min_workers"], bounded["max_workers"], bounded["bounds_changed"]) == (2, 4, True)
    reset = (await web.post("pools/images/bounds", {"min": None, "max": None})).json()
    assert (reset["min_workers"], reset["bounds_changed"]) == (1, False)


async def test_a_worker_is_disabled_and_enabled(web: Web) -> None:
    disabled = (await web.post("workers/fetch/disable", {"reason": "broken"})).json()
    assert (disabled["enabled"], disabled["reason"]) == (False, "broken")
    refused = await web.post("workers/fetch/trigger")
    assert (refused.status_code, "disabled: broken" in refused.json()["detail"]) == (409, True)
    assert (await web.post("workers/fetch/enable")).json()["enabled"] is True


async def test_a_worker_is_triggered_ahead_of_all_else(web: Web) -> None:
    answer = (await web.post("workers/resize/trigger", {"payload": {"path": "now.png"}})).json()
    job = await web.app.get_job(answer["job"]["id"])
    assert (job.payload, job.record.cause, job.priority.name) == ({"path": "now.png"}, "triggered", "CRITICAL")


async def test_a_job_is_added_once_for_one_key(web: Web) -> None:
    body = {"worker": "resize", "payload": {"path": "a.png"}, "priority": "high", "delay_seconds": 60}
    answers = [(await web.post("jobs", body, **{"Idempotency-Key": "order 17"})).json() for _ in range(2)]
    assert [answer["created"] for answer in answers] == [True, False]
    assert len({answer["job"]["id"] for answer in answers}) == 1
    assert answers[0]["job"] == answers[1]["job"]
    job = await web.app.get_job(answers[0]["job"]["id"])
    assert (job.status, job.priority.name) == (JobStatus.SCHEDULED, "HIGH")
    again = await web.post("jobs", body, **{"Idempotency-Key": "order 18"})
    assert again.json()["created"] is True


async def test_a_job_has_its_own_limits_an_expiry_and_tags_to_be_found_by(web: Web) -> None:
    options = {"max_retries": 7, "timeout_seconds": 120, "expires_seconds": 60, "tags": ["red", "acme"]}
    added = (await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}, **options})).json()["job"]
    await web.post("jobs", {"worker": "resize", "payload": {"path": "b"}, "tags": ["blue"]})
    whole = await web.get(f"jobs/{added['id']}")
    assert (whole["tags"], whole["max_retries"], whole["timeout_seconds"]) == (["red", "acme"], 7, 120.0)
    why = await web.get(f"jobs/{added['id']}/explanation")
    assert why["expires_at"] == whole["expires_at"] is not None
    assert "if it has not started" in why["text"]
    assert [job["id"] for job in (await web.get("jobs", tag="acme"))["jobs"]] == [added["id"]]
    counted = await web.post("jobs/bulk", {"action": "cancel", "filter": {"tag": "acme"}})
    assert counted.json()["changed"] == 1
    for wrong in ({"tags": "red"}, {"tags": [""]}, {"tags": ["a"] * 21}, {"timeout_seconds": 0}, {"max_retries": -1}):
        response = await web.post("jobs", {"worker": "resize", "payload": {"path": "a"}, **wrong})
        assert (response.status_code, next(iter(wrong)) in response.text) == (400, True), response.text


async def test_an_id_that_another_workers_job_has_is_refused_not_taken_for_its_own(web: Web) -> None:
    await web.post("jobs", {"worker": "resize", "payload": {"path": "a.png"}, "job_id": "17"})
    refused = await web.post("jobs", {"worker": "fetch", "job_id": "17"})
    assert (refused.status_code, "taken by a job of resize" in refused.json()["detail"]) == (409, True)


async def test_a_payload_that_does_not_fit_is_refused(web: Web) -> None:
    refused = await web.post("jobs", {"worker": "resize", "payload": {"path": "a.png", "width": "wide"}})
    assert (refused.status_code, "width" in refused.json()["detail"]) == (400, True)


async def test_one_job_is_cancelled_retried_with_another_payload_and_discarded(web: Web) -> None:
    id = await job_that(web)
    assert (await web.post(f"jobs/{id}/cancel")).json()["status"] == "cancelled"
    retried = (await web.post(f"jobs/{id}/retry", {"payload": {"path": "b.png"}})).json()
    assert (retried["status"], retried["payload"]) == ("queued", {"path": "b.png"})
    assert (await web.post(f"jobs/{id}/discard")).status_code == 409
    await web.post(f"jobs/{id}/cancel")
    assert (await web.post(f"jobs/{id}/discard")).json() == {"id": id}
    assert (await web.post(f"jobs/{id}/cancel")).status_code == 404


async def test_many_jobs_are_counted_first_and_then_changed(web: Web) -> None:
    for width in range(5):
        await job_that(web, width=width)
    bulk = {"action": "cancel", "filter": {"worker": "resize"}}
    counted = (await web.post("jobs/bulk", bulk | {"dry_run": True})).json()
    assert counted == {"matched": 5, "changed": 0, "until": None}
    assert (await web.post("jobs/bulk", bulk | {"limit": 2})).json() == {"matched": 2, "changed": 2, "until": None}
    assert (await web.post("jobs/bulk", bulk)).json() == {"matched": 3, "changed": 3, "until": None}
    again = {"action": "retry", "filter": {"status": ["cancelled"]}}
    assert (await web.post("jobs/bulk", again)).json() == {"matched": 5, "changed": 5, "until": None}


async def test_a_node_is_drained_and_takes_work_again(open_web: Web) -> None:
    (node,) = (await open_web.get("nodes"))["nodes"]
    drained = (await open_web.post(f"nodes/{node['name']}/drain", {"reason": "kernel"})).json()
    assert drained["status"] in {"draining", "drained"}
    assert (await open_web.post(f"nodes/{node['name']}/undrain")).json()["status"] == "serving"


async def test_the_stack_of_a_running_job_is_shown_and_that_is_recorded(open_web: Web) -> None:
    hatch = Hatch()
    worker_of(open_web.app, "resize").function = lambda path, width=1: hatch.wait()
    id = await job_that(open_web)
    await hatch.reached()
    seen = (await open_web.post(f"jobs/{id}/stack")).json()
    assert (seen["job_id"], seen["pid"], seen["at"][-1]) == (id, os.getpid(), "Z")
    assert seen["stack"].startswith(f"job {id} of resize:")
    event = (await open_web.get("events", name="job.inspected"))["events"][-1]
    assert (event["subject"], event["data"]["by"]) == (id, "loopback")
    hatch.open()
    await (await open_web.app.get_job(id)).ended(30)
    refused = await open_web.post(f"jobs/{id}/stack")
    assert (refused.status_code, "is completed" in refused.json()["detail"]) == (409, True)
    assert problem(errors.NodeSilentError("it is away")).status_code == 504


async def test_what_was_changed_is_seen_at_once(web: Web) -> None:
    """The overview is shared for a second, but never shown to a visitor who has just changed it."""
    assert (await web.get("overview"))["counts"]["disabled"] == 0
    await web.post("workers/fetch/disable")
    assert (await web.get("overview"))["counts"]["disabled"] == 1


async def test_every_change_is_reported_with_who_made_it(web: Web) -> None:
    token = await web.token("ci", "operate")
    id = await job_that(web)
    changes = {
        "pools/images/pause": {},
        "pools/images/resume": {},
        "pools/images/bounds": {"min": 1, "max": 2},
        "workers/fetch/disable": {},
        "workers/fetch/enable": {},
        "workers/fetch/trigger": {},
        f"jobs/{id}/cancel": {},
        f"jobs/{id}/retry": {},
        "jobs/bulk": {"action": "cancel", "filter": {"worker": "resize"}},
    }
    before = (await web.get("events"))["events"][-1]["seq"]
    async with web.client(headers={"Authorization": f"Bearer {token}"}) as client:
        for path, body in changes.items():
            response = await client.post(path, json=body)
            assert response.status_code == 200, (path, response.text)
    events = (await web.get("events", after=before))["events"]
    assert [event["data"]["by"] for event in events] == ["ci"] * len(changes)
    await web.post("pools/images/pause")
    assert (await web.get("events"))["events"][-1]["data"]["by"] == "loopback"


async def test_a_field_that_does_not_exist_is_named_with_the_nearest(web: Web) -> None:
    async with web.client() as client:
        response = await client.post("jobs", json={"worker": "resize", "args": {"path": "a.png"}})
    assert response.status_code == 400
    assert "unknown field `args`: did you mean 'payload'?" in response.json()["detail"]


# ── refusing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("jobs?limit=0", 400, "limit"),
        ("jobs?limit=many", 400, "limit"),
        ("jobs?statsu=dead", 400, "did you mean 'status'?"),
        ("jobs?limit=1&limit=2", 400, "2 times"),
        ("jobs?created_after=yesterday", 400, "created_after"),
        ("jobs/none", 404, "no job has the id 'none'"),
        ("workers/fetsch", 404, "did you mean 'fetch'?"),
        ("pools/image", 404, "did you mean 'images'?"),
        ("schedules?worker=fetsch", 404, "did you mean 'fetch'?"),
        ("history?pool=image", 404, "did you mean 'images'?"),
        ("history?seconds=99999", 400, "seconds"),
        ("nothing", 404, "openapi.json"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused_clearly(web: Web, path: str, status: int, words: str) -> None:
    async with web.client() as client:
        response = await client.get(path)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert set(told) == {"type", "title", "status", "detail"}
    assert (told["status"], words in told["detail"]) == (status, True), told


async def test_a_wrong_method_gets_the_right_one(web: Web) -> None:
    async with web.client() as client:
        response = await client.put("jobs", json={})
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")


async def test_a_body_has_a_size(web: Web) -> None:
    async with web.client() as client:
        response = await client.post("jobs", json={"worker": "resize", "payload": {"path": "x" * 5_000_000}})
        assert response.status_code == 413

        async def without_a_length() -> AsyncIterator[bytes]:
            for _ in range(50):
                yield b" " * 100_000
            yield b"{}"

        response = await client.post("jobs", content=without_a_length(), headers=JSON)
        assert response.status_code == 413


async def test_changes_have_a_rate() -> None:
    from shiftwork.web.responses import Refused
    from shiftwork.web.visitor_limits import Limiter, Rate

    limiter = Limiter(Rate(per_second=0.001, burst=2))
    limiter.take("ci")
    limiter.take("ci")
    with pytest.raises(Refused, match="wait a moment"):
        limiter.take("ci")
    limiter.take("somebody else")


def _leaves(error: type[ShiftworkError]) -> list[type[ShiftworkError]]:
    return [error, *(leaf for child in error.__subclasses__() for leaf in _leaves(child))]


def test_every_error_has_a_status() -> None:
    expected = {"UnknownJobError": 404, "JobStateError": 409, "StoreUnavailableError": 503, "PayloadTypeError": 400}
    for error in _leaves(ShiftworkError):
        if error.__module__ == errors.__name__:
            told = json.loads(bytes(problem(error("why")).body))
            assert told["status"] == expected.get(error.__name__, told["status"])
            assert (told["status"] == 500) == (error is ShiftworkError), error
            assert told["detail"] == "why"


async def test_an_unexpected_error_is_not_shown(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        message = "the password is hunter2"
        raise RuntimeError(message)

    monkeypatch.setattr(web.app.control.nodes, "all", broken)
    async with web.client() as client:
        response = await client.get("nodes")
    assert response.status_code == 500
    assert "hunter2" not in response.text


async def test_probes_ask_for_no_token_and_alive_asks_no_store(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(client: AsyncClient, path: str) -> int:
        return (await client.get(f"http://shop.example/{path}")).status_code

    async with web.client(peer="10.1.2.3", host="shop.example") as client:
        assert [await ask(client, path) for path in ("livez", "readyz")] == [200, 200]

        async def away() -> None:
            raise errors.StoreUnavailableError("the store is away")

        monkeypatch.setattr(web.app.control.store, "open", away)
        assert [await ask(client, path) for path in ("livez", "readyz")] == [200, 503]


async def test_a_store_that_hangs_is_not_waited_for_by_probes(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    back = asyncio.Event()
    monkeypatch.setattr(web.app.control.store, "open", back.wait)
    monkeypatch.setattr("shiftwork.web.site.READY_SECONDS", 0.01)
    async with web.client() as client, asyncio.timeout(30):
        response = await client.get("http://127.0.0.1:8421/readyz")
    assert response.status_code == 503
    assert "has not replied" in response.json()["detail"]
    back.set()


def test_each_route_has_a_sentence_and_a_name_of_its_own() -> None:
    assert all(route.summary.endswith(".") for route in ROUTES)
    assert len({route.name for route in ROUTES}) == len(ROUTES)


async def test_a_node_that_is_not_ready_says_why() -> None:
    from tests.web.conftest import shop

    web = Web(shop(), ready=lambda: "stopping: 3 jobs running")
    async with web.client() as client:
        response = await client.get("http://127.0.0.1:8421/readyz")
    assert (response.status_code, response.json()["detail"]) == (503, "not ready: stopping: 3 jobs running")
    await web.site.close()
    await web.app.close()


def test_every_route_is_documented(checkout: Path) -> None:
    documented = re.findall(r"^\| `(GET|POST) (/[^`?]*)", (checkout / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted((route.method, route.path) for route in ROUTES)


async def test_where_the_app_is_not_known_payloads_are_checked_by_what_was_published(tmp_path: Path) -> None:
    """A node serves the API without importing the app: what other languages send is checked all the same."""
    from shiftwork import WorkerOrchestrator

    url = f"sqlite:///{tmp_path}/shop.db"
    app = WorkerOrchestrator(url)

    @app.task
    def resize(path: str, width: int = 100, factor: float = 1.0, *, sharp: bool = False) -> None: ...

    await app.start()
    await app.stop()
    web = Web(WorkerOrchestrator(url))

    async def told(**payload: Any) -> str:
        response = await web.post("jobs", {"worker": "resize", "payload": payload})
        return "" if response.status_code == 200 else str(response.json()["detail"])

    assert await told(path="a.png", width=3, factor=2, sharp=True) == ""
    assert await told(width=3) == "resize needs the argument 'path'"
    assert await told(path="a.png", widht=3) == "resize takes no argument 'widht': did you mean 'width'?"
    assert "argument 'width': Expected `integer`, got `str`" in await told(path="a.png", width="3")
    assert "argument 'width': Expected `integer`, got `bool`" in await told(path="a.png", width=True)
    assert "argument 'path': Expected `string`" in await told(path=3)
    await web.site.close()
    await web.app.close()
