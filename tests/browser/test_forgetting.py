"""A worker that no node has is seen, and forgotten when nothing needs it."""

import time
from http import HTTPStatus

from playwright.sync_api import Browser, expect

from shiftwork import WorkerOrchestrator
from shiftwork.core.docs import WORKER
from shiftwork.core.model import Beat, Doc, NodeBeat
from tests.browser.stage import Watched, served


async def deployed_without(app: WorkerOrchestrator, worker: str) -> None:
    """A worker with a job that is queued, beside a node of a version that does not have it."""
    store = await app.control.store.open()
    task = WorkerOrchestrator(store).register_worker(worker, lambda: None, execution_mode="triggered")
    await task.with_options(run_at=time.time() - 60).enqueue()
    await store.put([Doc("worker", worker, WORKER.encode(task.config))])
    machine = NodeBeat(host="h", cores=1, memory=1, pools=("default",))
    beat = Beat(
        instance="n",
        node="n",
        pool="",
        slots=0,
        workers=(),
        machine=machine,
        status="busy",
        started_at=time.time() - 60,
    )
    await store.beat([beat], 3_600, time.time())


def test_worker_that_no_node_has_is_forgotten_once_its_jobs_are_cancelled(chromium: Browser) -> None:
    context = chromium.new_context()
    app = WorkerOrchestrator("memory://")
    with served(app) as host:
        host.run(deployed_without(app, "old_name"))
        watched = Watched(context, host.site)
        watched.expects(HTTPStatus.NOT_FOUND)  # the page of a worker that is gone may ask for it once more
        page = watched.open("overview")
        expect(page.get_by_text("1 job waits for worker old_name, which no running node has")).to_be_visible()
        expect(page.get_by_text("or cancel these jobs and forget it")).to_be_visible()
        page = watched.open("workers/old_name")
        expect(page.get_by_role("main")).to_contain_text('give that one the alias "old_name"')
        page.get_by_role("button", name="Forget").click()
        forget = page.get_by_role("dialog").get_by_role("button", name="Forget")
        expect(page.get_by_role("dialog")).to_contain_text("1 job of it has not ended: cancel it first")
        expect(forget).to_be_disabled()
        [job] = host.run(app.find_jobs())
        host.run(app.cancel_job(job.id))
        expect(forget).to_be_enabled()
        forget.click()
        expect(page.get_by_text("No workers yet")).to_be_visible()
        assert host.run(app.workers()) == {}
        context.close()
    assert watched.wrong == []
