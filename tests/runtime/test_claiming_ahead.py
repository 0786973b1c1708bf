"""Jobs claimed ahead: they start without another question to the store, and are handed back whenever they will not."""

import asyncio
from typing import Any

import pytest

from shiftwork import Job, JobStatus, StoreUnavailableError, WorkerOrchestrator
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.clock import until_idle
from tests.runtime.stage import Act, Stage, instance_of, limit_jobs, status, statuses

QUEUED = JobStatus.QUEUED


class Scene:
    """A pool of two slots that has just run many short jobs; then two long ones begin, and three were claimed ahead."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.act = Act()
        self.app: WorkerOrchestrator = stage.faulty_app(max_concurrent=2)
        self.jobs: list[Job[Any]] = []
        self.due_at = 0.0
        self._worker = self.app.register_worker("act", self.act, execution_mode="triggered", timeout_seconds=60)
        self._short = self.app.register_worker("short", _short, execution_mode="triggered")

    @property
    def instance(self) -> PoolInstance:
        return instance_of(self.app)

    async def run_many_short_jobs(self) -> None:
        await self.app.start()
        for _ in range(10):
            await self.app.enqueue_many([self._short.call()] * 20)
            await self.stage.clock.advance(0.005)

    async def begin_long_ones(self) -> None:
        self.jobs = await self.app.enqueue_many([self._worker.call()] * 5)
        self.due_at = self.stage.clock.now()
        await until_idle()

    async def handed_back(self) -> bool:
        """Whether the three have been handed back as if they had never been claimed: due since then, in their place."""
        await until_idle()
        three = [await job.refresh() for job in self.jobs[2:]]
        in_place = [(job.run_at, job.record.since) for job in three] == [(self.due_at, self.due_at)] * 3
        return in_place and [(job.status, job.attempt, job.history) for job in three] == [(QUEUED, 0, ())] * 3


async def _short() -> None:
    pass


@pytest.fixture
async def scene(stage: Stage) -> Scene:
    scene = Scene(stage)
    await scene.run_many_short_jobs()
    await scene.begin_long_ones()
    assert (scene.act.running, scene.instance.claimer.waiting) == (2, 3)
    return scene


async def test_a_slow_pool_claims_only_for_its_free_slots(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=2)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([worker.call()] * 5)
    for _ in range(3):
        await stage.clock.advance(3.0)
        assert sorted(await statuses(jobs)) == ["processing"] * 2 + ["queued"] * 3


async def test_a_job_claimed_ahead_is_held_but_takes_no_slot(scene: Scene) -> None:
    assert await statuses(scene.jobs) == ["processing"] * 5
    assert (scene.instance.beat().busy, scene.app.get_status()["running"]) == (2, 2)


async def test_it_starts_when_a_slot_is_free_without_asking_the_store(scene: Scene) -> None:
    scene.stage.faults.fail("claim")
    await scene.act.finish()
    await scene.act.finish()  # by now claiming has failed, and pauses
    assert (scene.act.running, scene.instance.claimer.waiting) == (2, 1)
    assert [ctx.job_id for ctx in scene.act.contexts] == [job.id for job in scene.jobs[:4]]


async def test_its_timeout_counts_from_its_start(scene: Scene) -> None:
    await scene.stage.clock.advance(0.05)
    await scene.act.finish()
    third = scene.act.contexts[2]
    assert third.deadline == pytest.approx(scene.stage.clock.now() + 60)
    await scene.stage.clock.advance(59.96)
    assert not third.cancelled
    await scene.stage.clock.advance(0.05)
    assert third.cancelled


async def test_a_stop_hands_it_back(scene: Scene) -> None:
    stopping = asyncio.create_task(scene.app.stop(1000))
    assert await scene.handed_back()
    await scene.act.finish()
    await scene.act.finish()
    await stopping
    assert scene.act.started == 2


async def test_a_lease_in_danger_hands_it_back(scene: Scene) -> None:
    scene.instance.step_down(lost=False)
    assert await scene.handed_back()
    assert scene.act.cancelled == 2


async def test_fewer_slots_hand_it_back(scene: Scene) -> None:
    scene.instance.resize(1)
    assert await scene.handed_back()
    assert scene.act.running == 2


async def test_more_slots_start_it(scene: Scene) -> None:
    scene.instance.resize(3)
    await until_idle()
    assert (scene.act.running, scene.instance.claimer.waiting) == (3, 2)


async def test_the_end_of_its_process_hands_it_back(scene: Scene) -> None:
    instance = scene.instance
    scene.stage.bench(scene.app)  # no other instance claims them
    instance.runner.close()
    assert await scene.handed_back()
    for _ in range(2):
        await scene.act.finish()
    assert scene.act.started == 2


async def test_cancelled_it_ends_at_once_and_never_runs(scene: Scene) -> None:
    scene.instance.cancel(scene.jobs[3].id, 1)  # an order about an earlier run of it
    await scene.app.cancel_job(scene.jobs[2].id)
    await until_idle()
    assert await status(scene.jobs[2]) is JobStatus.CANCELLED
    for _ in range(4):
        await scene.act.finish()
    assert scene.jobs[2].id not in {ctx.job_id for ctx in scene.act.contexts}
    assert scene.act.started == 4


async def test_it_is_handed_back_when_it_has_waited_too_long_and_not_claimed_again(scene: Scene) -> None:
    await scene.stage.clock.advance(0.25)
    assert await scene.handed_back()
    await scene.stage.clock.advance(10.0)
    assert await scene.handed_back()
    await scene.act.finish()
    assert scene.act.running == 2


async def test_a_job_that_cannot_start_is_handed_back(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.instance.runner, "start", _refuse)
    scene.stage.faults.fail("claim")
    await scene.act.finish()
    assert await scene.handed_back()


def _refuse(_run: object) -> None:
    raise RuntimeError("can't start new thread")


async def test_it_is_not_a_stray_after_a_claim_whose_answer_was_lost(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.stage.faults.fail("claim", kind="after", times=1)
    with pytest.raises(StoreUnavailableError):
        await scene.instance.claimer.claim()
    await scene.instance.claimer.claim()
    await until_idle()
    assert await statuses(scene.jobs) == ["processing"] * 5
    assert "never arrived" not in caplog.text


async def test_a_process_that_does_not_answer_gets_none_of_them(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.instance.runner, "open", False)
    await scene.act.finish()
    assert (scene.act.running, scene.instance.claimer.waiting) == (1, 3)
    await scene.stage.clock.advance(0.25)
    assert await scene.handed_back()


async def test_runs_that_always_take_the_same_time_are_followed_at_once_by_the_next(stage: Stage) -> None:
    act, clock = Act(), stage.clock
    app = stage.app(max_concurrent=2)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await app.enqueue_many([worker.call()] * 100)
    for _ in range(30):
        await clock.advance(1.0)
        await act.finish()
        await act.finish()
    instance = instance_of(app)
    assert (act.running, instance.claimer.waiting) == (2, 0)
    await clock.advance(0.95)
    assert instance.claimer.waiting == 0
    await clock.advance(0.045)
    assert instance.claimer.waiting == 2


async def test_a_process_claims_ahead_no_more_than_it_may_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(stage)
    await scene.run_many_short_jobs()
    monkeypatch.setattr(scene.instance.runner, "apart", True, raising=False)
    limit_jobs(scene.instance, scene.instance.runner.served + 3)
    await scene.begin_long_ones()
    assert (scene.act.running, scene.instance.claimer.waiting) == (2, 1)
