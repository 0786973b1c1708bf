"""The company's five kinds of jobs, served by ten fixed slots or by a pool per kind, as `MORNING_POOLS` selects."""

import asyncio
import os
import time
from typing import Any

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(os.environ.get("MORNING_STORE", "sqlite:///morning.db"), max_concurrent=1)
fixed = os.environ.get("MORNING_POOLS") == "fixed"

if fixed:
    app.register_pool("workers", kind="process", min_workers=10, max_workers=10, cpu=0.1)
else:
    quick: dict[str, Any] = {"scale_down_after_seconds": 3, "scale_up_threshold": 10}
    app.register_pool("mail", kind="async", min_workers=2, max_workers=100, target_latency_seconds=1, **quick)
    app.register_pool("webhooks", kind="async", min_workers=2, max_workers=100, target_latency_seconds=2, **quick)
    app.register_pool("exports", kind="thread", min_workers=1, max_workers=40, target_latency_seconds=4, **quick)
    app.register_pool("images", kind="process", min_workers=1, max_workers=8, target_latency_seconds=10, **quick)

MAIL, WEBHOOKS, EXPORTS, IMAGES = ["workers"] * 4 if fixed else ["mail", "webhooks", "exports", "images"]


def burn(seconds: float) -> None:
    """Use this much CPU time, however many processes share the core."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@app.task(pool=MAIL)
async def email(seconds: float) -> None:
    """Talk to a mail server."""
    await asyncio.sleep(seconds)


@app.task(pool=WEBHOOKS)
async def webhook(seconds: float) -> None:
    """Wait for a customer's server."""
    await asyncio.sleep(seconds)


@app.task(pool=EXPORTS)
def export(seconds: float) -> None:
    """Wait for a report from a database."""
    time.sleep(seconds)


@app.task(pool=IMAGES)
def image_resize(seconds: float) -> None:
    """Resize a picture."""
    burn(seconds)


@app.task(pool=IMAGES)
def pdf(seconds: float) -> None:
    """Render a document."""
    burn(seconds)
