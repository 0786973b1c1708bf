"""Jobs that an instance claims before it has a slot for them: how many it may (`PrefetchPace`), and where they wait."""

from collections.abc import Callable, Iterable
from typing import Final

from shiftwork.core.jobs.claiming_ahead import (
    CLAIM_AHEAD_SECONDS,
    LONGEST_WAIT,
    UsualRunTime,
    allowance,
    ends_soon,
    rate_after,
    run_time_after,
)
from shiftwork.core.model.jobs import Claimed
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.running.job_run import Run

SAMPLE_SECONDS: Final = 0.002
"""How often to look, at most."""


class PrefetchPace:
    """Measures one instance, and knows what `core.jobs.claiming_ahead` allows it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rate = 0.0
        self._ends = 0
        """Short runs that have ended since the rate was last worked out."""
        self._run_times: dict[str, UsualRunTime] = {}
        """Of the workers whose runs take longer."""
        self._sampled_at = clock.now()
        self._allowed = 0

    def ended(self, run: Run) -> None:
        """Note how long a run took that has ended."""
        seconds = self._clock.now() - run.started_at
        if seconds <= CLAIM_AHEAD_SECONDS:
            self._ends += 1
        else:
            worker = run.job.worker
            self._run_times[worker] = run_time_after(self._run_times.get(worker), seconds)
            self._allowed = max(0, self._allowed - 1)  # it counted as one that ends soon

    def allowed(self, runs: Iterable[Run]) -> int:
        """Return how many jobs may wait for a slot now. `runs` are all that go on, the oldest first."""
        now = self._clock.now()
        passed = now - self._sampled_at
        if passed >= SAMPLE_SECONDS / 2:  # a timer may be a little early
            self._sampled_at = now
            self._rate, self._ends = rate_after(self._rate, self._ends, passed), 0
            self._allowed = allowance(self._rate, self._ending(runs, now))
        return self._allowed

    def _ending(self, runs: Iterable[Run], now: float) -> int:
        """Return how many of the longer runs end soon."""
        steady, soonest = self._steady()
        ending = 0
        for run in runs if steady else ():
            age = now - run.started_at
            if age < soonest - CLAIM_AHEAD_SECONDS:  # all that follow are younger
                break
            usual = steady.get(run.job.worker)
            ending += usual is not None and ends_soon(usual, age)
        return ending

    def look_at(self, runs: Iterable[Run]) -> float | None:
        """Return when to look again although nothing has ended: several runs will be about to end by then."""
        steady, soonest = self._steady()
        if not steady:
            return None
        now = self._clock.now()
        for run in runs:
            if now - run.started_at < soonest - CLAIM_AHEAD_SECONDS:
                return max(run.started_at + soonest - CLAIM_AHEAD_SECONDS / 2, self._sampled_at + SAMPLE_SECONDS)
        return None

    def _steady(self) -> tuple[dict[str, UsualRunTime], float]:
        """Return the workers whose run times are steady, and how long the shortest of them take."""
        if not self._run_times:
            return {}, 0.0
        steady = {worker: usual for worker, usual in self._run_times.items() if usual.steady}
        return steady, min((usual.seconds for usual in steady.values()), default=0.0)

    def forget(self) -> None:
        """Start over: the jobs that were claimed ahead are handed back."""
        self._rate, self._ends, self._allowed = 0.0, 0, 0
        self._run_times.clear()


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
