"""Open a connection pool once in each process that runs jobs, and report exceptions to an error tracker."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("memory://")


@app.lifespan
async def connect() -> AsyncIterator[dict[str, int]]:
    print("connecting")
    yield {"orders": 7}  # a connection pool, an HTTP client, a model: this is ctx.state
    print("disconnecting")


@app.around_job
def report_errors(ctx: Context) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        print(f"to the error tracker: {error!r} in {ctx.worker.name}, attempt {ctx.attempt}")  # sentry_sdk.…
        raise


@app.task(max_retries=0)
async def count(ctx: Context, table: str) -> int:
    return int(ctx.state[table])


async def main() -> None:
    await app.start()
    print(await (await count.enqueue(table="orders")).result(timeout_seconds=30))
    print(await (await count.enqueue(table="users")).ended(timeout_seconds=30))
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
