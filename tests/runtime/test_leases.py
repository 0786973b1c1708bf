"""Leases: a live job is never taken, a lost one is recovered, a stale run cannot write, and a node always leads."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

from shiftwork import Context, Job, JobStatus, WorkerOrchestrator
from shiftwork.core.jobs.retry import LOSS_LIMIT
from shiftwork.core.observing.beats import Beat, Orders
from shiftwork.errors import StoreUnavailableError
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.node.lease_renewer import LeaseHolders, LeaseRenewer, RenewSoon
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.store.memory import MemoryStore
from tests.runtime.stage import (
    DEADLINE,
    Act,
    Hatch,
    Stage,
    leads,
    node_of,
    started,
    status,
    worker_of,
)

if TYPE_CHECKING:
    from shiftwork.store.protocol import Store

LEASE = 15.0


def two(stage: Stage, act: Callable[..., Any], **options: Any) -> tuple[WorkerOrchestrator, WorkerOrchestrator]:
    """Two orchestrators with the same worker; the way of the first one to the store can be cut."""
    first, second = stage.faulty_app(), stage.app()
    for app in (first, second):
        app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None, **options)
    return first, second


async def names_of_events(app: WorkerOrchestrator) -> list[str]:
    return [event.name for event in await app.events()]


# ── a node vanishes whose jobs ran in processes of their own ─────────────────────────────────────────────────────────


async def lose(stage: Stage, clock: ManualClock, job: Job[Any], number: int) -> None:
    """Another node claims the job and is never heard of again."""
    name = f"gone-{number}/default#1"
    beat = Beat(instance=name, node=f"gone-{number}", pool="default", slots=1, apart=True, workers=("act",))
    await stage.store.beat([beat], LEASE, clock.now())
    claims = await stage.store.claim(name, "default", 1, clock.now(), ["act"])
    assert [claimed.id for claimed in claims.jobs] == [job.id]
    await clock.advance(2 * LEASE)


async def test_the_job_of_a_node_that_vanished_is_not_blamed(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    act = app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    stage.bench(app)
    job = await act.enqueue()
    for number in range(LOSS_LIMIT - 1):
        await lose(stage, clock, job, number)
    job = await app.get_job(job.id)
    assert (job.status, job.attempt, job.crashes) == (JobStatus.QUEUED, 0, 0)
    assert [attempt.kind for attempt in job.history] == ["lost"] * (LOSS_LIMIT - 1)
    await lose(stage, clock, job, LOSS_LIMIT)
    job = await app.get_job(job.id)
    assert (job.status, job.crashes) == (JobStatus.DEAD, 0)
    marks = (await stage.store.stats(clock.now())).pools["default"].marks
    assert (marks["lost"], marks["lease_lost"]) == (LOSS_LIMIT, LOSS_LIMIT)
    assert str(job.error).startswith(f"lost {LOSS_LIMIT} times")


# ── a process vanishes ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_job_that_went_to_an_instance_that_has_left_is_not_blamed(stage: Stage, clock: ManualClock) -> None:
    """A server that was frozen may carry out a claim after all, when its instance has long left."""
    app = stage.app()
    act = app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    stage.bench(app)
    job = await act.enqueue()
    await stage.store.claim("gone/default#1", "default", 1, clock.now(), ["act"])
    await clock.advance(2 * LEASE)
    job = await app.get_job(job.id)
    assert (job.status, job.crashes) == (JobStatus.QUEUED, 0)
    assert [attempt.kind for attempt in job.history] == ["lost"]


async def test_the_job_of_a_process_that_vanished_runs_again_elsewhere(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    first, second = two(stage, act)
    await first.start()
    job = await worker_of(first, "act").enqueue()
    await until_idle()
    await second.start()
    await stage.crash(first)
    assert act.cancelled == 1
    await clock.advance(LEASE - 0.1)
    assert await status(job) is JobStatus.PROCESSING
    assert act.started == 1
    await clock.advance(LEASE)
    assert act.started == 2
    assert (act.contexts[1].job_id, act.contexts[1].attempt) == (job.id, 1)
    assert act.contexts[1].fence > act.contexts[0].fence
    await act.finish("recovered")
    job = await second.get_job(job.id)
    assert await job.result(DEADLINE) == "recovered"
    assert (job.crashes, job.attempt) == (1, 1)
    assert [(attempt.kind, attempt.number) for attempt in job.history] == [("crashed", 1)]
    assert "vanished" in job.history[0].error
    events = {event.name: event for event in await second.events()}
    assert job.id in events["job.lost"].message
    assert (await names_of_events(second)).count("leader.elected") == 2


async def test_a_job_that_kills_its_process_three_times_is_dead(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    job = None
    for _ in range(3):
        victim = stage.app()
        worker = victim.register_worker("act", act, execution_mode="triggered", timeout_seconds=None, max_retries=0)
        await victim.start()
        job = job or await worker.enqueue()
        await clock.advance(60)
        assert act.running == 1
        await stage.crash(victim)
        assert act.running == 0
    judge = stage.app()
    judge.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await judge.start()
    await clock.advance(60)
    assert job is not None
    job = await judge.get_job(job.id)
    assert (job.status, job.crashes, job.attempt) == (JobStatus.DEAD, 3, 0)
    assert "crashed 3 times" in (job.error or "")
    assert act.started == 3


async def test_a_stuck_job_can_be_recovered_by_hand_by_a_process_that_runs_nothing(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    first, second = two(stage, act)
    await first.start()
    job = await worker_of(first, "act").enqueue()
    await until_idle()
    assert await second.recover_stuck_jobs() == 0
    await stage.crash(first)
    await clock.advance(LEASE)
    assert await second.recover_stuck_jobs() == 1
    assert await status(job) is JobStatus.FAILED
    assert await second.recover_stuck_jobs() == 0
    assert job.crashes == 1


async def test_another_node_leads_soon_after_the_leader_stopped_or_vanished(stage: Stage, clock: ManualClock) -> None:
    apps = [stage.app() for _ in range(3)]
    for app in apps:
        app.register_worker("tick", lambda: None, interval_seconds=1)
        await app.start()

    def leaders() -> list[int]:
        return [n for n, app in enumerate(apps) if leads(app)]

    assert leaders() == [0]
    await stage.stop(apps[0])
    await clock.advance(LEASE / 3)
    (second,) = leaders()
    assert second != 0
    assert (await apps[second].get_health())["problems"] == []
    await stage.crash(apps[second])
    await clock.advance(LEASE * 4 / 3)
    (third,) = leaders()
    assert {second, third} == {1, 2}


# ── a process is cut off from the store ──────────────────────────────────────────────────────────────────────────────


async def test_a_node_that_cannot_renew_stops_its_jobs_before_the_lease_can_have_ended(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    first, second = two(stage, act)
    await first.start()
    await worker_of(first, "act").enqueue()
    await until_idle()
    await second.start()
    stage.faults.fail()
    await clock.advance(LEASE * 0.75)
    assert act.cancelled == 0
    await clock.advance(LEASE * 0.24)
    assert (act.cancelled, act.running) == (1, 0)
    assert act.started == 1
    await clock.advance(LEASE)
    assert act.started == 2
    assert act.most == 1


async def test_a_long_outage_does_not_fill_the_log(
    stage: Stage, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = stage.faulty_app()
    await app.start()
    stage.faults.fail()
    caplog.clear()
    await clock.advance(600)
    assert caplog.messages == [
        "store: unavailable: the store is away, says the test; running jobs go on, no job starts until it is back",
        "could not renew the leases for 12 s, so other nodes may take over; no job is running here",
    ]
    stage.faults.clear()
    await clock.advance(20)
    (back,) = [message for message in caplog.messages if message.startswith("store: back")]
    assert re.fullmatch(r"store: back after 60\d\.\d s", back)


async def test_a_stale_end_is_refused_and_the_lost_instance_continues_under_a_new_name(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    first, second = two(stage, act)
    await first.start()
    node = node_of(first)
    job = await worker_of(first, "act").enqueue()
    await until_idle()
    name = node.pools["default"].instances[0].name
    await second.start()
    stage.faults.fail()
    await clock.advance(LEASE * 2)
    assert [ctx.attempt for ctx in act.contexts] == [1, 1]
    await act.finish("by the second")
    stage.faults.clear()
    await clock.advance(LEASE)
    job = await second.get_job(job.id)
    assert await job.result(DEADLINE) == "by the second"
    assert node.reporter.rejected == 1
    assert node.pools["default"].instances[0].name == f"{name}.1"
    await stage.stop(second)
    again = await worker_of(first, "act").enqueue()
    await until_idle()
    assert act.running == 1
    await act.finish("by the first, again")
    assert await again.result(DEADLINE) == "by the first, again"
    instances = (await first.get_pool_dashboard())["default"]["workers"]
    assert [instance["id"] for instance in instances] == [f"{name}.1"]


async def test_a_job_that_comes_back_while_its_lost_run_still_stops_is_not_lost(
    stage: Stage, clock: ManualClock
) -> None:
    """Its instance has lost the lease, continues under a new name, and claims the job before the first run ends."""
    app, runs, tidied, over = stage.faulty_app(), list[int](), asyncio.Event(), asyncio.Event()

    async def act(ctx: Context) -> str:
        runs.append(ctx.fence)
        if len(runs) > 1:
            await over.wait()
            return "the second run"
        try:
            await asyncio.Event().wait()
        finally:
            await tidied.wait()
        return "never"

    app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    async with started(app):
        job = await worker_of(app, "act").enqueue()
        await until_idle()
        stage.faults.fail("beat")
        await clock.advance(LEASE)
        stage.faults.clear()
        for _ in range(15):  # it is given up on after 17 seconds
            await clock.advance(0.1)
        assert len(runs) == 2
        tidied.set()
        await until_idle()
        over.set()
        assert await job.result(DEADLINE) == "the second run"


async def test_a_thread_that_outlives_its_lease_cannot_write(stage: Stage, clock: ManualClock) -> None:
    first, second = stage.faulty_app(), stage.app()
    hatches, fences = [Hatch(), Hatch()], []

    def long(ctx: Context) -> str:
        fences.append(ctx.fence)
        mine = len(fences)
        hatches[mine - 1].wait()
        return f"run {mine}"

    for app in (first, second):
        app.register_worker("long", long, execution_mode="triggered", timeout_seconds=None)
    await first.start()
    job = await worker_of(first, "long").enqueue()
    await hatches[0].reached()
    await second.start()
    stage.faults.fail()
    await clock.advance(LEASE * 2)
    await hatches[1].reached()
    stage.faults.clear()
    hatches[0].open()
    await clock.advance(LEASE)
    assert await status(job) is JobStatus.PROCESSING
    hatches[1].open()
    assert await (await second.get_job(job.id)).result(DEADLINE) == "run 2"
    assert fences[0] < fences[1]


async def test_only_the_heartbeat_failing_stops_the_jobs_too_and_costs_no_attempt(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stage.faults.fail("beat")
    await clock.advance(LEASE)
    assert act.cancelled == 1
    stage.faults.clear()
    await clock.advance(LEASE)
    assert act.running == 1
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED
    assert (job.attempt, job.crashes) == (1, 0)


async def test_a_leader_that_was_robbed_of_the_jobs_it_was_settling_leads_on_visibly(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    victim, leader, rival = stage.app(), stage.faulty_app(), stage.app()
    for app in (victim, leader, rival):
        app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await leader.start()
    await victim.start()
    await leader.pause_pool("default")
    job = await worker_of(leader, "act").enqueue()
    leader_node = node_of(leader)
    stage.bench(leader)
    await leader.resume_pool("default")
    await until_idle()
    assert act.running == 1
    await stage.crash(victim)
    # It takes the job over, and can tell nobody what shall become of it.
    stage.faults.fail("finish")
    await clock.advance(LEASE + 1)
    assert (await stage.store.get([job.id]))[0].instance == leader_node.leader.holder  # type: ignore[union-attr]
    stage.faults.fail()
    await rival.start()
    await clock.advance(LEASE * 2)
    assert act.running == 1
    await act.finish()
    await stage.stop(rival)
    stage.faults.clear()
    await clock.advance(LEASE)
    assert leader_node.leader.leading
    assert [problem["code"] for problem in (await leader.get_health())["problems"]] == []


# ── a process is alive, but its loop is blocked ──────────────────────────────────────────────────────────────────────


class Watcher:
    """A second orchestrator, in a thread with a loop of its own."""

    def __init__(self, store: MemoryStore, lease: float) -> None:
        self._store = store
        self._lease = lease
        self._ready = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()))

    def __enter__(self) -> None:
        self._thread.start()
        assert self._ready.wait(DEADLINE)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()

    async def _watch(self) -> None:
        app = WorkerOrchestrator(self._store, lease_seconds=self._lease, tick_interval=0.1)
        app.register_worker("block", lambda: None, execution_mode="triggered", pool="elsewhere")
        app.register_pool("elsewhere")
        async with started(app):
            self._ready.set()
            await asyncio.to_thread(self._over.wait, DEADLINE)


async def test_a_blocked_event_loop_keeps_its_leases() -> None:
    lease = 2.0
    store = MemoryStore()
    app = WorkerOrchestrator(store, lease_seconds=lease)

    @app.task()
    async def block() -> str:
        time.sleep(lease * 2.5)  # noqa: ASYNC251 - that is what is tested
        return "still mine"

    async with started(app):
        with Watcher(store, lease):
            job = await block.enqueue()
            assert await job.result(DEADLINE) == "still mine"
        assert (job.crashes, job.attempt) == (0, 1)
        names = await names_of_events(app)
        # The watcher took over the lead, so it has looked for lost jobs all the time, and found none.
        assert names.count("leader.elected") >= 2
        assert "job.lost" not in names


async def test_a_pulse_ends_with_its_orchestrator() -> None:
    app = WorkerOrchestrator("memory://")
    before = {*threading.enumerate()}
    async with started(app):
        [pulse] = [thread for thread in {*threading.enumerate()} - before if thread.name == "shiftwork pulse"]
    assert not pulse.is_alive()


@pytest.mark.parametrize("times", [1, 2])
async def test_stopping_again_is_harmless_with_a_real_pulse_too(times: int) -> None:
    app = WorkerOrchestrator("memory://")
    await app.start()
    for _ in range(times):
        await app.stop()
    await app.close()


@pytest.mark.parametrize("call", ["reap", "get"])
async def test_a_recovery_that_a_fault_cuts_short_is_finished_by_the_same_leader(
    stage: Stage, clock: ManualClock, call: str
) -> None:
    act = Act()
    victim, leader = stage.app(), stage.faulty_app()
    for app in (victim, leader):
        app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await victim.start()
    job = await worker_of(victim, "act").enqueue()
    await until_idle()
    await stage.crash(victim)
    await leader.start()
    stage.faults.fail(call, kind="after", times=3)
    await clock.advance(LEASE * 3)
    assert stage.faults.failed[call] == 3
    assert act.running == 1
    assert act.contexts[1].job_id == job.id
    job = await leader.get_job(job.id)
    assert job.crashes == 1


async def test_a_take_over_that_is_carried_out_after_its_caller_gave_up_is_finished_too(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    victim, leader = stage.app(), stage.faulty_app()
    for app in (victim, leader):
        app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await victim.start()
    await worker_of(victim, "act").enqueue()
    await until_idle()
    await stage.crash(victim)
    stage.faults.fail("reap", times=1)
    await leader.start()
    await clock.advance(LEASE - 0.1)
    ask_again = stage.faults.hold("reap", "before")
    await clock.advance(1)
    late = await stage.store.reap(node_of(leader).leader.holder, 10, clock.now())
    assert len(late) == 1
    ask_again.set()
    await clock.advance(2 * LEASE)
    assert act.running == 1


async def test_a_store_that_does_not_answer_is_as_bad_as_one_that_fails(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await worker.enqueue()
    await until_idle()
    answer = stage.faults.hold("beat")
    await clock.advance(LEASE * 0.75)
    assert act.cancelled == 0
    await clock.advance(LEASE * 0.24)
    assert act.cancelled == 1
    answer.set()
    await clock.advance(LEASE)
    assert act.running == 1


async def test_an_error_that_no_store_should_raise_stops_the_jobs_in_time_too(
    stage: Stage, clock: ManualClock, tolerated: list[str]
) -> None:
    tolerated.append("a bug in a driver")
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await worker.enqueue()
    await until_idle()
    stage.faults.fail("beat", error=ZeroDivisionError("a bug in a driver"))
    await clock.advance(LEASE * 0.99)
    assert act.cancelled == 1
    stage.faults.clear()
    await clock.advance(LEASE)
    assert act.running == 1


@pytest.mark.parametrize("leads", ["the one with the job", "the other one"])
async def test_a_machine_that_slept_does_not_take_its_own_jobs_for_lost(
    stage: Stage, clock: ManualClock, leads: str
) -> None:
    act = Act()
    first, second = two(stage, act)
    for app in (first, second) if leads == "the one with the job" else (second, first):
        await app.start()
    await second.pause_pool("default")
    job = await worker_of(first, "act").enqueue()
    stage.bench(second)
    await second.resume_pool("default")
    await until_idle()
    assert act.running == 1
    await clock.advance(7)
    clock.jump(600)
    stage.ring("leader")  # the leader happens to be the first to wake up
    await clock.advance(LEASE * 2)
    assert (act.running, act.cancelled) == (1, 0)
    assert "job.lost" not in await names_of_events(first)
    await act.finish()
    assert (await job.refresh()).crashes == 0


# ── the cost of a renewal ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_renewal_is_one_call_of_the_store(stage: Stage, clock: ManualClock) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    beats, times = (stage.faults.calls[name] for name in ("beat", "server_time"))
    await clock.advance(LEASE)
    assert stage.faults.calls["beat"] >= beats + 3
    assert stage.faults.calls["server_time"] == times


class SlowBeats:
    """A store whose replies to beats take a while, and what a pulse hears of them."""

    def __init__(self, clock: ManualClock, *seconds: float) -> None:
        self._clock = clock
        self._seconds = [*seconds]
        self.until: list[float] = []

    async def beat(self, _beats: object, _ttl: float, now: float) -> Orders:
        self._clock.jump(self._seconds.pop(0))
        return Orders([], [], self._clock.now())

    def beats(self) -> list[Beat]:
        return []

    def renewed(self, _instances: object, until: float) -> None:
        self.until.append(until - self._clock.monotonic())

    def step_down(self) -> None:
        """It holds no jobs."""


def pulse_of(store: object, clock: ManualClock) -> LeaseRenewer:
    outages = OutageLog(clock.monotonic)
    watch, holders = Stopwatch(clock.monotonic, outages), cast("LeaseHolders", store)
    return LeaseRenewer(
        cast("Store", store),
        clock,
        ttl=LEASE,
        stopwatch=watch,
        holders=holders,
        renew_soon=RenewSoon(),
        outages=outages,
    )


async def test_a_renewal_whose_reply_took_longer_than_the_lease_is_repeated_at_once(clock: ManualClock) -> None:
    """Otherwise the node would continue with a lease that has ended, and end its processes at once."""
    store = SlowBeats(clock, LEASE + 5, 1.0, LEASE + 5, LEASE + 5)
    pulse = pulse_of(store, clock)
    await pulse.beat()
    assert store.until == [LEASE * 0.8 - 1.0]
    with pytest.raises(StoreUnavailableError, match="renewing the leases took 20 s"):
        await pulse.beat()
    assert len(store.until) == 1


class SleptClock(ManualClock):
    """The clock of a machine that has slept: it does not know for how long until the store says so."""

    slept = 100.0

    def now(self) -> float:
        return super().now() - self.slept

    def follow(self, server_time: float, asked: float, heard: float) -> None:
        self.slept = super().now() - server_time


class NotedBeats:
    """A store that notes when beats say that it is, and knows better."""

    def __init__(self, clock: SleptClock) -> None:
        self._clock = clock
        self.said: list[float] = []

    async def beat(self, _beats: object, _ttl: float, now: float) -> Orders:
        self.said.append(now)
        return Orders([], [], self._clock.monotonic())

    def beats(self) -> list[Beat]:
        return []

    def renewed(self, instances: object, until: float) -> None:
        """It holds none."""


async def test_a_lease_that_was_renewed_by_a_wrong_clock_is_renewed_again_at_once() -> None:
    clock = SleptClock()
    store = NotedBeats(clock)
    pulse = pulse_of(store, clock)
    await pulse.beat()
    assert store.said == [clock.monotonic() - 100.0, clock.monotonic()]
    await pulse.beat()
    assert len(store.said) == 3
