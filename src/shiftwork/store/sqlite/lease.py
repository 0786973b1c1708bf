"""Names held until a time: the leases of instances, with their orders, and the places that `hold` takes."""

from collections.abc import Sequence

from msgspec import msgpack

from shiftwork.core.doc_kinds import BEAT
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from shiftwork.store.sqlite.waking import wake_all


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
    wake_all(session)


def instances(session: SqliteSession) -> list[InstanceRecord]:
    """Return all instances that have beaten and neither left nor were reaped."""
    found: list[InstanceRecord] = []
    for body, expires_at, last_beat_at in session.run("all_instances", (session.namespace,)):
        beat = BEAT.decode(body)
        if beat is not None:  # a damaged one is overwritten by the next beat
            found.append(InstanceRecord(beat, expires_at, last_beat_at))
    return found


def hold(session: SqliteSession, name: str, holder: str, *, limit: int, ttl: float, now: float) -> bool:
    """Take or renew one of `limit` places. False if all are taken."""
    session.run("drop_ended_places", (session.namespace, name, now))
    holders = session.values("holders", (session.namespace, name))
    if holder not in holders and len(holders) >= limit:
        return False
    session.run("hold_place", (session.namespace, name, holder, now + ttl))
    return True


def drop(session: SqliteSession, name: str, holder: str) -> None:
    """Give a place back."""
    session.run("drop_place", (session.namespace, name, holder))
