"""What a job is: as it is added, claimed and kept. Values only; the rules are in `core.jobs`.

The life of a job::

      add                    claim                  finish
    ─┬─────▶ scheduled ─▶ queued ─▶ processing ─┬─▶ completed
     │           ▲           ▲                  ├─▶ failed ──▶ (due again) ──▶ queued
     └▶ waiting ─┴───────────┴── handed back ◀──┤
                                                ├─▶ dead ───▶ (requeued by a person) ──▶ queued
                                                └─▶ cancelled

Instants are epoch seconds, durations are seconds; both are floats. What is made for each job has `gc=False`: such
values are never part of a cycle, so the collector need not visit them.
"""

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.job_parts import FlowFailure, Need, RunOptions, Signal, Step, Wait

if TYPE_CHECKING:
    from shiftwork.core.model.workers import PoolConfig, WorkerConfig

SECONDS_A_DAY: Final = 86_400.0


class JobPriority(IntEnum):
    """How much of a head start a job has. Old low-priority work still overtakes new high-priority work."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3

    def head_start(self, aging_seconds: float) -> float:
        """Return by how many seconds such a job is ahead in the queue, given its pool's `priority_aging_seconds`."""
        return self * aging_seconds


class JobStatus(StrEnum):
    """Where a job is in its life."""  # the drawing at the top of this file shows how one follows another

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """Return whether the job still has something to do."""
        return self in LIVE

    @staticmethod
    def by_time(run_at: float, now: float) -> "JobStatus":
        """Return the status of a job that only time holds back: queued once it is due, scheduled before."""
        return _QUEUED if run_at <= now else _SCHEDULED


NOT_STARTED: Final = (JobStatus.WAITING, JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.FAILED)
"""The statuses of a job that waits for its next run."""
LIVE: Final = (*NOT_STARTED, JobStatus.PROCESSING)
"""The statuses of a job that still has something to do."""

# Python 3.11 takes longer to find a member of an enum than to call a function.
_QUEUED, _SCHEDULED = JobStatus.QUEUED, JobStatus.SCHEDULED


def shown_without_payload(self: Struct) -> str:
    """Return a `repr` without the payload, which may hold secrets and would end up in logs."""
    fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
    shown = (f"{name}=<{len(value)} bytes>" if name == "payload" else f"{name}={value!r}" for name, value in fields)
    return f"{type(self).__name__}({', '.join(shown)})"


class CheckedJobOptions(Struct, frozen=True, kw_only=True):
    """The options that a person has given for one job (`JobOptions`), after the checks."""

    priority: JobPriority | None = None
    run_at: float | None = None
    delay_seconds: float | None = None
    unique_key: str | None = None
    job_id: str | None = None
    cause: str = "enqueued"
    max_retries: int | None = None
    timeout_seconds: float | None = None
    expires_seconds: float | None = None
    tags: tuple[str, ...] = ()

    @property
    def run_options(self) -> RunOptions:
        """Return the options that only the job's run reads."""
        return RunOptions(max_retries=self.max_retries, timeout_seconds=self.timeout_seconds)


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job as it is handed to the store. Adding the same `id` twice makes one job."""

    id: str
    worker: str
    pool: str
    payload: bytes
    run_at: float
    priority: JobPriority = JobPriority.NORMAL
    head_start: float = 0.0
    """Its advantage in the queue (`JobPriority.head_start`). Its rank is `run_at - head_start`."""
    unique_key: str | None = None
    """While a live job of this worker has the same one, adding another returns that job."""
    key: str | None = None
    """The concurrency key: at most `key_limit` jobs of this worker with the same key run at a time."""
    key_limit: int = 1
    cause: str = "enqueued"
    """Why it exists: "enqueued", "scheduled", "triggered"."""
    trace: str | None = None
    expires_at: float | None = None
    """When it is cancelled if it has not started by then. The first claim clears it."""
    tags: tuple[str, ...] = ()
    flow: str | None = None
    needs: tuple[Need, ...] = ()
    """The jobs it waits for: jobs of its flow, added before it or with it."""
    parent: str | None = None
    """The running job that adds it. What waits for that one waits for this one too."""
    options: bytes | None = None
    """`RunOptions` in msgpack; None if it has none."""

    __repr__ = shown_without_payload

    @classmethod
    def of(
        cls,
        config: "WorkerConfig",
        pool: "PoolConfig",
        payload: bytes,
        options: CheckedJobOptions,
        *,
        id: str,
        now: float,
        key: str | None = None,
    ) -> "NewJob":
        """Return a job of this worker, by its policy, its pool's, and the options of the job."""
        priority = config.priority if options.priority is None else options.priority
        run_at = options.run_at if options.run_at is not None else now + (options.delay_seconds or 0.0)
        expires = options.expires_seconds
        return cls(
            id=id,
            worker=config.name,
            pool=config.pool,
            payload=payload,
            run_at=run_at,
            priority=priority,
            head_start=priority.head_start(pool.priority_aging_seconds),
            unique_key=options.unique_key,
            key=key,
            key_limit=config.max_running or 1,
            cause=options.cause,
            expires_at=None if expires is None else max(run_at, now) + expires,
            tags=options.tags,
            options=None
            if options.max_retries is None and options.timeout_seconds is None
            else options.run_options.packed(),
        )


class Added(Struct, frozen=True, gc=False):
    """What `add` returns for one `NewJob`: its id, or that of the job that it duplicates, and whether it is new."""

    id: str
    created: bool


class Claimed(Struct, frozen=True, gc=False):
    """What an instance needs in order to run a job it has claimed."""

    id: str
    worker: str
    pool: str
    payload: bytes
    fence: int
    attempt: int
    """The number of this attempt, from 1."""
    crashes: int
    run_at: float
    cause: str = "enqueued"
    trace: str | None = None
    expires_at: float | None = None
    """When it expired or will expire, if it has never been claimed before."""
    options: bytes | None = None
    failures: tuple[FlowFailure, ...] = ()
    """What failed before it. No store sets it: the instance does, before the run (`core.jobs.needs`)."""
    secrets: tuple[bytes, ...] = ()
    """The results of other jobs in its payload that must not be shown. The instance sets them, too."""

    __repr__ = shown_without_payload


class LogLine(Struct, frozen=True, array_like=True, gc=False):
    """A line that a job logged, kept with the job."""

    at: float
    level: str
    """One of "info", "warning", "error" and "critical"."""
    message: str
    attempt: int
    """The number of the attempt that logged it, from 1."""


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt that did not succeed, kept for people."""

    number: int
    started_at: float
    ended_at: float
    kind: str
    """How it ended, an `EndKind`: raised, timed_out, crashed, drained, cancelled, undecodable …"""
    error: str
    traceback: str | None = None
    instance: str | None = None
    log: tuple[LogLine, ...] = ()
    version: str | None = None
    """The version of the app that refused the payload, if the job went back for a node of another version."""
    on_request: bool = False
    """Whether the function asked for what followed, with `GiveUp` or `RetryAfter`."""


class Progress(Struct, frozen=True, gc=False):
    """The progress that a running job has reported, and what it has logged."""

    done: float | None
    """How much is done; None if the job does not say."""
    total: float | None = None
    message: str | None = None
    at: float = 0.0
    log: tuple[LogLine, ...] = ()


class ProgressNote(Struct, frozen=True, gc=False):
    """A job's progress on its way to the store, accepted only under the job's current fence."""

    id: str
    fence: int
    progress: Progress


class JobRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A whole job, as people read it."""

    id: str
    worker: str
    pool: str
    status: JobStatus
    payload: bytes
    priority: JobPriority
    head_start: float
    run_at: float
    """When it is due, or became due."""
    rank: float
    """Its place in the queue: lower goes first. It is `run_at - head_start`, unless a run of the job was interrupted
    since: then the job has kept the rank that it had before (`core.jobs.transitions`)."""
    created_at: float
    cause: str = "enqueued"
    attempt: int = 0
    """How many attempts have begun and count. While the job is processing, the running one is included."""
    crashes: int = 0
    fence: int = 0
    instance: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    """When the job ended; None while it is live, also between two attempts."""
    keep_until: float | None = None
    """When the job may be pruned, once it has ended; None is never."""
    unique_key: str | None = None
    key: str | None = None
    key_limit: int = 1
    parked: bool = False
    """Whether it is queued behind other jobs with the same concurrency key."""
    cancelling: bool = False
    result: bytes | None = None
    error: str | None = None
    progress: Progress | None = None
    attempts: tuple[Attempt, ...] = ()
    trace: str | None = None
    expires_at: float | None = None
    tags: tuple[str, ...] = ()
    flow: str | None = None
    unmet: tuple[Need, ...] = ()
    """The needs that are not met yet, by id; in a list, the broken ones. A job with any that is not cancelled waits."""
    wait: Wait | None = None
    """The signal that it waits for, since it was handed back for that."""
    steps: tuple[Step, ...] = ()
    signals: tuple[Signal, ...] = ()
    """The signals that it has not taken. Only whole records have them, and steps; lists leave both out."""
    options: bytes | None = None
    payload_size: int | None = None
    """How many bytes the payload has, if this is the record of a list and `payload` is only its beginning."""
    result_size: int | None = None
    """The same for the result."""

    __repr__ = shown_without_payload

    @property
    def since(self) -> float:
        """Return when it got its place: when it became due, or first became due if a run was interrupted since."""
        return self.rank + self.head_start

    @property
    def expiry(self) -> float | None:
        """Return when the job will be cancelled if nothing starts it; None is never."""
        # Nearly no job expires, so this asks for its status last.
        if self.expires_at is None or self.status is JobStatus.PROCESSING or not self.status.live:
            return None
        return self.expires_at

    @classmethod
    def of(cls, job: NewJob, now: float) -> "JobRecord":
        """Return the record that a store makes of a new job."""
        return cls(
            id=job.id,
            worker=job.worker,
            pool=job.pool,
            status=JobStatus.by_time(job.run_at, now),
            payload=job.payload,
            priority=job.priority,
            head_start=job.head_start,
            run_at=job.run_at,
            rank=job.run_at - job.head_start,
            created_at=now,
            cause=job.cause,
            unique_key=job.unique_key,
            key=job.key,
            key_limit=job.key_limit,
            trace=job.trace,
            expires_at=job.expires_at,
            tags=job.tags,
            flow=job.flow,
            options=job.options,
        )

    def claimed(self) -> Claimed:
        """Return the job as the instance that claims it sees it."""
        return Claimed(
            id=self.id,
            worker=self.worker,
            pool=self.pool,
            payload=self.payload,
            fence=self.fence,
            attempt=self.attempt,
            crashes=self.crashes,
            run_at=self.run_at,
            cause=self.cause,
            trace=self.trace,
            expires_at=self.expires_at,
            options=self.options,
        )


class Rewrite(Struct, frozen=True):
    """The same job with its values in other bytes: encrypted with another key."""

    before: JobRecord
    """The job as it was read, whole."""
    after: JobRecord
    """The same job, with another payload, result, error, progress or attempts, as many of them as before."""


def begun(job: JobRecord, size: int) -> JobRecord:
    """Return the job as lists have it: with at most this many bytes of its payload and its result."""
    result = job.result
    return replace(
        job,
        payload=job.payload[:size],
        payload_size=len(job.payload) if len(job.payload) > size else None,
        result=None if result is None else result[:size],
        result_size=len(result) if result is not None and len(result) > size else None,
    )


class DeadJob(Struct, frozen=True, gc=False):
    """The part of a dead job that summaries over many of them need."""

    id: str
    worker: str
    error: str | None
    created_at: float
    ended_at: float | None
