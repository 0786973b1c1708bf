"""Many jobs at once: counting them, changing them, and reading the dead ones.

Every batch is changed on its own: if the process dies half way, the jobs that it did not reach stay as they were.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.control.access.audit import because, done_word
from shiftwork.control.definitions import CommandFamily
from shiftwork.control.jobs.filter import FIRST_PAGE, job_filter, next_size
from shiftwork.core.model.job_changes import Cancel, Change, Discard, JobFilter, Requeue
from shiftwork.core.model.jobs import SECONDS_A_DAY, DeadJob, JobStatus
from shiftwork.core.observing.dead_groups import group_key
from shiftwork.core.observing.pool_stats import COUNTED_STATUSES, PoolStats, Stats, WorkerStats
from shiftwork.core.options.value_checks import parse_rate
from shiftwork.core.words import counted
from shiftwork.errors import ConfigurationError
from shiftwork.sentences import error_text, sentence, series
from shiftwork.store.protocol import Store

BULK_BATCH: Final = 1_000
AT_A_TIME: Final = 100
"""How many calls to the store are under way together."""
RESOLUTION_SECONDS: Final = 0.05
"""Jobs that are due within this time of each other become due together."""
LONGEST_SECONDS: Final = 10 * 365 * SECONDS_A_DAY
"""A rate must queue all jobs within this time: a job that is due later is as good as lost."""
FIELDS: Final = (
    *("ids", "worker", "pool", "key", "unique_key", "instance", "flow", "tag", "error"),
    *("created_after", "created_before"),
)
"""The fields that narrow a group of dead jobs."""

RATE_PATTERN: Final = r"^ *0*[1-9][0-9]* */ *(0*[1-9][0-9]*(\.[0-9]+)?)? *[smhd] *$"
"""The form of a rate, for schemas; `parse_rate` is the rule."""

Action = Literal["cancel", "retry", "discard"]
_DONE: Final[Mapping[Action, str]] = {"cancel": "cancelled", "retry": "retried", "discard": "discarded"}


class Selection(Struct, frozen=True, kw_only=True):
    """Which jobs are meant."""

    wanted: JobFilter
    group: str | None = None
    """The key of a group of dead jobs that failed alike; see `core.observing.dead_groups`."""
    at_most: int | None = None


class Changed(Struct, frozen=True):
    """What a bulk change did. Jobs that matched but were not changed had another status by then."""

    count: int = 0
    until: float | None = None
    """When the last job is due, if they were spread over time."""
    matched: int = 0


def selection(action: Action, wanted: Mapping[str, Any]) -> Selection:
    """Return which jobs are meant: those that `find_jobs` finds, or a `group`.

    Without a status, retry and discard mean dead jobs.
    """
    said = dict(wanted)
    group = said.pop("group", None)
    if action != "cancel":
        said.setdefault("status", JobStatus.DEAD)
    return Selection(wanted=job_filter(**said), group=group, at_most=said.get("limit"))


def check_rate(action: Action, rate: str | None) -> float | None:
    """Return the seconds from one job to the next, at a rate such as "10/s"; None without a rate."""
    if rate is None:
        return None
    if action != "retry":
        raise ConfigurationError(sentence("a rate is for retrying jobs: {action} takes none", action=action))
    try:
        limit = parse_rate(str(rate))
    except ConfigurationError as error:
        raise ConfigurationError(sentence("rate {problem}", problem=error_text(error))) from None
    return limit.seconds / limit.count


class BulkChanges(CommandFamily):
    """Counts and changes many jobs."""

    async def change(
        self, action: Action, *, rate: str | None = None, reason: str | None = None, **wanted: Any
    ) -> Changed:
        """Change all jobs that match (see `find_jobs`), or a `group`. A `rate` spreads retries over time, from now.

        Without a status, retry and discard mean dead jobs.
        """
        chosen, spread = selection(action, wanted), check_rate(action, rate)
        jobs = JobBatches(await self._access.open_to_change(), self._now)
        shown = {name: _shown(value) for name, value in (wanted | {"rate": rate}).items() if value is not None}
        shown |= {} if reason is None else {"reason": reason}
        so_far = Changed()
        try:
            async for reached in jobs.change(action, chosen, rate, spread):
                so_far = reached
        except BaseException:  # the audit must tell which jobs were changed
            await self._record(action, so_far, shown, interrupted=True)
            raise
        await self._record(action, so_far, shown)
        return so_far

    async def count(self, action: Action, **wanted: Any) -> int:
        """Return how many jobs `change` would mean."""
        chosen = selection(action, wanted)
        return await JobBatches(await self._access.open(), self._now).count(chosen)

    async def known(self, **wanted: Any) -> int | None:
        """Return how many jobs match by the store's own counts; None if it does not count them."""
        chosen = Selection(wanted=job_filter(**wanted))
        if not chosen.wanted.status or _is_narrow(chosen):
            return None
        return _by_counts(await (await self._access.open()).stats(self._now()), chosen.wanted)

    async def dead(self, limit: int | None = None) -> list[DeadJob]:
        """Return the newest dead jobs, or all of them, with little more than why they are dead."""
        jobs = JobBatches(await self._access.open(), self._now)
        return [job async for job in jobs.dead(limit)]

    async def _record(
        self, action: Action, changed: Changed, shown: Mapping[str, str], *, interrupted: bool = False
    ) -> None:
        if changed.matched:
            done = _DONE[action]
            jobs, word = counted(changed.count, "job"), done_word(done)
            message = sentence("{jobs} were {done}", jobs=jobs, done=word)
            if changed.count == 1:
                message = sentence("{jobs} was {done}", jobs=jobs, done=word)
            which = ", ".join(f"{name} {value}" for name, value in shown.items() if name not in {"reason", "limit"})
            if which:
                message = sentence("{what} ({which})", what=message, which=which)
            message = because(message, shown.get("reason"))
            if interrupted:
                message = series("; ", [message, sentence("then it was interrupted")])
            await self._audit.record("jobs.amended", done, message, **shown)


class JobBatches:
    """The jobs of a selection, read and changed batch by batch."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now

    async def dead(self, at_most: int | None = None) -> AsyncIterator[DeadJob]:
        """Yield the newest dead jobs, or all of them. Short calls to the store keep others from waiting long."""
        behind, left = None, at_most
        while left != 0:
            page = await self._store.dead(behind, BULK_BATCH if left is None else min(BULK_BATCH, left))
            for job in page:
                yield job
            if len(page) < BULK_BATCH:
                return
            left = None if left is None else left - len(page)
            behind = page[-1].created_at, page[-1].id

    async def count(self, chosen: Selection) -> int:
        """Return how many jobs are meant, by the store's own counts where it has them."""
        known = None if _is_narrow(chosen) else _by_counts(await self._store.stats(self._now()), chosen.wanted)
        if known is not None:
            return known if chosen.at_most is None else min(known, chosen.at_most)
        return sum([len(batch) async for batch in self._batches(chosen)])

    async def change(
        self, action: Action, chosen: Selection, rate: str | None, spread: float | None
    ) -> AsyncIterator[Changed]:
        """Change all that are meant, and yield after each batch what was done so far.

        `spread`: the seconds from one job to the next, at this rate.
        """
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
            message = sentence(
                "rate {what} is too slow: the last job would be due in {n} years; at most 10 are allowed",
                what=f"{rate!r}",
                n=f"{years:,.0f}",
            )
            raise ConfigurationError(message)

    async def _requeue(self, ids: Sequence[str], due: Sequence[float], spread: float) -> tuple[int, float]:
        """Queue these jobs again, each at its time; jobs that are due nearly together share a call."""
        together = max(1, int(RESOLUTION_SECONDS / spread))
        calls = [(ids[n : n + together], Requeue(due[n])) for n in range(0, len(ids), together)]
        count = 0
        for n in range(0, len(calls), AT_A_TIME):
            now = self._now()
            made = [self._store.amend(some, change, now) for some, change in calls[n : n + AT_A_TIME]]
            count += sum(one.ok for answers in await asyncio.gather(*made) for one in answers)
        return count, calls[-1][1].run_at

    async def _batches(self, chosen: Selection) -> AsyncIterator[list[str]]:
        """Yield the ids in batches."""
        left = chosen.at_most
        async for ids in self._found(chosen.wanted, left) if chosen.group is None else self._alike(chosen):
            some = ids if left is None else ids[:left]
            if some:
                yield some
            left = None if left is None else left - len(some)
            if left == 0:
                return

    async def _found(self, wanted: JobFilter, left: int | None) -> AsyncIterator[list[str]]:
        most = BULK_BATCH if left is None else min(BULK_BATCH, left)
        size = min(FIRST_PAGE, most)
        page = await self._store.find(replace(wanted, limit=size))
        while page:
            more, size = len(page) == size, next_size(page, most)
            # The next page is read first: paging after a discarded job returns nothing.
            behind = await self._store.find(replace(wanted, limit=size, after=page[-1].id)) if more else []
            yield [record.id for record in page]
            page = behind

    async def _alike(self, chosen: Selection) -> AsyncIterator[list[str]]:
        wanted = chosen.wanted
        if wanted.status is not None and JobStatus.DEAD not in wanted.status:
            return  # a group has only dead jobs
        narrowed = any(getattr(wanted, name) is not None for name in FIELDS)
        behind: tuple[float, str] | None = None
        while page := await self._store.dead(behind, BULK_BATCH):
            behind = page[-1].created_at, page[-1].id
            batch = [job.id for job in page if group_key(job.worker, job.error) == chosen.group]
            if batch and narrowed:
                ids = tuple(id for id in batch if wanted.ids is None or id in wanted.ids)
                batch = [one.id for one in await self._store.find(replace(wanted, ids=ids, after=None, limit=len(ids)))]
            yield batch


def _is_narrow(chosen: Selection) -> bool:
    """Return whether the selection names more than a status, a worker or a pool."""
    others = [name for name in (*FIELDS, "after") if name not in {"worker", "pool"}]
    return chosen.group is not None or any(getattr(chosen.wanted, name) is not None for name in others)


def _by_counts(stats: Stats, wanted: JobFilter) -> int | None:
    """Return how many jobs match by the store's counts; None if it does not count them."""
    statuses = set(wanted.status or ())
    if (
        not statuses
        or not statuses <= COUNTED_STATUSES.keys()
        or (wanted.worker is not None and wanted.pool is not None)
    ):
        return None
    if wanted.worker is not None:
        numbers: list[WorkerStats | PoolStats] = [stats.workers.get(wanted.worker, WorkerStats())]
    else:
        numbers = [pool for name, pool in stats.pools.items() if wanted.pool in {None, name}]
    return sum(int(getattr(of, COUNTED_STATUSES[status])) for of in numbers for status in statuses)


def _change(action: Action, now: float) -> Change:
    return Cancel() if action == "cancel" else Discard() if action == "discard" else Requeue(now)


def _shown(value: Any) -> str:
    """Return what a person asked for, as the audit keeps it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return ", ".join(map(_shown, value)) if isinstance(value, Iterable) else str(value)
