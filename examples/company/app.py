"""The company: an example of an application. Run it with `shiftwork run examples.company.app:app`.

Five kinds of jobs with real work, three schedules and a loop. `recorded` writes every run into the journal, so that
`check` can verify it afterwards.
"""

import asyncio
from typing import Any, Final

from examples.company import calls, documents, journal, orders, pictures, place
from examples.company.journal import recorded
from shiftwork import Breaker, Context, JobPriority, Retry, WorkerExecutionMode, WorkerOrchestrator

# The lease is short so that a viewer need not wait. For real work the default of 15 s is right.
app = WorkerOrchestrator(place.STORE, tick_interval=1.0, max_concurrent=6, lease_seconds=4)

FIXED_SLOTS: Final = 10

if place.FIXED:
    app.register_pool("fixed", kind="thread", min_workers=FIXED_SLOTS, max_workers=FIXED_SLOTS)
else:
    # A day is compressed to minutes, so pools shrink after a second instead of after a minute.
    quick: dict[str, Any] = {"scale_up_threshold": 4, "scale_down_after_seconds": 1, "target_latency_seconds": 2}
    # These mostly wait for others, so their slots are threads.
    app.register_pool("mail", kind="thread", min_workers=1, max_workers=9, **quick)
    app.register_pool("webhooks", kind="thread", min_workers=1, max_workers=9, **quick)
    app.register_pool("exports", kind="thread", min_workers=0, max_workers=2, **quick)
    # These compute and may crash, so each slot is a process. Two cores have room for five.
    app.register_pool("images", kind="process", min_workers=0, max_workers=3, cpu=0.4, **quick)
    app.register_pool("documents", kind="process", min_workers=0, max_workers=2, cpu=0.4, **quick)
    # In all 2 slots at night, and 25 at most.


def pool_for(name: str) -> str:
    """The pool of a kind of jobs."""
    return "fixed" if place.FIXED else name


# ── on demand: the five kinds ────────────────────────────────────────────────────────────────────────────────────────


@app.task(pool=pool_for("images"), max_retries=2, retry=Retry(base_seconds=0.2))
def resize_image(ctx: Context, photo: str, width: int) -> tuple[int, int]:
    """Make a picture smaller."""
    with recorded(ctx):
        return pictures.resize(place.ORIGINALS / photo, width, place.PICTURES / f"{ctx.job_id}.jpg")


@app.task(pool=pool_for("documents"))
def write_pdf(ctx: Context, customer: int) -> int:
    """Write a customer's statement of account."""
    with recorded(ctx):
        rows = orders.of_customer(place.ORDERS, customer)
        lines = [
            f"{day}   {quantity} × {article}   {cents / 100:,.2f} €" for _, _, day, article, quantity, cents in rows
        ]
        return documents.write(place.DOCUMENTS / f"{ctx.job_id}.pdf", [f"Statement of customer {customer}", *lines])


@app.task(pool=pool_for("exports"))
def export_rows(ctx: Context, customer: int) -> int:
    """Export a customer's orders as CSV."""
    with recorded(ctx):
        return orders.export(place.ORDERS, customer, place.EXPORTS / f"{ctx.job_id}.csv")


@app.task(pool=pool_for("mail"))
def send_email(ctx: Context, to: str, subject: str) -> None:
    """Send a mail."""
    with recorded(ctx):
        calls.mail(ctx.job_id, to, subject)


@app.task(
    pool=pool_for("webhooks"),
    max_retries=30,
    retry=Retry(base_seconds=0.5, max_seconds=2),
    breaker=Breaker(failures=5, window_seconds=10, cool_down_seconds=1, name="partner"),
)
def call_webhook(ctx: Context, order: int) -> None:
    """Report an order to the partner. While the partner is down, the breaker is open and jobs wait in the queue."""
    with recorded(ctx):
        calls.post(ctx.job_id, "/webhooks", f'{{"order": {order}}}')


# ── on demand: what goes wrong ───────────────────────────────────────────────────────────────────────────────────────


@app.task(retry=Retry(base_seconds=0.2))
def charge_card(ctx: Context, order: int) -> None:
    """Ask the bank for the money. It replies in the end, so failures are retried."""
    with recorded(ctx):
        calls.post(ctx.job_id, "/bank", str(order))


@app.task(max_retries=0, max_consecutive_failures=3, max_running=1)
def book_order(ctx: Context, order: int) -> None:
    """Book an order in the accounting system. After three failures in a row the worker is disabled."""
    with recorded(ctx):
        calls.post(ctx.job_id, "/accounting", str(order))


# ── on a schedule ────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="fetch-data", interval_seconds=2, timeout_seconds=15, priority=JobPriority.HIGH)
async def fetch_data(ctx: Context) -> None:
    """Fetch the supplier's prices."""
    with recorded(ctx):
        await asyncio.sleep(0.5)


@app.worker(name="process-data", interval_seconds=2, depends_on=["fetch-data"])
async def process_data(ctx: Context) -> None:
    """Compute our own prices: never before the supplier's are fetched, nor while they are."""
    with recorded(ctx):
        await asyncio.sleep(0.5)


@app.worker(name="cleanup", interval_seconds=4, priority=JobPriority.LOW, blocks=["process-data"])
async def cleanup(ctx: Context) -> None:
    """Delete old prices: never while prices are being computed."""
    with recorded(ctx):
        await asyncio.sleep(0.8)


# ── continuous ───────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="watch-mailbox", execution_mode=WorkerExecutionMode.CONTINUOUS)
async def watch_mailbox(ctx: Context) -> None:
    """Answer letters. The job's id is made from the letter's, so each letter is answered by exactly one job."""
    with recorded(ctx):
        while not ctx.stopping:
            for letter in place.letters():
                reply = send_email.with_options(job_id=f"reply-{letter.stem}", priority=JobPriority.HIGH)
                job = await reply.enqueue(to=f"customer-{letter.stem}", subject="Thank you for your letter")
                journal.write("owed", job.id)
                letter.unlink()
            await asyncio.sleep(0.3)
