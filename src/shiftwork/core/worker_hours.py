"""What each worker did in an hour, from two readings of what a store counts of it.

The leader keeps this with the history, so that a day can be planned from: how many attempts became due, how they ended
and how long they ran. There may be ten thousand workers; the busiest ones are kept.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from shiftwork.core.stats import WorkerStats

MOST_WORKERS: Final = 200
"""How many workers of an hour are kept: the busiest ones. They take 20 KB at most."""
DIGITS: Final = 3
"""How many decimals of seconds are kept."""


class WorkerTotals(Struct, frozen=True, array_like=True):
    """A worker's counts at one moment."""

    present: int = 0
    """How many of its jobs were queued or running."""
    completed: int = 0
    failed: int = 0
    retried: int = 0
    run_seconds: float = 0.0


class WorkerHour(Struct, frozen=True, array_like=True):
    """What a worker did in an hour."""

    arrived: int = 0
    """How many attempts became due: new jobs, and retries."""
    completed: int = 0
    failed: int = 0
    """How many attempts failed."""
    retried: int = 0
    """How many of those are repeated; the others made a job dead."""
    run_seconds: float = 0.0
    """How long the attempts that ended took in all."""

    @property
    def bustle(self) -> int:
        """How busy it was."""
        return self.arrived + self.completed + self.failed

    def plus(self, more: "WorkerHour") -> "WorkerHour":
        """Return both together."""
        return WorkerHour(
            self.arrived + more.arrived,
            self.completed + more.completed,
            self.failed + more.failed,
            self.retried + more.retried,
            round(self.run_seconds + more.run_seconds, DIGITS),
        )


def arrived(present: int, ended: int, *, present_before: int, ended_before: int) -> int:
    """Return how many attempts became due between two readings: those that have ended since, and those still there.

    A cancelled job was there and has not ended; so a few may be missing, and never more than were cancelled.
    """
    return max(0, present + ended - present_before - ended_before)


def worker_totals(stats: Mapping[str, WorkerStats]) -> dict[str, WorkerTotals]:
    """Return the counts of all workers."""
    return {
        name: WorkerTotals(
            one.queued + one.processing,
            one.completed,
            one.failed,
            max(0, one.failed - one.died),
            round(one.run_seconds, DIGITS),
        )
        for name, one in stats.items()
    }


def busier(
    hour: Mapping[str, WorkerHour],
    before: Mapping[str, WorkerTotals],
    after: Mapping[str, WorkerTotals],
    *,
    whole: bool,
) -> dict[str, WorkerHour]:
    """Return the hour with what each worker did between two readings, of the busiest ones.

    `whole` says that every worker is listed in `before`: one that is missing there had done nothing.
    """
    found = {**hour}
    for name, now in after.items():
        then = before.get(name, WorkerTotals() if whole else None)
        if then is None or now == then:
            continue
        done = _since(then, now)
        if done.bustle:
            found[name] = found.get(name, WorkerHour()).plus(done)
    return _busiest(found)


def _busiest(hour: dict[str, WorkerHour]) -> dict[str, WorkerHour]:
    if len(hour) <= MOST_WORKERS:
        return hour
    names = sorted(hour, key=lambda name: (hour[name].bustle, name), reverse=True)
    return {name: hour[name] for name in names[:MOST_WORKERS]}


def _since(then: WorkerTotals, now: WorkerTotals) -> WorkerHour:
    if now.completed < then.completed or now.failed < then.failed:  # the counts began again
        then = WorkerTotals()
    return WorkerHour(
        arrived(
            now.present,
            now.completed + now.failed,
            present_before=then.present,
            ended_before=then.completed + then.failed,
        ),
        now.completed - then.completed,
        now.failed - then.failed,
        max(0, now.retried - then.retried),
        max(0.0, now.run_seconds - then.run_seconds),
    )
