"""Why is a job not running? There is an answer for every kind of wait, in words and in data."""

from typing import Any

import pytest

from shiftwork import Breaker, JobPriority, JobStatus, UnknownPoolError
from shiftwork.core.admission import Obstacle
from shiftwork.runtime.clock import ManualClock, settle
from shiftwork.views.explanation import Explanation
from tests.runtime.stage import Act, Stage


class Cast:
    """One orchestrator with a worker for each kind of wait."""

    def __init__(self, stage: Stage) -> None:
        self.app = stage.app(max_concurrent=20)
        self.acts = {name: Act(name) for name in ("plain", "blocker", "blocked", "needed", "needy", "one", "guarded")}
        options: dict[str, dict[str, Any]] = {
            "plain": {},
            "blocker": {"blocks": ["blocked"]},
            "blocked": {},
            "needed": {},
            "needy": {"depends_on": ["needed"]},
            "one": {"max_running": 1},
            "guarded": {"breaker": Breaker(failures=1, cool_down_seconds=30), "max_retries": 0},
        }
        self.workers = {
            name: self.app.register_worker(name, act, execution_mode="triggered", timeout_seconds=None, **options[name])
            for name, act in self.acts.items()
        }
        self.keyed = self.app.task(concurrency_key="user", rate_limit="10/m", timeout_seconds=None)(self._keyed)

    async def _keyed(self, user: str) -> None:
        await self.acts["plain"](None)  # type: ignore[arg-type]

    async def enqueue(self, name: str) -> str:
        job = await self.workers[name].enqueue()
        await settle()
        return job.id

    async def explain(self, job_id: str) -> Explanation:
        explanation = await self.app.explain_job(job_id)
        assert explanation.job_id == job_id
        return explanation

    async def only_wait(self, job_id: str) -> Obstacle:
        explanation = await self.explain(job_id)
        (wait,) = explanation.waits
        assert wait.why in explanation.text
        assert explanation.text.startswith("waits: ")
        return wait


@pytest.fixture
def cast(stage: Stage) -> Cast:
    return Cast(stage)


async def test_a_job_that_is_due_later(cast: Cast, clock: ManualClock) -> None:
    job = await cast.workers["plain"].with_options(delay_seconds=90).enqueue()
    wait = await cast.only_wait(job.id)
    assert (wait.code, wait.by, wait.until) == ("later", "plain", clock.now() + 90)
    assert "2027-01-15 08:01:30" in wait.why


async def test_a_pool_that_nobody_serves(cast: Cast) -> None:
    wait = await cast.only_wait(await cast.enqueue("plain"))
    assert (wait.code, wait.by) == ("unserved", "default")
    assert "shiftwork run" in wait.why


async def test_a_paused_pool(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.app.pause_pool("default", "the flood")
    wait = await cast.only_wait(await cast.enqueue("plain"))
    assert (wait.code, wait.by, wait.since) == ("paused", "default", clock.now())
    assert "the flood" in wait.why
    with pytest.raises(UnknownPoolError, match="there is no pool 'defualt': did you mean 'default'"):
        await cast.app.pause_pool("defualt")
    await cast.app.resume_pool("default")
    await settle()
    assert cast.acts["plain"].running == 1


async def test_a_disabled_worker(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.app.disable_worker("plain", "by me")
    wait = await cast.only_wait(await cast.enqueue("plain"))
    assert (wait.code, wait.by, wait.since) == ("disabled", "plain", clock.now())
    assert "by me" in wait.why


async def test_a_conflict(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.enqueue("blocker")
    began = clock.now()
    await clock.advance(10)
    job = await cast.enqueue("blocked")
    wait = await cast.only_wait(job)
    assert (wait.code, wait.by, wait.since) == ("blocked", "blocker", began)
    assert "running on" in wait.why


async def test_precedence(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.enqueue("blocker")
    await clock.advance(1)
    await cast.enqueue("blocked")
    await clock.advance(1)
    wait = await cast.only_wait(await cast.enqueue("blocker"))
    assert (wait.code, wait.by) == ("precedence", "blocked")


async def test_a_dependency_in_every_state(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    job = await cast.enqueue("needy")
    wait = await cast.only_wait(job)
    assert (wait.code, wait.by) == ("dependency", "needed")
    assert "has not succeeded yet" in wait.why
    await cast.enqueue("needed")
    assert "which is running" in (await cast.only_wait(job)).why
    await cast.acts["needed"].finish()
    assert cast.acts["needy"].running == 1
    await cast.acts["needy"].finish()
    await cast.app.disable_worker("needed", "tired")
    await clock.advance(1)
    await cast.enqueue("needed")
    wait = await cast.only_wait(await cast.enqueue("needy"))
    assert "is queued to run first, but is disabled: tired" in wait.why


async def test_a_turn(cast: Cast, clock: ManualClock, stage: Stage) -> None:
    app = stage.app(max_concurrent=1)
    first, second, filler = Act("first"), Act("second"), Act("filler")
    work_first = app.register_worker("first", first, execution_mode="triggered")
    work_second = app.register_worker("second", second, execution_mode="triggered", depends_on=["first"])
    fill = app.register_worker("filler", filler, execution_mode="triggered", priority=JobPriority.CRITICAL)
    await app.start()
    await work_first.enqueue()
    await settle()
    await work_second.enqueue()
    await clock.advance(1)
    await fill.enqueue()
    await first.finish()
    await settle()
    assert (filler.running, second.running) == (1, 0)
    again = await work_first.enqueue()
    waits = (await app.explain_job(again.id)).waits
    assert [(wait.code, wait.by) for wait in waits] == [("turn", "second")]


async def test_max_running(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.enqueue("one")
    wait = await cast.only_wait(await cast.enqueue("one"))
    assert (wait.code, wait.by, wait.since) == ("max_running", "one", clock.now())
    assert "1 of 1" in wait.why


async def test_a_concurrency_key_and_a_rate_limit(cast: Cast) -> None:
    await cast.app.start()
    first = await cast.keyed.enqueue("ada")
    await settle()
    second = await cast.keyed.enqueue("ada")
    other = await cast.keyed.enqueue("bob")
    await settle()
    waits = (await cast.explain(second.id)).waits
    assert [wait.code for wait in waits] == ["concurrency_key", "rate_limit"]
    assert first.id in waits[0].why
    wait = await cast.only_wait(other.id)
    assert (wait.code, wait.by) == ("rate_limit", "_keyed")
    assert wait.until is not None
    assert "10 in 60 s" in wait.why


async def test_a_breaker_open_and_half_open(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.enqueue("guarded")
    await cast.acts["guarded"].fail()
    job = await cast.enqueue("guarded")
    wait = await cast.only_wait(job)
    assert (wait.code, wait.by, wait.until) == ("breaker", "guarded", clock.now() + 30)
    waiting = await cast.enqueue("guarded")
    await clock.advance(30)
    wait = await cast.only_wait(waiting)
    assert "probe" in wait.why


async def test_no_free_worker_and_others_ahead(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([worker.call() for _ in range(3)])
    await settle()
    next_one, behind = [(await app.explain_job(job.id)).waits[0] for job in jobs[1:]]
    assert (next_one.code, behind.code) == ("queue", "queue")
    assert "next free slot" in next_one.why
    assert "ahead" in behind.why


async def test_jobs_that_wait_for_nothing(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    running = await cast.enqueue("plain")
    explanation = await cast.explain(running)
    assert (explanation.status, explanation.waits) == (JobStatus.PROCESSING, [])
    assert explanation.text.startswith("runs: attempt 1, since 2027-01-15 08:00:00")
    await cast.app.cancel_job(running)
    assert "is being cancelled" in (await cast.explain(running)).text
    await settle()
    assert (await cast.explain(running)).text.startswith("cancelled at 2027-01-15 08:00:00")
    done = await cast.enqueue("plain")
    await cast.acts["plain"].finish()
    assert (await cast.explain(done)).text.startswith("completed at")


async def test_a_failed_job_is_due_later(cast: Cast) -> None:
    await cast.app.start()
    job = await cast.enqueue("plain")
    await cast.acts["plain"].fail()
    explanation = await cast.explain(job)
    assert explanation.status is JobStatus.FAILED
    assert [wait.code for wait in explanation.waits] == ["later"]


async def test_several_reasons_at_once_are_all_told(cast: Cast) -> None:
    await cast.app.start()
    await cast.app.pause_pool("default")
    await cast.app.disable_worker("needy")
    job = await cast.enqueue("needy")
    assert [wait.code for wait in (await cast.explain(job)).waits] == ["paused", "disabled", "dependency"]


async def test_a_job_and_its_explanation_come_from_one_read(stage: Stage) -> None:
    app = stage.faulty_app()
    worker = app.register_worker("act", Act(), execution_mode="triggered")
    job = await worker.enqueue()
    await app.get_job(job.id)
    stage.faults.calls.clear()
    found, why = await app.control.jobs.get_explained(job.id)
    assert (found.id, why.job_id, stage.faults.calls["get"]) == (job.id, job.id, 1)
