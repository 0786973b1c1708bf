"""Claiming: `shiftwork.core.workers.admission` chooses which jobs an instance gets, always from the facts."""

from collections.abc import Collection

from msgspec.structs import replace

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.core.workers.admission import Choice, choose
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.facts import heads
from shiftwork.store.protocol import Claims


def claim(
    tables: Tables,
    instance: str,
    pool: str,
    *,
    n: int,
    now: float,
    workers: Collection[str],
    edition: str | None = None,
) -> Claims:
    """Hand up to `n` jobs of these workers in this pool to the instance, if the store has this edition."""
    docs = tables.docs.of_claims
    if edition is not None and docs.edition != edition:
        return Claims([], stale=True)
    if instance in tables.instances.lost or docs.pools.get(pool, PoolDoc()).paused:
        return Claims([])
    ready = tables.jobs.ready.keys() & frozenset(workers)
    candidates = {name: first for name in ready if (first := heads(tables.jobs, pool, worker=name, n=n))}
    choice = choose(candidates, tables.facts(candidates, now), limit=n, now=now)
    for worker in choice.started:
        _note_start(tables, worker, choice, now)
    return Claims([_start(tables, id, instance, now) for id in choice.ids], choice.next_at)


def _note_start(tables: Tables, worker: str, choice: Choice, now: float) -> None:
    state = tables.states.of(worker)
    state.last_started = now
    state.rate_at = choice.rate_at.get(worker, state.rate_at)
    docs = tables.docs.of_claims
    gates = docs.gates.get(worker)
    # A dependency that let this one go first may be next; and no job gives way to jobs that wait for a probe.
    if gates is not None and (gates.after or docs.breakers.get(gates.breaker or "", BreakerState()).open):
        tables.wake_tied(worker)


def _start(tables: Tables, id: str, instance: str, now: float) -> Claimed:
    queued = tables.jobs.by_id[id]
    job = replace(
        queued,
        status=JobStatus.PROCESSING,
        instance=instance,
        fence=tables.next_fence(),
        attempt=queued.attempt + 1,
        started_at=now,
        ended_at=None,
        progress=None,
        wait=None,
    )
    tables.jobs.write(replace(job, expires_at=None))
    return job.claimed()
