"""Call an API that allows five calls per second, and one at a time for each customer, from any number of processes."""

import asyncio
import time

from shiftwork import Breaker, WorkerOrchestrator

app = WorkerOrchestrator("memory://", max_concurrent=20)


# The limits are kept in the store, so they hold for all processes together. After five failures within a minute the
# breaker opens: jobs stay queued and use no attempts, and every 30 seconds one of them tries whether the API is back.
@app.task(rate_limit="5/s", concurrency_key="customer", breaker=Breaker(failures=5, cool_down_seconds=30))
async def sync_contact(customer: str, contact: int) -> str:
    await asyncio.sleep(0.01)  # the call
    return f"{customer}/{contact}"


async def main() -> None:
    await app.start()
    began = time.monotonic()
    calls = [sync_contact.call(customer=name, contact=n) for n in range(4) for name in ("acme", "bolt")]
    jobs = await app.enqueue_many(calls)
    print([await job.result(timeout_seconds=30) for job in jobs])
    print(f"{len(jobs)} calls took {time.monotonic() - began:.1f} s")
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
