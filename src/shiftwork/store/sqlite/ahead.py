"""How many jobs are ahead of a place in a queue. It only reads, and no more rows than `core.position` says."""

from shiftwork.core.position import COUNTED, COUNTED_OWN, LANES, Ahead, about
from shiftwork.store.sqlite.session import SqliteSession


def ahead(session: SqliteSession, pool: str, worker: str, rank: float, id: str) -> Ahead:
    """The jobs ahead of a place, by worker."""
    number = session.pools.find(pool)
    if number is None:
        return Ahead({})
    own = session.workers.find(worker)
    deepest = session.run("deepest_lanes", (number, own or 0, LANES + 1)).fetchall()
    exact, lanes = True, {}
    for lane, queued in deepest[:LANES]:
        most = COUNTED_OWN if lane == own else COUNTED
        n = session.value("jobs_ahead", (number, lane, rank, id, most))
        if n == most:
            exact = False
            n = about(n, queued, rank, session.run("ends_of_lane", (number, lane)).fetchone())
        if n:
            lanes[session.workers.name(lane)] = n
    return Ahead(lanes, exact=exact, complete=len(deepest) <= LANES)
