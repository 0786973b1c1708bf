"""Options of a single job: its own retries and timeout, an expiry, and tags."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork import (
    Context,
    JobCancelledError,
    JobStatus,
    PayloadTypeError,
    PoolConfig,
    ResultTimeoutError,
    Retry,
    UnknownOptionError,
    WorkerOrchestrator,
)
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.job_parts import RunOptions
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock
from tests.runtime.stage import Act, Stage, instance_of, prefetched_of, statuses


@pytest.fixture
def app() -> WorkerOrchestrator:
    return WorkerOrchestrator("memory://")


# ── what may be written ──────────────────────────────────────────────────────────────────────────────────────────────


def work_of(app: WorkerOrchestrator) -> Worker[Any, Any]:
    @app.task
    async def work() -> None: ...

    return work


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_retries": -1}, "work: max_retries must be a whole number of 0 or more, not -1"),
        ({"max_retries": 1.5}, "max_retries must be a whole number"),
        ({"max_retries": True}, "max_retries must be a whole number"),
        ({"timeout_seconds": 0}, "work: timeout_seconds must be a time above 0, such as .*, not 0"),
        ({"timeout_seconds": "soon"}, "timeout_seconds must be a time above 0"),
        ({"expires_seconds": float("inf")}, "expires_seconds must be a time above 0"),
        ({"tags": "red"}, r"work: tags must be a list of tags, not one string; write tags=\['red'\]"),
        ({"tags": 5}, "work: tags must be a list of strings, not 5"),
        ({"tags": ["red", 5]}, "work: tags must be a list of strings, not of int: 5"),
        ({"tags": [""]}, "work: tags has an empty tag: a tag has at least one character"),
        ({"tags": [" red"]}, "has the tag ' red': .* no space at either end"),
        ({"tags": ["a\nb"]}, "no control characters"),
        ({"tags": ["\ud800"]}, "has the tag"),
        ({"tags": ["x" * 101]}, "work: tags has a tag of 101 characters, .* the limit is 100"),
        ({"tags": [str(n) for n in range(21)]}, "work: tags must have at most 20 tags, not 21"),
    ],
)
def test_a_value_that_cannot_work_is_refused_in_words(
    app: WorkerOrchestrator, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(PayloadTypeError, match=words):
        work_of(app).with_options(**options)


@pytest.mark.parametrize(
    ("option", "words"), [("expires", "did you mean 'expires_seconds'"), ("labels", "did you mean 'tags'")]
)
def test_the_word_of_another_library_gets_the_right_name(app: WorkerOrchestrator, option: str, words: str) -> None:
    options: Any = {option: 5}
    with pytest.raises(UnknownOptionError, match=words):
        work_of(app).with_options(**options)


async def test_options_are_written_as_people_write_them(app: WorkerOrchestrator) -> None:
    special = work_of(app).with_options(
        timeout_seconds="1m30s", expires_seconds=timedelta(hours=1), tags=["b", "a", "b"]
    )
    async with app.testing() as test:
        job = await special.enqueue()
        assert (job.tags, job.expires_at) == (("b", "a"), test.clock.now() + 3600)
        assert job.record.options == RunOptions(timeout_seconds=90.0).packed()
        plain = await work_of(WorkerOrchestrator("memory://")).with_options(tags=None).enqueue()
    assert (plain.tags, plain.expires_at, plain.record.options) == ((), None, None)


# ── retries and timeout ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("of_job", "runs"), [(0, 1), (1, 2), (None, 3)])
async def test_the_retries_of_a_job_win_over_those_of_its_worker(
    app: WorkerOrchestrator, of_job: int | None, runs: int, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_retries=2, retry=Retry(base_seconds=1))
    async def fail() -> None:
        raise ValueError("no")

    async with app.testing() as test:
        await fail.with_options(max_retries=of_job).enqueue()
        ran = await test.advance(hours=1)
    assert [run.attempt for run in ran] == list(range(1, runs + 1))
    assert ran[-1].status is JobStatus.DEAD
    assert f"attempt 1 of {runs} failed" in caplog.text


async def test_an_error_of_a_caller_that_waits_counts_the_job_s_own_retries(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=2)
    async def fail() -> None:
        raise ValueError("no")

    async with app.testing() as test:
        job = await fail.with_options(max_retries=7).enqueue()
        await test.run_pending()
        with pytest.raises(ResultTimeoutError, match="attempt 1 of 8 failed"):
            await job.result(0)


async def test_the_timeout_of_a_job_wins_over_that_of_its_worker(stage: Stage, clock: ManualClock) -> None:
    act, app = Act(), stage.app()
    work = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=60, max_retries=0)
    job, other = await work.with_options(timeout_seconds=5).enqueue(), await work.enqueue()
    began = clock.now()
    await app.start()
    await clock.advance(5)
    assert await statuses([job, other]) == ["dead", "processing"]
    assert job.error == "timed out after 5 s"
    ctx = next(one for one in act.contexts if one.job_id == job.id)
    assert (ctx.timeout_seconds, ctx.worker.timeout_seconds, ctx.deadline) == (5.0, 5.0, began + 5)


async def test_a_job_taken_over_from_a_lost_node_keeps_its_own_options(stage: Stage, clock: ManualClock) -> None:
    lost, act = Act(), Act()
    first, second = stage.app(), stage.app()
    job = (
        await first.register_worker("act", lost, execution_mode="triggered")
        .with_options(timeout_seconds=7, max_retries=0)
        .enqueue()
    )
    await first.start()
    await clock.advance(0)
    await stage.crash(first)
    second.register_worker("act", act, execution_mode="triggered")
    await second.start()
    await clock.advance(60)
    assert (lost.started, [one.timeout_seconds for one in act.contexts]) == (1, [7.0])
    assert (await statuses([job]), job.error) == (["dead"], "timed out after 7 s")


async def test_options_that_cannot_be_decoded_end_their_job_alone(stage: Stage, tolerated: list[str]) -> None:
    tolerated.append("cannot be decoded")
    act, app = Act(), stage.app()
    work = app.register_worker("act", act, execution_mode="triggered")
    good = await work.enqueue()
    call = work.call()
    damaged = replace(call.job(PoolConfig(name="default"), stage.clock.now()), options=b"\xff")
    await stage.store.add([damaged], stage.clock.now())
    await app.start()
    await stage.clock.advance(0)
    assert (act.started, await statuses([good])) == (1, ["processing"])
    bad = await app.get_job(damaged.id)
    assert (bad.status, bad.error) == (JobStatus.DEAD, "its options cannot be decoded; enqueue it again")


# ── expiry ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_job_that_is_not_started_in_time_is_cancelled_with_the_reason(app: WorkerOrchestrator) -> None:
    ran: list[str] = []

    @app.task
    async def work(what: str) -> None:
        ran.append(what)

    urgent = work.with_options(expires_seconds="5m")
    async with app.testing() as test:
        await app.pause_pool("default")
        job, kept = await urgent.enqueue("late"), await work.enqueue("kept")
        assert "; it expires in 5 min if it has not started" in (await app.explain_job(job.id)).text
        await test.advance(seconds=299)
        assert (await job.refresh()).status is JobStatus.QUEUED
        await test.advance(seconds=1)
        assert (await job.refresh()).status is JobStatus.CANCELLED
        assert (job.error, job.ended_at, job.attempts) == (EXPIRED, test.clock.now(), 0)
        assert (await app.explain_job(job.id)).text.endswith(EXPIRED)
        with pytest.raises(JobCancelledError, match="was cancelled: it expired"):
            await job.result(0)
        await app.resume_pool("default")
        await test.run_pending()
        assert ran == ["kept"]
        assert (await kept.refresh()).status is JobStatus.COMPLETED


async def test_the_time_counts_from_when_the_job_is_due(app: WorkerOrchestrator) -> None:
    work = work_of(app)
    async with app.testing() as test:
        now = test.clock.now()
        assert (await work.with_options(expires_seconds=60, delay_seconds=600).enqueue()).expires_at == now + 660
        assert (await work.with_options(expires_seconds=60, run_at=now - 600).enqueue()).expires_at == now + 60
        job = await work.with_options(expires_seconds=60).enqueue()
        await test.run_pending()
        assert (await job.refresh()).expires_at is None


async def test_the_leader_wakes_when_a_job_expires(stage: Stage, clock: ManualClock) -> None:
    """On time, and not at its next tick, which is a minute away."""
    app = stage.app(tick_interval=60.0, lease_seconds=600.0)
    act = Act()
    work = app.register_worker("act", act, execution_mode="triggered", max_running=1)
    await work.enqueue()
    await app.start()
    job = await work.with_options(expires_seconds=7).enqueue()
    await clock.advance(6.9)
    assert await statuses([job]) == ["queued"]
    await clock.advance(0.1)
    assert await statuses([job]) == ["cancelled"]


@pytest.mark.parametrize("late", ["when it is claimed", "while it waits for a slot"])
async def test_a_job_that_expires_on_its_way_is_never_started(
    stage: Stage, clock: ManualClock, late: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader is away, so only the instance that claims it can find out."""
    act, app = Act(), stage.app(max_concurrent=1)
    work = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await stage.depose(app)
    if late == "when it is claimed":
        await app.pause_pool("default")
        job = await work.with_options(expires_seconds=1).enqueue()
        await clock.advance(1)
        await app.resume_pool("default")
        await clock.advance(0)
    else:
        await work.enqueue()
        await clock.advance(0)
        job = await work.with_options(expires_seconds=0.01).enqueue()
        instance = instance_of(app).name
        (claimed,) = (await stage.store.claim(instance, "default", 1, clock.now(), ["act"])).jobs
        prefetched_of(instance_of(app)).put(claimed)
        await clock.advance(0.01)
        await act.finish()
    await job.refresh()
    assert (job.status, job.error, job.attempts, job.history) == (JobStatus.CANCELLED, EXPIRED, 0, ())
    assert act.started == (0 if late == "when it is claimed" else 1)
    assert "1 job expired before being started: 1 of act" in caplog.text


async def test_many_expired_jobs_are_a_problem_for_ten_minutes(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work = work_of(app)
    await app.start()
    await app.pause_pool("default")
    await app.enqueue_many([work.with_options(expires_seconds=1).call() for _ in range(12)])
    await clock.advance(1)
    problems = {problem["code"]: problem for problem in (await app.get_health())["problems"]}
    assert "12 jobs of pool default expired within 10 minutes" in problems["jobs_expired"]["message"]
    assert "max_workers" in problems["jobs_expired"]["remedy"]
    assert clock.now() - 61 <= problems["jobs_expired"]["since"] <= clock.now()
    await clock.advance(11 * 60)
    assert "jobs_expired" not in {problem["code"] for problem in (await app.get_health())["problems"]}


async def test_jobs_that_expire_are_reported_once_a_minute(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    work, other = work_of(app), app.register_worker("other", Act(), execution_mode="triggered")
    await app.start()
    await app.pause_pool("default")
    for seconds in (1, 2, 3, 200):
        await app.enqueue_many([work.with_options(expires_seconds=seconds).call() for _ in range(2)])
    await other.with_options(expires_seconds=30).enqueue()
    began = clock.now()
    for seconds in (1, 1, 1, 27, 31, 139):
        await clock.advance(seconds)
    told = [event for event in await app.events() if event.name == "jobs.expired"]
    assert [(event.at - began, event.message) for event in sorted(told, key=lambda event: event.at)] == [
        (1, "2 jobs expired before being started: 2 of work"),
        (61, "5 jobs expired before being started: 4 of work, 1 of other"),
        (200, "2 jobs expired before being started: 2 of work"),
    ]


# ── tags ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_are_found_and_changed_by_tag(app: WorkerOrchestrator) -> None:
    work = work_of(app)
    async with app.testing():
        red = await work.with_options(tags=["red", "acme"]).enqueue()
        blue = await work.with_options(tags=("blue", "acme")).enqueue()
        plain = await work.enqueue()
        assert [job.id for job in await app.find_jobs(tag="acme")] == [blue.id, red.id]
        assert [job.tags for job in await app.find_jobs(tag="red")] == [("red", "acme")]
        assert await app.find_jobs(tag="Red") == []
        assert await app.control.bulk.count("cancel", tag="acme", status="queued") == 2
        assert await app.cancel_jobs(tag="acme", status="queued") == 2
        assert await statuses([red, blue, plain]) == ["cancelled", "cancelled", "queued"]
        assert await app.retry_jobs(tag="red", status="cancelled") == 1
        assert await statuses([red, blue]) == ["queued", "cancelled"]
        assert await app.discard_jobs(tag="acme", status="cancelled") == 1
        assert [job.id for job in await app.find_jobs(tag="acme")] == [red.id]


async def test_the_jobs_of_a_flow_keep_their_own_options(app: WorkerOrchestrator) -> None:
    seen: list[tuple[int, float | None]] = []

    @app.task
    async def make(ctx: Context) -> int:
        seen.append((ctx.worker.max_retries, ctx.timeout_seconds))
        return 4

    @app.task
    async def take(ctx: Context, n: int) -> int:
        seen.append((n + ctx.worker.max_retries, ctx.timeout_seconds))
        return n

    async with app.testing() as test:
        made = make.with_options(max_retries=9, tags=["first"]).call()
        flow = await app.enqueue_flow(
            take.with_options(timeout_seconds="2m", tags=["last"], expires_seconds=60).call(n=made.output)
        )
        assert [job.tags for job in flow.jobs] == [("first",), ("last",)]
        assert flow.jobs[1].expires_at == test.clock.now() + 60
        await test.run_pending(raise_errors=True)
        assert await flow.result(0) == 4
    assert seen == [(9, 60.0), (7, 120.0)]
