"""What the leader does for all: queues jobs that are due, takes over lost ones, and deletes old ones."""

from collections import Counter

from msgspec.structs import replace

from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.event import EVENTS_KEPT
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.observing.beats import INSTANCES_KEPT_SECONDS
from shiftwork.store.postgres.find import get
from shiftwork.store.postgres.server.statements import PostgresSession
from shiftwork.store.protocol import Promoted


async def promote(session: PostgresSession, n: int, now: float) -> Promoted:
    """Queue up to `n` jobs whose time has come, earliest first, and cancel up to `n` that have expired."""
    moved, next_at, late, topics = await session.row("promote", (session.namespace, n, now, EXPIRED))
    session.ring(topics)
    return Promoted(moved, next_at, dict(Counter(late)))


async def reap(session: PostgresSession, holder: str, n: int, now: float) -> list[JobRecord]:
    """Hand up to `n` jobs of instances without a lease to `holder`, under new fences."""
    ids, losers, topics = await session.row("reap", (session.namespace, holder, n, now))
    session.ring(topics)
    taken = await get(session, ids) if ids else []
    return [replace(job, instance=loser) for job, loser in zip(taken, losers or (), strict=True) if job is not None]


async def prune(session: PostgresSession, n: int, now: float) -> int:
    """Delete up to `n` jobs whose time to be kept has passed, old events, and instances that are long gone."""
    args = (session.namespace, n, now, EVENTS_KEPT, now - INSTANCES_KEPT_SECONDS, now + POSTPONED)
    pruned: int = await session.value("prune", args)
    return pruned
