"""Looking for jobs: what `find.lua` is asked, and what becomes of records that cannot be read."""

from collections.abc import Iterable
from typing import Any, Final

from shiftwork.core.model import JobFilter, JobRecord
from shiftwork.core.statuses import NUMBERS
from shiftwork.store.redis import jobs

LOOKED_AT: Final = 2_000
"""How many jobs one script looks at, at most: a search that finds little leaves room for others in between."""
NARROWING: Final = ("ids", "status", "pool", "key", "unique_key", "instance", "error")
"""What makes a search pass over jobs. Without any of these, the next jobs are those that are wanted."""


class Found(list[tuple[str, jobs.Fields]]):
    """Jobs by id with their fields; and those that turned out to be unreadable, with the reason."""

    def __init__(self, pairs: Iterable[tuple[str, jobs.Fields]] = ()) -> None:
        super().__init__(pairs)
        self.broken: dict[str, str] = {}


def decoded(found: Found, *, whole: bool) -> list[JobRecord]:
    """The jobs, in order."""
    records = []
    for id, fields in found:
        try:
            records.append(jobs.record(id, fields, whole=whole))
        except jobs.UnreadableError as error:
            found.broken[id] = str(error)
            records.append(jobs.remains(id, fields, str(error)))
    return records


def criteria(wanted: JobFilter, behind: Any, limit: int) -> tuple[Any, ...]:
    """What `find.lua` is asked."""
    narrowed = any(getattr(wanted, name) is not None for name in NARROWING)
    statuses = None if wanted.status is None else {str(NUMBERS[status]): True for status in wanted.status}
    return (
        None if wanted.ids is None else sorted(set(wanted.ids)),
        statuses,
        wanted.worker,
        wanted.pool,
        wanted.key,
        wanted.unique_key,
        wanted.instance,
        wanted.error,
        wanted.created_after,
        wanted.created_before,
        behind,
        limit,
        max(limit, LOOKED_AT) if narrowed else limit,
    )
