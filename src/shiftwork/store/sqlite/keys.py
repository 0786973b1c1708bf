"""Concurrency keys: which of the queued jobs that share a key are free, and which are parked.

Of a key's queued jobs, by rank and then by id, the first ones are free as long as the limit of each allows it beside
those that run. It owns the column `parked`. The cost depends on the limit, not on how many are parked.
"""

from collections.abc import Iterable
from heapq import merge

from shiftwork.store.sqlite.session import Session


def repark(session: Session, groups: Iterable[tuple[int, str]]) -> None:
    """Something changed about these (worker, key): park and free as the rule demands."""
    for worker, key in groups:
        _repark(session, worker, key)


def _repark(session: Session, worker: int, key: str) -> None:
    running = session.value("count_key_running", (worker, key))
    free = session.run("key_free", (worker, key)).fetchall()
    parked = session.run("key_parked", (worker, key))
    fitting: dict[int, int] = {}
    for _, _, seq, limit, pool in merge(free, parked):
        if running + len(fitting) >= limit:
            break
        fitting[seq] = pool
    parked.close()
    were_free = {row[2] for row in free}
    session.run_many("set_parked", [(1, seq) for seq in were_free.difference(fitting)])
    for seq, pool in fitting.items():
        if seq not in were_free:
            session.run("set_parked", (0, seq))
            session.ring_pool(pool)
