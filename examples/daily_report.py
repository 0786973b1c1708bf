"""Write a report every morning at eight, in the time zone of the people who read it.

`shiftwork run examples.daily_report:app` does so. This program lets two days pass in a test, in no time: in the night
between them the clocks are set back, and the report comes at eight all the same.
"""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

from shiftwork import Context, WorkerOrchestrator

VIENNA = ZoneInfo("Europe/Vienna")

app = WorkerOrchestrator("sqlite:///reports.db")


@app.worker(cron="0 8 * * *", timezone="Europe/Vienna", catch_up="latest")
async def daily_report(ctx: Context) -> None:
    since = "ever" if ctx.last_success is None else datetime.fromtimestamp(ctx.last_success, VIENNA)
    print(f"orders since {since}")


async def main() -> None:
    async with app.testing(now=datetime(2026, 10, 24, 6, tzinfo=VIENNA)) as test:
        for run in await test.advance(days=2):
            print(run.job.id, run.status)


if __name__ == "__main__":
    asyncio.run(main())
