"""What the leader asks for, and who is alive: due jobs, lost jobs, what may be deleted, leases, places."""

from collections.abc import Sequence
from typing import Final

from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.docs import BEAT
from shiftwork.core.model import EVENTS_KEPT, SECONDS_A_DAY, Beat, InstanceRecord, JobRecord, Orders
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.jobs import get
from shiftwork.store.postgres.session import Session
from shiftwork.store.protocol import Promoted

INSTANCES_KEPT_SECONDS: Final = 30 * SECONDS_A_DAY
"""How long a gone instance is remembered, as one that lost its jobs."""


async def promote(session: Session, n: int, now: float) -> Promoted:
    """Queue up to `n` jobs whose time has come, earliest first."""
    moved, next_at, topics = await session.row("promote", (session.namespace, n, now))
    session.ring(topics)
    return Promoted(moved, next_at)


async def reap(session: Session, holder: str, n: int, now: float) -> list[JobRecord]:
    """Take up to `n` jobs from instances without a lease, and hand them to `holder` under new fences."""
    async with session.conn.transaction():
        ids, losers, topics = await session.row("reap", (session.namespace, holder, n, now))
        taken = await get(session, ids) if ids else []
    session.ring(topics)
    return [replace(job, instance=loser) for job, loser in zip(taken, losers or (), strict=True) if job is not None]


async def prune(session: Session, n: int, now: float) -> int:
    """Delete up to `n` jobs that need not be kept, old events, and instances that nobody remembers."""
    args = (session.namespace, n, now, EVENTS_KEPT, now - INSTANCES_KEPT_SECONDS)
    pruned: int = await session.value("prune", args)
    return pruned


async def beat(session: Session, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
    """Renew these leases, and answer with the orders of those that have not lost them."""
    names = arrays.texts([each.instance for each in beats])
    pools = arrays.texts([each.pool for each in beats])
    bodies = arrays.blobs([msgpack.encode(each) for each in beats])
    lost, ids, fences = await session.row("beat", (session.namespace, names, pools, bodies, ttl, now))
    return Orders(list(zip(ids or (), fences or (), strict=True)), lost)


async def leave(session: Session, names: Sequence[str], now: float) -> None:
    """These instances are gone. What they hold can be reaped at once."""
    session.ring(await session.value("leave", (session.namespace, arrays.texts(list(names)), now)))


async def instances(session: Session) -> list[InstanceRecord]:
    """All that have beaten and neither left nor were reaped."""
    found: list[InstanceRecord] = []
    for body, expires_at, last_beat_at in await session.rows("instances", (session.namespace,)):
        known = BEAT.decode(body)
        if known is not None:  # a damaged one is overwritten by the next beat
            found.append(InstanceRecord(known, expires_at, last_beat_at))
    return found


async def hold(session: Session, name: str, holder: str, *, limit: int, ttl: float, now: float) -> bool:
    """Hold one of `limit` places, if one is free or already held."""
    held: bool = await session.value("hold", (session.namespace, name, holder, limit, ttl, now))
    return held


async def drop(session: Session, name: str, holder: str) -> None:
    """Give the place back."""
    await session.run("drop", (session.namespace, name, holder))
