"""A job that logs a line and then takes its process down; who asks finds the line while it runs, and afterwards."""

import asyncio
import os
import time
from pathlib import Path

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator(os.environ["MILL_STORE"], enable_health_checks=False)
app.register_pool("apart", kind="process", max_workers=1, cpu=0.1)


@app.task(pool="apart")
def fall(ctx: Context) -> None:
    """Wait to be pushed."""
    ctx.logger.info("on the edge")
    while not Path(os.environ["FALL"]).exists():
        time.sleep(0.01)
    os.abort()


async def main() -> None:
    """Look, push, look again."""
    await app.start()
    job = await fall.enqueue()
    while not (await job.refresh()).logs:
        await asyncio.sleep(0.01)
    print([line.message for line in job.logs])
    Path(os.environ["FALL"]).touch()
    while not (await job.refresh()).history:
        await asyncio.sleep(0.01)
    print(job.history[0].kind, [line.message for line in job.history[0].log])
    await app.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
