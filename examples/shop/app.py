"""A small shop: an example of an application. Run it with `shiftwork run examples.shop.app:app`.

`world` simulates everything outside; `recorded` records every run, so that `check` can verify it afterwards.
"""

import asyncio

from examples.shop import journal, world
from examples.shop.journal import recorded
from shiftwork import Context, JobPriority, Retry, WorkerExecutionMode, WorkerOrchestrator

# The lease is short so that a viewer need not wait: 2.5 s after a node is killed, its jobs are taken over.
app = WorkerOrchestrator(world.STORE, tick_interval=1.0, max_concurrent=8, lease_seconds=2.5)

# Each picture has its own process. The work is simulated, so four of them share a core.
app.register_pool(
    "images", kind="process", min_workers=2, max_workers=8, cpu=0.25, scale_up_threshold=10, scale_down_after_seconds=1
)
app.register_pool(
    "mail", kind="async", min_workers=2, max_workers=24, scale_up_threshold=10, scale_down_after_seconds=1
)


# ── on a schedule ────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="fetch-data", interval_seconds=2, timeout_seconds=5, priority=JobPriority.HIGH)
async def fetch_data(ctx: Context) -> None:
    """Fetch the supplier's prices."""
    with recorded(ctx):
        await asyncio.sleep(0.6)


@app.worker(name="process-data", interval_seconds=2, depends_on=["fetch-data"])
async def process_data(ctx: Context) -> None:
    """Compute our own prices: never before the supplier's are fetched, nor while they are."""
    with recorded(ctx):
        await asyncio.sleep(0.7)


@app.worker(name="cleanup", interval_seconds=4, priority=JobPriority.LOW, blocks=["process-data"])
async def cleanup(ctx: Context) -> None:
    """Delete old prices: never while prices are being computed."""
    with recorded(ctx):
        await asyncio.sleep(1.2)


# ── continuous ───────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="watch-mailbox", execution_mode=WorkerExecutionMode.CONTINUOUS)
async def watch_mailbox(ctx: Context) -> None:
    """Answer letters. The job's id is made from the letter's, so each letter is answered by exactly one job."""
    with recorded(ctx):
        while not ctx.stopping:
            for letter in world.letters():
                reply = send_mail.with_options(job_id=f"reply-{letter.stem}", priority=JobPriority.HIGH)
                job = await reply.enqueue(to=f"customer-{letter.stem}")
                journal.write("owed", job.id)
                letter.unlink()
            await asyncio.sleep(0.2)


# ── on demand ────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.task(pool="images", max_retries=2, retry=Retry(base_seconds=0.5))
def image_resize(ctx: Context, path: str, width: int) -> str:
    """Make a picture smaller. It may crash, so it runs in its own process."""
    with recorded(ctx):
        return world.resize(path, width)


@app.task(pool="mail")
async def send_mail(ctx: Context, to: str) -> None:
    """Send a mail."""
    with recorded(ctx):
        await world.deliver(to)


@app.task(retry=Retry(base_seconds=0.5))
async def charge_card(ctx: Context, order: int) -> None:
    """Ask the bank for the money. It responds in the end, so failures are retried."""
    with recorded(ctx):
        await world.charge(order, attempt=ctx.attempt)


@app.task(max_retries=0, max_consecutive_failures=3, max_running=1)
async def call_partner(ctx: Context, order: int) -> None:
    """Notify the partner of an order. After three failures in a row the worker is disabled until it is enabled."""
    with recorded(ctx):
        await world.tell_partner(order)
