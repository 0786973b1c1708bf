"""Instances, their leases and their orders."""

from collections.abc import Sequence

from msgspec import msgpack

from shiftwork.core.docs import BEAT
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.store.sqlite.file.session import SqliteSession


def beat(session: SqliteSession, beats: Sequence[Beat], *, ttl: float, now: float) -> Orders:
    """Renew these leases, except those that are lost, and return the orders of their instances."""
    orders = Orders([], [])
    alive: set[int] = set()
    for each in beats:
        number = session.instances.number(each.instance)
        if session.value("is_lost", (number,)):
            orders.lost.append(each.instance)
            continue
        alive.add(number)
        session.run("beat_instance", (each.pool, msgpack.encode(each), now + ttl, now, now, number))
    cancels = session.run("cancel_orders").fetchall()
    orders.cancel.extend((id, fence) for id, fence, holder in cancels if holder in alive)
    return orders


def leave(session: SqliteSession, names: Sequence[str], *, now: float) -> None:
    """Forget these instances, which are gone. What they hold can be reaped at once."""
    numbers = [number for name in names if (number := session.instances.find(name)) is not None]
    session.run_many("forget_instance", [(now, number) for number in numbers])
    session.ring("leader")
    # Others may have given way to jobs that only these would have run.
    stir_everybody(session)


def stir_everybody(session: SqliteSession) -> None:
    """Ring every pool that has queued jobs: what any of them waits for may have changed."""
    session.flush()
    session.ring(*(f"pool:{pool}" for pool in session.values("pools_with_queued", (session.namespace,))))


def instances(session: SqliteSession) -> list[InstanceRecord]:
    """All instances that have beaten and neither left nor were reaped."""
    found: list[InstanceRecord] = []
    for body, expires_at, last_beat_at in session.run("all_instances", (session.namespace,)):
        beat = BEAT.decode(body)
        if beat is not None:  # a damaged one is overwritten by the next beat
            found.append(InstanceRecord(beat, expires_at, last_beat_at))
    return found
