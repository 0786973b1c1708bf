"""What the machine does to a runtime: no more threads, a clock that is set, a loop that ends without a stop."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from shiftwork import JobStatus, StoreUnavailableError, WorkerOrchestrator
from shiftwork.control.calling import Portal
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.runtime.running.job_threads import JobThreads
from shiftwork.store.memory import MemoryStore
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Hatch, Stage, started, status, worker_of

HOUR = 3600.0


# ── threads ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_thread_that_could_not_be_started_leaves_no_deadline_behind(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tolerated: list[str]
) -> None:
    tolerated.append("pool default failed unexpectedly")
    start, tries = JobThreads.start, [0]

    def seldom(self: JobThreads, work: Callable[[], None]) -> None:
        tries[0] += 1
        if tries[0] == 1:
            raise RuntimeError("can't start new thread")
        start(self, work)

    monkeypatch.setattr(JobThreads, "start", seldom)
    hatch, act = Hatch(), Act()
    app = stage.app()
    plain = app.register_worker("plain", hatch.wait, execution_mode="triggered", timeout_seconds=10.0, max_retries=0)
    hung = app.register_worker("hung", act, execution_mode="triggered", timeout_seconds=20.0, max_retries=0)
    await app.start()
    job = await plain.enqueue()
    await until_idle()
    assert tries == [1]
    await clock.advance(0.5)
    await hatch.reached()
    await clock.advance(9.55)  # past the deadline of the run that never was
    assert await status(job) is JobStatus.PROCESSING
    hatch.open()
    assert await job.ended(DEADLINE) is JobStatus.COMPLETED
    other = await hung.enqueue()
    await until_idle()
    await clock.advance(20)
    assert act.cancelled == 1
    assert await status(other) is JobStatus.DEAD


# ── a clock that is set ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_clock_that_is_set_moves_no_timeout(stage: Stage, clock: ManualClock, step: float) -> None:
    short, longer = Act("short"), Act("longer")
    app = stage.app()
    for act, seconds in ((short, 3.0), (longer, 1000.0)):
        app.register_worker(act.name, act, execution_mode="triggered", timeout_seconds=seconds, max_retries=0)
    await app.start()
    first = await worker_of(app, "short").enqueue()
    second = await worker_of(app, "longer").enqueue()
    await until_idle()
    await clock.advance(1)
    clock.step(step)
    await clock.advance(1.9)
    assert (short.cancelled, longer.cancelled) == (0, 0)
    await clock.advance(0.2)
    assert (short.cancelled, longer.cancelled) == (1, 0)
    assert (await first.refresh()).error == "timed out after 3 s"
    clock.step(-step)
    await clock.advance(5)
    assert longer.cancelled == 0
    third = await worker_of(app, "short").enqueue()
    await clock.advance(3.1)
    assert short.cancelled == 2
    assert (await third.refresh()).error == "timed out after 3 s"
    assert await status(second) is JobStatus.PROCESSING


async def test_a_duty_whose_clock_is_set_back_sleeps_no_longer_for_it() -> None:
    clock, bell, polls = ManualClock(), MemoryStore().listen({"test"}), [0]

    async def poll() -> float | None:
        polls[0] += 1
        if polls[0] == 1:
            raise StoreUnavailableError("once")
        return None

    duty = Duty("test", poll, clock=clock, bell=bell, longest_sleep=5, outages=OutageLog(clock.monotonic))
    duty.start()
    await until_idle()
    clock.step(-HOUR)
    await clock.advance(0.2)
    assert polls == [2]
    await duty.stop()


async def test_a_duty_ends_when_its_bell_is_closed() -> None:
    clock, bell, polls = ManualClock(), MemoryStore().listen({"test"}), [0]

    async def poll() -> None:
        polls[0] += 1

    duty = Duty("test", poll, clock=clock, bell=bell, longest_sleep=5, outages=OutageLog(clock.monotonic))
    duty.start()
    await until_idle()
    bell.close()
    await until_idle()
    assert polls[0] <= 2
    assert duty.over


# ── a loop that ends without a stop ──────────────────────────────────────────────────────────────────────────────────


async def test_a_loop_that_ends_without_a_stop_lets_its_leases_end() -> None:
    store, hatch, act = MemoryStore(), Hatch(), Act()

    def make() -> WorkerOrchestrator:
        app = WorkerOrchestrator(store, lease_seconds=0.6, tick_interval=0.1)
        app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None, max_retries=0)
        app.register_worker("plain", hatch.wait, execution_mode="triggered", timeout_seconds=None)
        return app

    first, second = make(), make()
    jobs: list[str] = []
    noticed = asyncio.Event()
    second.on("job.lost", lambda _: noticed.set())

    async def fail() -> None:
        await first.start()
        calls = [worker_of(first, name).call() for name in ("act", "plain")]
        jobs.extend(job.id for job in await first.enqueue_many(calls))
        await eventually(lambda: act.running == 1)
        await hatch.reached()
        raise OSError("the program failed")

    with pytest.raises(OSError, match="the program failed"):
        await asyncio.to_thread(asyncio.run, fail())
    assert act.cancelled == 1
    async with started(second):
        await eventually(lambda: act.running == 1, "the second run")
        await act.finish("elsewhere")
        job = await second.get_job(jobs[0])
        assert await job.result(DEADLINE) == "elsewhere"
        assert [attempt.kind for attempt in job.history] in ([], ["crashed"])
        async with asyncio.timeout(DEADLINE):
            await noticed.wait()
            lost = await second.get_job(jobs[1])
            while not (await lost.refresh()).history:
                await until_idle()
        assert [attempt.kind for attempt in lost.history] == ["crashed"]
        hatch.open()


# ── the portal ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_portal_that_closes_lets_go_of_waiting_callers() -> None:
    portal, inside, heard = Portal(), threading.Event(), list[str]()

    async def endless() -> None:
        inside.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            portal.call(endless, "await it()")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is no silence
            heard.append(type(error).__name__)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    assert await asyncio.to_thread(inside.wait, DEADLINE)
    portal.close()
    await asyncio.to_thread(caller.join, 2.0)
    assert heard == ["CancelledError"]
