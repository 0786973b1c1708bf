"""Schedules that are data: put, changed and deleted while everything runs; each fire time is one job."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from msgspec.structs import replace

from shiftwork import (
    ConfigurationError,
    FlowError,
    JobStateError,
    JobStatus,
    PayloadTooLargeError,
    PayloadTypeError,
    ScheduleError,
    Secret,
    UnknownScheduleError,
    WorkerOrchestrator,
)
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import Act, Stage, leads

MINUTE = 60.0
HOUR = 3600.0


def syncing(app: WorkerOrchestrator, done: list[str]) -> Worker[..., Any]:
    @app.task
    async def sync(customer: str, token: Annotated[str, Secret] = "") -> None:
        done.append(customer)

    return sync


def noting(clock: ManualClock, times: list[float]) -> Callable[[], Coroutine[Any, Any, None]]:
    async def note() -> None:
        times.append(clock.now())

    return note


async def test_a_schedule_is_put_changed_paused_and_deleted_while_everything_runs(
    stage: Stage, clock: ManualClock
) -> None:
    app, other, done = stage.app(), stage.app(), list[str]()
    syncing(app, done)
    await app.start()
    sync = syncing(other, done)
    put = await other.put_schedule("s", sync.call(customer="acme"), cron="* * * * *")
    assert (put.worker, put.payload, put.words) == ("sync", {"customer": "acme"}, "every minute, UTC")
    await clock.advance(MINUTE)
    assert done == ["acme"]
    await other.put_schedule("s", sync.call(customer="bolt"), interval_seconds=5)
    await clock.advance(5)
    assert done == ["acme", "bolt"]
    assert (await other.pause_schedule("s")).paused
    await clock.advance(20)
    assert done == ["acme", "bolt"]
    await other.resume_schedule("s")
    await until_idle()
    assert done == ["acme", "bolt", "bolt"], "the latest one that was missed"
    await other.delete_schedule("s")
    await clock.advance(10)
    assert len(done) == 3
    assert await other.get_schedules() == []
    names = [event.name for event in await app.events() if event.by_person]
    assert names == ["schedule.put", "schedule.put", "schedule.paused", "schedule.resumed", "schedule.deleted"]


async def test_a_schedule_that_is_put_again_continues_where_it_was(stage: Stage, clock: ManualClock) -> None:
    app, done = stage.app(), list[str]()
    sync = syncing(app, done)
    await app.start()
    for _ in range(10):
        await app.put_schedule("s", sync.call(customer="acme"), interval_seconds=10)
        await clock.advance(3)
    assert len(done) == 3


async def test_several_leaders_at_once_fire_once(stage: Stage, clock: ManualClock) -> None:
    times: list[float] = []
    stage.faults.answer("hold", value=True)
    app, *others = (stage.faulty_app() for _ in range(3))
    note = app.register_worker("note", noting(clock, times), execution_mode="triggered")
    for other in others:
        other.register_worker("note", noting(clock, times), execution_mode="triggered")
        await other.start()
    await app.start()
    assert all(leads(one) for one in (app, *others))
    for n in range(3):
        await app.put_schedule(f"cron-{n}", note.call(), cron="* * * * *", overlap="allow")
        await app.put_schedule(f"often-{n}", note.call(), interval_seconds=7, overlap="allow")
    await clock.advance(61)
    jobs = await stage.store.find(JobFilter(limit=1_000))
    assert len([job for job in jobs if job.id.startswith("schedule@cron")]) == 3
    assert len([job for job in jobs if job.id.startswith("schedule@often")]) == 3 * (61 // 7)


@pytest.mark.parametrize("kind", ["before", "after"])
async def test_a_crash_between_the_job_and_its_place_fires_once(stage: Stage, clock: ManualClock, kind: Any) -> None:
    times: list[float] = []
    app = stage.faulty_app()
    note = app.register_worker("note", noting(clock, times), execution_mode="triggered", keep_completed_seconds=3600)
    await app.start()
    await app.put_schedule("s", note.call(), cron="* * * * *")
    stage.faults.fail("put", kind=kind)
    await clock.advance(130)
    stage.faults.clear()
    await clock.advance(15)
    assert len(times) == 2
    ids = sorted(job.id for job in await app.find_jobs())
    assert ids == ["schedule@s@2027-01-15T08:01:00Z", "schedule@s@2027-01-15T08:02:00Z"]


async def test_what_could_not_be_fired_is_fired_as_soon_as_the_store_is_back(stage: Stage, clock: ManualClock) -> None:
    times: list[float] = []
    app = stage.faulty_app()
    note = app.register_worker("note", noting(clock, times), execution_mode="triggered")
    await app.start()
    await app.put_schedule("s", note.call(), cron="* * * * *")
    await clock.advance(MINUTE - 1)
    stage.faults.fail("add")
    await clock.advance(30)
    stage.faults.clear()
    await clock.advance(15)
    assert len(times) == 1


async def test_a_leader_that_lost_the_lead_fires_nothing_that_another_has_fired(
    stage: Stage, clock: ManualClock
) -> None:
    times: list[float] = []
    first = stage.app()
    note = first.register_worker("note", noting(clock, times), execution_mode="triggered", keep_completed_seconds=0)
    await first.start()
    await first.put_schedule("s", note.call(), cron="*/2 * * * *")
    await stage.depose(first)
    await stage.store.drop("leader", "an idle node")
    second = stage.app()
    second.register_worker("note", noting(clock, times), execution_mode="triggered", keep_completed_seconds=0)
    await second.start()
    assert leads(second) != leads(first)
    await clock.advance(170)
    assert len(times) == 1
    assert await first.find_jobs() == [], "the ended job is pruned: its id protects nothing"
    await stage.stop(second if leads(second) else first)
    await clock.advance(20)
    assert len(times) == 1


async def test_what_was_missed_while_nothing_ran_is_caught_up(stage: Stage, clock: ManualClock) -> None:
    done: list[str] = []
    app = stage.app(max_concurrent=50)
    sync = syncing(app, done)
    for catch_up in ("latest", "none", "all"):
        call = sync.call(customer=catch_up)
        await app.put_schedule(catch_up, call, cron="0 * * * *", catch_up=catch_up, overlap="allow")
    await clock.advance(5 * HOUR + 100)
    await app.start()
    await until_idle()
    assert sorted(done) == ["all"] * 5 + ["latest"]


async def test_a_fire_time_is_skipped_while_the_previous_job_of_the_schedule_is_live(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await app.put_schedule("a", worker.call(), interval_seconds=5)
    await app.put_schedule("b", worker.call(), interval_seconds=15)
    await clock.advance(15)
    assert act.started == 2, "one of each"
    skipped = [event for event in await app.events() if event.name == "schedule.skipped"]
    assert {event.subject for event in skipped} == {"a"}
    assert len(skipped) == 2
    assert "its previous job has not ended" in skipped[0].message
    with pytest.raises(JobStateError, match="has not ended"):
        await app.run_schedule("a")
    await act.finish()
    await act.finish()
    await clock.advance(5)
    assert act.started == 3


async def test_the_jobs_of_a_schedule_have_the_options_of_its_call_and_expire_after_they_were_due(
    stage: Stage, clock: ManualClock
) -> None:
    app, done = stage.app(), list[str]()
    hurried = syncing(app, done).with_options(expires_seconds=5, max_retries=7, tags=["acme"])
    await app.start()
    await app.pause_pool("default")
    await app.put_schedule("s", hurried.call(customer="acme"), interval_seconds=20)
    await clock.advance(21)
    [job] = await app.find_jobs(tag="acme")
    assert job.status is JobStatus.QUEUED
    assert job.record.expires_at == job.record.run_at + 5
    await clock.advance(6)
    assert [ended.id for ended in await app.find_jobs(status="cancelled")] == [job.id]


async def test_running_a_schedule_by_hand_leaves_its_times_alone(stage: Stage, clock: ManualClock) -> None:
    app, done = stage.app(), list[str]()
    sync = syncing(app, done)
    await app.start()
    before = await app.put_schedule("s", sync.call(customer="acme"), interval_seconds=600)
    await app.pause_schedule("s")
    job = await app.run_schedule("s")
    await until_idle()
    assert done == ["acme"]
    assert (job.record.cause, job.record.priority) == ("triggered", 3)
    assert (await app.resume_schedule("s")).next_fire == before.next_fire


async def test_the_night_that_doubles_an_hour_fires_once(stage: Stage) -> None:
    app, done = stage.app(), list[str]()
    sync = syncing(app, done)
    async with app.testing(now=datetime(2027, 10, 30, 22, tzinfo=UTC)) as test:
        put = await app.put_schedule("s", sync.call(customer="acme"), cron="30 2 * * *", timezone="Europe/Vienna")
        assert [time.isoformat() for time in put.preview.times[:2]] == [
            "2027-10-31T02:30:00+02:00",
            "2027-11-01T02:30:00+01:00",
        ]
        await test.advance(hours=5)
    assert done == ["acme"]


@pytest.mark.parametrize("many", [20, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_idle_schedules_cost_a_leader_no_call(stage: Stage, clock: ManualClock, many: int) -> None:
    async def calls() -> dict[str, int]:
        stage.faults.calls.clear()
        await clock.advance(30)
        return dict(stage.faults.calls)

    app, other = stage.faulty_app(), stage.app()
    note = app.register_worker("note", noting(clock, []), execution_mode="triggered")
    await app.start()
    await clock.advance(30)
    without = await calls()
    for n in range(many):
        await other.put_schedule(f"s-{n}", note.call(), cron="0 3 * * *")
    await clock.advance(30)
    assert await calls() == without


async def test_a_damaged_index_loses_no_schedule(stage: Stage, clock: ManualClock) -> None:
    app, done = stage.app(), list[str]()
    sync = syncing(app, done)
    for name in ("a", "b", "c"):
        await app.put_schedule(name, sync.call(customer=name), interval_seconds=60)
    [index] = await stage.store.docs("schedules")
    await stage.store.put([replace(index, body=b"\xc1")])
    await app.start()
    await app.put_schedule("a", sync.call(customer="a"), interval_seconds=30)
    await clock.advance(61)
    assert sorted(done) == ["a", "a", "b", "c"]
    assert len(await app.get_schedules()) == 3


async def test_many_puts_at_once_all_hold_and_do_not_overtake_each_other(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, done = stage.app(max_concurrent=100), list[str]()
    sync = syncing(app, done)
    await app.start()
    put, overtaken = stage.store.put, list[bool]()

    async def put_elsewhere(docs: Sequence[Doc]) -> list[bool]:
        await asyncio.sleep(0)  # as a server does, it lets others go on
        written = await put(docs)
        overtaken.append(not all(written))
        return written

    with monkeypatch.context() as patched:
        patched.setattr(stage.store, "put", put_elsewhere)
        puts = (app.put_schedule(f"s-{n}", sync.call(customer=f"{n}"), interval_seconds=60) for n in range(50))
        await asyncio.gather(*puts)
    assert not any(overtaken)
    await clock.advance(61)
    assert sorted(map(int, done)) == [*range(50)]


async def test_secrets_of_a_schedule_are_not_shown(stage: Stage) -> None:
    app = stage.app()
    sync = syncing(app, [])
    put = await app.put_schedule("s", sync.call(customer="acme", token="hunter2"), interval_seconds=60)
    assert put.payload == {"customer": "acme", "token": "•••"}
    assert "hunter2" not in repr(await app.get_schedules())
    edited = {"customer": "bolt", "token": put.payload["token"]}
    await app.control.schedules.put_named("s", "sync", edited, interval_seconds=60)
    job = await app.run_schedule("s")
    assert (b"bolt" in job.record.payload, b"hunter2" in job.record.payload) == (True, True)
    with pytest.raises(PayloadTypeError, match="give the secret itself"):
        await app.control.schedules.put_named("other", "sync", edited, interval_seconds=60)


async def test_mistakes_are_refused_before_anything_is_stored(stage: Stage) -> None:
    app = stage.app()
    sync = syncing(app, [])
    call = sync.call(customer="acme")
    with pytest.raises(ScheduleError, match="schedule 's': no time is given; add cron="):
        await app.put_schedule("s", call)
    with pytest.raises(ScheduleError, match="at least 1"):
        await app.put_schedule("s", call, interval_seconds=0.1)
    with pytest.raises(ScheduleError, match="timezone is the zone of a cron expression"):
        await app.put_schedule("s", call, interval_seconds=10, timezone="Europe/Vienna")
    with pytest.raises(ConfigurationError, match="run_at has no meaning here"):
        await app.put_schedule("s", sync.with_options(run_at=5.0).call(customer="acme"), interval_seconds=10)
    with pytest.raises(PayloadTooLargeError, match="65,536"):
        await app.put_schedule("s", sync.call(customer="x" * 65_524), interval_seconds=10)
    with pytest.raises(FlowError, match="schedule 's': this call needs other calls, and a schedule adds one job"):
        await app.put_schedule("s", sync.call(customer="acme").after(call), interval_seconds=10)
    assert await app.get_schedules() == []
    await app.put_schedule("largest", sync.call(customer="x" * 65_523), interval_seconds=10)
    await app.put_schedule("sync-acme", call, interval_seconds=10)
    for change in (app.pause_schedule, app.resume_schedule, app.delete_schedule, app.run_schedule):
        with pytest.raises(UnknownScheduleError, match="did you mean 'sync-acme'"):
            await change("sync-acne")


async def test_an_interval_can_be_written_as_every(stage: Stage) -> None:
    app = stage.app()
    sync = syncing(app, [])
    app.register_worker("fetch", noting(stage.clock, []))
    for written in ("10s", 10, timedelta(seconds=10)):
        assert app.preview_schedule(every=written).words == "every 10 seconds"
        assert (await app.reschedule_worker("fetch", every=written)).interval_seconds == 10
        put = await app.put_schedule("s", sync.call(customer="acme"), every=written)
        assert put.words == "every 10 seconds"


def test_a_preview_says_what_a_schedule_means(stage: Stage) -> None:
    app = stage.app()
    preview = app.preview_schedule(cron="0 3 * * *", timezone="Europe/Vienna")
    assert preview.words == "at 03:00 every day, Europe/Vienna"
    assert [time.isoformat() for time in preview.times[:2]] == [
        "2027-01-16T03:00:00+01:00",
        "2027-01-17T03:00:00+01:00",
    ]
    assert len(preview.times) == 10


# ── rescheduling a worker ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_changed_interval_wins_over_the_code_until_it_is_reset(stage: Stage, clock: ManualClock) -> None:
    async def life(seconds: float) -> int:
        times: list[float] = []
        app = stage.app()
        app.register_worker("fetch", noting(clock, times), interval_seconds=60)
        await app.start()
        await clock.advance(seconds)
        status = app.get_status()["worker_states"]["fetch"]
        shown.append((status["schedule"], status["rescheduled"]))
        await stage.stop(app)
        return len(times)

    shown: list[tuple[str, bool]] = []
    assert await life(61) == 2
    other = stage.app()
    other.register_worker("fetch", noting(clock, []), interval_seconds=60)
    changed = await other.reschedule_worker("fetch", interval_seconds=10)
    assert changed.interval_seconds == 10
    assert await life(60) == pytest.approx(6, abs=1), "also after a restart"
    [seen] = (await other.control.system.overview()).workers
    assert seen.schedule == "every 10 seconds, counted from the end of the last run"
    assert seen.rescheduled is not None
    assert seen.next_due is not None
    await other.reschedule_worker("fetch", reset=True)
    assert await life(62) == pytest.approx(2, abs=1)
    [seen] = (await other.control.system.overview()).workers
    assert seen.rescheduled is None
    assert [changed for _, changed in shown] == [False, True, False]
    assert shown[1][0] == "every 10 seconds, counted from the end of the last run"
    events = [event for event in await other.events() if event.name == "worker.rescheduled"]
    assert [event.by_person for event in events] == [True, True]
    assert "set by hand; it was every minute" in events[0].message


async def test_a_worker_changes_from_an_interval_to_cron_and_back_while_it_runs(
    stage: Stage, clock: ManualClock
) -> None:
    times: list[float] = []
    app = stage.app()
    app.register_worker("fetch", noting(clock, times), interval_seconds=90)
    await app.start()
    await clock.advance(10)
    assert len(times) == 1
    await app.reschedule_worker("fetch", cron="* * * * *")
    await clock.advance(MINUTE)
    assert len(times) == 2
    await app.reschedule_worker("fetch", reset=True)
    await clock.advance(70)
    assert len(times) == 2
    await clock.advance(30)
    assert len(times) == 3


async def test_what_has_no_schedule_cannot_be_rescheduled(stage: Stage) -> None:
    app = stage.app()
    syncing(app, [])
    app.register_worker("loop", noting(stage.clock, []), execution_mode="continuous")
    app.register_worker("fetch", noting(stage.clock, []))
    with pytest.raises(ScheduleError, match="put_schedule"):
        await app.reschedule_worker("sync", interval_seconds=5)
    with pytest.raises(ScheduleError, match="continuous"):
        await app.reschedule_worker("loop", cron="* * * * *")
    with pytest.raises(ScheduleError, match="give it alone"):
        await app.reschedule_worker("fetch", interval_seconds=5, reset=True)
    with pytest.raises(ScheduleError, match="above 0"):
        await app.reschedule_worker("fetch", interval_seconds=0)
