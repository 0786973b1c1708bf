"""Schedules: a fire time is one job, on time, whatever leads, stops or overlaps."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftwork import JobStatus
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import Act, Stage, leads, statuses

MINUTE = 60.0


def noting(clock: ManualClock, times: list[float]) -> Callable[[], Coroutine[Any, Any, None]]:
    async def note() -> None:
        times.append(clock.now())

    return note


async def test_what_is_due_in_forty_milliseconds_runs_in_forty_milliseconds(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(tick_interval=5.0)
    times: list[float] = []
    worker = app.register_worker("note", noting(clock, times), execution_mode="triggered")
    await app.start()
    start = clock.now()
    await worker.with_options(delay_seconds=0.04).enqueue()
    await clock.advance(0.0399)
    assert times == []
    await clock.advance(1)
    assert times == [pytest.approx(start + 0.04, abs=1e-6)]


async def test_something_due_sooner_than_what_is_waited_for_is_on_time_too(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(tick_interval=500.0, lease_seconds=5000)
    times: list[float] = []
    worker = app.register_worker("note", noting(clock, times), execution_mode="triggered")
    await app.start()
    start = clock.now()
    for delay in (30, 20, 10):
        await worker.with_options(delay_seconds=delay).enqueue()
        await until_idle()
    await clock.advance(40)
    assert times == [pytest.approx(start + delay, abs=1e-6) for delay in (10, 20, 30)]


async def test_an_interval_runs_at_once_and_then_counts_from_the_end(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=0.25)
    await app.start()
    await until_idle()
    assert act.started == 1
    await clock.advance(10)
    assert act.started == 1, "nothing is due while it runs"
    await act.finish()
    await clock.advance(0.24)
    assert act.started == 1
    await clock.advance(0.01)
    assert act.started == 2


async def test_cron_fires_on_the_minute(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    times: list[float] = []
    app.register_worker("note", noting(clock, times), cron="*/5 * * * *")
    await app.start()
    await clock.advance(1200)
    assert len(times) == 4
    assert {datetime.fromtimestamp(at, UTC).minute % 5 for at in times} == {0}
    assert {at % 60 for at in times} == {0.0}


async def test_cron_minds_its_time_zone(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    times: list[float] = []
    app.register_worker("note", noting(clock, times), cron="0 14 * * *", timezone="Asia/Kathmandu")
    await app.start()
    await clock.advance(1800)
    assert [datetime.fromtimestamp(at, UTC).strftime("%H:%M") for at in times] == ["08:15"]


async def test_a_loop_begins_again_when_it_has_ended(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, execution_mode="continuous")
    await app.start()
    for n in range(1, 6):
        await clock.advance(0.01)
        assert (act.started, act.running) == (n, 1)
        await act.finish()


async def test_a_loop_that_fails_continues(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, execution_mode="continuous", max_retries=0)
    await app.start()
    for n in range(1, 4):
        await clock.advance(0.01)
        assert act.started == n
        await act.fail()


# ── once ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_restart_fires_nothing_twice(stage: Stage, clock: ManualClock) -> None:
    async def life(seconds: float) -> None:
        app = stage.app()
        app.register_worker("often", noting(clock, often), interval_seconds=600)
        app.register_worker("cron", noting(clock, cron), cron="*/10 * * * *")
        await app.start()
        await clock.advance(seconds)
        await stage.stop(app)

    often: list[float] = []
    cron: list[float] = []
    for _ in range(5):
        await life(100)
        await life(0)
    assert len(often) == 1
    assert len(cron) == 0 or len(cron) == len(set(cron))
    await life(600)
    assert len(often) == 2
    assert len({int(at) for at in cron}) == len(cron)


async def test_several_leaders_at_once_fire_once(stage: Stage, clock: ManualClock) -> None:
    times: list[float] = []
    stage.faults.answer("hold", value=True)
    apps = [stage.faulty_app() for _ in range(3)]
    for app in apps:
        app.register_worker("often", noting(clock, times), interval_seconds=1)
        app.register_worker("cron", noting(clock, times), cron="* * * * *")
        await app.start()
    assert all(leads(app) for app in apps)
    await clock.advance(300)
    jobs = await stage.store.find(JobFilter(limit=10_000))
    ids = [job.id for job in jobs]
    assert len(ids) == len(set(ids))
    crons = [job for job in jobs if job.worker == "cron"]
    assert len(crons) == 5
    oftens = sorted(job.started_at or 0.0 for job in jobs if job.worker == "often")
    assert len(oftens) == pytest.approx(300, abs=2)


async def test_a_crash_between_the_job_and_the_cursor_fires_once(stage: Stage, clock: ManualClock) -> None:
    times: list[float] = []
    app = stage.faulty_app()
    app.register_worker("cron", noting(clock, times), cron="* * * * *")
    await app.start()
    await until_idle()
    stage.faults.fail("put")
    await clock.advance(130)
    stage.faults.clear()
    await clock.advance(5)
    assert len(times) == 2
    assert sorted(job.id for job in await app.find_jobs()) == [
        "cron@2027-01-15T08:01:00Z",
        "cron@2027-01-15T08:02:00Z",
    ]


# ── overlap and catch-up ─────────────────────────────────────────────────────────────────────────────────────────────


async def run_over_three_fires(stage: Stage, clock: ManualClock, **options: Any) -> Act:
    """A run that begins at the first fire time and is still going at the third."""
    act = Act()
    app = stage.app()
    app.register_worker("act", act, cron="* * * * *", timeout_seconds=None, **options)
    await app.start()
    await clock.advance(MINUTE * 3)
    return act


async def test_a_run_that_takes_too_long_makes_the_next_ones_skip(stage: Stage, clock: ManualClock) -> None:
    act = await run_over_three_fires(stage, clock)
    assert (act.started, act.most) == (1, 1)
    app = stage.apps[0]
    skipped = [event for event in await app.events() if event.name == "schedule.skipped"]
    assert len(skipped) == 2
    assert "has not ended" in skipped[0].message
    await act.finish()
    await until_idle()
    assert act.started == 1
    await clock.advance(MINUTE)
    assert act.started == 2


async def test_or_the_next_ones_wait(stage: Stage, clock: ManualClock) -> None:
    act = await run_over_three_fires(stage, clock, overlap="queue")
    assert act.started == 1
    await act.finish()
    assert act.started == 2
    await act.finish()
    assert act.started == 3
    await act.finish()
    assert (act.started, act.most) == (3, 1)


async def test_or_run_beside_it(stage: Stage, clock: ManualClock) -> None:
    act = await run_over_three_fires(stage, clock, overlap="allow")
    assert (act.started, act.most) == (3, 3)


@pytest.mark.parametrize(("catch_up", "expected"), [("latest", 1), ("none", 0), ("all", 9)])
async def test_what_was_missed_while_nothing_ran(
    stage: Stage, clock: ManualClock, catch_up: Any, expected: int
) -> None:
    times: list[float] = []

    async def life() -> None:
        app = stage.app(max_concurrent=20)
        app.register_worker("cron", noting(clock, times), cron="* * * * *", catch_up=catch_up, overlap="allow")
        await app.start()
        await until_idle()
        await stage.stop(app)

    # At 31 seconds past the minute, so that the last fire time is no longer recent.
    await clock.advance(31)
    await life()
    await clock.advance(MINUTE * 9)
    await life()
    assert len(times) == expected
    first_missed = clock.now() - clock.now() % MINUTE - 8 * MINUTE
    due = sorted(job.run_at for job in await stage.apps[1].find_jobs())
    assert due == [first_missed + MINUTE * n for n in range(9)][9 - expected :], "they wait since then"
    events = [event for event in await stage.apps[1].events() if event.name == "schedule.skipped"]
    assert sum(len(event.data["times"]) for event in events) == 9 - expected


async def test_a_disabled_schedule_makes_no_jobs(stage: Stage, clock: ManualClock) -> None:
    times: list[float] = []
    app = stage.app()
    app.register_worker("often", noting(clock, times), interval_seconds=10)
    app.register_worker("cron", noting(clock, times), cron="* * * * *", catch_up="none")
    await app.start()
    await clock.advance(5)
    for name in ("often", "cron"):
        await app.disable_worker(name)
    count = len(times)
    await clock.advance(300)
    assert len(times) == count
    assert await app.find_jobs(status=["queued", "scheduled"]) == []
    for name in ("often", "cron"):
        await app.enable_worker(name)
    await clock.advance(61)
    assert len(times) >= count + 3


async def test_a_failed_scheduled_run_is_retried_before_the_next_is_due(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=100, max_retries=1)
    await app.start()
    await until_idle()
    await act.fail()
    await clock.advance(10)
    assert [ctx.attempt for ctx in act.contexts] == [1, 2]
    assert len({ctx.job_id for ctx in act.contexts}) == 1
    await act.finish()
    jobs = await app.find_jobs(worker="act")
    assert await statuses(jobs) == ["completed"]
    await clock.advance(99)
    assert act.started == 2
    await clock.advance(1)
    assert act.started == 3


async def test_the_first_run_is_an_ordinary_job_with_a_speaking_id(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_worker("fetch-data", lambda: None, interval_seconds=60)
    app.register_worker("cron", lambda: None, cron="* * * * *")
    await app.start()
    await clock.advance(60)
    ids = {job.id for job in await app.find_jobs()}
    assert "fetch-data@first" in ids
    assert any(id.startswith("cron@2027-01-15T08:01:00") for id in ids)
    (job,) = await app.find_jobs(ids=["fetch-data@first"])
    assert job.record.cause == "scheduled"
    assert job.payload == {}
    assert job.status in set(JobStatus)
