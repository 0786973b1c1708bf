"""Leases of instances, and names that are held until a time (`hold`)."""

from collections.abc import Sequence

from msgspec import msgpack

from shiftwork.core.doc_kinds import BEAT
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.server.statements import PostgresSession, Statements


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
