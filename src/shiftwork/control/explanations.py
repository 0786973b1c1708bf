"""Why a job is not running: the questions to the store. The words are in `views.explanation`."""

from collections.abc import Callable
from typing import Final

from shiftwork.control.definitions import Definitions
from shiftwork.control.registry import LocalRegistry
from shiftwork.control.store_access import StoreAccess
from shiftwork.core.admission import Facts, Gates, Head, Lane, Obstacle, explain
from shiftwork.core.beats import Beat
from shiftwork.core.flow_failures import behind, lost_jobs
from shiftwork.core.job_parts import SeenStep
from shiftwork.core.model import JobFilter, JobRecord, JobStatus, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.own_options import policy
from shiftwork.errors import UnknownWorkerError
from shiftwork.handles.job import Unfinished
from shiftwork.store.lost_jobs import jobs_before
from shiftwork.views.explanation import Explanation, explanation_of, unfinished_text
from shiftwork.views.flow_waits import is_suspended, need_wait, suspension
from shiftwork.views.instants import clock_time

MOST_LOOKED_AT: Final = 1_000
"""How many of the jobs that a job waits for are looked at."""


class Explanations:
    """Explains where jobs are, and whether they could run at all."""

    def __init__(
        self, access: StoreAccess, now: Callable[[], float], registry: LocalRegistry, definitions: Definitions
    ) -> None:
        self._access = access
        self._now = now
        self._registry = registry
        self._definitions = definitions

    async def of(self, record: JobRecord) -> Explanation:
        """Return why the job is not running, or how it ended."""
        return explanation_of(record, await self._waits(record), self._now())

    async def unfinished(self, record: JobRecord) -> Unfinished:
        """Return what a job that has not ended is doing, for the error of a caller that waits for its result."""
        waits = await self._waits(record)
        config = await self._config(record.worker)
        most = None if config is None else policy(config, record.options).max_retries + 1
        text = unfinished_text(record, waits, attempts=most, now=self._now())
        return Unfinished(text, unserved=any(wait.code == "unserved" for wait in waits))

    async def _config(self, worker: str) -> WorkerConfig | None:
        here = self._registry.workers.get(worker)
        if here is not None:
            return here.config
        try:
            return (await self._definitions.worker(worker)).config
        except UnknownWorkerError:
            return None

    async def is_served(self, worker: str, pool: str) -> bool:
        """Return whether a live instance of this pool knows this worker."""
        return any(beat.pool == pool and worker in beat.workers for beat in await self._beats())

    async def _sleeps(self, pool: str) -> bool:
        """Return whether this pool has no instance, but a live node that starts one when a job comes."""
        beats = await self._beats()
        machines = [beat.machine for beat in beats if beat.machine is not None]
        hosted = any(pool in machine.pools and pool not in machine.failing for machine in machines)
        return hosted and all(beat.pool != pool for beat in beats)

    async def _beats(self) -> list[Beat]:
        store, now = await self._access.open(), self._now()
        return [known.beat for known in await store.instances() if known.expires_at > now]

    async def blocked_for_good(self, worker: str) -> str | None:
        """Return why a run would wait for what does not happen by itself; None if it would not."""
        store, now = await self._access.open(), self._now()
        facts = await store.survey([worker], now)
        for wait in explain(worker, Head(0.0, "", now), facts, now):
            if wait.code == "paused":
                return f"{wait.why}; resume it first"
            if wait.code == "dependency":
                why = await self._why_idle(wait.by, facts)
                if why is not None:
                    return f"{wait.why}, and {why}"
        return None

    async def _why_idle(self, dependency: str, facts: Facts) -> str | None:
        """Return why a dependency will not run by itself; None if it runs, or will."""
        lane = facts.lanes.get(dependency) or Lane(state=WorkerState(worker=dependency))
        gate = facts.gates.get(dependency)
        if lane.running:
            return None
        if not lane.state.enabled:
            return f"is disabled: {lane.state.reason}; enable it first"
        if gate is None or gate.pool not in facts.served:
            return "no running process serves it"
        config = await self._config(dependency)
        if config is not None and config.execution_mode is WorkerExecutionMode.TRIGGERED and not lane.live:
            return "nothing has triggered it"
        return None

    async def _waits(self, record: JobRecord) -> list[Obstacle]:
        if record.status is JobStatus.WAITING:
            return await self._needs(record)
        if record.status is JobStatus.SCHEDULED:
            last = await self._last_step(record)
            if is_suspended(record, last):
                return [suspension(record, last, self._now())]
        if record.status in {JobStatus.SCHEDULED, JobStatus.FAILED}:
            return [Obstacle("later", record.worker, f"due at {clock_time(record.run_at)}", until=record.run_at)]
        if record.status is not JobStatus.QUEUED:
            return []
        store, now = await self._access.open(), self._now()
        facts = await store.survey([record.worker], now)
        facts.gates.setdefault(record.worker, Gates(worker=record.worker, pool=record.pool))
        waits = explain(record.worker, Head(record.rank, record.id, record.since), facts, now)
        if record.parked:
            waits.insert(0, await self._key_wait(record))
        if not waits and not await self.is_served(record.worker, record.pool):
            if await self._sleeps(record.pool):
                return [Obstacle("queue", record.pool, f"pool {record.pool} has no slots yet; a node starts one")]
            why = (
                f"no running process has worker {record.worker} in pool {record.pool} of {self._access.url}: "
                "start one with `shiftwork run`"
            )
            return [Obstacle("unserved", record.pool, why)]
        return waits or _behind(record, facts)

    async def _last_step(self, record: JobRecord) -> SeenStep | None:
        store = await self._access.open()
        steps = (await store.parts(record.id, steps=1, signals=0)).steps
        return steps[-1] if steps else None

    async def _needs(self, record: JobRecord) -> list[Obstacle]:
        """Return what a job waits for that needs other jobs, and the dead and cancelled jobs that strand it."""
        store = await self._access.open()
        record = (await store.get([record.id]))[0] or record
        ids = [need.id for need in record.unmet][:MOST_LOOKED_AT]
        needed = await store.find(JobFilter(ids=tuple(ids), limit=MOST_LOOKED_AT)) if ids else []
        broken = behind(record)
        lost = lost_jobs(broken, await jobs_before(store, broken)) if broken else []
        return [need_wait(record, needed, lost)]

    async def _key_wait(self, record: JobRecord) -> Obstacle:
        store = await self._access.open()
        live = (JobStatus.PROCESSING, JobStatus.QUEUED)
        others = await store.find(JobFilter(worker=record.worker, key=record.key, status=live, limit=100))
        running = [other for other in others if other.status is JobStatus.PROCESSING]
        ahead = running or [other for other in others if not other.parked]
        by = f"job {ahead[0].id}" if ahead else "another job"
        since = ahead[0].started_at if running else None
        what = "is running" if running else "goes first"
        return Obstacle(
            "concurrency_key", record.key or "", f"{by} with the same key {record.key!r} {what}", since=since
        )


def _behind(record: JobRecord, facts: Facts) -> list[Obstacle]:
    head = facts.lanes[record.worker].head if record.worker in facts.lanes else None
    if head is not None and head.id != record.id:
        return [Obstacle("queue", record.pool, f"other jobs of {record.worker} are ahead of it in pool {record.pool}")]
    why = f"next in line for {record.worker}; the next free slot of pool {record.pool} runs it"
    return [Obstacle("queue", record.pool, why)]
