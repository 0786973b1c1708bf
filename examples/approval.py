"""Ship an order that a person must approve: a function that waits for days, and holds no slot meanwhile."""

import asyncio

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("memory://")


def reserve(order: int) -> str:
    print(f"reserving the goods of order {order}")
    return f"shelf {order}"


async def ship(shelf: str) -> str:
    return f"shipped from {shelf}"


@app.task
async def fulfil(ctx: Context, order: int) -> str:
    shelf = await ctx.step("reserve", reserve, order)  # its result is kept: it is not run again, whatever dies
    try:
        name = await ctx.wait_for("approval", timeout_seconds="3d")
    except TimeoutError:
        return "not approved in time"
    await ctx.sleep("50ms")  # or days=14
    return f"{await ctx.step('ship', ship, shelf)}, approved by {name}"


async def main() -> None:
    await app.start()
    job = await fulfil.enqueue(order=7)
    await app.send(job.id, "approval", "ann")  # or `shiftwork send JOB approval '"ann"'`, or on the dashboard
    print(await job.result(timeout_seconds=30))
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
