"""A program whose orchestrator has no name that its processes could import."""

import asyncio
import os

from shiftwork import WorkerOrchestrator


async def main() -> None:
    app = WorkerOrchestrator(os.environ["MILL_STORE"])
    app.register_pool("apart", kind="process")
    await app.start()


if __name__ == "__main__":
    asyncio.run(main())
