"""Failures: retries with their back-off, breakers, and workers that are stopped because they keep failing."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from shiftwork import Breaker, Context, JobStatus, Retry, RetryAfter, Snooze, WorkerOrchestrator
from shiftwork.core.model.event import Event
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, status, statuses, worker_of

# ── retries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def delays(stage: Stage, clock: ManualClock, *, retry: Retry | None, retries: int) -> list[float]:
    """How long each retry of a job that always fails was waited for."""
    starts: list[float] = []
    app = stage.app()

    @app.task(max_retries=retries, retry=retry or Retry())
    async def fail() -> None:
        starts.append(clock.now())
        raise RuntimeError("always")

    await app.start()
    job = await fail.enqueue()
    for _ in range(retries):
        assert await status(await job.refresh()) in {JobStatus.QUEUED, JobStatus.FAILED}
        await until_idle()
        await clock.advance(job.record.run_at - clock.now() + 0.001 if await status(job) is JobStatus.FAILED else 0)
    assert await status(job) is JobStatus.DEAD
    assert job.attempt == retries + 1
    return [later - sooner for sooner, later in pairwise(starts)]


async def test_the_back_off_grows_and_is_capped(stage: Stage, clock: ManualClock) -> None:
    retry = Retry(base_seconds=1, factor=3, max_seconds=20, jitter=0)
    assert await delays(stage, clock, retry=retry, retries=5) == pytest.approx([1, 3, 9, 20, 20], abs=0.01)


async def test_by_default_it_is_five_ten_and_twenty_seconds_give_or_take_a_tenth(
    stage: Stage, clock: ManualClock
) -> None:
    seen = await delays(stage, clock, retry=None, retries=3)
    for delay, expected in zip(seen, [5, 10, 20], strict=True):
        assert expected * 0.89 <= delay <= expected * 1.11
    assert seen != [5, 10, 20]


async def test_a_retry_without_a_pause_is_at_once(stage: Stage) -> None:
    app = stage.app()
    tries: list[int] = []

    @app.task(max_retries=4, retry=Retry(base_seconds=0))
    async def flaky() -> int:
        tries.append(len(tries))
        if len(tries) < 4:
            raise RuntimeError("not yet")
        return len(tries)

    await app.start()
    assert await (await flaky.enqueue()).result(30) == 4


async def test_a_failed_job_says_when_it_is_due_again(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", retry=Retry(jitter=0))
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    assert await status(job) is JobStatus.FAILED
    assert (job.attempt, job.error) == (1, "RuntimeError: act failed")
    explanation = await app.explain_job(job.id)
    assert [wait.code for wait in explanation.waits] == ["later"]
    assert explanation.waits[0].until == clock.now() + 5
    await clock.advance(5)
    assert act.contexts[1].attempt == 2
    await act.finish("second time lucky")
    assert await job.result(30) == "second time lucky"
    assert len(job.history) == 1


async def test_max_retries_zero_is_one_attempt(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    assert await status(job) is JobStatus.DEAD
    await clock.advance(1000)
    assert act.started == 1


# ── disabling ────────────────────────────────────────────────────────────────────────────────────────────────────────


def failing(app: WorkerOrchestrator, act: Act, events: list[Event], **options: Any) -> None:
    app.register_worker("act", act, execution_mode="triggered", max_retries=0, **options)
    app.on("worker.disabled", events.append)


async def test_a_worker_that_keeps_failing_is_disabled_and_says_so(stage: Stage, clock: ManualClock) -> None:
    act, heard = Act(), list[Event]()
    app = stage.app(max_concurrent=1)
    failing(app, act, heard, max_consecutive_failures=3)
    await app.start()
    jobs = await app.enqueue_many([worker_of(app, "act").call() for _ in range(5)])
    await until_idle()
    for _ in range(3):
        assert app.get_status()["worker_states"]["act"]["enabled"]
        await act.fail()
    assert (act.started, act.running) == (3, 0)
    state = app.get_status()["worker_states"]["act"]
    assert (state["enabled"], state["failures"], state["last_error"]) == (False, 3, "RuntimeError: act failed")
    assert await statuses(jobs) == ["dead", "dead", "dead", "queued", "queued"]
    assert [event.subject for event in heard] == ["act"]
    assert "RuntimeError: act failed" in heard[0].message
    assert [event.name for event in await app.events()].count("worker.disabled") == 1
    (wait,) = (await app.explain_job(jobs[3].id)).waits
    assert (wait.code, wait.by) == ("disabled", "act")
    assert "RuntimeError: act failed" in wait.why
    await clock.advance(1000)
    assert act.started == 3
    await app.enable_worker("act")
    await until_idle()
    assert act.running == 1
    assert app.get_status()["worker_states"]["act"]["failures"] == 0
    await act.finish()
    await act.finish()
    assert await statuses(jobs) == ["dead", "dead", "dead", "completed", "completed"]


async def test_disabling_outlives_the_process(stage: Stage) -> None:
    act, heard = Act(), list[Event]()
    first = stage.app()
    failing(first, act, heard, max_consecutive_failures=1)
    await first.start()
    await worker_of(first, "act").enqueue()
    await until_idle()
    await act.fail()
    await stage.stop(first)
    second = stage.app()
    failing(second, act, heard, max_consecutive_failures=1)
    job = await worker_of(second, "act").enqueue()
    await second.start()
    await until_idle()
    state = second.get_status()["worker_states"]["act"]
    assert (state["enabled"], state["failures"]) == (False, 1)
    assert await status(job) is JobStatus.QUEUED
    problems = {problem["code"] for problem in (await second.get_health())["problems"]}
    assert problems == {"worker_disabled", "dead_letters"}


async def test_a_success_in_between_forgives(stage: Stage) -> None:
    act, heard = Act(), list[Event]()
    app = stage.app(max_concurrent=1)
    failing(app, act, heard, max_consecutive_failures=2)
    await app.start()
    await app.enqueue_many([worker_of(app, "act").call() for _ in range(6)])
    await until_idle()
    for _ in range(3):
        await act.fail()
        await act.finish()
    assert act.started == 6
    assert heard == []


async def test_retries_of_one_job_are_one_failure(stage: Stage, clock: ManualClock) -> None:
    act, heard = Act(), list[Event]()
    app = stage.app()
    app.register_worker("act", act, execution_mode="triggered", max_retries=3, max_consecutive_failures=2)
    app.on("worker.disabled", heard.append)
    await app.start()
    await worker_of(app, "act").enqueue()
    for _ in range(4):
        await clock.advance(30)
        await act.fail()
    assert app.get_status()["worker_states"]["act"]["failures"] == 1
    assert heard == []


async def test_a_task_is_never_disabled_by_its_failures(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def bad() -> None:
        raise RuntimeError("always")

    await app.start()
    for _ in range(20):
        await (await bad.enqueue()).ended(30)
    state = app.get_status()["worker_states"]["bad"]
    assert (state["enabled"], state["failures"]) == (True, 20)


async def test_a_scheduled_worker_is_disabled_after_five_failed_runs(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=10, max_retries=0)
    await app.start()
    for _ in range(5):
        await clock.advance(10)
        await act.fail()
    await clock.advance(1000)
    assert act.started == 5
    assert not app.get_status()["worker_states"]["act"]["enabled"]
    await app.enable_worker("act")
    await clock.advance(10)
    assert act.started == 6


async def test_disabling_by_hand_lets_running_work_finish(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([worker.call(), worker.call()])
    await until_idle()
    await app.disable_worker("act", "the printer is on fire")
    assert act.running == 1
    await act.finish()
    assert await statuses(jobs) == ["completed", "queued"]
    assert "the printer is on fire" in (await app.explain_job(jobs[1].id)).text


async def test_another_process_hears_of_it(stage: Stage) -> None:
    act = Act()
    here, there = stage.app(), stage.app()
    for app in (here, there):
        app.register_worker("act", act, execution_mode="triggered")
        await app.start()
    await here.disable_worker("act")
    await until_idle()
    assert not there.get_status()["worker_states"]["act"]["enabled"]
    await there.enable_worker("act")
    await until_idle()
    assert here.get_status()["worker_states"]["act"]["enabled"]


# ── what the function and its policy say about the next attempt ─────────────────────────────────────────────────────


async def test_a_function_says_when_it_is_tried_again(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()

    @app.task(max_retries=1)
    async def fetch() -> None:
        raise RetryAfter("5m", "the service is busy")

    await app.start()
    job = await fetch.enqueue()
    await until_idle()
    assert await status(job) is JobStatus.FAILED
    assert (job.run_at, job.attempt, job.error) == (clock.now() + 300, 1, "RetryAfter: the service is busy")
    await clock.advance(300)
    assert await status(job) is JobStatus.DEAD, "the attempt counts"


@pytest.mark.parametrize(
    ("error", "ends"),
    [(ConnectionError(), JobStatus.FAILED), (ValueError(), JobStatus.DEAD), (Snooze(30), JobStatus.SCHEDULED)],
    ids=repr,
)
async def test_the_one_exception_of_a_task_group_decides(stage: Stage, error: Exception, ends: JobStatus) -> None:
    app = stage.app()

    async def fail() -> None:
        raise error

    @app.task(retry=Retry(on=(ConnectionError,)))
    async def fetch() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    await app.start()
    job = await fetch.enqueue()
    await until_idle()
    assert await status(job) is ends


async def test_a_snoozed_job_is_scheduled_and_no_attempt_is_counted(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    runs: list[int] = []

    @app.task(max_retries=0)
    async def export(ctx: Context) -> str:
        runs.append(ctx.attempt)
        if len(runs) < 20:
            raise Snooze(30)
        return "done"

    await app.start()
    job = await export.enqueue()
    await until_idle()
    assert await status(job) is JobStatus.SCHEDULED
    assert (job.run_at, job.attempt, job.history, job.error) == (clock.now() + 30, 0, (), None)
    for _ in range(19):
        await clock.advance(30)
    assert await job.result(DEADLINE) == "done"
    assert runs == [1] * 20


async def test_a_retry_function_that_is_wrong_is_named_and_the_default_policy_holds(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.app()
    broken: list[Any] = [lambda _attempt, _error: "soon", lambda _attempt, _error: -1.0, lambda _attempt, _error: 1 / 0]
    says = ["it returned 'soon'", "it returned -1.0", "ZeroDivisionError: division by zero"]

    async def fail() -> None:
        raise ValueError("no")

    for number, rule in enumerate(broken):
        app.register_worker(f"w{number}", fail, execution_mode="triggered", retry=rule)
    await app.start()
    jobs = [await worker_of(app, f"w{number}").enqueue() for number in range(3)]
    await until_idle()
    for job, what in zip(jobs, says, strict=True):
        assert await status(job) is JobStatus.FAILED
        assert job.error == f"ValueError: no; its retry function failed: {what}"
        assert clock.now() + 4 < job.run_at < clock.now() + 6


async def test_a_run_that_was_stopped_cannot_choose(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()

    @app.task(max_retries=0, timeout_seconds=5)
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise Snooze(30)

    await app.start()
    job = await stubborn.enqueue()
    await until_idle()
    await clock.advance(5)
    assert await status(job) is JobStatus.DEAD, "it timed out"


async def test_a_run_that_hands_its_job_back_says_nothing_about_the_breaker(stage: Stage, clock: ManualClock) -> None:
    app, runs = stage.app(), list[int]()

    @app.task(breaker=Breaker(failures=1, cool_down_seconds=100))
    async def look(ctx: Context) -> None:
        runs.append(ctx.attempt)
        if len(runs) < 3:
            raise Snooze(5)

    await app.start()
    job = await look.enqueue()
    await clock.advance(20)
    assert (runs, await status(job)) == ([1, 1, 1], JobStatus.COMPLETED)


# ── breakers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

GUARD = Breaker(failures=3, window_seconds=60, cool_down_seconds=30)


async def test_a_breaker_opens_waits_probes_and_closes(stage: Stage, clock: ManualClock) -> None:
    act, heard = Act(), list[str]()
    app = stage.app(max_concurrent=3)
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0, breaker=GUARD)
    app.on("*", lambda event: heard.append(event.name))
    await app.start()
    jobs = await app.enqueue_many([worker.call() for _ in range(8)])
    await until_idle()
    for _ in range(3):
        act.waiting.pop(0).set_exception(RuntimeError("down"))
    await until_idle()
    assert heard.count("breaker.opened") == 1
    # Jobs that began before it was known may still end; nothing new begins.
    while act.waiting:
        await act.fail()
    started = act.started
    waiting = [job for job in jobs if await status(job) is JobStatus.QUEUED]
    assert waiting
    assert {job.attempt for job in waiting} == {0}
    (wait,) = (await app.explain_job(waiting[0].id)).waits
    assert (wait.code, wait.by) == ("breaker", "act")
    assert wait.until is not None
    await clock.advance(wait.until - clock.now() - 0.01)
    assert act.started == started
    await clock.advance(0.01)
    assert act.running == 1, "one probe"
    (wait, *_) = (await app.explain_job(waiting[-1].id)).waits
    assert "probe" in wait.why
    await act.fail()
    assert act.running == 0, "the probe failed"
    await clock.advance(29.9)
    assert act.running == 0
    await clock.advance(0.1)
    assert act.running == 1
    await act.finish()
    await until_idle()
    assert heard.count("breaker.closed") == 1
    assert act.running >= 1
    while act.running:
        await act.finish()
    assert {str(await status(job)) for job in waiting} <= {"completed", "dead"}
    assert (await app.get_health())["problems"][0]["code"] == "dead_letters"


async def test_one_probe_over_all_workers_and_nodes_that_share_a_breaker(stage: Stage, clock: ManualClock) -> None:
    mail, text = Act("mail"), Act("text")
    shared = Breaker(failures=1, cool_down_seconds=10, name="gateway")
    apps = [stage.app(), stage.app()]
    for app in apps:
        app.register_worker("mail", mail, execution_mode="triggered", max_retries=0, breaker=shared)
        app.register_worker("text", text, execution_mode="triggered", max_retries=0, breaker=shared)
        await app.start()
    await worker_of(apps[0], "mail").enqueue()
    await until_idle()
    await mail.fail()
    await until_idle()
    await apps[0].enqueue_many([worker_of(apps[0], name).call() for name in ("mail", "text", "mail", "text")])
    await clock.advance(9)
    assert (mail.running, text.running) == (0, 0)
    await clock.advance(2)
    assert mail.running + text.running == 1
    await (mail if mail.running else text).finish()
    await until_idle()
    assert mail.running + text.running == 3


async def test_failures_that_lie_far_apart_open_nothing(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0, breaker=GUARD)
    await app.start()
    for _ in range(4):
        await worker.enqueue()
        await until_idle()
        await act.fail()
        await clock.advance(31)
    assert act.started == 4


async def test_a_probe_that_is_cancelled_decides_nothing_and_the_next_one_is_sent(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.app()
    one = Breaker(failures=1, cool_down_seconds=10)
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0, breaker=one)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await act.fail()
    jobs = await app.enqueue_many([worker.call(), worker.call()])
    await clock.advance(10)
    assert await statuses(jobs) == ["processing", "queued"]
    await app.cancel_job(jobs[0].id)
    await until_idle()
    assert await statuses(jobs) == ["cancelled", "processing"]
    await act.finish()
    await until_idle()
    assert (await app.get_health())["problems"][0]["code"] == "dead_letters"


async def test_retries_wait_for_the_breaker_and_cost_no_attempt(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    one = Breaker(failures=1, cool_down_seconds=100)
    worker = app.register_worker(
        "act", act, execution_mode="triggered", max_retries=1, breaker=one, retry=Retry(jitter=0)
    )
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    await clock.advance(99)
    assert await status(job) is JobStatus.QUEUED
    assert job.attempt == 1
    await clock.advance(1)
    assert act.contexts[-1].attempt == 2
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED


async def test_a_timeout_counts_for_the_breaker(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()

    @app.task(max_retries=0, timeout_seconds=5, breaker=Breaker(failures=1, cool_down_seconds=100))
    async def hang() -> None:
        await asyncio.Event().wait()

    await app.start()
    await hang.enqueue()
    await clock.advance(5)
    assert "breaker_open" in [problem["code"] for problem in (await app.get_health())["problems"]]
