"""Dependencies hold, conflicts never overlap, and no worker starves: end to end, in one process and in two."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from shiftwork import Context, JobPriority, JobStatus
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.outcomes.outbox import pause
from tests.runtime.stage import Act, Stage, status, statuses, worker_of

# ── dependencies ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_b_waits_until_a_has_succeeded_once(stage: Stage, clock: ManualClock) -> None:
    diary: list[str] = []
    a, b = Act("a", diary), Act("b", diary)
    app = stage.app()
    app.register_worker("a", a, interval_seconds=60, max_retries=0)
    app.register_worker("b", b, interval_seconds=60, depends_on=["a"], priority=JobPriority.CRITICAL)
    await app.start()
    await until_idle()
    assert diary == ["a starts"]
    await a.fail()
    assert diary == ["a starts", "a ends"], "b must not run: a has ended, but not succeeded"
    await clock.advance(60)
    await a.finish()
    assert diary == ["a starts", "a ends", "a starts", "a ends", "b starts"]


async def test_b_does_not_start_while_a_runs_or_is_queued_to_run(stage: Stage, clock: ManualClock) -> None:
    diary: list[str] = []
    a, b, other = Act("a", diary), Act("b", diary), Act("other", [])
    app = stage.app(max_concurrent=1)
    work_a = app.register_worker("a", a, execution_mode="triggered")
    work_b = app.register_worker("b", b, execution_mode="triggered", depends_on=["a"])
    fill = app.register_worker("other", other, execution_mode="triggered", priority=JobPriority.CRITICAL)
    await app.start()
    await work_a.enqueue()
    await until_idle()
    await a.finish()
    await fill.enqueue()
    await until_idle()
    await clock.advance(1)
    # Both are queued while the only place is taken; b ranks ahead, and a still goes first.
    job_b = await work_b.with_options(priority=JobPriority.CRITICAL).enqueue()
    await work_a.enqueue()
    diary.clear()
    await other.finish()
    assert diary == ["a starts"]
    assert await status(job_b) is JobStatus.QUEUED
    await a.finish()
    assert diary == ["a starts", "a ends", "b starts"]


async def test_a_retry_of_a_counts_as_queued_to_run(stage: Stage, clock: ManualClock) -> None:
    a, b = Act("a"), Act("b")
    app = stage.app()
    work_a = app.register_worker("a", a, execution_mode="triggered", max_retries=3)
    work_b = app.register_worker("b", b, execution_mode="triggered", depends_on=["a"])
    await app.start()
    await work_a.enqueue()
    await until_idle()
    await a.finish()
    await clock.advance(1)
    await work_a.enqueue()
    await until_idle()
    await a.fail()
    await work_b.enqueue()
    await until_idle()
    assert b.started == 0
    await clock.advance(10)
    assert (a.running, b.started) == (1, 0)
    await a.finish()
    assert b.running == 1


async def test_a_fresh_dependency_demands_a_success_since_bs_last_start(stage: Stage, clock: ManualClock) -> None:
    a, b = Act("a"), Act("b")
    app = stage.app()
    work_a = app.register_worker("a", a, execution_mode="triggered")
    work_b = app.register_worker("b", b, execution_mode="triggered", depends_on={"a": "fresh"})
    await app.start()
    await work_a.enqueue()
    await until_idle()
    await a.finish()
    await work_b.enqueue()
    await until_idle()
    assert b.started == 1
    await b.finish()
    await clock.advance(1)
    again = await work_b.enqueue()
    await clock.advance(100)
    assert b.started == 1
    (wait,) = (await app.explain_job(again.id)).waits
    assert (wait.code, wait.by) == ("dependency", "a")
    await work_a.enqueue()
    await until_idle()
    await a.finish()
    assert b.started == 2


@pytest.mark.parametrize("mode", ["continuous", "very often"])
async def test_an_a_that_never_rests_does_not_starve_b(stage: Stage, clock: ManualClock, mode: str) -> None:
    runs: Counter[str] = Counter()
    running: set[str] = set()
    app = stage.app()

    async def a(ctx: Context) -> None:
        assert "b" not in running, "b must not run beside what it depends on being about to start"
        running.add("a")
        await pause(clock, 0.5)
        running.discard("a")
        runs["a"] += 1

    async def b(ctx: Context) -> None:
        assert "a" not in running
        running.add("b")
        running.discard("b")
        runs["b"] += 1

    often = {"execution_mode": "continuous"} if mode == "continuous" else {"interval_seconds": 0.01}
    app.register_worker("a", a, **often)
    app.register_worker("b", b, interval_seconds=2, depends_on=["a"])
    await app.start()
    await clock.advance(30)
    assert runs["b"] >= 10
    assert runs["a"] >= 40


@pytest.mark.parametrize("limit", [1, 3])
async def test_once_a_has_ended_b_goes_before_the_next_of_a_long_queue_of_as(
    stage: Stage, clock: ManualClock, limit: int
) -> None:
    diary: list[str] = []
    a, b = Act("a", diary), Act("b", diary)
    app = stage.app()
    work_a = app.register_worker("a", a, execution_mode="triggered", max_running=limit, timeout_seconds=None)
    work_b = app.register_worker("b", b, execution_mode="triggered", depends_on=["a"])
    await app.start()
    await app.enqueue_many([work_a.call() for _ in range(10)])
    await clock.advance(10)
    await work_b.enqueue()
    await until_idle()
    assert (a.running, b.started) == (limit, 0)
    await clock.advance(1)
    for _ in range(limit):
        await a.finish()
    await until_idle()
    assert b.started == 1, "every a that is queued ranks ahead of b; and b goes first all the same"
    assert a.started == limit
    await b.finish()
    await clock.advance(1)
    assert a.running == limit


async def test_a_chain_runs_in_order(stage: Stage, clock: ManualClock) -> None:
    order: list[str] = []
    app = stage.app()

    def worker(name: str, *needs: str) -> None:
        async def run() -> None:
            order.append(name)

        app.register_worker(name, run, interval_seconds=100, depends_on=list(needs))

    worker("d", "b", "c")
    worker("c", "a")
    worker("b", "a")
    worker("a")
    await app.start()
    await until_idle()
    assert order[0] == "a"
    assert set(order[1:3]) == {"b", "c"}
    assert order[3:] == ["d"]
    order.clear()
    await clock.advance(110)
    assert (order[0], order[-1], len(order)) == ("a", "d", 4)


# ── conflicts ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_conflicts_wait_for_each_other_both_ways(stage: Stage) -> None:
    a, b = Act("a"), Act("b")
    app = stage.app()
    app.register_pool("other")
    work_a = app.register_worker("a", a, execution_mode="triggered", blocks=["b"])
    work_b = app.register_worker("b", b, execution_mode="triggered", pool="other")
    await app.start()
    await work_a.enqueue()
    await until_idle()
    job = await work_b.enqueue()
    await until_idle()
    assert (a.running, b.running) == (1, 0)
    (wait,) = (await app.explain_job(job.id)).waits
    assert (wait.code, wait.by) == ("blocked", "a")
    await a.finish()
    assert (a.running, b.running) == (0, 1)
    await work_a.enqueue()
    await until_idle()
    assert (a.running, b.running) == (0, 1)
    await b.finish()
    assert (a.running, b.running) == (1, 0)


@pytest.mark.parametrize("seed", range(5))
async def test_conflicts_never_overlap_over_pools_nodes_modes_and_hands(
    stage: Stage, clock: ManualClock, seed: int
) -> None:
    chance = random.Random(seed)
    running: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    conflicts = {("scheduled", "on demand"), ("scheduled", "loop"), ("on demand", "loop")}

    async def run(ctx: Context) -> None:
        running[ctx.name] += 1
        runs[ctx.name] += 1
        for one, other in conflicts:
            assert not (running[one] and running[other]), f"{one} and {other} run at the same time"
        await pause(clock, chance.choice([0.1, 0.3, 1.0]))
        running[ctx.name] -= 1

    apps = [stage.app(), stage.app()]
    for app in apps:
        app.register_pool("other", min_workers=3)
        app.register_worker("scheduled", run, interval_seconds=0.5, blocks=["on demand"])
        app.register_worker("on demand", run, execution_mode="triggered", blocks=["loop"], pool="other", max_running=2)
        app.register_worker(
            "loop", run, execution_mode="continuous", interval_seconds=0.2, blocks=["scheduled"], timeout_seconds=60
        )
        await app.start()
    for _ in range(30):
        await worker_of(apps[0], "on demand").enqueue()
        await clock.advance(chance.random())
    await clock.advance(30)
    dead = await apps[0].find_jobs(status=["dead", "failed"])
    assert [job.error for job in dead] == []
    assert runs["on demand"] == 30
    assert min(runs.values()) >= 10, f"nobody starves: {runs}"


async def test_a_job_that_waits_on_a_conflict_goes_before_later_ones_of_the_other_side(
    stage: Stage, clock: ManualClock
) -> None:
    a, b = Act("a"), Act("b")
    app = stage.app()
    work_a = app.register_worker("a", a, execution_mode="triggered", blocks=["b"])
    work_b = app.register_worker("b", b, execution_mode="triggered")
    await app.start()
    await work_a.enqueue()
    await clock.advance(1)
    await work_b.enqueue()
    await clock.advance(1)
    later = await work_a.enqueue()
    await until_idle()
    # There is room for a second a, and nothing of b runs; but b has waited longer.
    assert (a.running, b.running) == (1, 0)
    (wait,) = (await app.explain_job(later.id)).waits
    assert (wait.code, wait.by) == ("precedence", "b")
    await a.finish()
    assert (a.running, b.running) == (0, 1)
    await b.finish()
    assert (a.running, b.running) == (1, 0)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_max_running_holds_over_two_nodes(stage: Stage) -> None:
    act = Act()
    apps = [stage.app(), stage.app()]
    for app in apps:
        app.register_worker("act", act, execution_mode="triggered", max_running=3)
        await app.start()
    await apps[0].enqueue_many([worker_of(apps[0], "act").call() for _ in range(9)])
    for _ in range(9):
        await until_idle()
        assert act.running <= 3
        await act.finish()
    assert (act.started, act.most) == (9, 3)


@pytest.mark.parametrize(("limit", "most"), [(None, 1), (2, 2)])
async def test_a_concurrency_key_lets_as_many_run_at_once(stage: Stage, limit: int | None, most: int) -> None:
    running: Counter[str] = Counter()
    peaks: Counter[str] = Counter()
    app = stage.app(max_concurrent=20)
    gate = Act()

    @app.task(concurrency_key="user", max_running=limit, timeout_seconds=None)
    async def mail(ctx: Context, user: str) -> None:
        running[user] += 1
        peaks[user] = max(peaks[user], running[user])
        await gate(ctx)
        running[user] -= 1

    await app.start()
    await app.enqueue_many([mail.call(user=user) for user in "aabbbcdaa"])
    await until_idle()
    while gate.running:
        await gate.finish()
    assert gate.started == 9
    assert peaks == {"a": most, "b": most, "c": 1, "d": 1}


async def test_a_concurrency_key_may_be_a_template(stage: Stage) -> None:
    act = Act()
    app = stage.app()

    @app.task(concurrency_key="{tenant}/{user[id]}")
    async def mail(ctx: Context, tenant: str, user: dict[str, int]) -> None:
        await act(ctx)

    await app.start()
    one, same, other = await app.enqueue_many(
        [mail.call("x", {"id": 1}), mail.call("x", {"id": 1}), mail.call("x", {"id": 2})]
    )
    await until_idle()
    assert await statuses([one, same, other]) == ["processing", "queued", "processing"]
    assert one.record.key == "x/1"
    (wait,) = (await app.explain_job(same.id)).waits
    assert (wait.code, wait.by) == ("concurrency_key", "x/1")


async def test_a_rate_limit_is_never_exceeded_and_always_used(stage: Stage, clock: ManualClock) -> None:
    starts: list[float] = []
    apps = [stage.app(), stage.app()]

    async def send() -> None:
        starts.append(clock.now())

    for app in apps:
        app.register_worker("send", send, execution_mode="triggered", rate_limit="20/m")
        await app.start()
    worker = worker_of(apps[0], "send")
    jobs = await apps[0].enqueue_many([worker.call() for _ in range(60)])
    await clock.advance(1)
    waiting = [job for job in jobs if await status(job) is JobStatus.QUEUED]
    wait = (await apps[0].explain_job(waiting[0].id)).waits[0]
    assert wait.code == "rate_limit"
    assert wait.until is not None
    await clock.advance(240)
    assert len(starts) == 60
    for at in starts:
        assert sum(at <= other < at + 60 for other in starts) <= 20
    assert max(later - sooner for sooner, later in pairwise(starts)) < 4


async def test_a_backlog_behind_a_rate_limit_gets_few_slots_from_the_first_plan_on(
    stage: Stage, clock: ManualClock
) -> None:
    slots: list[int] = []
    app, other = stage.app(), stage.app()
    for one in (app, other):
        one.register_pool("pool", min_workers=2, max_workers=40)

        @one.task(name="send", pool="pool", rate_limit="100/s")
        async def send() -> None: ...

    await app.enqueue_many([worker_of(app, "send").call() for _ in range(2_000)])
    await other.start()
    for _ in range(50):
        await clock.advance(0.1)
        slots.append(sum(one["slots"] for one in (await other.get_pool_dashboard())["pool"]["workers"]))
    assert max(slots) <= 12
    assert (await other.get_pool_dashboard())["pool"]["completed"] > 300


# ── rank ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_priority_is_a_head_start_not_a_privilege(stage: Stage, clock: ManualClock) -> None:
    order: list[str] = []
    app = stage.app(max_concurrent=1)
    app.register_pool("default", min_workers=1, max_workers=1, priority_aging_seconds=100)

    @app.task()
    async def work(label: str) -> None:
        order.append(label)

    await app.start()
    await app.pause_pool("default")
    for label, priority in (("low", 0), ("normal", 1), ("high", 2), ("critical", 3)):
        await work.with_options(priority=JobPriority(priority)).enqueue(f"old {label}")
    await clock.advance(150)
    for label, priority in (("low", 0), ("normal", 1), ("high", 2), ("critical", 3)):
        await work.with_options(priority=JobPriority(priority)).enqueue(f"new {label}")
    await app.resume_pool("default")
    await clock.advance(1)
    assert order == [
        "old critical",
        "old high",
        "new critical",
        "old normal",
        "new high",
        "old low",
        "new normal",
        "new low",
    ]


async def test_jobs_of_one_rank_run_in_the_order_they_were_enqueued(stage: Stage, clock: ManualClock) -> None:
    order: list[int] = []
    app = stage.app(max_concurrent=1)

    @app.task()
    async def work(n: int) -> None:
        order.append(n)

    await app.start()
    await app.enqueue_many([work.with_options(run_at=clock.now() + 10).call(n) for n in range(50)])
    await clock.advance(10)
    for _ in range(50):
        await until_idle()
    assert order == list(range(50))
