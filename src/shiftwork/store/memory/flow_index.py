"""The flows of a memory store: which job waits for which, and which jobs belong together."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest
from math import inf

from msgspec.structs import replace

from shiftwork.core.jobs.needs import NEED_NO_RESULTS, is_kept, is_lost
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobRecord, JobStatus


class Flows:
    """Unmet needs, in both directions, and the jobs of every flow."""

    def __init__(self) -> None:
        self._unmet: dict[str, dict[str, Need]] = {}
        """By job: its unmet needs, by the needed job."""
        self._waiters: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """By needed job: the jobs that wait for it, in the order in which they came."""
        self._counts: defaultdict[str, Counter[JobStatus]] = defaultdict(Counter)
        self._created: dict[str, float] = {}
        self._aims: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By flow: the worker and the tags of its first job."""

    def count(self, job: JobRecord, flow: str) -> None:
        self._counts[flow][job.status] += 1
        if job.created_at < self._created.get(flow, inf):
            self._created[flow] = job.created_at
            self.aim(flow, job.worker, job.tags)

    def has_jobs(self, flow: str) -> bool:
        return flow in self._created

    def aim(self, flow: str, worker: str, tags: tuple[str, ...]) -> None:
        self._aims[flow] = worker, tags

    def uncount(self, job: JobRecord, flow: str) -> None:
        """Stop counting a job in its flow, because it changes or is deleted."""
        self._counts[flow][job.status] -= 1

    def forget(self, job: JobRecord) -> None:
        for needed in list(self._unmet.get(job.id, ())):
            self.meet(job.id, needed)
        if job.flow is not None and not self._counts[job.flow].total():
            del self._counts[job.flow], self._created[job.flow], self._aims[job.flow]

    def need(self, id: str, needs: Iterable[Need]) -> None:
        """Make a job wait for these."""
        for need in needs:
            self._unmet.setdefault(id, {})[need.id] = need
            self._waiters[need.id][id] = None

    def meet(self, id: str, needed: str) -> bool:
        """Meet one need of a job. True if that was the last one."""
        unmet = self._unmet[id]
        del unmet[needed], self._waiters[needed][id]
        if not self._waiters[needed]:
            del self._waiters[needed]
        if not unmet:
            del self._unmet[id]
        return not unmet

    def lose(self, ids: Iterable[str], statuses: Callable[[str], JobStatus | None]) -> list[tuple[str, str]]:
        """Break the needs of jobs that are lost, and of all that this strands. Returns the needs that this meets."""
        met: list[tuple[str, str]] = []
        lost = list(ids)
        for id in lost:  # it grows
            for waiter, need in self.waiters_of(id):
                if need.whatever:
                    met.append((waiter, id))
                    continue
                if statuses(waiter) is JobStatus.WAITING and not self.is_lost(waiter, statuses(waiter)):
                    lost.append(waiter)
                self._unmet[waiter][id] = replace(need, broken=True)
        return met

    def regain(self, id: str, statuses: Callable[[str], JobStatus | None]) -> None:
        """Make needs of a retried job whole again, and so on behind each job that has no broken need left."""
        regained = [id]
        for one in regained:  # it grows
            if self.is_lost(one, statuses(one)):
                continue
            for waiter, need in self.waiters_of(one):
                if need.broken:
                    self._unmet[waiter][one] = replace(need, broken=False)
                    regained.append(waiter)

    def is_lost(self, id: str, status: JobStatus | None) -> bool:
        """Return whether a job with this status cannot complete unless a person retries one."""
        return is_lost(status, self._unmet.get(id, {}).values())

    def unmet_of(self, id: str) -> tuple[Need, ...]:
        return tuple(sorted(self._unmet.get(id, {}).values(), key=lambda need: need.id))

    def broken_of(self, id: str) -> tuple[Need, ...]:
        return tuple(need for need in self.unmet_of(id) if need.broken)

    def waiters_of(self, id: str) -> list[tuple[str, Need]]:
        """Return the jobs that wait for this one, each with its need."""
        return [(waiter, self._unmet[waiter][id]) for waiter in self._waiters.get(id, ())]

    def keeps(self, job: JobRecord, jobs: Mapping[str, JobRecord]) -> bool:
        """Return whether this job must not be pruned yet."""
        awaited = any(jobs[id].status not in NEED_NO_RESULTS for id in self._waiters.get(job.id, ()))
        if job.flow is None:
            return awaited
        founder = jobs.get(job.flow)
        status = None if founder is None else founder.status
        return is_kept(job.status, self._counts[job.flow], founder=status, awaited=awaited)

    def records(self, behind: tuple[float, str] | None, limit: int) -> list[FlowRecord]:
        """Return the newest flows behind a place."""
        places = ((at, id) for id, at in self._created.items() if behind is None or (at, id) < behind)
        return [FlowRecord(id, at, self._numbers(id), *self._aims[id]) for at, id in nlargest(limit, places)]

    def _numbers(self, flow: str) -> dict[str, int]:
        counts = self._counts[flow]
        return {status.value: counts[status] for status in JobStatus if counts[status]}
