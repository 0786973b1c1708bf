"""The numbers and the events, for people. No ended job is read for them."""

from collections.abc import Sequence
from itertools import count
from typing import Final

from msgspec import msgpack

from shiftwork.core.docs import read_event
from shiftwork.core.jobs.statuses import DEAD, FAILED, PROCESSING, QUEUED, SCHEDULED, WAITING
from shiftwork.core.model.event import Event
from shiftwork.core.observing.stats import PoolStats, Stats, WorkerStats
from shiftwork.store.sqlite.file.session import (
    ADDED,
    DIED,
    FAILURES,
    RUN_SECONDS,
    SUCCEEDED,
    WAIT_SECONDS,
    SqliteSession,
)

LAST: Final = 2**63 - 1
"""A number above that of every event."""


def stats(session: SqliteSession) -> Stats:
    """All pools and workers that have jobs, in numbers."""
    answer = Stats()
    pools: dict[str, int] = {}
    for pool, name, worker, *counts in session.run("read_lanes", (session.namespace,)).fetchall():
        pools[name] = pool
        numbers = answer.pools.setdefault(name, PoolStats())
        _add(numbers, counts)
        numbers.added += counts[ADDED]
        numbers.completed += counts[SUCCEEDED]
        numbers.failed += counts[FAILURES]
        numbers.run_seconds += counts[RUN_SECONDS]
        numbers.wait_seconds += counts[WAIT_SECONDS]
        if worker and any(counts):
            _add_worker(answer.workers.setdefault(worker, WorkerStats()), counts)
    for name, pool in pools.items():
        answer.pools[name].oldest_run_at = session.value("oldest_ready", (pool,))
        answer.count_marks(name, marks_of(session, pool))
    return answer


def marks_of(session: SqliteSession, pool: int) -> dict[str, int]:
    """Return how often each mark was given to a run of this pool."""
    return dict(session.run("read_marks", (pool,)).fetchall())


def _add(numbers: PoolStats | WorkerStats, counts: Sequence[int]) -> None:
    numbers.scheduled += counts[SCHEDULED]
    numbers.retrying += counts[FAILED]
    numbers.waiting += counts[WAITING]
    numbers.queued += counts[QUEUED]
    numbers.processing += counts[PROCESSING]
    numbers.dead += counts[DEAD]


def _add_worker(numbers: WorkerStats, counts: Sequence[int]) -> None:
    _add(numbers, counts)
    numbers.completed += counts[SUCCEEDED]
    numbers.failed += counts[FAILURES]
    numbers.died += counts[DIED]
    numbers.run_seconds += counts[RUN_SECONDS]


def record(session: SqliteSession, events: Sequence[Event]) -> None:
    """Keep these events, numbered upwards."""
    last = session.value("last_event", (session.namespace,))
    places = {kind: count(session.value("last_place", (session.namespace, kind)) + 1) for kind in (True, False)}
    rows = [
        (session.namespace, seq, event.by_person, next(places[event.by_person]), msgpack.encode(event))
        for seq, event in enumerate(events, last + 1)
    ]
    session.run_many("add_event", rows)


def events(session: SqliteSession, after: int, before: int | None, limit: int) -> list[Event]:
    """The newest events between two numbers, oldest first."""
    end = LAST if before is None else before
    rows = session.run("newest_events", (session.namespace, after, end, limit)).fetchall()
    return [read_event(seq, body) for seq, body in reversed(rows)]
