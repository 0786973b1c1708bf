"""A small shop. This is what an application looks like; serve it with `shiftwork run examples.shop.app:app`.

`world` makes up what is outside; `recorded` writes down every run, so that `check` can verify it afterwards.
"""

import asyncio

from examples.shop import journal, world
from examples.shop.journal import recorded
from shiftwork import Context, JobPriority, Retry, WorkerExecutionMode, WorkerOrchestrator

# The lease is short so that a viewer need not wait: 2.5 s after a process is killed, its jobs are taken back.
app = WorkerOrchestrator(world.STORE, tick_interval=1.0, max_concurrent=8, lease_seconds=2.5)

# Each picture in a process of its own. Ours only pretend to be work, so four of them share a core.
app.register_pool(
    "images", kind="process", min_workers=2, max_workers=8, cpu=0.25, scale_up_threshold=10, scale_down_after_seconds=1
)
app.register_pool(
    "mail", kind="async", min_workers=2, max_workers=24, scale_up_threshold=10, scale_down_after_seconds=1
)


# ── by the clock ─────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="fetch-data", interval_seconds=2, timeout_seconds=5, priority=JobPriority.HIGH)
async def fetch_data(ctx: Context) -> None:
    """Fetch the supplier's prices."""
    with recorded(ctx):
        await asyncio.sleep(0.6)


@app.worker(name="process-data", interval_seconds=2, depends_on=["fetch-data"])
async def process_data(ctx: Context) -> None:
    """Work out our own prices: never before they are fetched, nor while they are."""
    with recorded(ctx):
        await asyncio.sleep(0.7)


@app.worker(name="cleanup", interval_seconds=4, priority=JobPriority.LOW, blocks=["process-data"])
async def cleanup(ctx: Context) -> None:
    """Throw away old prices: never while they are being worked on."""
    with recorded(ctx):
        await asyncio.sleep(1.2)


# ── without end ──────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="watch-mailbox", execution_mode=WorkerExecutionMode.CONTINUOUS)
async def watch_mailbox(ctx: Context) -> None:
    """Answer letters. The job's id is the letter's: whatever happens in between, a letter is answered by one job."""
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
    """Make a picture smaller. It may crash, so it runs in a process of its own."""
    with recorded(ctx):
        return world.resize(path, width)


@app.task(pool="mail")
async def send_mail(ctx: Context, to: str) -> None:
    """Send a mail."""
    with recorded(ctx):
        await world.deliver(to)


@app.task(retry=Retry(base_seconds=0.5))
async def charge_card(ctx: Context, order: int) -> None:
    """Ask the bank for the money. It answers in the end, so we ask again."""
    with recorded(ctx):
        await world.charge(order, attempt=ctx.attempt)


@app.task(max_retries=0, max_consecutive_failures=3, max_running=1)
async def call_partner(ctx: Context, order: int) -> None:
    """Tell the partner of an order. After three failures in a row nobody is called until a person says so."""
    with recorded(ctx):
        await world.tell_partner(order)
