"""The audit: every change leaves one event that says who made it, whether a program, a person or the web makes it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from shiftwork import Job, WorkerOrchestrator
from shiftwork.control.access.audit import acting_as, current_actor
from shiftwork.core.model.job_changes import Cancel
from shiftwork.runtime.clock import until_idle
from tests.runtime.stage import DEADLINE, Stage

if TYPE_CHECKING:
    from shiftwork.core.model.event import Event

CHANGES: dict[str, Callable[[WorkerOrchestrator, str], Awaitable[Any]]] = {
    "cancelled": WorkerOrchestrator.cancel_job,
    "retried": WorkerOrchestrator.retry_job,
    "discarded": WorkerOrchestrator.discard_job,
}


async def job_for(app: WorkerOrchestrator, change: str) -> Job[Any]:
    """A job that allows this change."""
    work = app.register_worker("work", lambda: None, execution_mode="triggered")
    job = await work.enqueue()
    if change != "cancelled":
        await (await app.control.store.open()).amend([job.id], Cancel(), app.control.now())
    return job


@pytest.mark.parametrize("what", CHANGES)
async def test_a_program_that_changes_one_job_leaves_one_event(stage: Stage, what: str) -> None:
    heard: list[Event] = []
    app = stage.app()
    app.on("*", heard.append)
    job = await job_for(app, what)
    await CHANGES[what](app, job.id)
    (event,) = await app.events()
    assert (event.name, event.subject) == ("jobs.amended", what)
    assert event.message == f"job {job.id} of work was {what}"
    assert (event.data["by"], event.data["id"], event.data["worker"]) == (current_actor(), job.id, "work")
    assert [one.message for one in heard] == [event.message]


async def test_a_signal_and_changes_of_a_flow_leave_events_that_hooks_can_name(stage: Stage) -> None:
    heard: list[str] = []
    app = stage.app()
    for name in ("job.signalled", "flow.cancelled", "flow.retried"):
        app.on(name, lambda event: heard.append(event.message))
    work = app.register_worker("work", lambda: None, execution_mode="triggered")
    flow = await app.enqueue_flow(work.call())
    with acting_as("ada"):
        await app.send(flow.jobs[0].id, "approval")
    await flow.cancel()
    await flow.retry()
    assert heard == [
        f"signal 'approval' was sent to job {flow.jobs[0].id}",
        f"flow {flow.id} was cancelled: 1 job",
        f"flow {flow.id} was retried: 1 job",
    ]
    sent = (await app.events())[0]
    assert (sent.subject, sent.data) == (flow.jobs[0].id, {"by": "ada", "signal": "approval"})


async def test_a_signal_counts_as_sent_even_if_its_event_cannot_be_recorded(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []
    app = stage.faulty_app()
    app.on("job.signalled", lambda event: heard.append(event.message))
    job = await app.register_worker("work", lambda: None, execution_mode="triggered").enqueue()
    stage.faults.fail("record")
    await app.send(job.id, "approval")
    sent = f"signal 'approval' was sent to job {job.id}"
    assert heard == [sent]
    assert caplog.messages == [
        f"{sent}, but the event job.signalled could not be recorded: the store is away, says the test"
    ]
    assert [signal.name for signal in (await app.control.jobs.get_shown(job.id))[2].signals] == ["approval"]


async def test_a_program_that_triggers_a_worker_leaves_one_event(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("work", lambda: None, execution_mode="triggered")
    await app.start()
    with acting_as("ada"):
        assert await app.trigger_worker("work")
    (event,) = [event for event in await app.events() if event.name == "job.triggered"]
    (job,) = await app.find_jobs()
    assert (event.subject, event.data) == (job.id, {"by": "ada", "worker": "work"})


async def test_a_change_that_is_refused_leaves_no_event(stage: Stage) -> None:
    app = stage.app()
    work = app.register_worker("work", lambda: None, execution_mode="triggered")
    await app.start()
    job = await work.enqueue()
    await job.ended(DEADLINE)
    await until_idle()
    before = await app.events()
    with pytest.raises(Exception, match="has ended already"):
        await app.cancel_job(job.id)
    with pytest.raises(Exception, match="no job has the id"):
        await app.discard_job("nope")
    await app.disable_worker("work")
    assert await app.trigger_worker("work") is False
    assert [event.name for event in await app.events()][len(before) :] == ["worker.disabled"]
