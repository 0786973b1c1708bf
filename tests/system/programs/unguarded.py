"""A program that starts when it is imported, too: its processes cannot import it."""

import asyncio
import os

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.event import Event

app = WorkerOrchestrator(os.environ["MILL_STORE"])
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)
failing = asyncio.Event()


@app.on("pool.failing")
def heard(event: Event) -> None:
    print(event.message, flush=True)
    failing.set()


async def main() -> None:
    await app.start()
    await failing.wait()
    await app.stop()


asyncio.run(main())
