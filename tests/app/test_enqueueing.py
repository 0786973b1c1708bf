"""Enqueueing: options, uniqueness, from synchronous code, many at once."""

import asyncio
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from msgspec.structs import replace

from shiftwork import (
    ConfigurationError,
    Job,
    JobPriority,
    JobStateError,
    JobStatus,
    LifecycleError,
    PayloadTypeError,
    UnknownJobError,
    UnknownOptionError,
    UnknownPoolError,
    UnknownWorkerError,
    WorkerOrchestrator,
)
from shiftwork.control.jobs.filter import JobSearch
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import CheckedJobOptions, JobRecord, NewJob
from shiftwork.handles.options import JobOptions
from shiftwork.handles.worker import Call, Worker
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.store.memory import MemoryStore
from tests.runtime.stage import DEADLINE, Act, Stage, started, status, statuses


def task_of(app: WorkerOrchestrator, act: Act | None = None) -> Worker[[int], int]:
    @app.task()
    async def work(n: int) -> int:
        return n

    return work


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_delay_is_waited_for_to_the_moment(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work = task_of(app)
    await app.start()
    job = await work.with_options(delay_seconds=30).enqueue(1)
    assert (job.status, job.record.run_at) == (JobStatus.SCHEDULED, clock.now() + 30)
    await clock.advance(29.9)
    assert await status(job) is JobStatus.SCHEDULED
    await clock.advance(0.1)
    assert await status(job) is JobStatus.COMPLETED


@pytest.mark.parametrize(
    "at",
    [
        lambda now: now + 60,
        lambda now: datetime.fromtimestamp(now + 60, UTC),
        lambda now: datetime.fromtimestamp(now, UTC).astimezone() + timedelta(seconds=60),
        lambda now: int(now) + 60,
    ],
)
async def test_run_at_is_an_instant_in_whatever_zone(
    stage: Stage, clock: ManualClock, at: Callable[[float], Any]
) -> None:
    app = stage.app()
    job = await task_of(app).with_options(run_at=at(clock.now())).enqueue(1)
    assert job.record.run_at == pytest.approx(clock.now() + 60)


async def test_the_time_that_is_given_last_holds(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work, now = task_of(app), clock.now()
    delayed = work.with_options(run_at=now + 60).with_options(delay_seconds=5)
    assert (await delayed.enqueue(1)).run_at == now + 5
    assert (await delayed.with_options(run_at=now + 60).enqueue(1)).run_at == now + 60


async def test_a_time_that_has_passed_is_now(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    job = await task_of(app).with_options(run_at=clock.now() - 60).enqueue(1)
    assert job.status is JobStatus.QUEUED


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"run_at": datetime(2030, 1, 1)}, "work: run_at 2030-01-01 00:00:00 has no time zone"),  # noqa: DTZ001
        ({"run_at": 5.0, "delay_seconds": 5}, "work: give delay_seconds or run_at, not both"),
        (
            {"delay_seconds": float("nan")},
            "work: delay_seconds must be a time, such as .*, not nan",
        ),
        ({"delay_seconds": "soon"}, "work: delay_seconds must be a time, such as .*, not 'soon'"),
        ({"run_at": float("inf")}, "work: run_at must be a datetime with a time zone, or epoch seconds, not inf"),
        ({"run_at": "tomorrow"}, "work: run_at must be"),
        ({"priority": 7}, "work: priority must be a JobPriority, not 7"),
        ({"priority": "high"}, "work: priority must be a JobPriority, not 'high'"),
        ({"unique_key": ""}, "work: unique_key must be a non-empty string, not ''"),
        ({"unique_key": 5}, "work: unique_key must be a non-empty string"),
        ({"job_id": b"x"}, "work: job_id must be a non-empty string"),
    ],
)
async def test_options_that_make_no_sense_are_refused(stage: Stage, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PayloadTypeError, match=words):
        task_of(stage.app()).with_options(**options)


async def test_the_lowest_priority_is_a_priority(stage: Stage) -> None:
    app = stage.app()

    @app.task(priority=JobPriority.HIGH)
    async def work() -> None: ...

    assert (await work.enqueue()).priority is JobPriority.HIGH
    assert (await work.with_options(priority=JobPriority.LOW).enqueue()).priority is JobPriority.LOW


async def test_options_add_up_and_leave_the_worker_as_it_was(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work = task_of(app)
    special = work.with_options(priority=JobPriority.HIGH).with_options(delay_seconds=5)
    job = await special.enqueue(1)
    assert (job.priority, job.record.run_at) == (JobPriority.HIGH, clock.now() + 5)
    ordinary = await work.enqueue(1)
    assert (ordinary.priority, ordinary.record.run_at) == (JobPriority.NORMAL, clock.now())


# ── once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_unique_key_returns_the_job_there_is_until_it_has_ended(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered").with_options(unique_key="a.png")
    await app.start()
    first = await worker.enqueue()
    assert (await worker.enqueue()).id == first.id
    await until_idle()
    twin = await worker.enqueue()
    assert (twin.id, twin.status) == (first.id, JobStatus.PROCESSING)
    await act.finish("only once")
    assert await twin.result(DEADLINE) == "only once"
    again = await worker.enqueue()
    assert again.id != first.id
    assert act.started <= 2


@pytest.mark.parametrize("end", ["fail", "cancel"])
async def test_a_unique_key_is_free_after_any_end(stage: Stage, end: str) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0).with_options(unique_key="k")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await (act.fail() if end == "fail" else app.cancel_job(job.id))
    await until_idle()
    assert not (await status(job)).live
    assert (await worker.enqueue()).id != job.id


async def test_a_job_that_is_to_be_retried_still_has_its_unique_key(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered").with_options(unique_key="k")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    assert await status(job) is JobStatus.FAILED
    assert (await worker.enqueue()).id == job.id


async def test_unique_keys_of_different_workers_do_not_meet(stage: Stage) -> None:
    app = stage.app()
    a = app.register_worker("a", lambda: None, execution_mode="triggered").with_options(unique_key="k")
    b = app.register_worker("b", lambda: None, execution_mode="triggered").with_options(unique_key="k")
    assert (await a.enqueue()).id != (await b.enqueue()).id


async def test_an_id_of_ones_own_makes_an_enqueue_repeatable(stage: Stage) -> None:
    app = stage.app()
    once = task_of(app).with_options(job_id="invoice-17")
    first, second = await once.enqueue(1), await once.enqueue(2)
    assert first.id == second.id == "invoice-17"
    await app.start()
    assert await first.result(DEADLINE) == 1
    third = await once.enqueue(3)
    assert (third.id, third.status) == ("invoice-17", JobStatus.COMPLETED)
    assert await third.result(DEADLINE) == 1
    assert len(await app.find_jobs()) == 1


async def test_an_id_that_a_job_of_another_worker_has_is_refused(stage: Stage) -> None:
    app = stage.app()
    work = task_of(app)
    other = app.register_worker("other", lambda: None, execution_mode="triggered", aliases=["former"])
    await work.with_options(job_id="order-17").enqueue(1)
    taken = other.with_options(job_id="order-17")
    refused = "the id 'order-17' is taken by a job of work: nothing was added for it"
    for adding in (taken.enqueue(), app.enqueue_many([other.call(), taken.call()]), app.enqueue_flow(taken.call())):
        with pytest.raises(JobStateError, match=refused):
            await adding
    former, _ = await app.control.jobs.enqueue("former", {}, CheckedJobOptions(job_id="renamed"))
    assert (await other.with_options(job_id="renamed").enqueue()).id == former.id


# ── many ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_many_are_answered_in_order_whether_they_are_new_or_not(stage: Stage) -> None:
    app = stage.app()
    work = task_of(app)
    unique = work.with_options(unique_key="k")
    there = await unique.enqueue(0)
    jobs = await app.enqueue_many([work.call(1), unique.call(2), work.call(3), unique.call(4)])
    assert [job.payload["n"] for job in jobs] == [1, 0, 3, 0]
    assert [job.id == there.id for job in jobs] == [False, True, False, True]
    assert await app.enqueue_many([]) == []
    assert len(await app.enqueue_many(work.call(n) for n in range(3))) == 3


async def test_many_of_several_workers_have_each_the_pool_and_the_result_of_its_own(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("slow", priority_aging_seconds=7.0)
    work = task_of(app)

    @app.task(pool="slow", priority=JobPriority.HIGH)
    async def when(n: int) -> datetime:
        return datetime.fromtimestamp(n, UTC)

    await app.start()
    jobs = await app.enqueue_many([work.call(1), when.call(2), work.call(3)])
    assert [job.record.head_start for job in jobs] == [3600.0, JobPriority.HIGH * 7.0, 3600.0]
    await stage.clock.advance(1.0)
    assert [await job.result() for job in jobs] == [1, datetime.fromtimestamp(2, UTC), 3]


async def test_many_are_added_in_one_step(stage: Stage) -> None:
    app = stage.faulty_app()
    work = task_of(app)
    await app.enqueue_many([work.call(n) for n in range(1000)])
    assert stage.faults.calls["add"] == 1
    assert (await app.get_pool_dashboard())["default"]["queue_depth"] == 1000


@pytest.mark.parametrize("blocking", [False, True])
async def test_none_of_many_is_added_if_one_cannot_have_its_id(stage: Stage, blocking: bool) -> None:  # noqa: FBT001
    app = stage.faulty_app()
    work = task_of(app)
    other = app.register_worker("other", lambda: None, execution_mode="triggered")
    submission = app.control.submission

    async def add(*calls: Call[Any]) -> list[Job[Any]]:
        if blocking:
            return await asyncio.to_thread(submission.submit_blocking, calls, "await app.enqueue_many(…)")
        return await app.enqueue_many(calls)

    await work.with_options(job_id="17").enqueue(1)
    await other.enqueue()
    before = [job.id for job in await app.find_jobs()]
    with pytest.raises(JobStateError, match="the id '17' is taken by a job of work"):
        await add(other.call(), other.with_options(job_id="17").call(), work.call(2))
    assert [job.id for job in await app.find_jobs()] == before
    with pytest.raises(JobStateError, match="two calls, of work and of other, have the job_id '18': nothing was added"):
        await add(work.with_options(job_id="18").call(2), other.with_options(job_id="18").call())
    assert [job.id for job in await app.find_jobs()] == before

    named = [work.with_options(job_id=id).call(3) for id in ("17", "19", "19")]
    assert [(job.id, job.payload["n"]) for job in await add(*named)] == [("17", 1), ("19", 3), ("19", 3)]


async def test_only_many_with_ids_of_their_own_are_looked_up_before_they_are_added(stage: Stage) -> None:
    app = stage.faulty_app()
    work = task_of(app)
    await work.enqueue(1)
    await work.with_options(job_id="17").enqueue(1)
    await app.enqueue_many([work.call(2), work.call(3)])
    assert stage.faults.calls["get"] == 0
    await app.enqueue_many([work.call(4), work.with_options(job_id="17").call(5)])
    assert stage.faults.calls["get"] == 1


async def test_a_job_of_another_worker_that_takes_an_id_meanwhile_is_found_after_adding(stage: Stage) -> None:
    app = stage.faulty_app()
    other = app.register_worker("other", lambda: None, execution_mode="triggered")
    rival = task_of(stage.app())
    looked = stage.faults.hold("get")
    adding = asyncio.create_task(app.enqueue_many([other.call(), other.with_options(job_id="17").call()]))
    await until_idle()
    await rival.with_options(job_id="17").enqueue(1)
    looked.set()
    with pytest.raises(JobStateError, match="the id '17' is taken by a job of work"):
        await adding


async def test_a_job_for_an_unregistered_pool_is_refused(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("mail")

    @app.task(pool="mial")
    async def send() -> None: ...

    with pytest.raises(UnknownPoolError, match="there is no pool 'mial': did you mean 'mail'"):
        await send.enqueue()


# ── from synchronous code ────────────────────────────────────────────────────────────────────────────────────────────


def test_from_synchronous_code_before_anything_runs() -> None:
    app = WorkerOrchestrator("memory://")
    work = task_of(app)
    jobs = [work.enqueue_blocking(n) for n in range(3)]
    assert [job.status for job in jobs] == [JobStatus.QUEUED] * 3

    async def run() -> list[int]:
        async with started(app):
            return [await job.result(DEADLINE) for job in jobs]

    assert asyncio.run(run()) == [0, 1, 2]


async def test_from_a_thread_while_it_runs() -> None:
    app = WorkerOrchestrator("memory://")
    work = task_of(app)
    async with started(app):
        jobs = await asyncio.gather(*[asyncio.to_thread(work.enqueue_blocking, n) for n in range(10)])
        assert [await job.result(DEADLINE) for job in jobs] == list(range(10))


async def test_from_a_plain_function_that_is_itself_a_job() -> None:
    app = WorkerOrchestrator("memory://")
    work = task_of(app)

    @app.task()
    def parent() -> str:
        return work.enqueue_blocking(7).id

    async with started(app):
        child = await app.get_job(await (await parent.enqueue()).result(DEADLINE))
        assert await child.result(DEADLINE) == 7


def test_type_checkers_know_every_option_of_a_job_and_every_filter() -> None:
    assert get_type_hints(JobOptions).keys() == {*CheckedJobOptions.__struct_fields__} - {"cause"}
    assert get_type_hints(JobSearch).keys() == {*JobFilter.__struct_fields__}


def test_an_unknown_option_of_a_job_names_the_nearest() -> None:
    work = task_of(WorkerOrchestrator("memory://"))
    with pytest.raises(UnknownOptionError, match="work: a job has no option 'countdown'; did you mean 'delay_seconds'"):
        work.with_options(countdown=5)  # type: ignore[call-arg]


def test_a_delay_is_a_duration() -> None:
    work = task_of(WorkerOrchestrator("memory://"))
    for written in (5400, "1h30m", timedelta(minutes=90)):
        assert work.with_options(delay_seconds=written).call(1).options.delay_seconds == 5400


async def test_on_an_event_loop_it_is_refused_with_the_remedy(stage: Stage) -> None:
    app = stage.app()
    work = task_of(app)
    with pytest.raises(LifecycleError, match=r"use `await work.enqueue\(…\)` instead"):
        work.enqueue_blocking(1)
    await app.start()
    job = await work.enqueue(1)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: work.enqueue_blocking(1), "await work.enqueue(…)"),
        (job.blocking.result, "await job.result()"),
        (app.blocking.get_health, "await app.get_health(…)"),
        (app.blocking.run, "await app.run()"),
    ]
    for call, instead in calls:
        with pytest.raises(LifecycleError, match=f"use `{re.escape(instead)}` instead"):
            call()
    assert [found.id for found in await app.find_jobs()] == [job.id]


async def test_a_wrong_argument_is_refused_in_the_callers_thread(stage: Stage) -> None:
    work = task_of(stage.app())
    with pytest.raises(PayloadTypeError):
        await asyncio.to_thread(work.enqueue_blocking, "wrong")  # type: ignore[arg-type]


async def test_after_a_failed_start_and_after_a_stop_it_still_works(stage: Stage) -> None:
    app = WorkerOrchestrator("memory://")
    work = task_of(app)
    app.register_worker("bad", lambda: None, depends_on=["nobody"])
    with pytest.raises(Exception, match="nobody"):
        await app.start()
    job = await asyncio.to_thread(work.enqueue_blocking, 1)
    assert job.status is JobStatus.QUEUED
    await app.close()
    assert [thread.name for thread in threading.enumerate()].count("shiftwork pulse") == 0


# ── looking for jobs ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_are_found_by_what_they_are(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    app.register_pool("mail")
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    other = app.register_worker("send", lambda: None, execution_mode="triggered", pool="mail")
    await app.start()
    old = await worker.enqueue()
    await clock.advance(10)
    middle = clock.now() - 5
    await act.fail(ValueError("smtp: no route"))
    new = await worker.with_options(unique_key="k").enqueue()
    mail = await other.with_options(delay_seconds=100).enqueue()
    await until_idle()

    async def found(**wanted: Any) -> set[str]:
        return {job.id for job in await app.find_jobs(**wanted)}

    assert await found() == {old.id, new.id, mail.id}
    assert await found(status="dead") == {old.id}
    assert await found(status=JobStatus.PROCESSING) == {new.id}
    assert await found(status=["dead", "scheduled"]) == {old.id, mail.id}
    assert await found(worker="act") == {old.id, new.id}
    assert await found(pool="mail") == {mail.id}
    assert await found(unique_key="k") == {new.id}
    assert await found(error="no route") == {old.id}
    assert await found(created_after=middle) == {new.id, mail.id}
    assert await found(created_before=middle) == {old.id}
    assert await found(ids=[old.id, "nobody"]) == {old.id}
    newest_first = await app.find_jobs(limit=2)
    assert {job.id for job in newest_first} == {new.id, mail.id}
    assert await found(after=newest_first[-1].id) == {old.id}


async def test_instants_may_be_datetimes(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work = task_of(app)
    await work.enqueue(1)
    await clock.advance(10)
    middle = datetime.fromtimestamp(clock.now() - 5, UTC)
    new = await work.enqueue(2)
    assert [job.id for job in await app.find_jobs(created_after=middle)] == [new.id]
    assert len(await app.find_jobs(created_before=middle)) == 1


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"staus": "dead"}, "'staus': did you mean 'status'"),
        ({"status": "deed"}, "'deed': did you mean 'dead'"),
        ({"status": 5}, "status"),
        ({"limit": "many"}, "limit"),
        ({"limit": -1}, "limit"),
        ({"created_after": "yesterday"}, "created_after"),
        ({"worker": 5}, "worker"),
    ],
)
async def test_a_search_for_what_cannot_be_is_refused(stage: Stage, wanted: dict[str, Any], words: str) -> None:
    app = stage.app()
    with pytest.raises(ConfigurationError, match=words):
        await app.find_jobs(**wanted)


async def test_an_unknown_job(stage: Stage) -> None:
    app = stage.app()
    for ask in (app.get_job, app.explain_job, app.cancel_job, app.retry_job, app.discard_job):
        with pytest.raises(UnknownJobError, match="no job has the id 'nobody'"):
            await ask("nobody")


async def test_a_handle_of_a_job_that_is_gone(stage: Stage) -> None:
    app = stage.app()
    work = task_of(app)
    await app.start()
    job = await work.enqueue(1)
    await job.result(DEADLINE)
    await app.discard_job(job.id)
    with pytest.raises(UnknownJobError, match=f"job {job.id} of work no longer exists"):
        await job.refresh()


async def test_completed_jobs_are_pruned_after_their_time_and_dead_ones_are_not(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", keep_completed_seconds=100, max_retries=0)
    await app.start()
    jobs = await app.enqueue_many([worker.call(), worker.call()])
    await until_idle()
    await act.finish()
    await act.fail()
    await clock.advance(99)
    assert sorted(await statuses(jobs)) == ["completed", "dead"]
    await clock.advance(32)
    assert [job.status for job in await app.find_jobs()] == [JobStatus.DEAD]


async def test_more_than_one_batch_is_pruned_without_waiting(stage: Stage, clock: ManualClock) -> None:
    now = clock.now()
    jobs = [JobRecord.of(NewJob(id=f"{n}", worker="w", pool="p", payload=b"", run_at=now), now) for n in range(2_500)]
    ended = [replace(job, status=JobStatus.COMPLETED, ended_at=now, keep_until=now) for job in jobs]
    await stage.store.restore(ended, now)
    app = stage.app()
    await app.start()
    await clock.advance(1)
    assert await app.find_jobs() == []


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────────────────────


class RestlessClock(ManualClock):
    """Moves on whenever it is read."""

    def now(self) -> float:
        self.jump(1.0)
        return super().now()


@pytest.mark.parametrize("how", ["enqueue", "enqueue_many", "by name"])
async def test_the_clock_is_read_once_so_a_job_without_delay_is_due_when_it_is_created(how: str) -> None:
    app = WorkerOrchestrator(MemoryStore(), clock=RestlessClock())
    work = task_of(app)
    if how == "enqueue":
        jobs = [await work.enqueue(1)]
    elif how == "enqueue_many":
        jobs = await app.enqueue_many([work.call(n) for n in range(3)])
    else:
        jobs = [(await app.control.jobs.enqueue("work", {"n": 1}))[0]]
    for job in jobs:
        assert (job.status, job.record.run_at) == (JobStatus.QUEUED, job.record.created_at)
        stored = (await app.get_job(job.id)).record
        assert (stored.run_at, stored.created_at) == (job.record.run_at, job.record.created_at)
    assert len({job.record.created_at for job in jobs}) == 1


# ── by name ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_by_name_from_a_process_that_has_not_the_function(stage: Stage) -> None:
    server, client = stage.app(), stage.app()

    @server.task(priority=JobPriority.HIGH, concurrency_key="user")
    async def greet(user: str, times: int = 1) -> str:
        return f"hello {user}" * times

    await server.start()
    job, new = await client.control.jobs.enqueue("greet", {"user": "Ada"})
    assert (new, job.priority, job.record.key) == (True, JobPriority.HIGH, "Ada")
    assert await job.result(DEADLINE) == "hello Ada"
    with pytest.raises(PayloadTypeError, match="needs the argument 'user'"):
        await client.control.jobs.enqueue("greet", {})
    for app in (client, server):
        with pytest.raises(PayloadTypeError, match="'tmes': did you mean 'times'"):
            await app.control.jobs.enqueue("greet", {"user": "Ada", "tmes": 2})


async def test_by_an_unknown_name(stage: Stage) -> None:
    app = stage.app()
    task_of(app)
    with pytest.raises(UnknownWorkerError, match="there is no worker 'wrk': did you mean 'work'"):
        await app.control.jobs.enqueue("wrk", {})


async def test_by_name_an_existing_job_is_reported_as_such(stage: Stage) -> None:
    app = stage.app()
    task_of(app)
    first, new = await app.control.jobs.enqueue("work", {"n": 1}, CheckedJobOptions(job_id="mine"))
    again, still_new = await app.control.jobs.enqueue("work", {"n": 1}, CheckedJobOptions(job_id="mine"))
    assert (first.id, again.id, new, still_new) == ("mine", "mine", True, False)


async def test_by_name_a_scheduled_worker_takes_no_payload(stage: Stage) -> None:
    server, client = stage.app(), stage.app()
    server.register_worker("tick", lambda: None)
    await server.start()
    with pytest.raises(PayloadTypeError, match="tick"):
        await client.control.jobs.enqueue("tick", {"n": 1})
    job, _ = await client.control.jobs.enqueue("tick", {})
    assert await job.ended(DEADLINE) is JobStatus.COMPLETED
