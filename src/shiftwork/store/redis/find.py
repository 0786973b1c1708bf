"""Searching for jobs: the arguments of `find`, and what happens to records that cannot be read."""

from collections.abc import Iterable
from typing import Any, Final

from shiftwork.core.jobs.transitions import NUMBERS
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.redis.records import Fields, UnreadableError, record, remains

LOOKED_AT: Final = 2_000
"""How many jobs one script looks at, at most, so that other scripts run between the parts of a long search."""
NARROWING: Final = ("ids", "status", "pool", "key", "unique_key", "instance", "tag", "flow", "error")
"""Criteria by which a search skips jobs. Without any of them, the next jobs all match."""


class FoundJobs(list[tuple[str, Fields]]):
    """Ids of jobs with their fields; and the ids of unreadable ones, with the reason."""

    def __init__(self, pairs: Iterable[tuple[str, Fields]] = ()) -> None:
        super().__init__(pairs)
        self.broken: dict[str, str] = {}


def decoded(found: FoundJobs, *, whole: bool) -> list[JobRecord]:
    """Return the jobs in order, and note the unreadable ones."""
    records = []
    for id, fields in found:
        try:
            records.append(record(id, fields, whole=whole))
        except UnreadableError as error:
            found.broken[id] = str(error)
            records.append(remains(id, fields, str(error)))
    return records


def criteria(wanted: JobFilter, behind: Any, limit: int) -> tuple[Any, ...]:
    """Return the arguments of `find`."""
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
        wanted.tag,
        wanted.flow,
        None if wanted.whole else BEGINNING,
        wanted.order == "oldest",
    )
