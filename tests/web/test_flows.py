"""Flows and signals over HTTP."""

from collections.abc import Sequence
from typing import Any

import pytest

from shiftwork import JobStatus
from shiftwork.control.jobs import flow_search
from tests.runtime.stage import DEADLINE, worker_of
from tests.web.conftest import Web


async def add(web: Web, *widths: int, tags: Sequence[str] = ()) -> str:
    resize: Any = worker_of(web.app, "resize")
    first = [resize.call(path=f"{width}.png", width=width) for width in widths]
    last = resize.with_options(tags=tags) if tags else resize
    return (await web.app.enqueue_flow(last.call(path="last").after(*first))).id


async def test_flows_are_listed_in_pages_and_drawn(web: Web) -> None:
    flows = [await add(web, 1, 2), await add(web, 3)]
    page = await web.get("flows", limit=1)
    assert [one["id"] for one in page["flows"]] == [flows[1]]
    assert page["flows"][0]["counts"] == {"waiting": 1, "queued": 1}
    assert (page["flows"][0]["worker"], page["flows"][0]["tags"]) == ("resize", [])
    page = await web.get("flows", limit=1, after=page["next_after"])
    assert [one["id"] for one in page["flows"]] == [flows[0]]
    drawn = await web.get(f"flows/{flows[0]}")
    assert [(box["worker"], box["depth"], box["jobs"], box["needs"]) for box in drawn["boxes"]] == [
        ("resize", 0, 2, []),
        ("resize", 1, 1, [0]),
    ]
    assert [one["worker"] for one in drawn["critical_path"]] == ["resize", "resize"]
    assert (drawn["state"], drawn["jobs"], drawn["ended"]) == ("running", 3, 0)
    assert len((await web.get("jobs", flow=flows[0]))["jobs"]) == 3
    async with web.client() as client:
        assert (await client.get("flows/none")).status_code == 404
        assert (await client.get("flows", params={"after": "soon"})).status_code == 400


async def test_flows_are_found_by_state_worker_and_tag_though_they_are_far_apart(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_search, "FEWEST_FLOWS_READ", 1)
    flows = [await add(web, 1, tags=["shoes"]), await add(web, 2), await add(web, 3, tags=["shoes"])]
    await web.post(f"flows/{flows[0]}/cancel")

    async def found(**wanted: str) -> list[str]:
        page = await web.get("flows", limit=1, **wanted)
        ids = [one["id"] for one in page["flows"]]
        return ids + (await found(**wanted | {"after": page["next_after"]}) if page["next_after"] else [])

    assert await found(tag="shoes") == [flows[2], flows[0]]
    assert await found(tag="shoes", state="cancelled") == [flows[0]]
    assert await found(worker="resize", state="running") == [flows[2], flows[1]]
    async with web.client() as client:
        answer = await client.get("flows", params={"worker": "resizer"})
    assert (answer.status_code, "did you mean 'resize'?" in answer.text) == (404, True)


async def test_an_argument_that_will_be_a_result_names_the_job_that_makes_it(web: Web) -> None:
    resize: Any = worker_of(web.app, "resize")
    first = resize.call(path="a.png", width=1)
    flow = await web.app.enqueue_flow(resize.call(path=first.output, width=2))
    made, needing = flow.jobs
    assert (await web.get(f"jobs/{needing.id}"))["payload"] == {"path": f"the result of job {made.id}", "width": 2}


async def test_a_flow_is_cancelled_and_retried(web: Web) -> None:
    flow = await add(web, 1)
    assert (await web.post(f"flows/{flow}/cancel")).json() == {"id": flow, "changed": 2}
    assert (await web.get(f"flows/{flow}"))["state"] == "cancelled"
    retried = await web.post(f"flows/{flow}/retry", {"reason": "the customer called"})
    assert retried.json() == {"id": flow, "changed": 2}
    assert (await web.post("flows/none/retry")).status_code == 404
    told = {event["name"]: event for event in (await web.get("events", subject=flow))["events"]}
    assert told["flow.retried"]["data"]["reason"] == "the customer called"
    assert "2 jobs: the customer called" in told["flow.retried"]["message"]


async def test_the_jobs_of_a_flow_are_changed_in_bulk(web: Web) -> None:
    flow, other = await add(web, 1), await add(web, 1)
    cancelled = (await web.post("jobs/bulk", {"action": "cancel", "filter": {"flow": flow}})).json()
    assert (cancelled["matched"], cancelled["changed"]) == (2, 2)
    assert (await web.get(f"flows/{other}"))["state"] == "running"


async def test_a_job_gets_a_signal_and_shows_that_it_came(web: Web) -> None:
    job, _ = await web.app.control.jobs.enqueue("resize", {"path": "a.png"})
    answer = await web.post(f"jobs/{job.id}/signals", {"name": "approval", "value": {"ok": True}})
    assert answer.json() == {"id": job.id}
    [signal] = (await web.get(f"jobs/{job.id}"))["signals"]
    assert (signal["name"], list(signal["value"])) == ("approval", ["not shown"])  # nothing has waited for it
    await web.app.cancel_job(job.id)
    assert (await web.post(f"jobs/{job.id}/signals", {"name": "approval"})).status_code == 409


async def test_changing_a_flow_needs_the_role_that_may_operate(web: Web) -> None:
    flow, reader = await add(web, 1), await web.token("ann", "read")
    async with web.client(peer="10.0.0.1", headers={"Authorization": f"Bearer {reader}"}) as client:
        assert (await client.get(f"flows/{flow}")).status_code == 200
        for path in (f"flows/{flow}/cancel", f"flows/{flow}/retry", "jobs/x/signals"):
            assert (await client.post(path, json={"name": "n"} if "jobs" in path else {})).status_code == 403


async def test_a_job_that_waits_for_a_dead_one_says_so_everywhere(open_web: Web) -> None:
    flow = await add(open_web, -1)
    dead, waiting = (await open_web.app.get_flow(flow)).jobs
    assert await dead.ended(DEADLINE) is JobStatus.DEAD
    listed = {one["id"]: one for one in (await open_web.get("jobs", flow=flow))["jobs"]}
    shown = {id: (one["status"], one["over"], one["stranded"]) for id, one in listed.items()}
    assert shown == {dead.id: ("dead", True, False), waiting.id: ("waiting", False, True)}
    assert [bool(one["ended_at"]) for one in (listed[dead.id], listed[waiting.id])] == [True, False]
    whole = await open_web.get(f"jobs/{waiting.id}")
    assert (whole["over"], whole["stranded"], whole["ended_at"]) == (False, True, None)
    assert f"job {dead.id} of resize is dead: retry it or cancel the flow" in whole["why"]
    [wait] = (await open_web.get(f"jobs/{waiting.id}/explanation"))["waits"]
    assert (wait["code"], wait["by"]) == ("stranded", dead.id)
    drawn = await open_web.get(f"flows/{flow}")
    assert (drawn["state"], drawn["stranded"]) == ("broken", 1)
    [problem] = [one for one in (await open_web.get("overview"))["problems"] if one["code"] == "jobs_stranded"]
    assert (problem["subject"], f"shiftwork retry {dead.id}" in problem["remedy"]) == (flow, True)
    assert problem["since"] == dead.ended_at


async def test_a_job_that_is_to_be_retried_is_not_over(open_web: Web) -> None:
    @open_web.app.task(max_retries=1, retry=lambda _attempt, _error: 3600)
    async def fetch_again() -> None:
        raise ConnectionError

    await open_web.app.trigger_worker("fetch_again")  # returns when a run has failed
    [job] = await open_web.app.find_jobs(worker="fetch_again")
    shown = await open_web.get(f"jobs/{job.id}")
    assert (shown["status"], shown["over"], shown["ended_at"]) == ("failed", False, None)
    assert len(shown["attempts"]) == 1
    await open_web.app.cancel_job(job.id)
    shown = await open_web.get(f"jobs/{job.id}")
    assert (shown["status"], shown["over"], shown["ended_at"] is None) == ("cancelled", True, False)
