"""Everything that is known after the day, from two independent sources: the journal of the runs, and the store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from examples.company import journal, place
from examples.company.app import app
from examples.company.journal import Journal, Run
from examples.company.outcome import Outcome
from shiftwork import JobStatus, PoolConfig

MOST: Final = 1_000_000


@dataclass(frozen=True)
class Ended:
    """The store's view of a job."""

    status: JobStatus
    error: str | None = None
    worker: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One step in which a pool grew or shrank."""

    pool: str
    before: int
    after: int


@dataclass(frozen=True)
class Evidence:
    """Everything known. If the kill kept a failure from being stored, the job fails once more."""

    journal: Journal
    jobs: Mapping[str, Ended]
    pools: Mapping[str, PoolConfig]
    steps: tuple[Step, ...] = ()
    letters: int = 0
    """The number of letters that are not answered."""
    fixed: Outcome | None = None
    """None if that part was not played."""
    whole: bool = True
    """False if the show was stopped early: then jobs may still wait, and not everything was shown."""

    @property
    def owed(self) -> list[str]:
        """The jobs that shiftwork acknowledged."""
        return list(dict.fromkeys(mark.subject for mark in self.journal.marked("owed")))

    def owed_at(self) -> dict[str, float]:
        """When each job was acknowledged."""
        return {mark.subject: mark.at for mark in reversed(self.journal.marked("owed"))}

    def at(self, what: str) -> float:
        """When this was first marked; infinity if it never was."""
        return next((mark.at for mark in self.journal.marked(what)), journal.FOREVER)

    def completed(self, job: str) -> bool:
        return job in self.jobs and self.jobs[job].status is JobStatus.COMPLETED

    def completed_of(self, worker: str) -> dict[str, Ended]:
        """The completed jobs of one worker."""
        return {id: job for id, job in self.jobs.items() if job.worker == worker and self.completed(id)}

    def first_starts(self, worker: str) -> dict[str, float]:
        """When each job of a worker first began."""
        first: dict[str, float] = {}
        for run in self.journal.of(worker):
            first.setdefault(run.job, run.began)
        return first

    def interrupted(self) -> set[str]:
        """The jobs of which a run was killed, or ended in a process that was killed, so that its end may be unknown."""
        killed = {int(mark.subject) for mark in self.journal.marked("killed")}
        return {run.job for run in self.journal.runs if killed & {run.node, run.process}}


@dataclass(frozen=True)
class Finding:
    """The outcome of one check, in words."""

    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'✔' if self.ok else '✘'} {self.text}"


def counted(runs: list[Run]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"


async def gather(*, whole: bool = True) -> Evidence:
    """Read the journal and the store."""
    # The journal first: what runs while the store is read is in neither, or in both.
    written = journal.read()
    jobs = {
        job.id: Ended(job.status, job.error, job.worker, job.payload or {}) for job in await app.find_jobs(limit=MOST)
    }
    fixed = Outcome.read(place.FIXED_HOME)
    return Evidence(written, jobs, await app.pools(), await steps(), len(place.letters()), fixed, whole)


async def steps() -> tuple[Step, ...]:
    """Every step in which a pool grew or shrank, in order."""
    scaled = [event for event in await app.events(limit=MOST) if event.name == "pool.scaled"]
    return tuple(Step(event.subject, event.data["before"], event.data["after"]) for event in scaled)
