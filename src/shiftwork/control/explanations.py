"""Why a job is not running: the questions to the store. The words are in `views.explanation`."""

from collections.abc import Callable

from shiftwork.control.store_access import StoreAccess
from shiftwork.core.admission import Facts, Gates, Head, Wait, explain
from shiftwork.core.model import JobFilter, JobRecord, JobStatus
from shiftwork.views.explanation import Explanation, explanation_of
from shiftwork.views.instants import clock_time


class Explanations:
    """Explains where jobs are, and whether they could run at all."""

    def __init__(self, access: StoreAccess, now: Callable[[], float]) -> None:
        self._access = access
        self._now = now

    async def of(self, record: JobRecord) -> Explanation:
        """Return why the job is not running, or how it ended."""
        return explanation_of(record, await self._waits(record))

    async def is_served(self, worker: str, pool: str) -> bool:
        """Return whether a live instance of this pool knows this worker."""
        store, now = await self._access.open(), self._now()
        beats = [known.beat for known in await store.instances() if known.expires_at > now]
        return any(beat.pool == pool and worker in beat.workers for beat in beats)

    async def blocked_for_good(self, worker: str) -> str | None:
        """Return why a run that only this process would serve could never start; None if it could."""
        store, now = await self._access.open(), self._now()
        facts = await store.survey([worker], now)
        for wait in explain(worker, Head(0.0, "", now), facts, now):
            gate, lane = facts.gates.get(wait.by), facts.lanes.get(wait.by)
            served = gate is not None and gate.pool in facts.served
            if wait.code == "paused" or (wait.code == "dependency" and not served and not (lane and lane.running)):
                return wait.why
        return None

    async def _waits(self, record: JobRecord) -> list[Wait]:
        if record.status in {JobStatus.SCHEDULED, JobStatus.FAILED}:
            return [Wait("later", record.worker, f"due at {clock_time(record.run_at)}", until=record.run_at)]
        if record.status is not JobStatus.QUEUED:
            return []
        store, now = await self._access.open(), self._now()
        facts = await store.survey([record.worker], now)
        facts.gates.setdefault(record.worker, Gates(worker=record.worker, pool=record.pool))
        waits = explain(record.worker, Head(record.rank, record.id, record.run_at), facts, now)
        if record.parked:
            waits.insert(0, await self._key_wait(record))
        if not waits and not await self.is_served(record.worker, record.pool):
            why = f"no running process has worker {record.worker} in pool {record.pool}: start one with `shiftwork run`"
            return [Wait("unserved", record.pool, why)]
        return waits or _behind(record, facts)

    async def _key_wait(self, record: JobRecord) -> Wait:
        store = await self._access.open()
        live = (JobStatus.PROCESSING, JobStatus.QUEUED)
        others = await store.find(JobFilter(worker=record.worker, key=record.key, status=live, limit=100))
        running = [other for other in others if other.status is JobStatus.PROCESSING]
        ahead = running or [other for other in others if not other.parked]
        by = f"job {ahead[0].id}" if ahead else "another job"
        since = ahead[0].started_at if running else None
        what = "is running" if running else "goes first"
        return Wait("concurrency_key", record.key or "", f"{by} with the same key {record.key!r} {what}", since=since)


def _behind(record: JobRecord, facts: Facts) -> list[Wait]:
    head = facts.lanes[record.worker].head if record.worker in facts.lanes else None
    if head is not None and head.id != record.id:
        return [Wait("queue", record.pool, f"other jobs of {record.worker} are ahead of it in pool {record.pool}")]
    why = f"next in line for {record.worker}; pool {record.pool} has no free slot yet"
    return [Wait("queue", record.pool, why)]
