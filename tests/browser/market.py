"""The app that the dashboard shows in these tests: something of every kind, so that every page has something to say."""

import asyncio
import time
from datetime import date
from typing import Annotated, Literal

from msgspec import Meta, Struct

from shiftwork import Context, JobPriority, Retry, Secret, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///market.db", tick_interval=0.5, max_concurrent=8)
app.register_pool(
    "images", kind="process", min_workers=1, max_workers=2, cpu=0.25, scale_up_threshold=5, scale_down_after_seconds=5
)
app.register_pool(
    "mail", kind="async", min_workers=2, max_workers=24, scale_up_threshold=10, scale_down_after_seconds=5
)
app.register_pool("reports", kind="async", min_workers=1, max_workers=2)


@app.worker(name="fetch-prices", interval_seconds=10, priority=JobPriority.HIGH)
async def fetch_prices() -> None:
    """Fetch the supplier's prices."""
    await asyncio.sleep(0.3)


@app.worker(name="work-out-prices", interval_seconds=12, depends_on=["fetch-prices"])
async def work_out_prices() -> None:
    """Work out our own."""
    await asyncio.sleep(0.4)


@app.worker(name="publish-prices", interval_seconds=15, depends_on=["work-out-prices", "fetch-prices"])
async def publish_prices() -> None:
    """Show them to customers."""
    await asyncio.sleep(0.1)


@app.worker(name="cleanup", interval_seconds=14, priority=JobPriority.LOW, blocks=["work-out-prices"])
async def cleanup() -> None:
    """Throw old ones away."""
    await asyncio.sleep(0.3)


@app.worker(name="nightly-report", cron="0 3 * * *", timezone="Europe/Vienna", depends_on=["publish-prices"])
async def nightly_report() -> None:
    """Once a night."""


@app.worker(name="sync-warehouse", interval_seconds=1, max_retries=0, max_consecutive_failures=3)
async def sync_warehouse() -> None:
    """Fails until it is disabled."""
    message = "the warehouse does not answer: connection refused"
    raise ConnectionError(message)


@app.task(pool="images", max_retries=1, retry=Retry(base_seconds=0.2))
def image_resize(path: str, width: int, mode: Literal["fit", "fill"] = "fit", *, grey: bool = False) -> str:
    """Make a picture smaller."""
    if width > 10_000:
        message = f"{width} pixels are too many"
        raise ValueError(message)
    time.sleep(0.02)
    return f"{path}@{width} {mode}{' grey' if grey else ''}"


@app.task(pool="mail")
async def send_mail(to: str, subject: str = "Your order") -> str:
    """Send a mail."""
    await asyncio.sleep(0.05)
    return f"{subject} to {to}"


@app.task(pool="reports", timeout_seconds=600)
async def long_report(ctx: Context, pages: int) -> int:
    """Reports its progress for as long as a test wants to look at it."""
    for page in range(pages):
        ctx.progress(page, pages, f"page {page} of {pages}")
        ctx.logger.log(30 if page % 5 == 4 else 20, "page %s is written", page)
        await asyncio.sleep(0.2)
    return pages


@app.task(pool="mail")
async def render_page(n: int) -> str:
    """Draw a page."""
    return f"page {n}"


@app.task(pool="mail")
async def bind_book(ctx: Context, pages: list[str]) -> str:
    """Bind pages, once a person has seen them."""
    cover = await ctx.step("draw the cover", lambda: "a blue cover")
    approval = await ctx.wait_for("approval", timeout_seconds=3_600)
    return f"{len(pages)} pages in {cover}, approved by {approval['by']}"


@app.task(pool="mail")
async def make_book(ctx: Context, pages: int) -> None:
    """Add a flow."""
    await ctx.enqueue_flow(bind_book.call(pages=[render_page.call(n=n).output for n in range(pages)]))


class Customer(Struct):
    """Who orders."""

    name: str
    password: Annotated[str, Secret]
    born: date | None = None


class Line(Struct):
    """What is ordered."""

    article: str
    pieces: Annotated[int, Meta(ge=1, le=99)] = 1


@app.task(pool="reports")
async def place_order(
    customer: Customer, lines: list[Line], pay: Literal["card", "invoice"], note: str | None = None
) -> str:
    """Takes something of everything that a form can have."""
    pieces = ", ".join(f"{line.pieces} {line.article}" for line in lines)
    return f"{pieces} for {customer.name} ({customer.born}, {len(customer.password)} letters), by {pay}, {note}"
