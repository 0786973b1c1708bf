"""Which workers have a job that failed and waits for its next attempt, as far as this process knows.

It knows at once of the jobs that fail here, and hears of the others when the states of the workers are read.
"""

from collections import defaultdict
from collections.abc import Mapping

from shiftwork.core.admission import Lane
from shiftwork.core.model import JobStatus, Outcome


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
