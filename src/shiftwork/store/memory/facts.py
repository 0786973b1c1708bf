"""The facts that a memory store gives to `shiftwork.core.workers.admission`, and the workers' states among them.

Facts are copies, which admission may change. How states change is `shiftwork.core.workers.state`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from shiftwork.core.model.jobs import LIVE, JobRecord, JobStatus
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers import state as worker_state
from shiftwork.core.workers.admission import Facts, Head, Lane, Running, neighbours
from shiftwork.store.docs import DocsOfClaims
from shiftwork.store.memory.rows import JobTable, OrderedIds


class StateTable:
    """The states by worker. A worker without one is new."""

    def __init__(self) -> None:
        self._states: dict[str, WorkerState] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def of(self, worker: str) -> WorkerState:
        """Return the state itself, to be changed."""
        return self._states.setdefault(worker, WorkerState(worker=worker))

    def copy_of(self, worker: str) -> WorkerState:
        return replace(self._states.get(worker) or WorkerState(worker=worker))

    def keep(self, state: WorkerState) -> None:
        self._states[state.worker] = replace(state)

    def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> None:
        worker_state.switch(self.of(worker), enabled=enabled, reason=reason, now=now)


def facts(workers: Iterable[str], jobs: JobTable, docs: DocsOfClaims, *, states: StateTable, served: set[str]) -> Facts:
    """Return everything that an admission of jobs of these workers looks at."""
    near = neighbours(workers, docs.gates)
    return Facts(
        lanes={worker: _lane(worker, jobs, states) for worker in near},
        gates={worker: docs.gates[worker] for worker in near if worker in docs.gates},
        breakers=dict(docs.breakers),
        pools=dict(docs.pools),
        served=served,
    )


def heads(jobs: JobTable, pool: str, *, worker: str, n: int) -> list[Head]:
    line = jobs.ready.get(worker, {}).get(pool)
    return [_head(jobs.by_id[id]) for id in line.first(n)] if line else []


def _lane(worker: str, jobs: JobTable, states: StateTable) -> Lane:
    running = jobs.running.get(worker) or OrderedIds()
    eldest = jobs.by_id[running.head[1]] if running.head else None
    best = jobs.best(worker)
    counts = jobs.by_worker.get(worker) or Counter()
    return Lane(
        state=states.copy_of(worker),
        running=len(running),
        eldest=Running(eldest.id, eldest.instance or "", eldest.started_at or 0.0) if eldest else None,
        newest_started_at=running.tail[0] if running.tail else None,
        head=_head(best) if best else None,
        retrying=bool(counts[JobStatus.FAILED]),
        live=any(counts[status] for status in LIVE),
        ready=_ready(worker, jobs, counts[JobStatus.QUEUED]),
    )


def _ready(worker: str, jobs: JobTable, queued: int) -> int | None:
    ready = sum(map(len, jobs.ready.get(worker, {}).values()))
    return ready if ready < queued else None


def _head(job: JobRecord) -> Head:
    return Head(rank=job.rank, id=job.id, since=job.since)
