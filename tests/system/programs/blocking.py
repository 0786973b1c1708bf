"""A program that blocks its event loop for longer than its leases last, while its process pool runs a job."""

import asyncio
import os
import time
from pathlib import Path

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=3.0)
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)
FOLDER = Path(os.environ["MILL_STORE"].removeprefix("sqlite:///")).parent
BEGUN, OVER = FOLDER / "begun", FOLDER / "over"


@app.task(pool="apart", max_retries=0)
def work() -> None:
    with BEGUN.open("a") as begun:
        begun.write(f"{os.getpid()}\n")
    while not OVER.exists():
        time.sleep(0.01)


async def main() -> None:
    await app.start()
    job = await work.enqueue()
    while not BEGUN.exists():
        await asyncio.sleep(0.01)
    time.sleep(4)  # noqa: ASYNC251 - that is what is tested
    OVER.touch()
    await job.result(timeout_seconds=40)
    print(len(BEGUN.read_text().splitlines()), "run")
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
