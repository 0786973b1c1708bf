"""Sync each customer on a schedule of its own, which people add and change while everything runs."""

import asyncio
from datetime import UTC, datetime

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///customers.db")


@app.task(max_retries=5)
async def sync(customer: str) -> None:
    print(f"syncing {customer}")


async def save_settings(customer: str, cron: str, timezone: str) -> None:
    """Stand for the handler of a settings page: it adds the customer's schedule, or changes it."""
    schedule = await app.put_schedule(f"sync-{customer}", sync.call(customer=customer), cron=cron, timezone=timezone)
    print(f"{schedule.name}: {schedule.words}")


async def main() -> None:
    async with app.testing(now=datetime(2026, 11, 16, tzinfo=UTC)) as test:  # with `shiftwork run`, real days
        await save_settings("acme", "0 3 * * *", "Europe/Vienna")
        await save_settings("bolt", "30 9 * * 1-5", "Asia/Tokyo")
        for run in await test.advance(days=1):
            print(run.job.id, run.status)
        await save_settings("acme", "@hourly", "UTC")
        await app.pause_schedule("sync-bolt")  # or delete_schedule, run_schedule
        print(len(await test.advance(days=1)), "runs on the second day")


if __name__ == "__main__":
    asyncio.run(main())
