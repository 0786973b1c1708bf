"""Test your tasks without waiting and without a server: `pytest examples/test_orders.py`."""

from datetime import UTC, datetime

from shiftwork import Context, JobStatus, Retry, WorkerOrchestrator
from shiftwork.testing import make_context

app = WorkerOrchestrator("redis://production/0")  # no test opens it


@app.task(max_retries=2, retry=Retry(delays=["1h"]))
async def charge(ctx: Context, cents: int) -> str:
    if ctx.attempt == 1:
        raise ConnectionError("the bank does not respond")
    return f"charged {cents}"


@app.worker(cron="0 3 * * *")
async def clean_up() -> None: ...


async def test_the_function_alone() -> None:
    assert await charge(make_context(attempt=2), cents=500) == "charged 500"


async def test_a_charge_is_tried_again_after_an_hour() -> None:
    async with app.testing() as test:
        job = await charge.enqueue(cents=500)
        (first,) = await test.run_pending()
        assert first.status == JobStatus.FAILED
        assert isinstance(first.exception, ConnectionError)
        await test.advance(hours=1)
        assert await job.result() == "charged 500"


async def test_the_clean_up_runs_every_night() -> None:
    async with app.testing(now=datetime(2026, 11, 16, tzinfo=UTC)) as test:
        assert [run.worker for run in await test.advance(days=3)] == ["clean_up"] * 3
