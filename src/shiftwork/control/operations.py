"""What people ask and change, from any process that can reach the store: jobs, workers, pools, events.

The orchestrator's methods and the command line both end here. Nothing here runs a user's function.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from msgspec import MsgspecError, Struct, convert
from msgspec.structs import replace

from shiftwork.control.actor import whoever
from shiftwork.core.admission import Facts, Gates, Head, Wait, explain
from shiftwork.core.docs import PLAN, PLAN_NAME, POOL_CONFIG, SCHEDULE, WORKER
from shiftwork.core.health import Health
from shiftwork.core.model import (
    Cancel,
    Change,
    Discard,
    Event,
    InstanceRecord,
    JobFilter,
    JobRecord,
    JobStatus,
    Plan,
    PoolConfig,
    PoolStats,
    Requeue,
    WorkerConfig,
    WorkerExecutionMode,
    WorkerInstance,
)
from shiftwork.core.scaling import Decision, PoolLoad
from shiftwork.errors import (
    ConfigurationError,
    JobStateError,
    UnknownJobError,
    UnknownOptionError,
    UnknownWorkerError,
    nearest,
)
from shiftwork.store.docs import read, read_all
from shiftwork.store.protocol import Store
from shiftwork.views.explanation import Explanation
from shiftwork.views.snapshot import Snapshot, judged

BULK: Final = 1_000
KNOWN_SECONDS: Final = 5.0
"""How long what is known of workers and pools is good enough to add jobs by."""
CLOCK_SECONDS: Final = 5.0
"""By how much the clock of whoever adds a job may be behind ours."""
ENDED: Final = (JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED)


class Known(Struct, frozen=True):
    """What the store knows of the workers and pools, as of a moment."""

    at: float
    workers: dict[str, WorkerConfig]
    pools: dict[str, PoolConfig]
    schemas: dict[str, bytes]


class Operations:
    """Questions to the store, and orders."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._known: Known | None = None

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def job(self, job_id: str) -> JobRecord:
        """One job, whole."""
        record = (await self._store.get([job_id]))[0]
        if record is None:
            message = f"no job has the id {job_id!r} (any more: ended jobs are pruned after a while)"
            raise UnknownJobError(message)
        return record

    async def amend_one(self, job_id: str, change: Change) -> None:
        """Change one job, or say why not."""
        amended = (await self._store.amend([job_id], change, self._now()))[0]
        if amended.status is None:
            await self.job(job_id)
        elif not amended.ok:
            message = f"job {job_id} is {amended.status}: {_REFUSED[type(change)]}"
            raise JobStateError(message)

    async def explain(self, job_id: str) -> Explanation:
        """Why the job is not running, or how it ended."""
        record = await self.job(job_id)
        waits = await self._waits(record)
        return Explanation(record.id, record.status, _in_words(record, waits), waits)

    async def _waits(self, record: JobRecord) -> list[Wait]:
        now = self._now()
        if record.status in {JobStatus.SCHEDULED, JobStatus.FAILED}:
            return [Wait("later", record.worker, f"due at {clock_time(record.run_at)}", until=record.run_at)]
        if record.status is not JobStatus.QUEUED:
            return []
        facts = await self._store.survey([record.worker], now)
        facts.gates.setdefault(record.worker, Gates(worker=record.worker, pool=record.pool))
        waits = explain(record.worker, Head(record.rank, record.id, record.run_at), facts, now)
        if record.parked:
            waits.insert(0, await self._key_wait(record))
        if not waits and not await self.is_served(record.worker, record.pool):
            why = f"no running process has worker {record.worker} in pool {record.pool}: start one with `shiftwork run`"
            return [Wait("unserved", record.pool, why)]
        return waits or _behind(record, facts)

    async def is_served(self, worker: str, pool: str) -> bool:
        """Whether a live instance of this pool knows this worker."""
        beats = [known.beat for known in await self._store.instances() if known.expires_at > self._now()]
        return any(beat.pool == pool and worker in beat.workers for beat in beats)

    async def _key_wait(self, record: JobRecord) -> Wait:
        live = (JobStatus.PROCESSING, JobStatus.QUEUED)
        others = await self._store.find(JobFilter(worker=record.worker, key=record.key, status=live, limit=100))
        running = [other for other in others if other.status is JobStatus.PROCESSING]
        ahead = running or [other for other in others if not other.parked]
        by = f"job {ahead[0].id}" if ahead else "another job"
        since = ahead[0].started_at if running else None
        what = "is running" if running else "goes first"
        return Wait("concurrency_key", record.key or "", f"{by} with the same key {record.key!r} {what}", since=since)

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def workers(self) -> dict[str, WorkerConfig]:
        """Every worker that a process has made known."""
        return await read_all(self._store, WORKER)

    async def definition(self, name: str, here: Iterable[str] = ()) -> tuple[WorkerConfig, PoolConfig, bytes | None]:
        """A worker that others registered, its pool, and what it takes as JSON Schema.

        For whoever adds many jobs of it: what seldom changes is asked for at most every few seconds.
        """
        known, now = self._known, self._now()
        if known is None or name not in known.workers or not 0 <= now - known.at < KNOWN_SECONDS:
            known = await self._learn()
        if name not in known.workers:
            message = f"there is no worker {name!r}: {nearest(name, {*known.workers, *here})}"
            raise UnknownWorkerError(message)
        config = known.workers[name]
        triggered = config.execution_mode is WorkerExecutionMode.TRIGGERED
        pool = known.pools.get(config.pool) or PoolConfig(name=config.pool)
        # A schema of one that is not triggered is from the time when it was.
        return config, pool, known.schemas.get(name) if triggered else None

    async def schemas(self, newest: Mapping[str, float]) -> Mapping[str, bytes]:
        """What these workers take, as JSON Schema, where that is known; asked for as seldom as `definition` is.

        By worker, when its newest job was added. What is secret is published before a job has it: so whoever knows
        nothing of a worker looks again, unless all its jobs were there when we last looked.
        """
        known, now = self._known, self._now()
        if known is None or not 0 <= now - known.at < KNOWN_SECONDS or _is_news(newest, known):
            known = await self._learn()
        return known.schemas

    async def _learn(self) -> Known:
        schemas = {doc.name: doc.body for doc in await self._store.docs("schema")}
        self._known = Known(self._now(), await self.workers(), await self.pools(), schemas)
        return self._known

    async def stuck(self, worker: str) -> str | None:
        """Why a run that nobody but the asker would serve could not start, however long it waited."""
        now = self._now()
        facts = await self._store.survey([worker], now)
        for wait in explain(worker, Head(0.0, "", now), facts, now):
            gate, lane = facts.gates.get(wait.by), facts.lanes.get(wait.by)
            served = gate is not None and gate.pool in facts.served
            if wait.code == "paused" or (wait.code == "dependency" and not served and not (lane and lane.running)):
                return wait.why
        return None

    async def known_worker(self, name: str, here: Mapping[str, WorkerConfig] | None = None) -> WorkerConfig:
        """One of them, or of those that are registered here."""
        workers = await self.workers() | dict(here or {})
        if name not in workers:
            message = f"there is no worker {name!r}: {nearest(name, workers)}"
            raise UnknownWorkerError(message)
        return workers[name]

    async def switch(self, name: str, *, enabled: bool, reason: str | None) -> Event:
        """Enable or disable a worker, for every process, until somebody changes it."""
        state = await self._store.switch(name, enabled=enabled, reason=reason, now=self._now())
        words = f"worker {name} is " + ("enabled" if state.enabled else f"disabled: {state.reason}")
        return await self.record("worker.enabled" if enabled else "worker.disabled", name, words)

    async def cursors(self) -> dict[str, float]:
        """Up to when each cron schedule has been dealt with."""
        return {name: cursor.at for name, cursor in (await read_all(self._store, SCHEDULE)).items()}

    # ── pools ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def pools(self) -> dict[str, PoolConfig]:
        """Every pool that a process has made known."""
        return await read_all(self._store, POOL_CONFIG)

    async def instances(self) -> dict[str, list[WorkerInstance]]:
        """Who serves which pool, with the jobs in hand."""
        now = self._now()
        members: dict[str, list[WorkerInstance]] = {}
        known = [one for one in await self._store.instances() if one.beat.pool]
        jobs = await self._held() if known else {}
        for one in known:
            members.setdefault(one.beat.pool, []).append(member(one, jobs.get(one.beat.instance, []), now))
        return members

    async def _held(self) -> dict[str, list[str]]:
        """The jobs that run, by who holds them."""
        held: dict[str, list[str]] = {}
        wanted = JobFilter(status=(JobStatus.PROCESSING,), limit=BULK)
        while True:
            page = await self._store.find(wanted)
            for record in page:
                held.setdefault(record.instance or "", []).append(record.id)
            if len(page) < BULK:
                return held
            wanted = replace(wanted, after=page[-1].id)

    async def pool_dashboard(self, known: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Every pool, with its workers and its numbers."""
        stats = (await self._store.stats(self._now())).pools
        members = await self.instances()
        names = sorted({*known, *stats, *members, *await self.pools()})
        return {name: _dashboard(stats.get(name, PoolStats()), members.get(name, [])) for name in names}

    # ── health ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def see(self) -> Snapshot:
        """Look at everything once: seven questions, whose cost does not depend on how many jobs there are."""
        now = self._now()
        return Snapshot(
            at=now,
            facts=await self._store.survey(None, now),
            stats=await self._store.stats(now),
            instances=await self._store.instances(),
            workers=await self.workers(),
            pools=await self.pools(),
            cursors=await self.cursors(),
            plan=await read(self._store, PLAN, PLAN_NAME) or Plan(),
        )

    async def health(self, strays: Mapping[str, int], *, lease_seconds: float) -> Health:
        """What is wrong now. `strays`: how many runs this process has given up on, by instance."""
        return judged(await self.see(), strays, lease_seconds=lease_seconds)

    # ── events ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def record(self, name: str, subject: str, message: str, **data: Any) -> Event:
        """Keep that a person did something, and who it was."""
        event = Event(at=self._now(), name=name, subject=subject, message=message, data={"by": whoever(), **data})
        await self._store.record([event])
        return event

    async def record_change(self, job: JobRecord, what: str, **data: Any) -> Event:
        """Keep that a person changed one job."""
        message = f"job {job.id} of {job.worker} was {what}"
        return await self.record("jobs.amended", what, message, id=job.id, worker=job.worker, **data)

    async def record_trigger(self, job: JobRecord) -> Event:
        """Keep that a person had a worker run now, as this job."""
        message = f"worker {job.worker} was triggered: job {job.id}"
        return await self.record("job.triggered", job.id, message, worker=job.worker)


_REFUSED: Final[Mapping[type[Any], str]] = {
    Cancel: "it has ended already and cannot be cancelled",
    Requeue: "only dead, cancelled, failed and scheduled jobs can be queued again",
    Discard: "only ended jobs can be discarded; cancel it first",
}


def _is_news(newest: Mapping[str, float], known: Known) -> bool:
    unheard_of = newest.keys() - known.workers.keys() - known.schemas.keys()
    return any(newest[name] > known.at - CLOCK_SECONDS for name in unheard_of)


def job_filter(**wanted: Any) -> JobFilter:
    """A filter from a person's words: statuses by name, everything checked."""
    fields = JobFilter.__struct_fields__
    for name in wanted:
        if name not in fields:
            message = f"jobs cannot be found by {name!r}: {nearest(name, fields)}"
            raise UnknownOptionError(message)
    status = wanted.pop("status", None)
    several = [status] if isinstance(status, str) or not isinstance(status, Iterable) else status
    statuses = None if status is None else tuple(_status(one) for one in several)
    plain = {name: value.timestamp() if isinstance(value, datetime) else value for name, value in wanted.items()}
    try:
        checked = convert(plain, JobFilter)
    except MsgspecError as error:
        message = f"jobs cannot be found like this: {error}"
        raise ConfigurationError(message) from None
    if checked.limit < 0:
        message = f"limit must be 0 or more, not {checked.limit}"
        raise ConfigurationError(message)
    return replace(checked, status=statuses)


def clock_time(at: float) -> str:
    """An instant for people, in UTC: `2026-11-15 08:06:01Z`."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "a time beyond every calendar"


def _status(name: Any) -> JobStatus:
    try:
        return JobStatus(name)
    except ValueError:
        message = f"there is no status {name!r}: {nearest(str(name), [status.value for status in JobStatus])}"
        raise UnknownOptionError(message) from None


def _behind(record: JobRecord, facts: Facts) -> list[Wait]:
    head = facts.lanes[record.worker].head if record.worker in facts.lanes else None
    if head is not None and head.id != record.id:
        return [Wait("queue", record.pool, f"others of {record.worker} are ahead of it in pool {record.pool}")]
    return [Wait("queue", record.pool, f"it is next of {record.worker}; pool {record.pool} has no free worker yet")]


def _in_words(record: JobRecord, waits: list[Wait]) -> str:
    if waits:
        return "waits: " + "; ".join(_wait_in_words(wait) for wait in waits)
    if record.status is JobStatus.PROCESSING:
        how = "is being cancelled" if record.cancelling else "runs"
        return f"{how}: attempt {record.attempt}, since {clock_time(record.started_at or 0.0)} on {record.instance}"
    at = clock_time(record.ended_at or 0.0)
    if record.status is JobStatus.DEAD:
        return f"dead since {at} after {record.attempt} attempts and {record.crashes} crashes: {record.error}"
    return f"{record.status} at {at}"


def _wait_in_words(wait: Wait) -> str:
    since = f", since {clock_time(wait.since)}" if wait.since else ""
    until = f", until {clock_time(wait.until)}" if wait.until and wait.code != "later" else ""
    return f"{wait.why}{since}{until}"


def _dashboard(stats: PoolStats, members: list[WorkerInstance]) -> dict[str, Any]:
    return {
        "workers": members,
        "queue_depth": stats.queued,
        "completed": stats.completed,
        "failed": stats.failed,
        "dead": stats.dead,
    }


def decision_dict(decision: Decision, load: PoolLoad) -> dict[str, Any]:
    """A scaling decision as `auto_scale` answers it."""
    return {
        "current": decision.current,
        "target": decision.target,
        "action": decision.action,
        "queue_depth": load.queue_depth,
        "busy_workers": load.busy_workers,
        "reason": decision.reason,
    }


def member(known: InstanceRecord, jobs: list[str], now: float) -> WorkerInstance:
    """An instance as people see it, with the jobs it holds."""
    beat = known.beat
    status: Literal["idle", "busy", "draining", "dead"] = "busy" if jobs else "idle"
    if known.expires_at <= now:
        status = "dead"
    elif beat.status == "draining":
        status = "draining"
    return WorkerInstance(
        id=beat.instance,
        pool=beat.pool,
        node=beat.node,
        status=status,
        current_jobs=jobs,
        started_at=beat.started_at,
        last_heartbeat=known.last_beat_at,
        slots=beat.slots,
        completed=beat.completed,
        failed=beat.failed,
        memory=beat.memory,
        pid=beat.pid,
        cpu=beat.cpu,
        lag=beat.lag,
    )
