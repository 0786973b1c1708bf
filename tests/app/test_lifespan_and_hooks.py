"""What an app puts around its jobs: the lifespan of a process, context managers around runs, and their hooks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.core.model.event import Event
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Stage, started

# ── lifespan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_lifespan_yields_is_the_state_of_every_run_until_the_stop() -> None:
    app, diary = WorkerOrchestrator("memory://"), list[str]()

    @app.lifespan
    async def lifespan() -> AsyncIterator[dict[str, int]]:
        async with asyncio.timeout(DEADLINE):  # must be left by the task that has entered it
            diary.append("entered")
            yield {"answer": 42}
            diary.append("left")

    @app.task
    async def ask(ctx: Context) -> int:
        return int(ctx.state["answer"]) + len(diary)

    @app.task
    def ask_in_a_thread(ctx: Context) -> int:
        return int(ctx.state["answer"]) + len(diary)

    await asyncio.create_task(app.start())
    assert await (await ask.enqueue()).result(DEADLINE) == 43
    assert await (await ask_in_a_thread.enqueue()).result(DEADLINE) == 43
    assert diary == ["entered"]
    await app.stop()
    assert diary == ["entered", "left"]
    assert await app.trigger_worker("ask"), "a process that runs one job enters it for that job"
    assert diary == ["entered", "left"] * 2


async def test_a_lifespan_that_raises_keeps_the_app_from_starting() -> None:
    app = WorkerOrchestrator("memory://")
    away = True

    @app.lifespan
    def lifespan() -> Iterator[str]:
        if away:
            raise ConnectionError("the warehouse is away")
        yield "here"

    with pytest.raises(ConnectionError, match="warehouse"):
        await app.start()
    assert app.get_status()["state"] == "stopped"
    away = False
    async with started(app):
        assert app.get_status()["state"] == "running"


async def test_a_lifespan_that_raises_at_its_end_does_not_harm_the_stop(tolerated: list[str]) -> None:
    tolerated.append("the app's lifespan raised when it ended")
    app = WorkerOrchestrator("memory://")

    @app.lifespan
    def lifespan() -> Iterator[None]:
        yield
        raise ConnectionError

    async with started(app):
        pass
    assert app.get_status()["state"] == "stopped"


# ── around each run ──────────────────────────────────────────────────────────────────────────────────────────────────


def surrounded(kind: str, act: Callable[[], Any]) -> tuple[WorkerOrchestrator, Any, list[str]]:
    """An app with two context managers, one of each kind, around a job that calls `act` and its diary."""
    app, diary = WorkerOrchestrator("memory://"), list[str]()

    @app.around_job
    async def outer(ctx: Context) -> AsyncIterator[None]:
        diary.append(f"outer enters {ctx.worker.name}")
        async with asyncio.timeout(DEADLINE):  # must be left by the task that has entered it
            try:
                yield
            except BaseException as error:
                diary.append(f"outer sees {error!r}")
                raise
        diary.append("outer leaves")

    @app.around_job
    def inner(ctx: Context) -> Iterator[None]:
        where = threading.get_ident()
        try:
            yield
        finally:
            diary.append("inner leaves" if where == threading.get_ident() else "inner leaves in another thread")

    async def later() -> Any:
        return act()

    def run() -> Any:
        return later() if kind == "rest" else act()

    task: Any = app.task(name="run", max_retries=0)(later if kind == "async" else run)
    return app, task, diary


KINDS = pytest.mark.parametrize("kind", ["async", "plain", "rest"])
"""A coroutine function, a plain one, and a plain one that returns a coroutine."""


@KINDS
async def test_context_managers_are_nested_around_each_run(kind: str) -> None:
    def act() -> int:
        diary.append("runs")
        return 7

    app, task, diary = surrounded(kind, act)
    async with started(app):
        assert await (await task.enqueue()).result(DEADLINE) == 7
    assert diary == ["outer enters run", "runs", "inner leaves", "outer leaves"]


@KINDS
async def test_a_context_manager_sees_the_exception_itself(kind: str) -> None:
    error = SystemExit("spilled")

    def spill() -> None:
        raise error

    app, task, diary = surrounded(kind, spill)
    async with started(app):
        job = await task.enqueue()
        assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert diary == ["outer enters run", "inner leaves", f"outer sees {error!r}"]
    assert job.error == "SystemExit: spilled"
    assert "in spill" in (job.history[0].traceback or "")


@KINDS
@pytest.mark.parametrize("place", ["before", "after", "instead"])
async def test_what_a_context_manager_raises_fails_the_job(kind: str, place: str) -> None:
    ran: list[int] = []

    def act() -> None:
        ran.append(1)
        if place == "instead":
            raise ValueError

    app, task, _ = surrounded(kind, act)

    @app.around_job
    @asynccontextmanager
    async def broken(ctx: Context) -> AsyncIterator[None]:
        if place == "before":
            raise SystemExit("before")
        try:
            yield
        finally:
            raise SystemExit(place)

    async with started(app):
        job = await task.enqueue()
        assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert job.error == f"SystemExit: {place}"
    assert len(ran) == (place != "before")


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_suppressed_exception_fails_the_job_all_the_same_and_is_logged(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, task, _ = surrounded(kind, lambda: 1 // 0)

    class Lenient(AbstractAsyncContextManager[None]):
        async def __aexit__(self, *_how: object) -> bool:
            return True

    app.around_job(lambda ctx: Lenient())
    async with started(app):
        job = await task.enqueue()
        assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert (job.error or "").startswith("ZeroDivisionError")
    assert f"suppressed ZeroDivisionError of job {job.id} of run" in caplog.text


async def test_a_cancelled_run_is_cancelled_through_what_is_around_it() -> None:
    app, diary = WorkerOrchestrator("memory://"), list[str]()

    @app.around_job
    def around(ctx: Context) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            diary.append("cancelled")

    async def for_ever() -> None:
        diary.append("runs")
        await asyncio.Event().wait()

    sleepers = [app.task(name="a")(for_ever), app.task(name="b")(lambda: for_ever())]  # noqa: PLW0108 - not async
    async with started(app):
        jobs = [await sleeper.enqueue() for sleeper in sleepers]
        await eventually(lambda: diary == ["runs", "runs"])
        for job in jobs:
            await job.refresh()
            await app.cancel_job(job.id)
        assert [await job.ended(DEADLINE) for job in jobs] == [JobStatus.CANCELLED] * 2
    assert diary == ["runs", "runs", "cancelled", "cancelled"]


# ── hooks of every job ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_hear_of_every_run_and_the_store_keeps_nothing_of_it(stage: Stage) -> None:
    app, heard, everything = stage.app(), list[Event](), list[str]()
    for name in ("job.started", "job.completed", "job.failed"):
        app.on(name, heard.append)
    app.on("*", lambda event: everything.append(event.name))

    @app.task(max_retries=1)
    async def divide(by: int) -> int:
        return 1 // by

    await app.start()
    jobs = [await divide.enqueue(by=1), await divide.enqueue(by=0)]
    await stage.clock.advance(60)
    await stage.stop(app)
    told = sorted((event.subject != jobs[0].id, event.at, event.name, event.data["attempt"]) for event in heard)
    assert [(name, attempt) for _, _, name, attempt in told] == [
        ("job.completed", 1),
        ("job.started", 1),
        ("job.failed", 1),
        ("job.started", 1),
        ("job.failed", 2),
        ("job.started", 2),
    ]
    failed = [event for event in heard if event.name == "job.failed"]
    assert [event.data["error"] for event in failed] == ["ZeroDivisionError: integer division or modulo by zero"] * 2
    assert failed[0].data["retry_at"] > failed[0].at
    assert failed[1].data["retry_at"] is None
    kept = {event.name for event in await app.events()}
    assert "job.dead" in kept
    assert not (kept | {*everything}) & {"job.started", "job.completed", "job.failed"}


async def test_a_forked_process_enters_the_lifespan_itself() -> None:
    app, diary = WorkerOrchestrator("memory://"), list[str]()

    @app.lifespan
    def lifespan() -> Iterator[int]:
        diary.append("entered")
        yield len(diary)

    await app.start()
    middleware = app.served.middleware
    inherited: Any = middleware.forked()  # as in a child of this process, with neither its loop nor what it has entered
    assert inherited[-1] == 1, "what was entered is kept, because freeing it would end it"
    states = [middleware.state]
    await middleware.enter()
    assert [*states, middleware.state] == [None, 2]
    await app.stop()
