"""Many jobs at once: which are meant, how many they are, changing them, and summing up the dead ones.

Whoever asks may die half way: every batch is changed on its own, and what was not reached stays as it was.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.control.operations import job_filter
from shiftwork.control.paging import FEW, next_size
from shiftwork.core.dead_groups import group_key
from shiftwork.core.model import (
    SECONDS_A_DAY,
    Cancel,
    Change,
    DeadJob,
    Discard,
    JobFilter,
    JobStatus,
    PoolStats,
    Requeue,
    Stats,
    WorkerStats,
)
from shiftwork.core.options import parse_rate
from shiftwork.errors import ConfigurationError
from shiftwork.store.protocol import Store

BATCH: Final = 1_000
AT_A_TIME: Final = 100
"""Calls to the store that are under way together."""
RESOLUTION_SECONDS: Final = 0.05
"""Jobs that are due within so short a time of each other may be due at the same time."""
LONGEST_SECONDS: Final = 10 * 365 * SECONDS_A_DAY
"""Within which a rate must have queued all again: what is due later is as good as lost."""
FIELDS: Final = ("ids", "worker", "pool", "key", "unique_key", "instance", "error", "created_after", "created_before")
"""What can narrow a group."""

COUNTED: Final = {
    JobStatus.SCHEDULED: "scheduled",
    JobStatus.FAILED: "retrying",
    JobStatus.QUEUED: "queued",
    JobStatus.PROCESSING: "processing",
    JobStatus.DEAD: "dead",
}
"""What a store counts anyway, by pool and by worker."""
RATE_PATTERN: Final = r"^ *0*[1-9][0-9]* */ *(0*[1-9][0-9]*(\.[0-9]+)?)? *[smhd] *$"
"""What a rate looks like, for those who cannot ask `parse_rate`."""

Action = Literal["cancel", "retry", "discard"]


class Selection(Struct, frozen=True, kw_only=True):
    """Which jobs are meant."""

    wanted: JobFilter
    group: str | None = None
    """Dead jobs that failed alike; see `core.alike`."""
    at_most: int | None = None


class Changed(Struct, frozen=True):
    """How many jobs were changed, when the last of them is due if they were spread over time, and how many were meant.

    Those that were meant but not changed were in another status by then.
    """

    count: int = 0
    until: float | None = None
    matched: int = 0


def selection(action: Action, wanted: Mapping[str, Any]) -> Selection:
    """Which jobs a person means: as `find_jobs` has it, or a `group`. Without a status, dead ones, but to cancel."""
    said = dict(wanted)
    group = said.pop("group", None)
    if action != "cancel":
        said.setdefault("status", JobStatus.DEAD)
    return Selection(wanted=job_filter(**said), group=group, at_most=said.get("limit"))


def check_rate(action: Action, rate: str | None) -> float | None:
    """Seconds from one job to the next, at a rate such as "10/s"; None if they are not spread."""
    if rate is None:
        return None
    if action != "retry":
        raise ConfigurationError(f"a rate is for queueing jobs again: {action} knows none")
    try:
        limit = parse_rate(str(rate))
    except ConfigurationError as error:
        raise ConfigurationError(f"rate {error}") from None
    return limit.seconds / limit.count


class Bulk:
    """Many jobs of a store."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def dead(self, at_most: int | None = None) -> AsyncIterator[DeadJob]:
        """The newest dead jobs, or all of them. Read in short calls, so that nobody else waits long."""
        behind, left = None, at_most
        while left != 0:
            page = await self._store.dead(behind, BATCH if left is None else min(BATCH, left))
            for job in page:
                yield job
            if len(page) < BATCH:
                return
            left = None if left is None else left - len(page)
            behind = page[-1].created_at, page[-1].id

    async def count(self, chosen: Selection) -> int:
        """How many jobs are meant: as the store has counted them, where it has."""
        known = None if _is_narrow(chosen) else _counted(await self._store.stats(self._now()), chosen.wanted)
        if known is not None:
            return known if chosen.at_most is None else min(known, chosen.at_most)
        return sum([len(batch) async for batch in self._batches(chosen)])

    async def change(self, action: Action, chosen: Selection, rate: str | None = None) -> AsyncIterator[Changed]:
        """Change all that are meant; tells how far it is after each batch.

        At a rate, they are queued again one after the other, beginning now.
        """
        spread = check_rate(action, rate)
        if spread is not None:
            self._refuse_too_slow(rate, await self.count(chosen) * spread)
        now, so_far = self._now(), Changed()
        async for ids in self._batches(chosen):
            matched = so_far.matched + len(ids)
            if spread is None:
                amended = await self._store.amend(ids, _change(action, self._now()), self._now())
                so_far = Changed(so_far.count + sum(one.ok for one in amended), None, matched)
            else:
                due = [now + spread * n for n in range(so_far.matched, matched)]
                done, last = await self._requeue(ids, due, spread)
                so_far = Changed(so_far.count + done, last if done else so_far.until, matched)
            yield so_far

    def _refuse_too_slow(self, rate: str | None, seconds: float) -> None:
        if seconds > LONGEST_SECONDS:
            years = seconds / (365 * SECONDS_A_DAY)
            message = f"rate {rate!r} is too slow: the last job would be due in {years:,.0f} years, and 10 are the most"
            raise ConfigurationError(message)

    async def _requeue(self, ids: Sequence[str], due: Sequence[float], spread: float) -> tuple[int, float]:
        """Queue these again, each when it is due; those that are due nearly together in one call."""
        together = max(1, int(RESOLUTION_SECONDS / spread))
        calls = [(ids[n : n + together], Requeue(due[n])) for n in range(0, len(ids), together)]
        count = 0
        for n in range(0, len(calls), AT_A_TIME):
            now = self._now()
            made = [self._store.amend(some, change, now) for some, change in calls[n : n + AT_A_TIME]]
            count += sum(one.ok for answers in await asyncio.gather(*made) for one in answers)
        return count, calls[-1][1].run_at

    async def _batches(self, chosen: Selection) -> AsyncIterator[list[str]]:
        """The ids, in batches."""
        left = chosen.at_most
        async for ids in self._found(chosen.wanted, left) if chosen.group is None else self._alike(chosen):
            some = ids if left is None else ids[:left]
            if some:
                yield some
            left = None if left is None else left - len(some)
            if left == 0:
                return

    async def _found(self, wanted: JobFilter, left: int | None) -> AsyncIterator[list[str]]:
        most = BATCH if left is None else min(BATCH, left)
        size = min(FEW, most)
        page = await self._store.find(replace(wanted, limit=size))
        while page:
            more, size = len(page) == size, next_size(page, most)
            # The next page is fetched first: a discarded job cannot say what came behind it.
            behind = await self._store.find(replace(wanted, limit=size, after=page[-1].id)) if more else []
            yield [record.id for record in page]
            page = behind

    async def _alike(self, chosen: Selection) -> AsyncIterator[list[str]]:
        wanted = chosen.wanted
        if wanted.status is not None and JobStatus.DEAD not in wanted.status:
            return  # a group has none of those
        narrowed = any(getattr(wanted, name) is not None for name in FIELDS)
        behind: tuple[float, str] | None = None
        while page := await self._store.dead(behind, BATCH):
            behind = page[-1].created_at, page[-1].id
            batch = [job.id for job in page if group_key(job.worker, job.error) == chosen.group]
            if batch and narrowed:
                ids = tuple(id for id in batch if wanted.ids is None or id in wanted.ids)
                batch = [one.id for one in await self._store.find(replace(wanted, ids=ids, after=None, limit=len(ids)))]
            yield batch


def _is_narrow(chosen: Selection) -> bool:
    """Whether more is asked for than a status, a worker or a pool."""
    others = [name for name in (*FIELDS, "after") if name not in {"worker", "pool"}]
    return chosen.group is not None or any(getattr(chosen.wanted, name) is not None for name in others)


def _counted(stats: Stats, wanted: JobFilter) -> int | None:
    """How many there are; None where nobody has counted them."""
    statuses = set(wanted.status or ())
    if not statuses or not statuses <= COUNTED.keys() or (wanted.worker is not None and wanted.pool is not None):
        return None
    if wanted.worker is not None:
        numbers: list[WorkerStats | PoolStats] = [stats.workers.get(wanted.worker, WorkerStats())]
    else:
        numbers = [pool for name, pool in stats.pools.items() if wanted.pool in {None, name}]
    return sum(int(getattr(of, COUNTED[status])) for of in numbers for status in statuses)


def _change(action: Action, now: float) -> Change:
    return Cancel() if action == "cancel" else Discard() if action == "discard" else Requeue(now)
