"""No page and no run reads more of a job than it needs, even if the job has all that it may accumulate."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork import (
    Context,
    PayloadNotReadError,
    PayloadTooLargeError,
    SignalsFullError,
    StepsFullError,
    WorkerOrchestrator,
)
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.values.job_limits import BEGINNING, PAGE_BYTES, SHOWN_STEPS, SIGNALS, STEPS
from shiftwork.store.memory import MemoryStore
from shiftwork.store.postgres import restore
from shiftwork.store.protocol import Store
from shiftwork.views.shapes.jobs import job_shape, whole_job_shape
from tests.store.conformance.lab import StoreFactory

DEADLINE: Final = 60.0
MIB: Final = 1_048_576
LARGE: Final = 60


class CountingStore:
    """A store that notes how many bytes each call returns."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.url = inner.url
        self.largest: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        return self._counted(name, method) if asyncio.iscoroutinefunction(method) else method

    def _counted(self, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **named: Any) -> Any:
            answer = await method(*args, **named)
            size = len(msgpack.encode(answer, enc_hook=repr))
            self.largest[name] = max(size, self.largest.get(name, 0))
            return answer

        return call


def app_on(store: CountingStore) -> WorkerOrchestrator:
    app = WorkerOrchestrator(store)

    @app.task(max_retries=0)
    async def work(ctx: Context) -> str:
        for n in range(1, LARGE + 1):
            await ctx.step(f"step {n}", _never)
        return f"{await ctx.wait_for('go')} {await ctx.step('last', _last)}"

    return app


async def _never() -> bytes:
    raise AssertionError


async def _last() -> str:
    return "done"


async def plant(store: Store, id: str) -> None:
    """Give a queued job all that it may have, but for a few steps that its next run adds."""
    [record] = await store.get([id], whole=True)
    assert record is not None
    result = msgpack.encode(b"r" * (STEPS.bytes // LARGE - 1_000))
    steps = tuple(Step(n, f"step {n}", result, 1.0, 2.0) for n in range(1, LARGE + 1))
    value = msgpack.encode(b"v" * (SIGNALS.bytes // SIGNALS.number - 10))
    signals = tuple(Signal("go" if n == 500 else "other", value, 1.0) for n in range(SIGNALS.number))
    await store.restore([replace(record, status=JobStatus.QUEUED, steps=steps, signals=signals)], record.created_at)


async def test_a_full_job_is_shown_and_run_without_reading_all_of_it(
    factory: StoreFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "BYTES_OF_AN_ITEM", 1_000)  # PostgreSQL may take minutes, where the machine is busy
    inner = factory()()
    await inner.open()
    store = CountingStore(inner)
    app = app_on(store)
    job, _ = await app.control.jobs.enqueue("work", {})
    await plant(inner, job.id)
    store.largest.clear()
    shape = whole_job_shape(*await app.control.jobs.get_shown(job.id))
    assert (shape.step_count, len(shape.steps), len(shape.signals)) == (LARGE, LARGE, SIGNALS.number)
    assert shape.step_bytes > STEPS.bytes * 0.99
    assert shape.signal_bytes > SIGNALS.bytes * 0.99
    [found] = await app.find_jobs(worker="work")
    assert found.id == job.id
    assert max(store.largest.values()) <= (SHOWN_STEPS + SIGNALS.number) * (BEGINNING + 200), store.largest
    with pytest.raises(SignalsFullError):
        await app.send(job.id, "other", "x" * 100_000)
    store.largest.clear()
    await app.start()
    try:
        assert str(await job.result(DEADLINE)).endswith("done")
    finally:
        await app.stop()
    a_step = STEPS.bytes // LARGE
    assert PAGE_BYTES <= store.largest["steps"] <= PAGE_BYTES + 2 * a_step
    assert max(store.largest.values()) == store.largest["steps"], store.largest
    assert store.largest["signal"] < 2 * SIGNALS.bytes // SIGNALS.number
    assert "parts" not in store.largest
    await inner.close()


async def test_a_list_of_waiting_jobs_reads_no_large_payloads(factory: StoreFactory) -> None:
    """Also where it shows which of them cannot run."""
    inner = factory()()
    store = CountingStore(inner)
    app = WorkerOrchestrator(store)

    @app.task
    async def work(text: str) -> None: ...

    broken = work.call("")
    stranded = [work.call(text).after(broken) for text in ("x" * 100_000, "y" * 100_000, "")]
    waiting = [work.call(text).after(work.call("")) for text in ("z" * 100_000, "")]
    flow, other = await app.enqueue_flow(*stranded), await app.enqueue_flow(*waiting)
    await app.cancel_job(next(job.id for job in flow.jobs if job.status is JobStatus.QUEUED))
    store.largest.clear()
    found = await app.find_jobs(status="waiting")
    shown = {job.id: job_shape(job).stranded for job in found}
    wanted = {job.id: True for job in flow.jobs} | {job.id: False for job in other.jobs}
    assert shown == {id: wanted[id] for id in shown}
    assert len(shown) == 5
    assert max(store.largest.values()) < 50_000, store.largest
    whole = await app.find_jobs(status="waiting", whole=True)
    assert {job.id: job_shape(job).stranded for job in whole} == shown
    await app.close()


async def test_what_failed_before_a_job_is_found_without_reading_many_large_payloads_at_once() -> None:
    store = CountingStore(MemoryStore())
    app = WorkerOrchestrator(store)
    handed: list[int] = []

    @app.task(max_retries=0)
    async def fail(text: str) -> None:
        raise ValueError

    @app.task
    async def clean_up(ctx: Context) -> None:
        handed.append(len(ctx.flow_failures))

    large = [fail.call("x" * (PAGE_BYTES // 4)).after(fail.call(f"{n}")) for n in range(20)]
    flow = await app.enqueue_flow(clean_up.call().after(*large, whatever=True))
    store.largest.clear()
    await app.start()
    try:
        assert await flow.jobs[-1].ended(DEADLINE) is JobStatus.COMPLETED
    finally:
        await app.stop()
    assert handed == [20]
    assert store.largest["get"] < 1.5 * PAGE_BYTES, store.largest
    await app.close()


async def test_a_step_without_room_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftwork.core.jobs.durable_functions.STEPS", replace(STEPS, bytes=10_000))
    app = WorkerOrchestrator("memory://")
    ran: list[str] = []

    @app.task
    async def work(ctx: Context) -> None:
        for name in "abc":
            try:
                await ctx.step(name, large, name)
            except StepsFullError:
                ran.append("caught")

    async def large(name: str) -> str:
        ran.append(name)
        return "x" * 4_000

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending()
        await job.refresh()
        assert job.status is JobStatus.DEAD
        assert job.error is not None
        assert job.error.startswith("StepsFullError: job ")
        assert "at most 10,000 steps" in job.error
        assert ran[:3] == ["a", "b", "c"]


async def test_a_value_of_a_signal_is_no_larger_than_a_payload_of_the_app() -> None:
    app = WorkerOrchestrator("memory://", max_payload_bytes=1_000)

    @app.task
    async def work(ctx: Context) -> str:
        return str(await ctx.wait_for("go"))

    async with app.testing() as test:
        job = await work.enqueue()
        await test.run_pending()
        with pytest.raises(PayloadTooLargeError, match=r"2,003 bytes; 1,000 are allowed.*raise max_payload_bytes"):
            await app.send(job.id, "go", "x" * 2_000)
        await app.send(job.id, "go", "x" * 900)
        await test.run_pending()
        assert await job.result(DEADLINE) == "x" * 900


async def test_a_large_payload_of_a_list_is_read_when_it_is_asked_for() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def work(text: str) -> None: ...

    async with app.testing():
        await work.enqueue(text="x" * 5_000)
        await work.enqueue(text="y")
        small, large = await app.find_jobs(worker="work")
        assert small.payload == {"text": "y"}
        with pytest.raises(PayloadNotReadError, match=r"5,0\d\d bytes: call `await job.refresh\(\)` first"):
            _ = large.payload
        assert (await large.refresh()).payload == {"text": "x" * 5_000}
        _, again = await app.find_jobs(worker="work", whole=True)
        assert again.payload == {"text": "x" * 5_000}
