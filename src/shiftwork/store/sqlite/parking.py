"""Writes the column `parked` as `shiftwork.core.jobs.parking` decides. Its cost grows with the limits only."""

from collections.abc import Iterable
from heapq import merge

from shiftwork.core.jobs.parking import free
from shiftwork.store.sqlite.file.session import SqliteSession


def repark(session: SqliteSession, groups: Iterable[tuple[int, str]]) -> None:
    """Park and free the queued jobs of each (worker, key), after something about them has changed."""
    for worker, key in groups:
        _repark(session, worker, key)


def _repark(session: SqliteSession, worker: int, key: str) -> None:
    processing = session.value("count_key_running", (worker, key))
    free_rows = session.run("key_free", (worker, key)).fetchall()
    parked_rows = session.run("key_parked", (worker, key))
    in_order = (((seq, pool), limit) for _, _, seq, limit, pool in merge(free_rows, parked_rows))
    fitting = dict(free(in_order, processing=processing))
    parked_rows.close()
    were_free = {seq for _, _, seq, _, _ in free_rows}
    session.run_many("set_parked", [(1, seq) for seq in were_free.difference(fitting)])
    for seq, pool in fitting.items():
        if seq not in were_free:
            session.run("set_parked", (0, seq))
            session.ring_pool(pool)
