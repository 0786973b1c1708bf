"""Searching for jobs: the arguments of `find`, and jobs that people look at, from the replies of scripts.

A record that cannot be read does not stop a search: it is noted in `FoundJobs.broken`, and the caller buries it. Where
the server searches is in `scripts/find.lua`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from shiftwork.core.health.position import Ahead
from shiftwork.core.jobs.transitions import NUMBERS
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.redis.lua import STATE
from shiftwork.store.redis.rows import Fields, UnreadableError, instant, record, remains, worker_and_pool

JOBS_LOOKED_AT: Final = 2_000
"""How many jobs one script looks at, at most, so that other scripts run between the parts of a long search."""
NARROWING: Final = ("ids", "status", "pool", "key", "unique_key", "instance", "tag", "flow", "error")
"""Criteria by which a search skips jobs. Without any of them, the next jobs all match."""


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
        max(limit, JOBS_LOOKED_AT) if narrowed else limit,
        wanted.tag,
        wanted.flow,
        None if wanted.whole else BEGINNING,
        wanted.order == "oldest",
    )


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


def dead(flat: Sequence[bytes]) -> list[DeadJob]:
    rows = zip(flat[::5], flat[1::5], flat[2::5], flat[3::5], flat[4::5], strict=True)
    return [
        DeadJob(
            id.decode(),
            worker_and_pool({b"i": never_changes})[0],
            error.decode(errors="replace") or None,
            float(created_at),
            instant(STATE.unpack_from(state)[-1]) if len(state) >= STATE.size else None,
        )
        for id, created_at, state, never_changes, error in rows
    ]


def ahead(reply: Sequence[Any]) -> list[Ahead]:
    """Return how many jobs are ahead of each place, from a reply of `ahead`."""
    return [
        Ahead({name.decode(): n for name, n in zip(counts[::2], counts[1::2], strict=True)}, complete=bool(complete))
        for counts, complete in reply
    ]
