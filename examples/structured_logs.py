"""Log with structlog: every line inside a job names it, whatever logs it."""

import asyncio

import structlog

from shiftwork import WorkerOrchestrator
from shiftwork.contrib.structlog import add_job

structlog.configure(processors=[add_job, structlog.processors.KeyValueRenderer(sort_keys=True)])
log = structlog.get_logger()
app = WorkerOrchestrator("memory://")


@app.task
async def charge(order: int) -> None:
    log.info("charging", order=order)


async def main() -> None:
    await app.start()
    await (await charge.with_options(job_id="order-7").enqueue(order=7)).result(timeout_seconds=30)
    await app.stop()
    log.info("done")


if __name__ == "__main__":
    asyncio.run(main())
