"""How many jobs are ahead of places in a queue. It only reads, and no more rows than `core.position` says."""

from collections.abc import Sequence
from math import inf

from shiftwork.core import position
from shiftwork.core.position import Ahead, CountedLane, QueuePlace, aheads
from shiftwork.store.sqlite.session import SqliteSession, as_list


def ahead(session: SqliteSession, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
    """The jobs ahead of each place, by worker."""
    number = session.pools.find(pool)
    if number is None:
        return [Ahead({}) for _ in places]
    own = {worker for worker in {session.workers.find(place.worker) for place in places} if worker is not None}
    lanes = session.run("deepest_lanes", (number, as_list(own), position.LANES + max(1, len(own)))).fetchall()
    return aheads(places, [_counted(session, number, lane, places, queued=queued) for lane, queued in lanes])


def _counted(session: SqliteSession, pool: int, lane: int, places: Sequence[QueuePlace], *, queued: int) -> CountedLane:
    """Count the jobs of a lane from each place to the next, so that none is counted twice."""
    name = session.workers.name(lane)
    most = position.most_counted(name, {place.worker for place in places})
    n, before, counts = 0, (-inf, ""), [0] * len(places)
    for place, at in sorted((place, at) for at, place in enumerate(places)):
        if n < most:
            between = session.value("jobs_between", (pool, lane, *before, place.rank, place.id, most - n))
            n = min(most, n + between)
            before = place.rank, place.id
        counts[at] = n
    first, last = session.run("ends_of_lane", (pool, lane)).fetchone()
    return CountedLane(name, queued, (first or 0.0, last or 0.0), counts)
