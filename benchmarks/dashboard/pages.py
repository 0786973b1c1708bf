"""The requests of each page, as in `ui/src/data/queries.ts`. A page has loaded when all of them are answered."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, Final

from httpx2 import AsyncClient

from benchmarks.dashboard.company import DAY
from benchmarks.dashboard.report import COUNT

LEAST: Final = 5
MOST_SECONDS: Final = 2.0
"""The fewest visits to a slow page."""
PAUSE_SECONDS: Final = 1.1
"""After this pause no cached result is left: the web asks the store."""

Asked = tuple[str, Mapping[str, Any]]
"""A request: a path and its query."""
SHELL: Final[Asked] = ("overview", {})
"""The requests that every page sends."""


@dataclass(frozen=True)
class Page:
    """A page, or a question that a button asks."""

    label: str
    asks: tuple[Asked, ...]
    body: Mapping[str, Any] | None = None
    """The body of the request, if it is a button's question before a bulk action."""


def _jobs(label: str, **wanted: Any) -> Page:
    return Page(f"jobs, {label}", (("jobs", {"limit": 50, **wanted}), ("workers", {}), ("pools", {})))


def _count(label: str, action: str, **wanted: Any) -> Page:
    body = {"action": action, "filter": wanted, "dry_run": True}
    return Page(f"{COUNT}{label}", (("jobs/bulk", {}),), body)


def _day(days_ago: float) -> str:
    return datetime.fromtimestamp(time.time() - days_ago * DAY, UTC).isoformat()


def pages(jobs: int) -> dict[str, Page]:
    """All pages, with every filter of the jobs page."""
    middle = f"job-{jobs // 2:07}"
    listed = [
        Page("overview", (("history", {"seconds": 3600}),)),
        Page("pools", (("pools", {}),)),
        Page("pool", (("pools/images", {}), ("history", {"seconds": 3600}))),
        Page("workers", (("workers", {}), ("graph", {}))),
        Page("worker", (("workers/images-send", {}), ("graph", {}))),
        Page("nodes", (("nodes", {}),)),
        Page("events", (("events", {"limit": 100}),)),
        Page("events, 1,000", (("events", {"limit": 1000}),)),
        Page("events, by name", (("events", {"limit": 100, "name": "worker.disabled"}),)),
        Page("events, by subject", (("events", {"limit": 100, "subject": "images-send"}),)),
        Page("dead letters", (("dead", {}),)),
        Page(
            "dead letters, a group",
            (("dead", {}), ("jobs", {"limit": 10, "status": "dead", "worker": "images-send", "error": "TimeoutError"})),
        ),
        Page("job", ((f"jobs/{middle}", {}), (f"jobs/{middle}/explanation", {}))),
        Page("job, running", (("jobs/running-3", {}), ("jobs/running-3/explanation", {}))),
        _jobs("all"),
        _jobs("a page in the midst", after=middle),
        *(_jobs(status, status=status) for status in ("queued", "processing", "completed", "failed", "scheduled")),
        *(_jobs(status, status=status) for status in ("dead", "cancelled")),
        _jobs("three statuses", status=["queued", "completed", "dead"]),
        _jobs("of a worker", worker="images-send"),
        _jobs("of a pool", pool="images"),
        _jobs("dead, of a pool", status="dead", pool="images"),
        _jobs("queued, of a worker", status="queued", worker="images-send"),
        _jobs("by key", key="customer-77"),
        _jobs("by key, of none", key="none"),
        _jobs("by unique key, of none", unique_key="none"),
        _jobs("by instance", instance="node-1/images"),
        _jobs("by instance, running", instance="node-0/images", status="processing"),
        _jobs("by error", error="TimeoutError"),
        _jobs("by error, of few", error="customer 50005 "),
        _jobs("by error, of none", error="nowhere"),
        _jobs("dead, by error, of none", error="nowhere", status="dead"),
        _jobs("of a day", created_after=_day(3), created_before=_day(2)),
        _jobs("of a day, dead", created_after=_day(3), created_before=_day(2), status="dead"),
        _jobs("of a day, by error", created_after=_day(3), created_before=_day(2), error="KeyError"),
        _jobs("by payload", payload="customer-77"),
        _jobs("by payload, of none", payload="nowhere"),
        _count("dead letters", "retry"),
        _count("by error", "retry", error="TimeoutError"),
    ]
    return {page.label: page for page in listed}


async def visit(client: AsyncClient, page: Page) -> float:
    """Open the page once; returns the seconds until everything is loaded."""
    began = time.perf_counter()
    if page.body is not None:
        answers = [await client.post(page.asks[0][0], json=page.body)]
    else:
        answers = list(await asyncio.gather(*(client.get(path, params=dict(of)) for path, of in (*page.asks, SHELL))))
    taken = time.perf_counter() - began
    for answer in answers:
        answer.raise_for_status()
    return taken


async def visits(client: AsyncClient, page: Page, n: int) -> dict[str, float]:
    """Open the page repeatedly."""
    taken: list[float] = []
    await visit(client, page)
    until = time.perf_counter() + MOST_SECONDS
    while len(taken) < n and (len(taken) < LEAST or time.perf_counter() < until):
        taken.append(await visit(client, page))
    return _told(page.label, taken)


async def after_pauses(client: AsyncClient, several: Sequence[Page], n: int) -> dict[str, float]:
    """Open these pages in turn, repeatedly, each time after a pause without requests."""
    taken: dict[str, list[float]] = {f"{page.label}, after a pause": [] for page in several}
    for _ in range(n):
        await asyncio.sleep(PAUSE_SECONDS)
        for page, seconds in zip(several, taken.values(), strict=True):
            seconds.append(await visit(client, page))
    return {name: value for label, seconds in taken.items() for name, value in _told(label, seconds).items()}


def _told(label: str, seconds: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile, in milliseconds."""
    cuts = quantiles(seconds, n=20, method="inclusive")
    return {f"{label}/p50": cuts[9] * 1_000, f"{label}/p95": cuts[18] * 1_000}
