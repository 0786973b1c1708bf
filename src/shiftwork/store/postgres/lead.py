"""Calls of the leader, and leases: promoting, reaping, pruning, beats, and names held until a time."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.doc_kinds import BEAT
from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.event import EVENTS_KEPT
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.jobs import get
from shiftwork.store.postgres.server.session import PostgresSession, Statements
from shiftwork.store.protocol import Promoted

INSTANCES_KEPT_SECONDS: Final = 30 * SECONDS_A_DAY
"""How long an instance that has lost its jobs is remembered."""


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
    """Delete up to `n` jobs that need not be kept (or put them off), old events, and instances gone for long."""
    args = (session.namespace, n, now, EVENTS_KEPT, now - INSTANCES_KEPT_SECONDS, now + POSTPONED)
    pruned: int = await session.value("prune", args)
    return pruned


async def beat(session: Statements, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
    """Renew these leases, and return the orders for their instances."""
    names = arrays.texts([each.instance for each in beats])
    pools = arrays.texts([each.pool for each in beats])
    bodies = arrays.blobs([msgpack.encode(each) for each in beats])
    lost, ids, fences, time = await session.row("beat", (session.namespace, names, pools, bodies, ttl, now))
    return Orders(list(zip(ids or (), fences or (), strict=True)), lost, time)


async def leave(session: PostgresSession, names: Sequence[str], now: float) -> None:
    """End the leases of these instances, so that their jobs can be reaped at once."""
    session.ring(await session.value("leave", (session.namespace, arrays.texts(list(names)), now)))


async def instances(session: Statements) -> list[InstanceRecord]:
    """Return all instances that have sent a beat and have neither left nor lost their jobs."""
    found: list[InstanceRecord] = []
    for body, expires_at, last_beat_at in await session.rows("instances", (session.namespace,)):
        known = BEAT.decode(body)
        if known is not None:  # the next beat replaces a damaged one
            found.append(InstanceRecord(known, expires_at, last_beat_at))
    return found


async def hold(session: Statements, name: str, holder: str, *, limit: int, ttl: float, now: float) -> bool:
    """Hold one of `limit` places under a name; False if all are taken by others."""
    held: bool = await session.value("hold", (session.namespace, name, holder, limit, ttl, now))
    return held


async def drop(session: Statements, name: str, holder: str) -> None:
    """Release the place."""
    await session.rows("drop", (session.namespace, name, holder))
