"""A worker that is gone for good is forgotten, unless something still needs it."""

import pytest

from shiftwork import Breaker, JobStateError, JobStatus, UnknownWorkerError, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock
from tests.runtime.stage import Act, Stage, status


async def test_a_forgotten_worker_leaves_only_its_ended_jobs(stage: Stage, clock: ManualClock) -> None:
    old, new = stage.app(), stage.app()

    @old.task(name="gone", max_retries=0, breaker=Breaker(failures=1))
    async def gone(x: int) -> None:
        raise RuntimeError

    old.register_worker("tick", Act(), cron="0 3 * * *", max_running=1)
    await old.reschedule_worker("tick", cron="0 4 * * *")
    await old.start()
    job = await gone.enqueue(1)
    await clock.advance(1)
    assert await status(job) is JobStatus.DEAD
    await old.disable_worker("gone", "no longer needed")
    await stage.stop(old)
    new.register_worker("kept", lambda: None, execution_mode="triggered")
    await new.start()
    for name in ("gone", "tick"):
        await new.forget_worker(name)
    assert set(await new.workers()) == {"kept"}
    left = {(doc.kind, doc.name) for doc in await stage.store.docs() if doc.name in {"gone", "tick"}}
    assert left == set()
    assert (await stage.store.survey(["gone"], clock.now())).lanes["gone"].state.enabled
    assert await status(job) is JobStatus.DEAD
    events = [(event.name, event.subject, "by" in event.data) for event in await new.events()]
    assert events[-2:] == [("worker.forgotten", "gone", True), ("worker.forgotten", "tick", True)]
    with pytest.raises(UnknownWorkerError, match="no worker 'gone'"):
        await new.forget_worker("gone")


async def test_a_worker_that_is_needed_is_not_forgotten(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, client = stage.app(), WorkerOrchestrator(stage.store, clock=clock)
    worker = app.register_worker("act", act, execution_mode="triggered", aliases=["old"])
    with pytest.raises(UnknownWorkerError):
        await client.forget_worker("act")
    await app.start()
    for name in ("act", "old"):
        with pytest.raises(JobStateError, match=rf"node .+ still runs worker {name}, or one that has it as an alias"):
            await client.forget_worker(name)
    await client.put_schedule("acts", worker.call(), interval_seconds=60)
    first = worker.call()
    await app.enqueue_flow(first, worker.call().after(first))
    await clock.advance(1)
    await stage.stop(app)
    with pytest.raises(JobStateError, match="this app registers worker act; remove it from the code first"):
        await app.forget_worker("act")
    with pytest.raises(JobStateError, match=r"schedule acts runs worker act; .* shiftwork schedule delete acts"):
        await client.forget_worker("act")
    await client.delete_schedule("acts")
    with pytest.raises(JobStateError, match=r"2 jobs wait for worker act: .* shiftwork cancel --waiting --worker act"):
        await client.forget_worker("act")
    await client.cancel_jobs(worker="act")
    await client.forget_worker("act")
    assert set(await client.workers()) == {"old"}
