"""Add a job in the transaction of the order that it belongs to. Needs `python -m examples.transaction postgresql://…`."""

import asyncio
import sys

from psycopg import AsyncConnection

from shiftwork import WorkerOrchestrator

URL = sys.argv[1] if len(sys.argv) > 1 else "postgresql://localhost/shop"
app = WorkerOrchestrator(URL, namespace="examples")


@app.task
async def bill(order: str) -> str:
    return f"billed the {order}"


async def place(order: str, *, in_stock: bool) -> None:
    async with await AsyncConnection.connect(URL) as connection:  # one transaction: all of it happens, or nothing
        await connection.execute("CREATE TABLE IF NOT EXISTS example_orders (name text)")
        await connection.execute("INSERT INTO example_orders VALUES (%s)", [order])
        job = await bill.enqueue_with(connection, order=order)
        if not in_stock:
            raise LookupError(f"the {order} is sold out")
    print(await job.result(timeout_seconds=30))


async def main() -> None:
    await app.start()
    await place("lamp", in_stock=True)
    try:
        await place("chair", in_stock=False)
    except LookupError as error:
        print(f"{error}: no order, no job")
    print(await app.find_jobs(worker="bill"))
    await app.stop()


if __name__ == "__main__":
    asyncio.run(main())
