"""What each worker did in an hour, from two readings of what a store counts of it.

The leader keeps this with the history, so that a day can be planned from: how many attempts became due, how they ended
and how long they ran. There may be ten thousand workers; the busiest ones are kept, and the busiest of these minute by
minute.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.observing.run_histograms import run_marks, run_quantile, since, together

MOST_WORKERS: Final = 200
"""How many workers of an hour are kept: the busiest ones. They take 20 KB at most, without their minutes."""
MOST_BY_MINUTE: Final = 50
"""Of how many workers the minutes are kept."""
WORKER_HOUR_DIGITS: Final = 3
"""How many decimals of seconds are kept."""
FINE_DIGITS: Final = 6
"""How many decimals of a run time are kept: a run may take less than a millisecond."""


class WorkerTotals(Struct, frozen=True, array_like=True):
    """A worker's counts at one moment."""

    present: int = 0
    """How many of its jobs were queued or running."""
    completed: int = 0
    failed: int = 0
    retried: int = 0
    run_seconds: float = 0.0
    marks: dict[str, int] = {}
    """How long its runs took, as `core.observing.run_histograms` counts them."""


class WorkerMinute(Struct, frozen=True, array_like=True):
    """The runs of a worker that ended in a minute; at least one did."""

    at: float
    """The end of the minute."""
    completed: int = 0
    failed: int = 0
    run_seconds: float = 0.0
    """How long the runs took in all."""
    marks: dict[str, int] = {}
    """How long they took, as `core.observing.run_histograms` counts them."""


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
    minutes: tuple[WorkerMinute, ...] = ()
    """The minutes in which runs ended, in order; none if other workers were busier."""

    @property
    def bustle(self) -> int:
        """Return how busy it was."""
        return self.arrived + self.completed + self.failed

    def plus(self, more: "WorkerHour") -> "WorkerHour":
        """Return both together."""
        return WorkerHour(
            self.arrived + more.arrived,
            self.completed + more.completed,
            self.failed + more.failed,
            self.retried + more.retried,
            round(self.run_seconds + more.run_seconds, WORKER_HOUR_DIGITS),
            (*self.minutes, *more.minutes),
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
            round(one.run_seconds, FINE_DIGITS),
            one.marks,
        )
        for name, one in stats.items()
    }


def busier(
    hour: Mapping[str, WorkerHour],
    before: Mapping[str, WorkerTotals],
    after: Mapping[str, WorkerTotals],
    *,
    at: float,
    whole: bool,
) -> dict[str, WorkerHour]:
    """Return the hour with what each worker did between two readings, of the busiest ones.

    `at` is the time of the second one. `whole` says that every worker is listed in `before`: one that is missing there
    had done nothing.
    """
    found = {**hour}
    for name, now in after.items():
        then = before.get(name, WorkerTotals() if whole else None)
        if then is None or now == then:
            continue
        done = _since(then, now, at)
        if done.bustle:
            found[name] = found.get(name, WorkerHour()).plus(done)
    return _busiest(found)


def _busiest(hour: dict[str, WorkerHour]) -> dict[str, WorkerHour]:
    if len(hour) <= MOST_BY_MINUTE:
        return hour
    names = sorted(hour, key=lambda name: (hour[name].bustle, name), reverse=True)[:MOST_WORKERS]
    return {
        name: hour[name] if place < MOST_BY_MINUTE or not hour[name].minutes else replace(hour[name], minutes=())
        for place, name in enumerate(names)
    }


def _since(then: WorkerTotals, now: WorkerTotals, at: float) -> WorkerHour:
    if now.completed < then.completed or now.failed < then.failed:  # the counts began again
        then = WorkerTotals()
    completed, failed = now.completed - then.completed, now.failed - then.failed
    seconds = max(0.0, now.run_seconds - then.run_seconds)
    marks = run_marks(since(now.marks, then.marks))
    if sum(marks.values()) > completed + failed:  # the first reading is from a version that kept no marks
        marks = {}
    minutes = (WorkerMinute(at, completed, failed, round(seconds, FINE_DIGITS), marks),) if completed + failed else ()
    return WorkerHour(
        arrived(
            now.present,
            now.completed + now.failed,
            present_before=then.present,
            ended_before=then.completed + then.failed,
        ),
        completed,
        failed,
        max(0, now.retried - then.retried),
        round(seconds, WORKER_HOUR_DIGITS),
        minutes,
    )


# ── a worker over time ───────────────────────────────────────────────────────────────────────────────────────────────


class RunMinute(Struct, frozen=True, kw_only=True):
    """The runs of a worker that ended in a minute, in numbers."""

    at: float
    completed: int
    failed: int
    p50: float | None
    p95: float | None
    longest: float | None


class WorkerRuns(Struct, frozen=True, kw_only=True):
    """The runs of a worker that ended within some time, in numbers."""

    minutes: list[RunMinute]
    """The minutes in which runs ended, in order."""
    p50: float | None
    """How long half of the runs took at most, in seconds; None if none ended."""
    p95: float | None
    """The same for 95 % of the runs."""
    longest: float | None
    """How long the longest run took at least: exactly, if no other run ended in its minute."""
    completed: int
    failed: int


def worker_runs(hours: Iterable[Mapping[str, WorkerHour]], name: str, after: float) -> WorkerRuns:
    """Return the runs of a worker that ended after a time."""
    found = [minute for hour in hours if name in hour for minute in hour[name].minutes if minute.at > after]
    minutes = [_in_numbers(minute) for minute in sorted(found, key=lambda one: one.at)]
    marks: dict[str, int] = {}
    for minute in found:
        marks = together(marks, minute.marks)
    total = sum(minute.run_seconds for minute in found if minute.marks)
    longest = max((minute.longest for minute in minutes if minute.longest is not None), default=None)
    return WorkerRuns(
        minutes=minutes,
        p50=_quantile(0.5, marks, total, longest),
        p95=_quantile(0.95, marks, total, longest),
        longest=longest,
        completed=sum(minute.completed for minute in found),
        failed=sum(minute.failed for minute in found),
    )


def _in_numbers(minute: WorkerMinute) -> RunMinute:
    return RunMinute(
        at=minute.at,
        completed=minute.completed,
        failed=minute.failed,
        p50=_quantile(0.5, minute.marks, minute.run_seconds),
        p95=_quantile(0.95, minute.marks, minute.run_seconds),
        longest=_quantile(1.0, minute.marks, minute.run_seconds),
    )


def _quantile(share: float, marks: Mapping[str, int], total: float, most: float | None = None) -> float | None:
    seconds = run_quantile(share, marks, total)
    return None if seconds is None else round(seconds if most is None else min(seconds, most), FINE_DIGITS)
