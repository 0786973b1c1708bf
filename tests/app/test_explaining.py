"""Why is a job not running? There is an answer for every kind of wait, in words and in data."""

import asyncio
from typing import Any

import pytest

from shiftwork import Breaker, Context, JobPriority, JobStatus, ResultTimeoutError, UnknownPoolError
from shiftwork.control.jobs import estimates
from shiftwork.core.workers.admission import Obstacle
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.views.explanation import Explanation
from tests.runtime.stage import Act, Stage, node_of


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
        await until_idle()
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


async def test_an_unserved_pool(cast: Cast) -> None:
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
    await until_idle()
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
    await until_idle()
    await work_second.enqueue()
    await clock.advance(1)
    await fill.enqueue()
    await first.finish()
    await until_idle()
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
    await until_idle()
    second = await cast.keyed.enqueue("ada")
    other = await cast.keyed.enqueue("bob")
    await until_idle()
    waits = (await cast.explain(second.id)).waits
    assert [wait.code for wait in waits] == ["concurrency_key", "rate_limit"]
    assert first.id in waits[0].why
    await cast.app.enqueue_many([cast.keyed.call("ada") for _ in range(150)])
    assert f"job {first.id} with the same key 'ada' is running" in (await cast.explain(second.id)).text, "of very many"
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
    await until_idle()
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
    await until_idle()
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


async def test_several_reasons_at_once_are_all_given(cast: Cast) -> None:
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


# ── where, and when ──────────────────────────────────────────────────────────────────────────────────────────────────


async def known_runs(cast: Cast, clock: ManualClock, name: str = "plain", seconds: float = 10.0) -> None:
    """Let one run of a worker end, so that it is known how long they take."""
    await cast.enqueue(name)
    await clock.advance(seconds)
    await cast.acts[name].finish()
    await until_idle()


async def test_a_queue_of_one_slot(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await clock.advance(10)
    await act.finish()
    jobs = await app.enqueue_many([worker.call() for _ in range(4)])
    await until_idle()
    why = [await app.explain_job(job.id) for job in jobs]
    assert [one.position for one in why] == [None, 1, 2, 3]
    assert [one.estimate for one in why] == [None, *map(pytest.approx, (10.0, 20.0, 30.0))]
    assert all(one.position_exact for one in why)
    assert why[3].estimate_basis == "2 jobs go first: 2 of act; 1 slot; a run of act takes 10 s on average"
    assert why[0].estimate_basis is None
    assert "2 jobs of act are ahead of it in pool default" in why[3].text


async def test_jobs_of_other_workers_are_ahead(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(max_concurrent=1)
    act, other = Act("act"), Act("other")
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    first = app.register_worker("other", other, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await app.enqueue_many([first.call() for _ in range(3)])
    await until_idle()
    await clock.advance(1)
    job = await worker.enqueue()
    why = await app.explain_job(job.id)
    assert "next in line for act; 2 jobs of other workers are ahead of it in pool default" in why.text
    assert why.position == 3
    assert why.estimate is None
    assert why.estimate_basis == "no estimate: no run of other has ended yet, so it is not known how long one takes"


async def test_the_time_of_a_job_is_not_that_of_its_gate(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=20)
    worker = app.register_worker("act", act, execution_mode="triggered", rate_limit="60/m", timeout_seconds=None)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await clock.advance(1)
    await act.finish()
    jobs = await app.enqueue_many([worker.call() for _ in range(600)])
    await until_idle()
    why = await app.explain_job(jobs[-1].id)
    gate, queue = why.waits
    assert (gate.code, queue.code) == ("rate_limit", "queue")
    assert gate.until is not None
    assert gate.until < clock.now() + 2, "when the gate opens"
    assert why.estimate == pytest.approx(600, rel=0.1), "when the job starts"
    assert "rate limit of act: 60 in 60 s, the next job starts at 2027-01-15 08:00:0" in why.text
    assert "the rate limit of act lets 60 start in 60 s" in (why.estimate_basis or "")
    with pytest.raises(ResultTimeoutError, match=r"position 5\d\d, starts in about \d+ min"):
        await stage.during(asyncio.create_task(jobs[-1].result(timeout_seconds=1)))


async def test_there_is_no_estimate_while_a_person_holds_a_job_back(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await known_runs(cast, clock)
    await cast.app.pause_pool("default", "the flood")
    why = await cast.explain(await cast.enqueue("plain"))
    assert (why.position, why.estimate) == (1, None)
    assert why.estimate_basis == "no estimate: pool default is paused: the flood"


async def test_an_open_breaker_and_its_probe(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await known_runs(cast, clock, "guarded")
    await cast.enqueue("guarded")
    await cast.acts["guarded"].fail()
    first, second = await cast.enqueue("guarded"), await cast.enqueue("guarded")
    assert (await cast.explain(first)).estimate == pytest.approx(30.0)
    why = await cast.explain(second)
    assert why.estimate is not None
    assert 30.0 < why.estimate <= 40.0
    assert "breaker guarded is open until" in (why.estimate_basis or "")


async def test_a_job_behind_its_key(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await cast.keyed.enqueue("ada")
    await clock.advance(10)
    await cast.acts["plain"].finish()
    await cast.keyed.enqueue("ada")
    second, third = await cast.keyed.enqueue("ada"), await cast.keyed.enqueue("ada")
    await until_idle()
    assert (await cast.explain(second.id)).estimate == pytest.approx(10.0)
    why = await cast.explain(third.id)
    assert why.estimate == pytest.approx(20.0)
    assert why.position == 2, "behind the second, which is parked as well"
    assert not why.position_exact, "parked jobs of other keys may come first"
    assert "of the jobs with key 'ada', 1 may run at a time" in (why.estimate_basis or "")


async def test_a_job_that_is_due_later_starts_when_it_is_due(cast: Cast, clock: ManualClock) -> None:
    await cast.app.start()
    await known_runs(cast, clock)
    job = await cast.workers["plain"].with_options(delay_seconds=90).enqueue()
    why = await cast.explain(job.id)
    assert why.position is None
    assert why.estimate == pytest.approx(90.0)
    assert why.estimate_basis == "it is due then, and the jobs that are queued now have started before"


async def test_a_function_that_sleeps_continues_when_its_time_has_come(stage: Stage) -> None:
    app = stage.app()

    @app.task
    async def work(ctx: Context) -> None:
        await ctx.sleep(60)

    await app.start()
    job = await work.enqueue()
    await until_idle()
    why = await app.explain_job(job.id)
    assert [wait.code for wait in why.waits] == ["sleep"]
    assert (why.position, why.estimate) == (None, 60.0)


async def test_a_delayed_job_that_no_node_queues(cast: Cast, clock: ManualClock, stage: Stage) -> None:
    job = await cast.workers["plain"].with_options(delay_seconds=5).enqueue()
    await clock.advance(60)
    wait = await cast.only_wait(job.id)
    assert wait.code == "unserved"
    assert wait.why.startswith("due since 2027-01-15 08:00:05Z, but no node is running that queues it")
    assert "start one with `shiftwork run`" in ((await cast.explain(job.id)).estimate_basis or "")
    with pytest.raises(ResultTimeoutError, match="it is due since 2027-01-15 08:00:05Z, but no node is running"):
        await stage.during(asyncio.create_task(job.result(timeout_seconds=1)))


async def test_a_label_that_no_node_has(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_pool("render", min_workers=0, labels=["gpu"])
    worker = app.register_worker("act", Act(), execution_mode="triggered", pool="render")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await clock.advance(2)
    why = await app.explain_job(job.id)
    (wait,) = why.waits
    assert wait.code == "unserved"
    assert wait.why == ("no live node has the labels of pool render (gpu): start one with `shiftwork run --label gpu`")
    assert "a node starts one" not in why.text
    assert (why.position, why.estimate, why.estimate_basis) == (1, None, f"no estimate: {wait.why}")


async def test_a_pool_without_slots_that_no_node_can_start(stage: Stage, clock: ManualClock) -> None:
    """Every node is drained; or none has room."""
    app = stage.app()
    app.register_pool("drained", min_workers=0)
    app.register_pool("large", min_workers=0, cpu=9_999)
    small = app.register_worker("small", Act(), execution_mode="triggered", pool="drained")
    large = app.register_worker("large", Act(), execution_mode="triggered", pool="large")
    await app.start()
    job = await large.enqueue()
    await clock.advance(5)
    why = await app.explain_job(job.id)
    assert (why.position, why.estimate) == (1, None)
    assert "pool large has no room for a slot: " in (why.estimate_basis or "")
    await app.drain_node(node_of(app).name)
    job = await small.enqueue()
    await clock.advance(5)
    why = await app.explain_job(job.id)
    assert (why.position, why.estimate) == (1, None)
    assert "every node that could serve pool drained is drained or stopping" in (why.estimate_basis or "")


async def test_slots_of_a_node_that_vanished_and_of_one_without_the_worker_do_not_count(
    stage: Stage, clock: ManualClock
) -> None:
    first, other = stage.app(max_concurrent=4), stage.app(max_concurrent=4)
    act, common = Act("act"), Act("common")
    for app in (first, other):
        app.register_worker("common", common, execution_mode="triggered", timeout_seconds=None)
    worker = first.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await first.start()
    await other.start()
    jobs = await first.enqueue_many([worker.call() for _ in range(6)])
    await until_idle()
    await clock.advance(10)
    await act.finish()
    await clock.advance(1)
    why = await other.explain_job(jobs[5].id)
    assert "; 4 slots" in (why.estimate_basis or "")
    await stage.crash(first)
    await clock.advance(60)
    why = await other.explain_job(jobs[5].id)
    assert why.estimate is None
    assert "no running process has worker act in pool default" in (why.estimate_basis or "")


async def test_no_slots_are_foreseen_that_a_rate_limit_keeps_idle(stage: Stage, clock: ManualClock) -> None:
    app, act = stage.app(), Act("send")
    app.register_pool("mail", min_workers=1, max_workers=40)
    limits: dict[str, Any] = {"execution_mode": "triggered", "pool": "mail", "timeout_seconds": None}
    worker = app.register_worker("send", act, rate_limit="50/s", **limits)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await clock.advance(0.1)
    await act.finish()
    jobs = await app.enqueue_many([worker.call() for _ in range(600)])
    await until_idle()
    why = await app.explain_job(jobs[400].id)
    assert "the rate limit of send lets 50 start in 1 s; 1 slot, soon 6; a run" in (why.estimate_basis or "")
    assert why.estimate == pytest.approx(400 / 46, rel=0.1)


async def test_behind_very_many_jobs_with_its_key_there_is_no_estimate(
    cast: Cast, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "KEY_JOBS", 3)
    await cast.app.start()
    await cast.keyed.enqueue("ada")
    await until_idle()
    jobs = await cast.app.enqueue_many([cast.keyed.call("ada") for _ in range(3)])
    why = await cast.explain(jobs[2].id)
    assert why.estimate is None
    assert why.estimate_basis == "no estimate: 3 jobs or more have its key 'ada'"
