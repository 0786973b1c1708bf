"""Where jobs wait that an instance has claimed before it has a slot for them."""

from collections.abc import Callable

from shiftwork.core.jobs.claiming_ahead import LONGEST_WAIT
from shiftwork.core.model.jobs import Claimed
from shiftwork.runtime.clock import Clock


class PrefetchedJobs:
    """Keeps jobs until there is a slot, and calls `on_overdue` when one has waited for too long.

    That is for when all slots are taken by runs that go on longer than foreseen. It is looked at now and then, so a job
    may wait for up to twice `LONGEST_WAIT`.
    """

    def __init__(self, clock: Clock, on_overdue: Callable[[], None]) -> None:
        self._clock = clock
        self._on_overdue = on_overdue
        self.jobs: dict[str, Claimed] = {}
        """The jobs by id, the next one first."""
        self._watched: Claimed | None = None
        """The one that was first when the timer was set; None while there is no timer."""

    def put(self, job: Claimed) -> None:
        """Keep a job until there is a slot."""
        self.jobs[job.id] = job
        if self._watched is None:
            self._watch()

    def take(self) -> Claimed:
        """Return the next job, which starts now."""
        return self.jobs.pop(next(iter(self.jobs)))

    def remove(self, job_id: str, fence: int) -> Claimed | None:
        """Take one of the jobs out of the row, if it is here under this fence."""
        job = self.jobs.get(job_id)
        return self.jobs.pop(job_id) if job is not None and job.fence == fence else None

    def empty(self) -> list[Claimed]:
        """Take all jobs out."""
        jobs = list(self.jobs.values())
        self.jobs.clear()
        return jobs

    def _watch(self) -> None:
        self._watched = next(iter(self.jobs.values()))
        self._clock.call_in(LONGEST_WAIT, self._look)

    def _look(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None and self.jobs.get(watched.id) is watched:
            self._on_overdue()
        elif self.jobs:
            self._watch()
