"""What the leader does: promote due jobs, take back lost ones, delete what need not be kept."""

from collections import Counter

from msgspec.structs import replace

from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.amend import amend
from shiftwork.store.memory.lease import forget
from shiftwork.store.protocol import Promoted


def promote(tables: Tables, n: int, now: float) -> Promoted:
    """Queue up to `n` jobs that are due, earliest first, and cancel up to `n` that have expired."""
    table = tables.jobs
    ids = table.due.until(now, n)
    for id in ids:
        table.write(replace(table.by_id[id], status=JobStatus.QUEUED))
    expired = table.expiring.until(now, n)
    amend(tables, expired, Cancel(EXPIRED), now)
    heads = [head[0] for head in (table.due.head, table.expiring.head) if head]
    by_worker = Counter(table.by_id[id].worker for id in expired)
    return Promoted(len(ids) + len(expired), min(heads, default=None), dict(by_worker))


def reap(tables: Tables, holder: str, n: int, now: float) -> list[JobRecord]:
    """Take up to `n` jobs from instances without a lease, and hand them to `holder` under new fences."""
    table = tables.jobs
    live = {holder, *tables.instances.live(now)}
    orphans = [table.by_id[id] for name in table.held if name not in live for id in table.held[name]]
    orphans.sort(key=lambda job: (job.started_at, job.id))
    taken = [replace(job, fence=tables.next_fence()) for job in orphans[:n]]
    for job in taken:
        table.write(replace(job, instance=holder))
        tables.instances.lost.add(job.instance or "")
        tables.ring("orders")
    ended = {record.beat.instance for record in tables.instances.all()}.difference(live)
    # Those that have just lost their jobs, and those that held none. If more jobs are left, the next call takes them.
    forget(tables, [name for name in ended if name in tables.instances.lost or name not in table.held])
    return [replace(job, steps=(), signals=()) for job in taken]


def prune(tables: Tables, n: int, now: float) -> int:
    """Delete up to `n` jobs that need not be kept, and old events."""
    table = tables.jobs
    jobs = [table.by_id[id] for id in table.disposable.until(now, n)]
    kept = {job.id for job in jobs if table.flows.keeps(job, table.by_id)}
    for job in jobs:
        if job.id in kept:
            table.write(replace(job, keep_until=now + POSTPONED))
        else:
            for waiter, _ in table.flows.waiters_of(job.id):
                table.flows.meet(waiter, job.id)
            table.delete(job.id)
    return len(jobs) + tables.events.prune(n)
