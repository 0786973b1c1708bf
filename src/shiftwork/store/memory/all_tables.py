"""Everything that a memory store keeps. An operation gets it while the store's lock is held."""

from collections.abc import Iterable

from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.workers.admission import Facts, neighbours
from shiftwork.store.memory.docs import DocTable
from shiftwork.store.memory.events import EventLog
from shiftwork.store.memory.facts import StateTable, facts
from shiftwork.store.memory.lease import Instances, Places
from shiftwork.store.memory.rows import JobTable
from shiftwork.store.memory.stats import Totals


class Tables:
    """The tables, what operations share to read them, and the topics to ring."""

    def __init__(self) -> None:
        self.jobs: JobTable = JobTable()
        self.docs: DocTable = DocTable()
        self.states: StateTable = StateTable()
        self.instances: Instances = Instances()
        self.places: Places = Places()
        self.totals: Totals = Totals()
        self.events: EventLog = EventLog()
        self.last_fence: int = 0

    def next_fence(self) -> int:
        """Return a new fence, above all others."""
        self.last_fence += 1
        return self.last_fence

    def status(self, id: str) -> JobStatus | None:
        """Return the status of a job; None if there is no such job."""
        job = self.jobs.by_id.get(id)
        return None if job is None else job.status

    def running(self, id: str, fence: int) -> JobRecord | None:
        """Return the job, if it is processing under this fence."""
        job = self.jobs.by_id.get(id)
        return job if job is not None and job.status is JobStatus.PROCESSING and job.fence == fence else None

    def facts(self, workers: Iterable[str], now: float) -> Facts:
        """Return everything that an admission of jobs of these workers looks at."""
        served = {beat.pool for beat in self.instances.live(now).values()}
        return facts(workers, self.jobs, self.docs.of_claims, states=self.states, served=served)

    def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        """Return the facts about these workers and their neighbours, or about all."""
        if workers is None:
            workers = {*self.states, *self.docs.of_claims.gates, *self.jobs.by_worker}
        return self.facts(workers, now)

    # ── bells ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ring(self, *topics: str) -> None:
        """Ring these topics once the operation is over."""
        self.jobs.topics.update(topics)

    def wake_tied(self, worker: str) -> None:
        """Ring for the workers that may wait for something that changed about this one."""
        gates = self.docs.of_claims.gates.get(worker)
        if gates is not None and not gates.open:
            self.wake_neighbours(worker)

    def wake_neighbours(self, worker: str) -> None:
        """Ring for a worker and those that gates tie to it."""
        self.jobs.wake_workers(neighbours([worker], self.docs.of_claims.gates))
