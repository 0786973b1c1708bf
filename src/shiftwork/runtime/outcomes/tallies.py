"""Notices of jobs that have expired: one at once, then at most one a minute, however many jobs it is."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Lane
from shiftwork.runtime.clock import Clock, Timer


class RetryingJobs:
    """The workers between two attempts."""

    def __init__(self) -> None:
        self._here: defaultdict[str, set[str]] = defaultdict(set)
        self._read: set[str] = set()

    def __contains__(self, worker: str) -> bool:
        return worker in self._read or bool(self._here.get(worker))

    def ended(self, outcome: Outcome) -> None:
        """A run ended here: its job waits for the next attempt, or does no longer."""
        if outcome.status is JobStatus.FAILED:
            self._here[outcome.worker].add(outcome.id)
        elif self._here:
            self.began(outcome.worker, outcome.id)

    def began(self, worker: str, job_id: str) -> None:
        """A job begins another attempt here."""
        here = self._here.get(worker) if self._here else None
        if here and job_id in here:
            here.discard(job_id)
            if not here:  # if another process has one, the next read says so
                self._read.discard(worker)

    def read(self, lanes: Mapping[str, Lane]) -> None:
        """The store says this about these workers."""
        for worker, lane in lanes.items():
            if lane.retrying:
                self._read.add(worker)
            else:
                self._read.discard(worker)
                self._here.pop(worker, None)


NOTICE_SECONDS: Final = 60.0
MOST_NAMED: Final = 5
"""How many workers a notice names."""


class ExpiryNotices:
    """Counts the jobs that have expired, by worker, and calls `notify` with the counts now and then."""

    def __init__(self, clock: Clock, notify: Callable[[Mapping[str, int]], None]) -> None:
        self._clock = clock
        self._notify = notify
        self._counts: Counter[str] = Counter()
        self._timer: Timer | None = None

    def add(self, expired: Mapping[str, int]) -> None:
        """Take note that this many jobs of each worker have expired."""
        self._counts.update(expired)
        if self._timer is None:
            self._look()

    def close(self) -> None:
        """Send the last notice now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _look(self) -> None:
        self._timer = self._clock.call_in(NOTICE_SECONDS, self._look) if self._flush() else None

    def _flush(self) -> bool:
        counts = dict(self._counts.most_common())
        self._counts.clear()
        if counts:
            self._notify(counts)
        return bool(counts)


def expiry_notice(counts: Mapping[str, int]) -> str:
    """Return the text of a notice."""
    named = [f"{number:,} of {worker}" for worker, number in list(counts.items())[:MOST_NAMED]]
    others = len(counts) - len(named)
    if others:
        named.append(f"and those of {counted(others, 'more worker')}")
    return f"{counted(sum(counts.values()), 'job')} expired before being started: {', '.join(named)}"
