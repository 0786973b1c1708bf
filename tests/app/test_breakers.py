"""Breakers that people close and hold open: at once, everywhere, and recorded."""

from collections.abc import Sequence
from typing import Any

import pytest

from shiftwork import Breaker, ConfigurationError, JobStatus, UnknownBreakerError, WorkerOrchestrator
from shiftwork.control.access.audit import acting_as
from shiftwork.core.model.doc_types import Doc
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import Act, Stage, status

BANK = Breaker(failures=2, window_seconds=60, cool_down_seconds=30, name="bank")


def guarded(stage: Stage, act: Act, **options: Any) -> tuple[WorkerOrchestrator, Worker[..., Any]]:
    app = stage.app(**options)
    worker = app.register_worker("charge", act, execution_mode="triggered", max_retries=0, breaker=BANK)
    app.register_worker("refund", Act("refund"), execution_mode="triggered", max_retries=0, breaker=BANK)
    return app, worker


async def trip(worker: Worker[..., Any], act: Act) -> None:
    """Let it open by failures."""
    for _ in range(2):
        await worker.enqueue()
        await until_idle()
        await act.fail()
    await until_idle()


async def test_breakers_are_listed_with_what_they_guard(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    (breaker,) = await app.get_breakers()
    assert (breaker.name, breaker.workers, breaker.state, breaker.since) == (
        "bank",
        ["charge", "refund"],
        "closed",
        None,
    )
    await trip(worker, act)
    (breaker,) = await app.get_breakers()
    now = clock.now()
    assert (breaker.state, breaker.since, breaker.failures, breaker.until) == ("open", now, 2, now + 30)
    await clock.advance(30)
    assert (await app.get_breakers())[0].state == "half-open"


async def test_closed_by_hand_its_jobs_start_at_once_and_its_failures_are_forgotten(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    await trip(worker, act)
    job = await worker.enqueue()
    await clock.advance(1)
    assert act.running == 0
    with acting_as("ada"):
        closed = await app.close_breaker("bank", "the bank is back")
    await until_idle()
    assert (closed.state, closed.failures, act.running) == ("closed", 0, 1)
    await act.fail()
    assert (await app.get_breakers())[0].state == "closed", "one failure of two"
    assert await status(job) is JobStatus.DEAD
    event = [event for event in await app.events() if event.name == "breaker.closed"][-1]
    assert event.message == "breaker bank is closed by hand: the bank is back"
    assert event.data == {"by": "ada", "reason": "the bank is back"}


async def test_held_open_nothing_starts_or_probes_until_a_person_closes_it(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    await worker.enqueue()
    await until_idle()
    with acting_as("ada"):
        await app.open_breaker("bank", "maintenance")
    job = await worker.enqueue()
    await act.finish()
    await clock.advance(120)
    assert act.running == 0
    (wait,) = (await app.explain_job(job.id)).waits
    assert (wait.code, wait.why, wait.until) == ("breaker", "breaker bank is held open by ada: maintenance", None)
    (problem,) = [one for one in (await app.get_health())["problems"] if one["code"] == "breaker_open"]
    assert problem["message"] == "breaker bank is held open by ada: maintenance"
    assert problem["remedy"] == "when its runs may start again: shiftwork breakers close bank"
    assert (problem["target"], problem["since"]) == ("breaker:bank", clock.now() - 120)
    await app.close_breaker("bank")
    await until_idle()
    assert act.running == 1


async def test_held_open_for_a_time_it_is_probed_then(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    held = await app.open_breaker("bank", for_seconds="10m")
    assert held.until == clock.now() + 600
    (problem,) = [one for one in (await app.get_health())["problems"] if one["code"] == "breaker_open"]
    assert problem["message"].endswith("; one run probes it in 600 s")
    await app.enqueue_many([worker.call(), worker.call()])
    await clock.advance(599)
    assert act.running == 0
    await clock.advance(1)
    assert act.running == 1
    await act.finish()
    await until_idle()
    (breaker,) = await app.get_breakers()
    assert (breaker.state, breaker.forced_by) == ("closed", None)


async def test_a_run_that_started_before_it_was_closed_does_not_open_it_again(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(4)])
    await until_idle()
    for _ in range(2):
        await act.fail()
    assert (await app.get_breakers())[0].state == "open"
    await clock.advance(1)
    await app.close_breaker("bank")
    for _ in range(2):
        await act.fail()
    assert (await app.get_breakers())[0].state == "closed"


@pytest.mark.parametrize("person", ["opens", "closes"])
async def test_a_node_that_decides_at_the_same_moment_does_not_overwrite_the_person(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, person: str
) -> None:
    """The person's change gets in after the node has read the breaker, and before it writes it."""
    act = Act()
    app, worker = guarded(stage, act)
    await app.start()
    await trip(worker, act)
    await worker.enqueue()
    await clock.advance(30)
    assert act.running == 1, "the probe"
    await clock.advance(1)
    put, raced = stage.store.put, list[str]()

    async def interleaved(docs: Sequence[Doc]) -> list[bool]:
        if not raced and any(doc.kind == "breaker" for doc in docs):
            raced.append(person)
            await (app.open_breaker("bank", "wait") if person == "opens" else app.close_breaker("bank", "go"))
        return await put(docs)

    monkeypatch.setattr(stage.store, "put", interleaved)
    await (act.finish() if person == "opens" else act.fail())
    await until_idle()
    (breaker,) = await app.get_breakers()
    assert raced == [person]
    assert breaker.state == ("open" if person == "opens" else "closed")
    assert (breaker.forced_by is not None, breaker.failures) == (person == "opens", 2 if person == "opens" else 0)


async def test_an_unknown_breaker_and_a_wrong_time_are_named(stage: Stage) -> None:
    app, _ = guarded(stage, Act())
    await app.start()
    with pytest.raises(UnknownBreakerError, match="there is no breaker 'bnak': did you mean 'bank'"):
        await app.close_breaker("bnak")
    for wrong in (0, "soon"):
        with pytest.raises(ConfigurationError, match="for_seconds must be"):
            await app.open_breaker("bank", for_seconds=wrong)
