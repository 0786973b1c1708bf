"""Report dead jobs and missed schedules to Sentry. SENTRY_DSN names the project; without it, they are printed."""

import asyncio
import os

import sentry_sdk
from sentry_sdk.types import Event, Hint

from shiftwork import WorkerOrchestrator
from shiftwork.contrib.sentry import track


def show(event: Event, _: Hint) -> Event:
    error = event["exception"]["values"][-1]
    print(f"to Sentry: {error['type']}: {error['value']}, {event['tags']}")
    return event


sentry_sdk.init(dsn=os.environ.get("SENTRY_DSN", "http://key@127.0.0.1:9/1"), before_send=show)
app = WorkerOrchestrator("memory://")
track(app)  # every process that runs jobs imports this module


@app.task(max_retries=0)
async def charge(order: int) -> None:
    raise ValueError(f"order {order} has no address")


@app.worker(cron="0 3 * * *", timezone="Europe/Vienna")
async def nightly_report() -> None: ...  # a cron monitor: Sentry reports a night without a run


async def main() -> None:
    await app.start()
    await (await charge.enqueue(order=7)).ended(timeout_seconds=30)
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
