"""Dead letters: read why, fix, queue again, or discard; one by one or all that match."""

from typing import Any

import pytest

from shiftwork import Job, JobFailedError, JobStateError, JobStatus, PayloadTypeError, WorkerOrchestrator
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, status, statuses


def picky_of(app: WorkerOrchestrator) -> Worker[[str], str]:
    @app.task(max_retries=0)
    async def picky(path: str) -> str:
        if not path.endswith(".png"):
            raise ValueError(f"{path} is no image")
        return path

    return picky


async def dead_one(app: WorkerOrchestrator) -> Job[str]:
    job = await picky_of(app).enqueue("a.txt")
    await app.start()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    return job


async def test_a_dead_job_shows_what_happened(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    (attempt,) = job.history
    assert (attempt.number, attempt.kind, attempt.error) == (1, "raised", "ValueError: a.txt is no image")
    assert 'raise ValueError(f"{path} is no image")' in (attempt.traceback or "")
    with pytest.raises(JobFailedError, match=f"job {job.id} of picky is dead: ValueError: a.txt is no image"):
        await job.result(DEADLINE)
    found = await app.find_jobs(status="dead")
    assert [dead.id for dead in found] == [job.id]
    assert (await app.get_job(job.id)).payload == {"path": "a.txt"}
    text = (await app.explain_job(job.id)).text
    assert "dead" in text
    assert "a.txt is no image" in text


async def test_it_can_be_fixed_and_queued_again(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    again = await app.retry_job(job.id, payload={"path": "a.png"})
    assert (again.id, again.status, again.attempt) == (job.id, JobStatus.QUEUED, 0)
    assert await again.result(DEADLINE) == "a.png"
    assert len((await job.refresh()).history) == 1, "its history stays"


async def test_it_can_be_queued_again_as_it_is(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    await app.retry_job(job.id)
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert [attempt.number for attempt in job.history] == [1, 1]


async def test_a_payload_that_does_not_fit_is_refused_and_changes_nothing(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    with pytest.raises(PayloadTypeError, match="picky takes no argument 'pth': did you mean 'path'"):
        await app.retry_job(job.id, payload={"pth": "a.png"})
    with pytest.raises(PayloadTypeError, match="'path'"):
        await app.retry_job(job.id, payload={"path": 7})
    assert await status(job) is JobStatus.DEAD


async def test_it_can_be_discarded(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    await app.discard_job(job.id)
    assert await app.find_jobs() == []
    assert (await app.get_pool_dashboard())["default"]["dead"] == 0


async def test_a_process_that_does_not_know_the_worker_can_do_it_too(stage: Stage) -> None:
    app = stage.app()
    job = await dead_one(app)
    client = stage.app()
    assert (await client.get_job(job.id)).payload == {"path": "a.txt"}
    await client.retry_job(job.id, payload={"path": "b.png"})
    assert await job.result(DEADLINE) == "b.png"
    assert await (await client.get_job(job.id)).result(DEADLINE) == "b.png"


async def test_an_edited_payload_moves_the_job_to_its_new_concurrency_key(stage: Stage) -> None:
    app = stage.app()
    act = Act()

    @app.task(max_retries=0, concurrency_key="user")
    async def mail(user: str) -> None:
        if user == "wrong":
            raise ValueError(user)
        await act(None)  # type: ignore[arg-type]

    await app.start()
    job = await mail.enqueue("wrong")
    await job.ended(DEADLINE)
    other = await mail.enqueue("right")
    await until_idle()
    await app.retry_job(job.id, payload={"user": "right"})
    await until_idle()
    assert await statuses([other, job]) == ["processing", "queued"]
    assert act.most == 1


# ── what the state of a job does not allow ───────────────────────────────────────────────────────────────────────────


async def test_orders_that_come_too_early_or_too_late_are_refused(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    running, queued = await app.enqueue_many([worker.call(), worker.call()])
    await until_idle()
    for order, words in (
        (app.retry_job(running.id), "is processing: only dead, cancelled, failed and scheduled"),
        (app.retry_job(queued.id), "is queued: only dead"),
        (app.discard_job(running.id), "is processing: only ended jobs can be discarded; cancel it first"),
        (app.discard_job(queued.id), "is queued: only ended jobs"),
    ):
        with pytest.raises(JobStateError, match=words):
            await order
    await act.finish()
    with pytest.raises(JobStateError, match="is completed: it has ended already"):
        await app.cancel_job(running.id)
    with pytest.raises(JobStateError, match="is completed: only dead"):
        await app.retry_job(running.id)


async def test_a_job_that_is_due_later_can_be_run_now(stage: Stage) -> None:
    app = stage.app()
    picky = picky_of(app)
    await app.start()
    job = await picky.with_options(delay_seconds=1000).enqueue("a.png")
    await app.retry_job(job.id)
    assert await job.result(DEADLINE) == "a.png"


async def test_a_cancelled_job_can_be_queued_again(stage: Stage) -> None:
    app = stage.app()
    job = await picky_of(app).enqueue("a.png")
    assert (await app.cancel_job(job.id)).status is JobStatus.CANCELLED
    assert (await app.retry_job(job.id)).status is JobStatus.QUEUED
    await app.start()
    assert await job.result(DEADLINE) == "a.png"


# ── all that match ───────────────────────────────────────────────────────────────────────────────────────────────────


async def many_dead(stage: Stage, n: int) -> tuple[WorkerOrchestrator, Any]:
    app = stage.app(max_concurrent=100)
    broken = [True]

    @app.task(max_retries=0)
    async def work(n: int) -> int:
        if broken:
            raise ValueError(f"{'odd' if n % 2 else 'even'} and broken")
        return n

    await app.start()
    await app.enqueue_many([work.call(i) for i in range(n)])
    for _ in range(200):
        await until_idle()
        if (await app.get_pool_dashboard())["default"]["dead"] == n:
            break
    assert (await app.get_pool_dashboard())["default"]["dead"] == n
    broken.clear()
    return app, work


async def test_all_that_match_are_queued_again(stage: Stage) -> None:
    app, _ = await many_dead(stage, 20)
    assert await app.retry_jobs(worker="work", error="odd") == 10
    for job in await app.find_jobs(error="odd"):
        await job.ended(DEADLINE)
    board = (await app.get_pool_dashboard())["default"]
    assert (board["completed"], board["dead"]) == (10, 10)
    assert await app.retry_jobs() == 10
    assert await app.retry_jobs(worker="nobody") == 0


async def test_all_that_match_are_discarded_and_no_others(stage: Stage) -> None:
    app, work = await many_dead(stage, 10)
    good = await work.enqueue(1)
    await good.result(DEADLINE)
    assert await app.discard_jobs() == 10
    assert [job.id for job in await app.find_jobs()] == [good.id]
    assert await app.discard_jobs(status="completed") == 1
    assert await app.find_jobs() == []


async def test_a_limit_is_a_limit(stage: Stage) -> None:
    app, _ = await many_dead(stage, 10)
    assert await app.discard_jobs(limit=3) == 3
    assert await app.retry_jobs(limit=0) == 0
    assert (await app.get_pool_dashboard())["default"]["dead"] == 7
    page = await app.find_jobs(limit=2)
    assert await app.discard_jobs(after=page[-1].id) == 5
    assert {job.id for job in await app.find_jobs()} == {job.id for job in page}


async def test_more_than_a_page_of_them(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def work() -> None: ...

    await app.enqueue_many([work.call() for _ in range(2500)])
    assert await app.cancel_jobs(worker="work", limit=1200) == 1200
    assert await app.cancel_jobs(worker="work", status="queued") == 1300
    assert await app.discard_jobs(status="cancelled") == 2500


async def test_cancelling_all_that_match_leaves_ended_ones_alone(stage: Stage, clock: ManualClock) -> None:
    app, work = await many_dead(stage, 4)
    later = await work.with_options(delay_seconds=50).enqueue(1)
    assert await app.cancel_jobs() == 1
    assert await status(later) is JobStatus.CANCELLED
    names = [event for event in await app.events() if event.name == "jobs.amended"]
    assert names[-1].message == "1 job was cancelled"
