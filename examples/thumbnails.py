"""Make images smaller in processes of their own, on several cores, and show how far each one is."""

import asyncio

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("memory://")
app.register_pool("images", kind="process", min_workers=1, max_workers=4, memory="200MB")


@app.task(pool="images", timeout_seconds="1m")
def shrink(ctx: Context, rows: list[bytes], factor: int) -> list[bytes]:
    small: list[bytes] = []
    for n, row in enumerate(rows[::factor], 1):
        small.append(row[::factor])
        ctx.progress(n * factor, len(rows), f"row {n * factor}")
        ctx.heartbeat()  # ends the job here if it was cancelled
    return small


async def main() -> None:
    await app.start()
    picture = [bytes(range(64))] * 64
    job = await shrink.enqueue(rows=picture, factor=8)
    small = await job.result(timeout_seconds=60)  # meanwhile, `(await job.refresh()).progress` says how far it is
    print(f"{len(picture[0])} × {len(picture)} pixels became {len(small[0])} × {len(small)}")
    print(job.progress)
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
