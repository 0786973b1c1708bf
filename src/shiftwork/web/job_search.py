"""Searches that no index serves: back through time, for as long as a page may take.

By status, worker, pool, tag and time a store finds jobs without reading others. For a key, an instance, a part of the
error or of the payload it reads one job after the other, and there may be a million. So a search goes back, or forth,
in stretches of time, longer ones where there are few jobs, and when its time is up it returns where to continue.

    now ──stretch──▶ until ──────longer stretch──────▶ until ─ … ─ time is up: `next_after` is "~until~stretch"
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from shiftwork.control.control import Control
from shiftwork.control.jobs.filter import FIRST_PAGE, MOST_PAGE_BYTES, next_size, weight
from shiftwork.core.model.jobs import JobStatus
from shiftwork.errors import UnknownJobError
from shiftwork.handles.job import Job
from shiftwork.views.shapes.jobs import payload_shape

UNINDEXED: Final = ("key", "unique_key", "instance", "error")
ENOUGH_SECONDS: Final = 0.04
"""How long a search may take."""
STRETCH_SECONDS: Final = 300.0
GROWTH: Final = 8.0
"""How much longer the next stretch may be than one that was searched quickly."""
SHORTEST_LOOK_SECONDS: Final = 1e-4
PLACE: Final = re.compile(r"~(\d{1,12}\.\d{1,17})~(\d{1,12})", re.ASCII)
SEARCH_PAGE: Final = 500
MOST_PAYLOADS: Final = 5_000
"""How many jobs one request reads for their payloads."""
MOST_BYTES_LOOKED_AT: Final = 64 * 1_048_576
"""About how many bytes one request reads for payloads."""


class JobsPage(Struct, frozen=True):
    """A page of jobs, and the `after` of the next page; None at the end."""

    jobs: list[Job[Any]]
    next_after: str | None


async def search(control: Control, wanted: Mapping[str, Any]) -> JobsPage:
    """Return jobs that match, newest or oldest first. Fewer than the limit does not mean that there are no more."""
    place = _place(wanted.get("after"))
    through = _forth if wanted.get("order") == "oldest" else _back
    if place is not None:
        return await through(control, {name: value for name, value in wanted.items() if name != "after"}, *place)
    if not any(name in wanted for name in UNINDEXED):
        return await _page(control, wanted)
    try:
        start = await _start(control, wanted)
    except UnknownJobError:
        return JobsPage([], None)
    return await through(control, wanted, start, STRETCH_SECONDS)


async def _start(control: Control, wanted: Mapping[str, Any]) -> float:
    """Return from when a search goes back, or forth. Raises `UnknownJobError`."""
    if "after" in wanted:
        return (await control.jobs.get(wanted["after"])).record.created_at
    if wanted.get("order") != "oldest":
        return math.inf
    oldest = await control.jobs.find(order="oldest", limit=1)
    return oldest[0].record.created_at if oldest else math.inf


async def total(control: Control, wanted: Mapping[str, Any], page: JobsPage) -> int | None:
    """Return how many jobs match in all; None if the page is not all of them and the store does not count them."""
    if page.next_after is None and wanted.get("after") is None:
        return len(page.jobs)
    if "payload" in wanted or "waits_for_signal" in wanted:
        return None
    return await control.bulk.known(**{name: value for name, value in wanted.items() if name != "after"})


async def by_payload(control: Control, wanted: Mapping[str, Any], part: str) -> JobsPage:
    """Return jobs with this text in their payload as it is shown: what is hidden is not found either."""
    return await _matching(control, wanted, lambda job: _shows(job, part), whole=True)


async def waiting_for_signals(control: Control, wanted: Mapping[str, Any], part: str | None) -> JobsPage:
    """Return jobs whose functions wait for a signal, and have this text in their payload if one is given."""
    if JobStatus.SCHEDULED not in wanted.get("status", (JobStatus.SCHEDULED,)):
        return JobsPage([], None)  # such a job is handed back, and scheduled until the signal comes
    asked = dict(wanted) | {"status": [JobStatus.SCHEDULED]}

    def fits(job: Job[Any]) -> bool:
        return job.record.wait is not None and (part is None or _shows(job, part))

    return await _matching(control, asked, fits, whole=part is not None)


def _shows(job: Job[Any], part: str) -> bool:
    return part in msgspec.json.encode(payload_shape(job)).decode()


async def _matching(
    control: Control, wanted: Mapping[str, Any], fits: Callable[[Job[Any]], bool], *, whole: bool
) -> JobsPage:
    """Return jobs that match and fit, reading them with their whole payloads if that is needed."""
    matching: list[Job[Any]] = []
    asked, looked_at, heavy, over, end = dict(wanted), 0, 0, False, time.perf_counter() + ENOUGH_SECONDS
    while True:
        page = await search(control, asked | {"limit": min(SEARCH_PAGE, MOST_PAYLOADS - looked_at)})
        for some in _batches(page.jobs):
            for job in await _whole(control, some) if whole else some:
                if fits(job):
                    matching.append(job)
                    if len(matching) == wanted["limit"]:
                        return JobsPage(matching, job.id)
            looked_at, heavy = looked_at + len(some), heavy + sum(map(_payload_bytes, some))
            over = looked_at >= MOST_PAYLOADS or heavy >= MOST_BYTES_LOOKED_AT or time.perf_counter() >= end
            if over and some[-1] is not page.jobs[-1]:
                return JobsPage(matching, some[-1].id)
        if page.next_after is None or over or time.perf_counter() >= end:
            return JobsPage(matching, page.next_after)
        asked["after"] = page.next_after


def _batches(jobs: list[Job[Any]]) -> Iterator[list[Job[Any]]]:
    """Yield the jobs of a page, in order, as many at a time as may be in memory with their whole payloads."""
    batch: list[Job[Any]] = []
    size = 0
    for job in jobs:
        if batch and size + _payload_bytes(job) > MOST_PAGE_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += _payload_bytes(job)
    if batch:
        yield batch


async def _whole(control: Control, jobs: list[Job[Any]]) -> list[Job[Any]]:
    """Return these jobs with their whole payloads. Most payloads are small, and whole already."""
    cut = [job.id for job in jobs if job.record.payload_size is not None]
    found = {job.id: job for job in await control.jobs.find(ids=cut, limit=len(cut), whole=True)} if cut else {}
    return [found.get(job.id, job) for job in jobs if job.record.payload_size is None or job.id in found]


def _payload_bytes(job: Job[Any]) -> int:
    return len(job.record.payload) if job.record.payload_size is None else job.record.payload_size


async def _page(control: Control, wanted: Mapping[str, Any]) -> JobsPage:
    """Return a page, which ends early where jobs are large."""
    limit, jobs, asked = wanted["limit"], list[Job[Any]](), dict(wanted)
    size = min(FIRST_PAGE, limit)
    while True:
        some = await control.jobs.find(**asked | {"limit": size})
        jobs += some
        if len(some) < size:
            return JobsPage(jobs, None)
        if len(jobs) == limit or _weight(jobs) > MOST_PAGE_BYTES:
            return JobsPage(jobs, jobs[-1].id)
        asked["after"] = some[-1].id
        size = next_size([job.record for job in some], limit - len(jobs))


async def _back(control: Control, wanted: Mapping[str, Any], until: float, stretch: float) -> JobsPage:
    limit, jobs = wanted["limit"], list[Job[Any]]()
    first, top = _instant(wanted.get("created_after"), -math.inf), _instant(wanted.get("created_before"), math.inf)
    end = time.perf_counter() + ENOUGH_SECONDS
    while True:
        top = min(top, math.nextafter(until, math.inf))  # a filter excludes both ends
        until = min(top, control.now()) - stretch
        if until <= max(first, 0.0):
            until = first
        between = {"created_after": until, "created_before": top}
        asked = {**wanted, "limit": limit - len(jobs)} | {at: n for at, n in between.items() if math.isfinite(n)}
        began = time.perf_counter()
        page = await _page(control, asked)
        jobs += page.jobs
        now = time.perf_counter()
        if page.next_after is not None or until == first:
            return JobsPage(jobs, page.next_after)
        if now >= end or _weight(jobs) > MOST_PAGE_BYTES:
            return JobsPage(jobs, f"~{until!r}~{stretch:.0f}")
        stretch = max(1.0, stretch * min(GROWTH, (end - now) / 2 / max(now - began, SHORTEST_LOOK_SECONDS)))


async def _forth(control: Control, wanted: Mapping[str, Any], since: float, stretch: float) -> JobsPage:
    """Search as `_back` does, from the oldest job on."""
    limit, jobs = wanted["limit"], list[Job[Any]]()
    last, low = _instant(wanted.get("created_before"), math.inf), _instant(wanted.get("created_after"), -math.inf)
    since, end = max(since, low), time.perf_counter() + ENOUGH_SECONDS
    while True:
        low = max(low, math.nextafter(since, -math.inf))  # a filter excludes both ends
        since += stretch
        if since >= min(last, control.now()):
            since = last
        between = {"created_after": low, "created_before": since}
        asked = {**wanted, "limit": limit - len(jobs)} | {at: n for at, n in between.items() if math.isfinite(n)}
        began = time.perf_counter()
        page = await _page(control, asked)
        jobs += page.jobs
        now = time.perf_counter()
        if page.next_after is not None or since == last:
            return JobsPage(jobs, page.next_after)
        if now >= end or _weight(jobs) > MOST_PAGE_BYTES:
            return JobsPage(jobs, f"~{since!r}~{stretch:.0f}")
        stretch = max(1.0, stretch * min(GROWTH, (end - now) / 2 / max(now - began, SHORTEST_LOOK_SECONDS)))


def _weight(jobs: list[Job[Any]]) -> int:
    return weight([job.record for job in jobs])


def _instant(given: Any, otherwise: float) -> float:
    return otherwise if given is None else given.timestamp()


def _place(after: str | None) -> tuple[float, float] | None:
    """Return from when to go back, and how far, if `after` is such a place and not an id."""
    found = PLACE.fullmatch(after or "")
    return (float(found[1]), float(found[2])) if found else None
