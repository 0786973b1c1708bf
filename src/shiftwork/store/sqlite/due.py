"""When the leader has to wake. It rings for whatever is due, or expires, sooner than everything before."""

from collections.abc import Iterable, Sequence
from math import inf

from shiftwork.core.jobs.statuses import FAILED
from shiftwork.store.sqlite.file.session import SqliteSession


def due_before(session: SqliteSession, statuses: Iterable[int], *, expiring: bool = False) -> float | None:
    """When the leader wakes, before jobs of these statuses are written; None if none of them waits for a time."""
    if not expiring and not any(status <= FAILED for status in statuses):
        return None
    next_at = next_due(session)
    return inf if next_at is None else next_at


def next_due(session: SqliteSession) -> float | None:
    """When the next job is due or expires. A damaged row may hold anything instead."""
    times = [session.value(statement, (session.namespace,)) for statement in ("next_due", "next_expiry")]
    return min((time for time in times if isinstance(time, float)), default=None)


def ring_if_next(session: SqliteSession, times: Sequence[float]) -> None:
    """Wake the leader if one of the jobs that were written with these times is the next one."""
    if times and min(times) <= (next_due(session) or inf):
        session.ring("leader")


def ring_if_sooner(session: SqliteSession, times: Iterable[float], due: float | None) -> None:
    """Wake the leader if something is due sooner than before."""
    if due is not None and min(times, default=due) < due:
        session.ring("leader")
