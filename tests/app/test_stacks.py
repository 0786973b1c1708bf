"""What a running job is doing, asked through the store: a job here, one that holds everything up, an unknown one."""

import asyncio
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shiftwork import JobStateError, NodeSilentError, UnknownJobError, WorkerOrchestrator
from shiftwork.control.jobs import job_stack as stacks
from shiftwork.core.model.doc_types import MOST_STACK_REQUESTS, STACK_REQUEST_SECONDS, StackRequest
from shiftwork.runtime.clock import until_idle
from shiftwork.runtime.node.stack_responder import change_stack_requests, read_stack_requests
from shiftwork.runtime.running.run_stacks import LONGEST_STACKS
from shiftwork.store.memory import MemoryStore
from shiftwork.views.instances import JobStack
from tests.runtime.stage import DEADLINE, Act, Hatch, Stage, started


async def test_the_stack_of_a_coroutine_is_where_it_waits(stage: Stage) -> None:
    app, outside, act = stage.app(), stage.app(), Act()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = [await worker.enqueue() for _ in range(2)]
    await until_idle()
    seen = await outside.job_stack(jobs[0].id)
    assert (seen.job_id, seen.pid) == (jobs[0].id, os.getpid())
    assert seen.instance == (await app.get_job(jobs[0].id)).record.instance
    own, *others = seen.stack.split("\n\n")
    assert re.match(rf'job {jobs[0].id} of act:\n  File ".*stage.py", line \d+, in __call__\n    return await f', own)
    assert any(section.startswith(f"job {jobs[1].id} of act:\n  File") for section in others), "its neighbour, too"
    event = (await app.events())[-1]
    assert (event.name, event.subject, event.data["worker"]) == ("job.inspected", jobs[0].id, "act")
    assert "by" in event.data
    assert await read_stack_requests(stage.store) == {}, "nothing is left behind"


async def test_the_stack_of_a_thread_is_what_it_calls(stage: Stage) -> None:
    app, hatch = stage.app(), Hatch()
    worker = app.register_worker("hatch", hatch.wait, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await hatch.reached()
    own = (await app.job_stack(job.id)).stack.partition("\n\n")[0]
    assert own.startswith(f"job {job.id} of hatch:\n")
    assert "in wait" in own
    assert "in _bootstrap" not in own
    hatch.open()
    await job.ended(DEADLINE)


async def test_what_many_jobs_are_doing_is_reported_as_far_as_it_fits(stage: Stage) -> None:
    app, act = stage.app(max_concurrent=300), Act()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = [await worker.enqueue() for _ in range(300)]
    await until_idle()
    stack = (await app.job_stack(jobs[-1].id)).stack
    assert stack.startswith(f"job {jobs[-1].id} of act:")
    assert LONGEST_STACKS <= len(stack) < LONGEST_STACKS + 10


async def test_a_coroutine_that_holds_up_the_programs_own_loop_is_seen_from_elsewhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shiftwork.db"
    app, held, go = WorkerOrchestrator(url), threading.Event(), threading.Event()

    @app.task
    async def hold() -> None:
        held.set()
        go.wait(DEADLINE)

    async def look(job_id: str) -> JobStack:
        watcher = WorkerOrchestrator(url)
        try:
            await asyncio.to_thread(held.wait, DEADLINE)
            return await watcher.job_stack(job_id)
        finally:
            await watcher.close()
            go.set()

    with ThreadPoolExecutor(1) as elsewhere:
        async with started(app):
            job = await hold.enqueue()
            asked = elsewhere.submit(asyncio.run, look(job.id))
            own = (await asyncio.wrap_future(asked)).stack.partition("\n\n")[0]
            await job.ended(DEADLINE)
    assert re.match(rf"job {job.id} of hold:\n  File .*, in hold\n    go\.wait", own), own


async def test_only_a_running_job_has_a_stack(stage: Stage) -> None:
    app = stage.app()
    worker = app.register_worker("act", Act(), execution_mode="triggered")
    job = await worker.enqueue()
    with pytest.raises(
        JobStateError, match=rf"job {job.id} is queued, and only a running job.*shiftwork explain {job.id}"
    ):
        await app.job_stack(job.id)
    with pytest.raises(UnknownJobError):
        await app.job_stack("nobody")
    assert await app.events() == []


async def test_a_node_that_does_not_answer_is_named_with_the_remedy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, act = stage.app(), Act()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await stage.crash(app)
    monkeypatch.setattr(stacks, "REPLY_SECONDS", 0.01)
    instance = (await stage.app().get_job(job.id)).record.instance
    with pytest.raises(
        NodeSilentError, match=rf"the node of {instance} did not reply within 0\.01 s; `shiftwork nodes`"
    ):
        await stage.app().job_stack(job.id)
    assert await read_stack_requests(stage.store) == {}
    assert "job.inspected" not in [event.name for event in await stage.app().events()]


async def test_a_run_that_has_given_way_to_another_is_not_shown(stage: Stage) -> None:
    app, act = stage.app(), Act()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    fence = (await job.refresh()).record.fence
    asked = {str(n): StackRequest(job=job.id, fence=n, asked_at=stage.clock.now()) for n in (fence, fence + 1)}
    await change_stack_requests(stage.store, stage.clock.now(), lambda _: asked)
    await until_idle()
    asked = await read_stack_requests(stage.store)
    answered = {request.fence for request in asked.values() if request.reply is not None}
    assert answered == {fence}


async def test_the_mailbox_stays_small() -> None:
    store = MemoryStore()
    await store.open()
    for at in range(2 * MOST_STACK_REQUESTS):
        request = StackRequest(job="j", fence=1, asked_at=float(at) / 100)
        await change_stack_requests(store, 1.0, lambda asked, at=at, request=request: {**asked, str(at): request})  # type: ignore[misc]
    assert [int(key) for key in await read_stack_requests(store)] == list(
        range(MOST_STACK_REQUESTS, 2 * MOST_STACK_REQUESTS)
    )
    await change_stack_requests(store, STACK_REQUEST_SECONDS + 1, lambda asked: asked)
    assert await read_stack_requests(store) == {}
    await store.close()
