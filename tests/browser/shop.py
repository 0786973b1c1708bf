"""The app of the pictures in the documentation: a shop on a busy morning, while its carrier fails."""

import asyncio
import os
import random
import time
from datetime import timedelta
from typing import Final, Literal

from shiftwork import Breaker, Context, GiveUp, JobPriority, Retry, WorkerOrchestrator

CARRIER_FAILS_AT: Final = float(os.environ.get("CARRIER_FAILS_AT", "inf"))
"""When the carrier begins to fail, in epoch seconds."""
DAY: Final = timedelta(days=1).total_seconds()
CARRIER: Final = Breaker(failures=5, window_seconds=60, cool_down_seconds=600, name="api.carrier.example")

app = WorkerOrchestrator(max_concurrent=8)  # SHIFTWORK_STORE names the store
app.register_pool("orders", min_workers=4, max_workers=24, target_latency_seconds=20, scale_down_after_seconds=20)
app.register_pool("mail", min_workers=2, max_workers=40, scale_up_threshold=10, scale_down_after_seconds=10)
app.register_pool(
    "images", kind="process", min_workers=1, max_workers=3, cpu=0.25, scale_up_threshold=8, scale_down_after_seconds=20
)
app.register_pool("exports", min_workers=1, max_workers=8, target_latency_seconds=60)
app.register_pool("reports", kind="thread", min_workers=2, max_workers=4)
app.register_pool("newsletter", min_workers=1, max_workers=20)


# ── on a schedule ────────────────────────────────────────────────────────────────────────────────────────────────────


@app.worker(name="fetch-prices", interval_seconds=10, priority=JobPriority.HIGH)
async def fetch_prices() -> None:
    """Fetch the suppliers' prices."""
    await asyncio.sleep(random.uniform(0.2, 0.9))


@app.worker(name="work-out-prices", interval_seconds=12, depends_on=["fetch-prices"])
async def work_out_prices() -> None:
    """Work out our own."""
    await asyncio.sleep(random.uniform(0.3, 0.6))


@app.worker(name="publish-prices", interval_seconds=15, depends_on=["work-out-prices"])
async def publish_prices() -> None:
    """Show them to customers."""
    await asyncio.sleep(0.1)


@app.worker(name="import-stock", interval_seconds=20, blocks=["work-out-prices"])
async def import_stock() -> None:
    """Read what the warehouse has."""
    await asyncio.sleep(random.uniform(0.5, 1.5))


@app.worker(name="sync-warehouse", interval_seconds=2, max_retries=0, max_consecutive_failures=3)
async def sync_warehouse() -> None:
    """Write to the warehouse, which refuses it."""
    message = "the warehouse at 10.4.0.12 refuses the connection"
    raise ConnectionError(message)


@app.worker(name="close-carts", cron="*/10 * * * *", depends_on=["import-stock"])
async def close_carts() -> None:
    """Give back what abandoned carts have reserved."""


@app.worker(name="nightly-report", cron="0 3 * * *", timezone="Europe/Vienna", depends_on=["publish-prices"])
async def nightly_report() -> None:
    """Once a night."""


# ── on demand ────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.task(pool="mail", rate_limit="40/s", keep_completed_seconds=DAY)
async def send_mail(to: str, subject: str) -> str:
    """Send a mail."""
    await asyncio.sleep(random.uniform(0.05, 0.4))
    if to.endswith(".invalid"):
        message = f"550 no such mailbox: {to}"
        raise GiveUp(message)
    return f"{subject} to {to}"


@app.task(pool="images", max_retries=1, retry=Retry(base_seconds=0.5))
def resize_image(path: str, width: int, mode: Literal["fit", "fill"] = "fit") -> str:
    """Make a picture smaller."""
    if width > 10_000:
        message = f"{width} pixels are too many"
        raise ValueError(message)
    time.sleep(random.uniform(0.05, 0.3))
    return f"{path}@{width} {mode}"


@app.task(pool="orders")
async def reserve_stock(order: int, article: str) -> str:
    """Put the article of an order aside."""
    await asyncio.sleep(random.uniform(0.1, 0.4))
    return f"{article} for order {order}"


@app.task(pool="orders", max_retries=1, retry=Retry(base_seconds=0.5))
async def charge_card(order: int, amount: float) -> str:
    """Charge the customer's card."""
    await asyncio.sleep(random.uniform(0.2, 0.8))
    if order % 250 == 100:
        message = f"the card for order {order} is declined: insufficient funds"
        raise PermissionError(message)
    return f"receipt {order} over {amount}"


@app.task(pool="orders")
async def write_invoice(receipt: str) -> str:
    """Write the invoice."""
    await asyncio.sleep(0.2)
    return f"invoice for {receipt}"


@app.task(pool="orders", breaker=CARRIER, retry=Retry(base_seconds=2, factor=1))
async def book_parcel(order: int) -> str:
    """Book a parcel at the carrier."""
    await asyncio.sleep(random.uniform(0.1, 0.3))
    if time.time() > CARRIER_FAILS_AT:
        message = "api.carrier.example returned 503 Service Unavailable"
        raise ConnectionError(message)
    return f"parcel {order}"


@app.task(pool="orders")
async def place_order(ctx: Context, order: int, article: str, amount: float, to: str) -> None:
    """Add the flow of an order."""
    stock = reserve_stock.call(order=order, article=article)
    receipt = charge_card.call(order=order, amount=amount).after(stock)
    invoice = write_invoice.call(receipt=receipt.output)
    parcel = book_parcel.call(order=order).after(receipt)
    mail = send_mail.call(to=to, subject=f"Your order {order} is on its way").after(invoice, parcel)
    await ctx.enqueue_flow(mail)


@app.task(pool="orders", timeout_seconds=None)
async def refund(ctx: Context, order: int, amount: float) -> str:
    """Refund an order, once a person has approved it."""
    await ctx.step("check the order", lambda: order)
    decision = await ctx.wait_for("approval", timeout_seconds=DAY)
    return f"{amount} for order {order}, approved by {decision}"


@app.task(pool="exports", rate_limit="20/m")
async def export_to_partner(order: int) -> str:
    """Send an order to the partner, who takes twenty a minute."""
    await asyncio.sleep(random.uniform(0.3, 0.8))
    return f"order {order} is exported"


@app.task(pool="reports", timeout_seconds=1_800)
def monthly_report(ctx: Context, pages: int) -> int:
    """Write a report, page by page."""
    for page in range(pages):
        ctx.progress(page, pages, f"page {page} of {pages}")
        ctx.logger.log(30 if page % 20 == 19 else 20, "page %s is written", page)
        time.sleep(0.2)
        if ctx.stopping:
            break
    return pages


@app.task(pool="newsletter")
async def send_newsletter(to: str) -> str:
    """Send the newsletter."""
    return f"newsletter to {to}"
