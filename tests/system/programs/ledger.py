"""Jobs that write to PostgreSQL and end in one transaction, inside processes that a node has started."""

import os
from typing import Any

from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator(os.environ["MILL_STORE"], namespace=os.environ["MILL_NAMESPACE"])
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)


async def post(ctx: Context, amount: int) -> None:
    connection: Any
    async with ctx.transaction() as connection:
        await connection.execute("INSERT INTO ledger VALUES (%s, %s)", (ctx.job_id, amount))
        if amount < 0:
            message = "nothing to post"
            raise ValueError(message)
    if amount > 100:
        os.abort()  # after it has been written


post_apart = app.task(name="post_apart", pool="apart", max_retries=0)(post)
post_here = app.task(name="post_here", max_retries=0)(post)
