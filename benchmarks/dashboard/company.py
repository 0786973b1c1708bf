"""The app behind the dashboard: five pools, thirty workers. As a program it runs a few jobs each second.

python -m benchmarks.dashboard.company URL
"""

import asyncio
import sys
from typing import Final

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.jobs import CheckedJobOptions

POOLS: Final = ("mail", "images", "exports", "webhooks", "billing")
SERVED: Final = POOLS[0]
"""The pool that is served. The others are paused, so that their queues stay."""
KINDS: Final = ("make", "send", "check", "sync", "tidy", "report")
WORKERS: Final = {f"{pool}-{kind}": pool for pool in POOLS for kind in KINDS}
PER_SECOND: Final = 10
DAY: Final = 86_400.0


def company(url: str) -> WorkerOrchestrator:
    """The app, on the measured store."""
    app = WorkerOrchestrator(url)
    for pool in POOLS:
        app.register_pool(pool, kind="async", min_workers=2, max_workers=20)
    for name, pool in WORKERS.items():

        async def work(customer: str, document: str, note: str) -> str:
            await asyncio.sleep(0.005)
            return f"{customer} {document} {len(note)}"

        needs = [name.replace("-report", "-sync")] if name.endswith("-report") else []
        app.task(name=name, pool=pool, keep_completed_seconds=DAY, depends_on=needs)(work)
    return app


async def run(url: str) -> None:
    """Serve the app and add a few jobs each second, until killed."""
    app, number = company(url), 0
    mine = [name for name, pool in WORKERS.items() if pool == SERVED and not name.endswith("-report")]
    await app.start()
    print("ready", flush=True)
    while True:
        payload = {"customer": f"customer-{number % 500}", "document": f"doc-{number}", "note": "x" * 120}
        await app.control.jobs.enqueue(mine[number % len(mine)], payload, CheckedJobOptions())
        number += 1
        await asyncio.sleep(1 / PER_SECOND)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
