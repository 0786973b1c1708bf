"""flows, flow, send, and --flow of cancel and retry."""

import asyncio
import re
from typing import Any

from shiftwork import Context, WorkerOrchestrator
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal, in_shop
from tests.polling import eventually


def add(*widths: int) -> str:
    """A flow of resizes and a last one that needs them, which nothing runs."""

    async def work(app: WorkerOrchestrator) -> str:
        resize: Any = load_app("shop").served.registry().callees["resize"]
        first = [resize.call(path=f"{width}.png", width=width) for width in widths]
        last = resize.with_options(tags=["shoes"]).call(path="last").after(*first)
        flow = await load_app("shop").enqueue_flow(last)
        return flow.id

    return in_shop(work)


def run() -> None:
    async def work(app: WorkerOrchestrator) -> None:
        node = load_app("shop")
        await node.start()
        for job in await app.find_jobs(status=["queued", "processing"]):
            await job.ended(30)
        await node.stop()

    in_shop(work)


def test_flows_are_listed_shown_cancelled_and_retried(shop: Terminal) -> None:
    assert "no flows" in shop.run("flows").output
    flow = add(1, -1)
    assert shop.json("flows")["flows"][0] | {"created_at": ""} == {
        "id": flow,
        "created_at": "",
        "state": "running",
        "jobs": 3,
        "ended": 0,
        "counts": {"waiting": 1, "queued": 2},
        "worker": "resize",
        "tags": ["shoes"],
    }
    run()
    [row] = [line for line in shop.ok("flows").splitlines() if flow in line]
    assert all(words in row for words in ("resize #shoes", "broken", "1 waiting, 1 completed, 1 dead"))
    assert flow in shop.ok("flows", "--state", "broken", "--tag", "shoes", "--worker", "resize")
    assert "no flows" in shop.run("flows", "--state", "completed").output
    assert "did you mean 'resize'?" in shop.refused("flows", "--worker", "resiz")
    shown = shop.ok("flow", flow)
    assert f"flow {flow}: broken, 3 jobs" in shown
    assert "  * resize: 2 jobs: 1 completed, 1 dead" in shown
    assert "    * resize: waiting, job" in shown
    assert f"1 job cannot run: a job before is dead or cancelled; shiftwork retry --flow {flow}" in shown
    assert shop.json("flow", flow)["flow"]["stranded"] == 1
    assert "cannot run: a job before it is dead or cancelled" in shop.ok("jobs", "--flow", flow, "--status", "waiting")
    assert [job["stranded"] for job in shop.json("jobs", "--flow", flow)["jobs"]] == [True, False, False]
    assert "1 job of flow" in shop.run("status").output
    boxes = shop.json("flow", flow)["flow"]["boxes"]
    assert [(box["depth"], box["jobs"], box["needs"]) for box in boxes] == [(0, 2, []), (1, 1, [0])]
    dead = boxes[0]["samples"][0]
    assert f"job {dead} of resize is dead: retry it or cancel the flow" in shop.ok("explain", boxes[1]["samples"][0])
    assert shop.json("retry", "--flow", flow) == {"flow": flow, "changed_count": 1}
    assert f"flow {flow}: 2 jobs cancelled" in shop.ok("cancel", "--flow", flow)
    assert len(shop.json("jobs", "--flow", flow, "--status", "cancelled")["jobs"]) == 2
    assert "no flow has the id 'none'" in shop.refused("flow", "none")
    assert "give no IDs and no other filter" in shop.refused("cancel", "--flow", flow, "--all", code=2)


def test_send(shop: Terminal) -> None:
    job = shop.json("enqueue", "resize", "path=a")["job"]["id"]
    assert f"signal 'go' sent to job {job}" in shop.ok("send", job, "go", '{"by": "ann"}')
    assert shop.json("send", job, "go") == {"sent": {"id": job, "name": "go"}}
    assert [one["name"] for one in shop.json("job", job)["job"]["signals"]] == ["go", "go"]
    assert "the value must be JSON" in shop.refused("send", job, "go", "{", code=2)
    assert "no job has the id 'none'" in shop.refused("send", "none", "go")


def test_a_job_that_was_handed_back_has_not_ended(shop: Terminal) -> None:
    async def work(app: WorkerOrchestrator) -> str:
        @app.task
        async def publish(ctx: Context) -> None:
            await ctx.wait_for("approval")

        await app.start()
        job = await publish.enqueue()

        async def waits() -> bool:
            return (await job.refresh()).record.wait is not None

        await eventually(waits)
        await app.stop()
        return job.id

    job = asyncio.run(work(load_app("shop")))
    in_shop(lambda app: app.control.jobs.enqueue("resize", {"path": "a.png"}, CheckedJobOptions(run_at=9e9)))
    waiting = shop.json("jobs", "--waits-for-signal")
    assert [one["id"] for one in waiting["jobs"]] == [job]
    assert shop.json("jobs", "--waits-for-signal", "--status", "queued")["jobs"] == []
    shown = shop.ok("job", job)
    assert re.search(r"^  last run    \d{4}-.* on .*/default#\d+, took 0\.\d+ s$", shown, re.MULTILINE)
    assert not {"  ended", "  started"} & {line[:9].rstrip() for line in shown.splitlines()}
    assert f"signal 'aproval' sent to job {job}; it waits for 'approval' now" in shop.ok("send", job, "aproval")
    assert shop.ok("send", job, "approval") == f"signal 'approval' sent to job {job}\n"
