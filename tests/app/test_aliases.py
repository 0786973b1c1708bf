"""A worker under a new name still runs what was added under the old one."""

import pytest

from shiftwork import ConfigurationError, Context, DuplicateNameError, JobStatus, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, worker_of


async def test_jobs_queued_under_the_old_name_run_with_the_renamed_worker(stage: Stage, clock: ManualClock) -> None:
    old = WorkerOrchestrator(stage.store, clock=clock)

    @old.task
    async def resize(width: int) -> str:
        return f"old {width}"

    before = await resize.enqueue(3)
    app = stage.app()

    @app.task(aliases=["resize", "shrink"])
    async def scale(ctx: Context, width: int) -> str:
        return f"{ctx.worker.name} {width}"

    await app.start()
    after = await scale.enqueue(4)
    assert await before.result(DEADLINE) == "resize 3"
    assert await after.result(DEADLINE) == "scale 4"
    assert (before.worker, after.worker) == ("resize", "scale")
    assert await (await resize.enqueue(5)).result(DEADLINE) == "resize 5"  # by a process of the old version
    assert {one.config.name: one.schedule for one in (await app.control.system.overview()).workers} == {
        "resize": "on demand, as an alias of scale",
        "scale": "on demand",
        "shrink": "on demand, as an alias of scale",
    }
    await app.disable_worker("resize", "by its own name")
    assert not app.get_status()["worker_states"]["resize"]["enabled"]
    assert app.get_status()["worker_states"]["scale"]["enabled"]


async def test_the_old_name_of_a_schedule_does_not_fire(stage: Stage, clock: ManualClock) -> None:
    runs: list[str] = []
    old, new = stage.app(), stage.app()

    async def sync(ctx: Context) -> None:
        runs.append(ctx.worker.name)

    old.register_worker("sync", sync, interval_seconds=60)
    new.register_worker("sync-all", sync, interval_seconds=60, aliases=["sync"])
    await old.start()
    await clock.advance(65)
    await stage.stop(old)
    assert runs == ["sync", "sync"]
    await new.start()
    await clock.advance(200)
    assert runs[2:] == ["sync-all"] * 4
    assert (await new.get_health())["status"] == "ok"


async def test_one_job_at_a_time_is_one_under_either_name(stage: Stage, clock: ManualClock) -> None:
    act, other = Act(), Act()
    app = stage.app()
    renamed = app.register_worker("new", act, execution_mode="triggered", max_running=1, aliases=["old"])
    app.register_worker("other", other, execution_mode="triggered", blocks=["new"])
    await app.start()
    for worker in (worker_of(app, "old"), renamed, worker_of(app, "other"), worker_of(app, "old")):
        await worker.enqueue()
        await clock.advance(0.1)
    most = 0
    for _ in range(4):
        await until_idle()
        most = max(most, act.running + other.running)
        await (act if act.running else other).finish()
        await clock.advance(0.1)
    assert (most, act.started, other.started) == (1, 3, 1)
    assert {job.status for job in await app.find_jobs()} == {JobStatus.COMPLETED}


def test_an_alias_that_is_taken_is_rejected(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("one", Act(), aliases=["uno"])
    with pytest.raises(DuplicateNameError, match="there is a worker 'uno' already, as an alias of 'one'; give one"):
        app.register_worker("uno", Act())
    with pytest.raises(DuplicateNameError, match="'two' has the alias 'one', which is a worker's name already"):
        app.register_worker("two", Act(), aliases=["one"])
    with pytest.raises(DuplicateNameError, match=r"'two' has the alias 'uno'.* as an alias of 'one'"):
        app.register_worker("two", Act(), aliases=["uno"])
    with pytest.raises(ConfigurationError, match="aliases names the worker itself"):
        app.register_worker("two", Act(), aliases=["two"])
    with pytest.raises(ConfigurationError, match="aliases must be a list of worker names, not one string"):
        app.register_worker("two", Act(), aliases="three")
    assert "two" not in app.get_status()["worker_states"]


async def test_other_workers_name_a_renamed_worker_by_its_new_name(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("new", Act(), aliases=["old"])
    app.register_worker("after", Act(), depends_on=["old"])
    with pytest.raises(ConfigurationError, match="'after' depends on 'old', which is an alias; write 'new'"):
        await app.start()
