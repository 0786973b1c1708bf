"""A store that fails for a while, or does what it was asked and then says it could not: nothing is lost or stuck."""

import random
from collections import Counter
from typing import Any

import pytest

from shiftwork import Breaker, JobStatus, StoreFullError, StoreUnavailableError, WorkerOrchestrator
from shiftwork.core.doc_kinds import KINDS, MOVE_NAME, PLAN_NAME, STACKS_NAME
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.observing.pool_history import hour_name
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.running.job_threads import JobThreads
from tests.core.records import damages
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Kind, Stage, instance_of, node_of, status, statuses, worker_of

METHODS = [
    "add",
    "beat",
    "claim",
    "docs",
    "find",
    "finish",
    "get",
    "hold",
    "note",
    "promote",
    "prune",
    "put",
    "reap",
    "record",
    "server_time",
    "stats",
    "survey",
]


class Scene:
    """A bit of everything: jobs on demand, a schedule, a loop, a dependency, a failure that is retried."""

    def __init__(self, app: WorkerOrchestrator) -> None:
        self.runs: Counter[str] = Counter()
        self.app = app
        app.register_pool("elastic", min_workers=1, max_workers=4, scale_up_threshold=2)
        self.work = app.register_worker(
            "work", self.do, execution_mode="triggered", pool="elastic", breaker=Breaker(failures=100)
        )
        app.register_worker("tick", self._count("tick"), interval_seconds=7)
        app.register_worker("loop", self._count("loop"), execution_mode="continuous", interval_seconds=3)
        app.register_worker("after", self._count("after"), interval_seconds=5, depends_on=["tick"])

    async def do(self, n: int) -> int:
        self.runs[f"work {n}"] += 1
        if self.runs[f"work {n}"] == 1 and n % 3 == 0:
            raise RuntimeError("the first time never works")
        return n

    def _count(self, name: str) -> Any:
        async def run() -> None:
            self.runs[name] += 1

        return run


async def left_over(stage: Stage) -> list[str]:
    """Jobs of `work` that have not completed."""
    jobs = await stage.store.find(JobFilter(worker="work", limit=1000))
    return [f"{job.id}: {job.status}, {job.error}" for job in jobs if job.status is not JobStatus.COMPLETED]


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("method", METHODS)
async def test_no_method_may_fail_for_a_while_and_harm_anything(
    stage: Stage, clock: ManualClock, method: str, kind: Kind
) -> None:
    scene = Scene(stage.faulty_app())
    await scene.app.start()
    await clock.advance(3)
    outside = stage.app()
    outside.register_pool("elastic")
    again = outside.register_worker("work", scene.do, execution_mode="triggered", pool="elastic")
    await outside.enqueue_many([again.call(n) for n in range(10)])
    stage.faults.fail(method, kind=kind)
    await clock.advance(9)
    await outside.enqueue_many([again.call(n) for n in range(10, 20)])
    await clock.advance(1)
    stage.faults.clear()
    before = scene.runs.copy()
    await clock.advance(60)
    assert await left_over(stage) == []
    for name in ("tick", "loop", "after"):
        assert scene.runs[name] >= before[name] + 4, f"{name} does not go on"
    assert scene.app.get_status()["running"] == 0
    assert all(not instance.claimer.in_doubt for instance in node_of(scene.app).instances)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 20))])
async def test_whatever_fails_whenever_everything_is_done_in_the_end(
    stage: Stage, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    scene = Scene(stage.faulty_app())
    await scene.app.start()
    outside = stage.app()
    outside.register_pool("elastic")
    again = outside.register_worker("work", scene.do, execution_mode="triggered", pool="elastic")
    for n in range(30):
        stage.faults.clear()
        for method in chance.sample(METHODS, 6):
            stage.faults.fail(method, kind=chance.choice(["before", "after"]), times=chance.randint(1, 4))
        await outside.enqueue_many([again.call(n)])
        await clock.advance(chance.choice([0.1, 1, 3]))
    stage.faults.clear()
    await clock.advance(90)
    assert await left_over(stage) == []
    processing = await stage.store.find(JobFilter(status=(JobStatus.PROCESSING,)))
    assert processing == []


async def test_an_enqueue_whose_answer_was_lost_can_be_repeated_under_its_id(stage: Stage) -> None:
    scene = Scene(stage.faulty_app())
    stage.faults.fail("add", kind="after", times=1)
    once = scene.work.with_options(job_id="order-17")
    with pytest.raises(StoreUnavailableError):
        await once.enqueue(n=1)
    job = await once.enqueue(n=1)
    assert (job.id, job.status) == ("order-17", JobStatus.QUEUED)
    assert len(await scene.app.find_jobs(worker="work")) == 1
    await scene.app.start()
    assert await job.result(DEADLINE) == 1
    assert (await once.enqueue(n=1)).status is JobStatus.COMPLETED
    assert scene.runs["work 1"] == 1


async def test_a_failed_enqueue_is_reported_and_adds_nothing(stage: Stage) -> None:
    scene = Scene(stage.faulty_app())
    stage.faults.fail("add", error=StoreFullError("no room"))
    with pytest.raises(StoreFullError, match="no room"):
        await scene.app.enqueue_many([scene.work.call(1), scene.work.call(2)])
    stage.faults.clear()
    assert await scene.app.find_jobs() == []


async def test_a_claim_whose_answer_was_lost_is_handed_back_uncounted(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await until_idle()
    stage.faults.fail("claim", kind="after", times=1)
    job = await worker.enqueue()
    await until_idle()
    assert await status(job) is JobStatus.PROCESSING
    assert act.started == 0
    await clock.advance(0.2)
    assert act.running == 1
    assert act.contexts[0].attempt == 1
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED
    assert (job.attempt, job.crashes) == (1, 0)


async def test_a_claim_that_is_carried_out_after_its_caller_gave_up_is_handed_back(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    stage.faults.fail("claim", times=1)
    await worker.enqueue()
    await clock.advance(0.2)
    assert act.running == 1, "it asked what it holds, and claimed again"
    job = await worker.enqueue()
    late = await stage.store.claim(instance_of(app).name, "default", 1, clock.now(), ["act"])
    assert [claimed.id for claimed in late.jobs] == [job.id]
    await clock.advance(10)
    assert act.running == 2
    assert (act.contexts[1].job_id, act.contexts[1].attempt) == (job.id, 1)


async def test_a_claim_whose_answer_was_lost_before_a_stop_is_handed_back_too(stage: Stage) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    stage.faults.fail("claim", kind="after", times=1)
    job = await worker.enqueue()
    await until_idle()
    await app.stop()
    assert await status(job) is JobStatus.QUEUED
    assert job.attempt == 0


async def test_a_claim_whose_answer_was_lost_is_handed_back_by_an_instance_that_ends_in_an_outage(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    stage.faults.fail("claim", kind="after", times=1)
    job = await worker.enqueue()
    await until_idle()
    stage.faults.fail("find", times=1)
    (instance,) = node_of(app).instances
    instance.runner.close()  # another instance takes its place
    await clock.advance(2)
    assert act.running == 1
    assert (await job.refresh()).crashes == 0


async def test_jobs_of_a_claim_that_could_not_all_be_started_are_handed_back(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tolerated: list[str]
) -> None:
    tolerated.append("pool default failed unexpectedly")
    app = stage.app()

    @app.task()
    def plain(n: int) -> int:
        return n

    await app.start()
    start, refusals = JobThreads.start, [1, 1]

    def no_more_threads(threads: JobThreads, work: Any) -> None:
        if refusals:
            refusals.pop()
            raise RuntimeError("can't start new thread")
        start(threads, work)

    monkeypatch.setattr(JobThreads, "start", no_more_threads)
    jobs = await app.enqueue_many([plain.call(n) for n in range(3)])
    await until_idle()
    await clock.advance(1)
    assert [await job.result(DEADLINE) for job in jobs] == [0, 1, 2]
    assert [job.attempt for job in jobs] == [1, 1, 1]


async def test_an_end_whose_answer_was_lost_counts_once(stage: Stage, clock: ManualClock) -> None:
    dead: list[str] = []
    app = stage.faulty_app()
    act = Act()
    worker = app.register_worker(
        "act", act, execution_mode="triggered", max_retries=0, breaker=Breaker(failures=1, cool_down_seconds=30)
    )
    app.on("job.dead", lambda event: dead.append(event.subject))
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stage.faults.fail("finish", kind="after", times=2)
    await act.fail()
    await clock.advance(5)
    assert await status(job) is JobStatus.DEAD
    assert len(job.history) == 1
    assert (await app.get_pool_dashboard())["default"]["failed"] == 1
    # What follows from an end follows, although it was only heard at the third time.
    assert dead == [job.id]
    assert app.get_status()["worker_states"]["act"]["failures"] == 1
    assert [problem["code"] for problem in (await app.get_health())["problems"]] == ["breaker_open", "dead_letters"]


async def test_a_worker_that_was_disabled_unheard_is_reported_as_disabled(stage: Stage, clock: ManualClock) -> None:
    heard: list[str] = []
    app = stage.faulty_app()
    act = Act()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0, max_consecutive_failures=1)
    app.on("worker.disabled", lambda event: heard.append(event.message))
    await app.start()
    await worker.enqueue()
    await until_idle()
    stage.faults.fail("finish", kind="after", times=1)
    await act.fail()
    await clock.advance(5)
    assert not app.get_status()["worker_states"]["act"]["enabled"]
    assert len(heard) == 1


async def test_an_error_that_no_store_should_raise_costs_no_outcome(
    stage: Stage, clock: ManualClock, tolerated: list[str]
) -> None:
    tolerated.append("a bug in a driver")
    scene = Scene(stage.faulty_app())
    await scene.app.start()
    stage.faults.fail("finish", error=ZeroDivisionError("a bug in a driver"), times=3)
    job = await scene.work.enqueue(1)
    await clock.advance(10)
    assert await status(job) is JobStatus.COMPLETED


async def test_ends_are_written_in_batches_and_in_order(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app(max_concurrent=600)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([worker.call() for _ in range(600)])
    await until_idle()
    assert act.running == 600
    stage.faults.fail("finish")
    for future in act.waiting:
        future.set_result(None)
    await clock.advance(1)
    stage.faults.clear()
    before = stage.faults.calls["finish"]
    await clock.advance(1)
    assert set(await statuses(jobs)) == {"completed"}
    assert stage.faults.calls["finish"] - before == 2


async def test_progress_that_cannot_be_written_harms_nothing_else(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stage.faults.fail("note", times=1)
    act.contexts[0].progress(1, 10)
    await clock.advance(1)
    assert (await job.refresh()).progress is None
    act.contexts[0].progress(2, 10)
    await clock.advance(1)
    assert (await job.refresh()).progress is not None
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED


@pytest.mark.parametrize("kind", KINDS)
async def test_corrupt_records_in_the_store_stop_nothing_else(stage: Stage, clock: ManualClock, kind: str) -> None:
    body = {damage.name: damage.body for damage in damages(kind)}.get("invalid UTF-8 inside", b"\xa1\xff")
    app = stage.app()
    runs: Counter[str] = Counter()
    app.register_pool("elastic", min_workers=1, max_workers=3)

    async def fail() -> None:
        runs["fail"] += 1
        raise RuntimeError("always")

    async def tick() -> None:
        runs["tick"] += 1

    app.register_worker("fail", fail, execution_mode="triggered", pool="elastic", max_retries=0, breaker=Breaker(1))
    app.register_worker("tick", tick, cron="* * * * *", pool="elastic")
    await app.start()
    for name in ("fail", "tick", "elastic", "default", PLAN_NAME, STACKS_NAME, MOVE_NAME, hour_name(0)):
        there = {doc.name: doc.version for doc in await stage.store.docs(kind)}
        await stage.store.put([Doc(kind, name, body, there.get(name, 0))])
    await worker_of(app, "fail").enqueue()
    await clock.advance(200)
    if kind == "pool":  # it may have been paused, and nothing may start that a person has stopped
        assert runs["fail"] == 0
        await app.resume_pool("elastic")
        await clock.advance(200)
    assert runs["fail"] == 1
    assert runs["tick"] >= 2
    await app.auto_scale()
    await app.get_health()
    await app.get_pool_dashboard()
    await app.workers()
    await app.control.system.overview()
    await app.pause_pool("elastic")
    ticks = runs["tick"]
    await clock.advance(200)
    assert runs["tick"] <= ticks + 1
    await app.resume_pool("elastic")
    await eventually(lambda: True)


async def test_a_failure_that_a_breaker_heard_of_unheard_counts_once(stage: Stage, clock: ManualClock) -> None:
    acts = [Act("first"), Act("second")]
    app = stage.faulty_app()
    workers = [
        app.register_worker(act.name, act, execution_mode="triggered", max_retries=0, breaker=Breaker(failures=3))
        for act in acts
    ]
    await app.start()
    await clock.advance(1)
    await app.enqueue_many([worker.call() for worker in workers])
    await until_idle()
    stage.faults.fail("put", kind="after", times=2)
    stage.faults.fail("finish", times=2)
    for act in acts:
        act.waiting.pop(0).set_exception(RuntimeError("once"))
    await clock.advance(10)
    assert stage.faults.failed["put"] == 2
    assert {str(job.status) for job in await app.find_jobs()} == {"dead"}
    assert [problem["code"] for problem in (await app.get_health())["problems"]] == ["dead_letters"]
    # One more is two, and still not three.
    await app.enqueue_many([worker.call() for worker in workers])
    await until_idle()
    for act in acts:
        await act.fail()
    await clock.advance(1)
    await app.enqueue_many([worker.call() for worker in workers])
    await until_idle()
    assert [act.running for act in acts] == [1, 1]
    for act in acts:
        await act.fail()
    await clock.advance(1)
    problems = [problem["code"] for problem in (await app.get_health())["problems"]]
    assert problems.count("breaker_open") == 2
