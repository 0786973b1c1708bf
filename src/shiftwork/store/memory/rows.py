"""Every job of a memory store, and the indices over them.

It writes `parked` as `shiftwork.core.jobs.parked_jobs` decides.

All changes go through `JobTable.write` and `JobTable.delete`, so no index can be forgotten, and the topics that a
change concerns gather in `topics`. What becomes of a job is for the operations to decide.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.jobs.parked_jobs import free
from shiftwork.core.model.jobs import LIVE, JobRecord, JobStatus
from shiftwork.store.memory.flow_index import Flows

QUEUED, PROCESSING, WAITING = JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.WAITING


class OrderedIds:
    """Ids in the order of a number and then of the id."""

    def __init__(self) -> None:
        self._places: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[tuple[float, str]]:
        return iter(self._places)

    def add(self, at: float, id: str) -> None:
        insort(self._places, (at, id))

    def discard(self, at: float, id: str) -> None:
        position = bisect_left(self._places, (at, id))
        if self._places[position : position + 1] == [(at, id)]:
            del self._places[position]

    def first(self, n: int) -> list[str]:
        return [id for _, id in self._places[:n]]

    def before(self, at: float, id: str) -> int:
        """Return how many come before this place."""
        return bisect_left(self._places, (at, id))

    def until(self, at: float, n: int) -> list[str]:
        """Return the first `n` ids whose number is at most this."""
        return [id for _, id in takewhile(lambda place: place[0] <= at, self._places[:n])]

    @property
    def head(self) -> tuple[float, str] | None:
        return self._places[0] if self._places else None

    @property
    def tail(self) -> tuple[float, str] | None:
        return self._places[-1] if self._places else None


class KeyGroup(Struct):
    """The jobs of one worker that share a concurrency key."""

    queued: OrderedIds = field(default_factory=OrderedIds)
    processing: int = 0
    free: set[str] = field(default_factory=set)
    """The queued jobs that are not parked."""


class JobTable:
    """All jobs by id, and by everything else that a store looks them up by."""

    def __init__(self) -> None:
        self.by_id: dict[str, JobRecord] = {}
        self.ready: defaultdict[str, dict[str, OrderedIds]] = defaultdict(dict)
        """By worker and pool: the queued jobs that are not parked, by rank."""
        self.running: defaultdict[str, OrderedIds] = defaultdict(OrderedIds)
        """By worker: the processing jobs, by start."""
        self.held: defaultdict[str, set[str]] = defaultdict(set)
        """By instance: the processing jobs."""
        self.due: OrderedIds = OrderedIds()
        """The scheduled and failed jobs, by `run_at`."""
        self.disposable: OrderedIds = OrderedIds()
        """The ended jobs that may be pruned, by `keep_until`."""
        self.expiring: OrderedIds = OrderedIds()
        """The jobs that wait to start and may expire, by `expires_at`."""
        self.flows: Flows = Flows()
        self.unique: dict[tuple[str, str], str] = {}
        """By worker and `unique_key`: the live job that has it."""
        self.by_pool: defaultdict[str, Counter[JobStatus]] = defaultdict(Counter)
        self.by_worker: defaultdict[str, Counter[JobStatus]] = defaultdict(Counter)
        self.topics: set[str] = set()
        """The topics to ring for the changes so far."""
        self._groups: defaultdict[tuple[str, str], KeyGroup] = defaultdict(KeyGroup)

    def write(self, job: JobRecord) -> None:
        """Keep the job as it is now, in place of what it was."""
        self._take_out(job.id)
        self._put_in(replace(job, parked=job.status is QUEUED and job.key is not None))
        self._repark(job)

    def delete(self, id: str) -> None:
        """Delete the job without a trace."""
        job = self.by_id.get(id)
        self._take_out(id)
        if job is not None:
            self.flows.forget(job)
            self._repark(job)

    def take_topics(self) -> set[str]:
        """Return the topics to ring for the changes so far, and forget them."""
        topics, self.topics = self.topics, set()
        return topics

    def whole(self, id: str) -> JobRecord | None:
        """Return the job with its unmet needs."""
        job = self.by_id.get(id)
        return job and replace(job, unmet=self.flows.unmet_of(id))

    def clashes(self, job: JobRecord) -> bool:
        """Return whether another live job has its unique key."""
        return job.unique_key is not None and self.unique.get((job.worker, job.unique_key), job.id) != job.id

    def best(self, worker: str) -> JobRecord | None:
        """Return the first of a worker's jobs that are queued and not parked, in any pool."""
        heads = [line.head for line in self.ready.get(worker, {}).values() if line.head]
        return self.by_id[min(heads)[1]] if heads else None

    def first(self, pool: str) -> JobRecord | None:
        """Return the first of a pool's jobs that are queued and not parked."""
        heads = [lines[pool].head for lines in self.ready.values() if pool in lines]
        return self.by_id[min(head for head in heads if head)[1]] if heads else None

    def wake_workers(self, workers: Iterable[str]) -> None:
        """Ring every pool where a job of these workers is ready: what it waits for may have changed."""
        for worker in workers:
            self.topics |= {f"pool:{pool}" for pool in self.ready.get(worker, ())}

    def wake_all(self) -> None:
        """Ring every pool where a job is ready."""
        self.wake_workers(list(self.ready))

    def _put_in(self, job: JobRecord) -> None:
        self.by_id[job.id] = job
        self.by_pool[job.pool][job.status] += 1
        self.by_worker[job.worker][job.status] += 1
        if job.flow is not None:
            self.flows.count(job, job.flow)
        if (expires_at := job.expiry) is not None:
            self.expiring.add(expires_at, job.id)
            if self.expiring.head == (expires_at, job.id):
                self.topics.add("leader")
        if job.status in LIVE and job.unique_key is not None:
            self.unique[job.worker, job.unique_key] = job.id
        if job.status is QUEUED:
            self._put_in_queue(job)
        elif job.status is PROCESSING:
            self._put_in_run(job)
        elif job.status is WAITING:
            pass  # the end of another job releases it
        elif job.status in LIVE:
            self.due.add(job.run_at, job.id)
            if self.due.head == (job.run_at, job.id):
                self.topics.add("leader")
        else:
            self._put_at_rest(job)

    def _put_in_queue(self, job: JobRecord) -> None:
        if job.key is not None:
            self._groups[job.worker, job.key].queued.add(job.rank, job.id)
        if not job.parked:
            self._make_ready(job)

    def _make_ready(self, job: JobRecord) -> None:
        self.ready[job.worker].setdefault(job.pool, OrderedIds()).add(job.rank, job.id)
        self.topics.add(f"pool:{job.pool}")

    def _put_in_run(self, job: JobRecord) -> None:
        self.running[job.worker].add(job.started_at or 0.0, job.id)
        self.held[job.instance or ""].add(job.id)
        if job.key is not None:
            self._groups[job.worker, job.key].processing += 1

    def _put_at_rest(self, job: JobRecord) -> None:
        self.topics.add("ended")
        if job.cause != "enqueued":
            self.topics.add("leader")
        if job.keep_until is not None:
            self.disposable.add(job.keep_until, job.id)

    def _take_out(self, id: str) -> None:
        job = self.by_id.pop(id, None)
        if job is None:
            return
        _subtract(self.by_pool, job.pool, job.status)
        _subtract(self.by_worker, job.worker, job.status)
        if job.flow is not None:
            self.flows.uncount(job, job.flow)
        if (expires_at := job.expiry) is not None:
            self.expiring.discard(expires_at, id)
        if job.status in LIVE and job.unique_key is not None:
            del self.unique[job.worker, job.unique_key]
        if job.status is QUEUED:
            self._take_out_of_queue(job)
        elif job.status is PROCESSING:
            self._take_out_of_run(job)
        elif job.status is WAITING:
            pass
        elif job.status in LIVE:
            self.due.discard(job.run_at, id)
        elif job.keep_until is not None:
            self.disposable.discard(job.keep_until, id)

    def _take_out_of_queue(self, job: JobRecord) -> None:
        if job.key is not None:
            group = self._groups[job.worker, job.key]
            group.queued.discard(job.rank, job.id)
            group.free.discard(job.id)
        if not job.parked:
            self._unready(job)

    def _unready(self, job: JobRecord) -> None:
        lines = self.ready[job.worker]
        lines[job.pool].discard(job.rank, job.id)
        if not lines[job.pool]:
            del lines[job.pool]
        if not lines:
            del self.ready[job.worker]

    def _take_out_of_run(self, job: JobRecord) -> None:
        self.running[job.worker].discard(job.started_at or 0.0, job.id)
        self.held[job.instance or ""].discard(job.id)
        if not self.running[job.worker]:
            del self.running[job.worker]
        if not self.held[job.instance or ""]:
            del self.held[job.instance or ""]
        if job.key is not None:
            self._groups[job.worker, job.key].processing -= 1

    def _repark(self, changed: JobRecord) -> None:
        """Park and free the queued jobs of a key, now that one of its jobs has changed."""
        if changed.key is None:
            return
        group = self._groups[changed.worker, changed.key]
        limits = ((id, self.by_id[id].key_limit) for _, id in group.queued)
        fitting = list(free(limits, processing=group.processing))
        for id in group.free.difference(fitting):
            self._set_parked(self.by_id[id], parked=True)
        for id in fitting:
            if id not in group.free:
                self._set_parked(self.by_id[id], parked=False)
        group.free = set(fitting)
        if not group.queued and not group.processing:
            del self._groups[changed.worker, changed.key]

    def _set_parked(self, job: JobRecord, *, parked: bool) -> None:
        self.by_id[job.id] = job = replace(job, parked=parked)
        if parked:
            self._unready(job)
        else:
            self._make_ready(job)


def _subtract(counts: defaultdict[str, Counter[JobStatus]], name: str, status: JobStatus) -> None:
    counts[name][status] -= 1
    if not counts[name][status]:
        del counts[name][status]
    if not counts[name]:
        del counts[name]
