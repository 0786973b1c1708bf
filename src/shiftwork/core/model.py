"""The nouns: what a worker, a pool and a job are. Values only; every rule about them lives in a file of its own.

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
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from shiftwork.core.job_parts import FlowFailure, Need, Signal, Step, Wait
from shiftwork.core.option_structs import OptionStructMeta
from shiftwork.core.policies import Breaker, Retry

SECONDS_A_DAY: Final = 86_400.0
LIVE: Final = ("scheduled", "failed", "waiting", "queued", "processing")
"""The statuses of a job that still has something to do."""


class JobPriority(IntEnum):
    """How much of a head start a job has. Old low-priority work still overtakes new high-priority work."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3


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
        """Whether the job still has something to do."""
        return self in LIVE

    @staticmethod
    def by_time(run_at: float, now: float) -> "JobStatus":
        """The status of a job that only time may hold back: queued once it is due, scheduled before."""
        return _QUEUED if run_at <= now else _SCHEDULED


# Python 3.11 takes longer to find a member of an enum than to call a function.
_QUEUED, _SCHEDULED = JobStatus.QUEUED, JobStatus.SCHEDULED


class WorkerExecutionMode(StrEnum):
    """What starts a run: the clock, a call, or the end of the previous run."""

    SCHEDULED = "scheduled"
    TRIGGERED = "triggered"
    CONTINUOUS = "continuous"


class WorkerConfig(Struct, frozen=True, kw_only=True, gc=False, metaclass=OptionStructMeta):
    """A worker's policy. `shiftwork.core.options` checks it; a running function finds it in its `Context`."""

    name: str
    execution_mode: WorkerExecutionMode = WorkerExecutionMode.SCHEDULED
    interval_seconds: float = 300.0
    cron: str | None = None
    timezone: str = "UTC"
    timeout_seconds: float | None = 60.0
    max_retries: int = 3
    retry: Retry = Retry()
    priority: JobPriority = JobPriority.NORMAL
    max_consecutive_failures: int | None = 5
    depends_on: list[str] | dict[str, str] = field(default_factory=list)
    """The workers it depends on, as they were given: names, or names with "done" or "fresh". See `demands`."""
    blocks: tuple[str, ...] = ()
    pool: str = "default"
    breaker: Breaker | None = None
    rate_limit: str | None = None
    max_running: int | None = None
    concurrency_key: str | None = None
    overlap: Literal["skip", "queue", "allow"] = "skip"
    catch_up: Literal["latest", "none", "all"] = "latest"
    keep_completed_seconds: float = SECONDS_A_DAY
    enabled: bool = True
    """Whether a worker that was never enabled or disabled by hand is enabled."""
    aliases: tuple[str, ...] = ()
    """Former names of the worker: jobs that were added under one of them run with its function. See `core.graph`."""

    def __post_init__(self) -> None:
        if not isinstance(self.depends_on, dict):
            force_setattr(self, "depends_on", list(self.depends_on))
        force_setattr(self, "blocks", tuple(self.blocks))
        force_setattr(self, "aliases", tuple(self.aliases))

    @property
    def demands(self) -> dict[str, str]:
        """The workers it depends on, each with what it demands of them: "done" or "fresh"."""
        given = self.depends_on
        return given if isinstance(given, dict) else dict.fromkeys(given, "done")


class PoolConfig(Struct, frozen=True, kw_only=True, gc=False, metaclass=OptionStructMeta):
    """An elastic group of instances and its bounds. A *worker* in these numbers is a slot: it runs one job at once."""

    name: str
    kind: Literal["async", "thread", "process"] = "async"
    min_workers: int = 1
    max_workers: int = 10
    scale_up_threshold: int = 20
    scale_down_threshold: int = 2
    target_latency_seconds: float | None = None
    scale_down_after_seconds: float = 60.0
    job_timeout: float | None = None
    heartbeat_interval: float = 5.0
    cpu: float | None = None
    memory: int | None = None
    processes: int | Literal["auto"] = 1
    """Over how many processes the slots of an async or thread pool are spread on each node. See `core.spread`."""
    max_jobs_per_instance: int | None = None
    max_memory_per_instance: int | None = None
    priority_aging_seconds: float = 3600.0
    labels: tuple[str, ...] = ()
    """The labels that a node must have to host the pool, such as "gpu"."""
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bounds by the clock: minimum and maximum by cron expression. The one that fired last holds. See `core.bounds`."""
    timezone: str = "UTC"
    """The time zone of those cron expressions, and of "yesterday at this time"."""
    look_ahead: bool = True
    """Whether yesterday's curve raises the number of slots before a peak. See `core.forecast`."""


def shown_without_payload(self: Struct) -> str:
    """A `repr` without the payload, which may hold secrets and would end up in logs."""
    fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
    shown = (f"{name}=<{len(value)} bytes>" if name == "payload" else f"{name}={value!r}" for name, value in fields)
    return f"{type(self).__name__}({', '.join(shown)})"


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job as it is handed to the store. Adding the same `id` twice makes one job."""

    id: str
    worker: str
    pool: str
    payload: bytes
    run_at: float
    priority: JobPriority = JobPriority.NORMAL
    head_start: float = 0.0
    """Its advantage in the queue: priority x the pool's `priority_aging_seconds`. Its rank is `run_at - head_start`."""
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
    """`OwnOptions` in msgpack; None if it has none."""

    __repr__ = shown_without_payload


class Added(Struct, frozen=True, gc=False):
    """What `add` returns for one `NewJob`: the id of the job it stands for, and whether that job is new."""

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
    """What failed before it. No store sets it: the engine does, before the run (`core.flow_failures`)."""
    secrets: tuple[bytes, ...] = ()
    """The results of other jobs in its payload that must not be shown. The engine sets them, too."""

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
    """How far a running job says it is, and what it has logged."""

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
    since: then the job has kept the rank that it had before (`core.landing`)."""
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
    """Those that it has not taken. Like steps, only whole records have them."""
    options: bytes | None = None
    payload_size: int | None = None
    """How many bytes the payload has, if this is the record of a list and `payload` is only its beginning."""
    result_size: int | None = None
    """The same for the result."""

    __repr__ = shown_without_payload

    @property
    def since(self) -> float:
        """Since when it has had its place: when it became due, or first became due if runs were interrupted since."""
        return self.rank + self.head_start

    @classmethod
    def of(cls, job: NewJob, now: float) -> "JobRecord":
        """The record that a store makes of a new job."""
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
        """The job as its holder sees it."""
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
    """Return the job as lists have it: with no more than so many bytes of its payload and its result."""
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


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of a claimed job. The store accepts it only while the job is processing under this fence."""

    id: str
    fence: int
    worker: str
    pool: str
    status: JobStatus
    """One of completed, failed (to be retried at `run_at`), queued (handed back), dead and cancelled."""
    ended_at: float
    run_at: float
    attempt: int
    """How many attempts count so far; the store keeps this number."""
    crashes: int
    verdict: Literal["success", "failure", "neutral"] = "neutral"
    """What it says about the worker: a success clears its consecutive failures, a failure adds one."""
    disable_after: int | None = None
    """The number of consecutive failures at which the store disables the worker, in the same step."""
    result: bytes | None = None
    error: str | None = None
    report: Attempt | None = None
    keep_until: float | None = None
    """When the job may be pruned; None is never."""
    cause: str = "enqueued"
    waited: float = 0.0
    """How many seconds the job had been due when it started."""
    marks: str = ""
    """What to count for its pool: names separated by spaces. `core.run_histograms` gives them."""
    wait: Wait | None = None
    """The signal that a job waits for that is handed back. If it was sent already, the job is due at once."""
    keeps_rank: bool = True
    """Whether a job that runs again keeps its place in the queue. If not, it has the place of a job that is new at
    `run_at`."""


class FlowRecord(Struct, frozen=True):
    """A flow: jobs that were added together, and those that they added."""

    id: str
    created_at: float
    counts: dict[str, int]
    """How many of its jobs have which status."""
    worker: str = ""
    """What it is for: the worker of the last job of the call that began it."""
    tags: tuple[str, ...] = ()
    """The tags of that job."""


class FlowMember(Struct, frozen=True):
    """A job of a flow, without what only a person who looks at the job itself, or a run of it, needs."""

    id: str
    worker: str
    """Empty if the record is damaged."""
    status: JobStatus
    created_at: float
    started_at: float | None
    ended_at: float | None
    options: bytes | None
    """Which jobs it needs is in there (`core.own_options`)."""
    stranded: bool = False
    """Whether it waits for a job that cannot complete unless a person retries one (`core.releasing`)."""


class Finished(Struct, frozen=True):
    """What `finish` returns for a batch of outcomes, in their order."""

    accepted: list[bool]
    disabled: list[str]
    """The workers that these outcomes disabled."""


class WorkerState(Struct, kw_only=True):
    """What the store remembers of a worker across restarts."""

    worker: str
    enabled: bool = True
    reason: str | None = None
    """Why it is disabled."""
    changed_at: float | None = None
    failures: int = 0
    """How many runs have failed in a row."""
    last_started: float | None = None
    last_ended: float | None = None
    """When a job of it last ended for good: completed, dead or cancelled. A failure that is retried is not an end."""
    last_success: float | None = None
    last_error: str | None = None
    """The error of the last attempt that failed, retried or not. A later success does not clear it."""
    last_error_at: float | None = None
    """When that attempt ended."""
    rate_at: float = 0.0
    """The rate limit's theoretical arrival time."""


class RunState(Struct, frozen=True, array_like=True):
    """What a running function may know of its worker's state: how it was when the run began."""

    enabled: bool = True
    failures: int = 0
    last_started: float | None = None
    last_success: float | None = None
    last_error: str | None = None

    @classmethod
    def of(cls, state: WorkerState | None) -> "RunState":
        """The state as it is now; a worker without one has never run."""
        if state is None:
            return cls()
        return cls(state.enabled, state.failures, state.last_started, state.last_success, state.last_error)


class Doc(Struct, frozen=True, gc=False):
    """A small record that is changed by compare-and-set. Version 0 means that it must not exist yet."""

    kind: str
    name: str
    body: bytes
    version: int = 0


class PoolDoc(Struct, frozen=True):
    """What people changed about a pool at run time (doc kind "pool")."""

    paused: bool = False
    reason: str | None = None
    since: float | None = None
    min_workers: int | None = None
    max_workers: int | None = None


class Lost(Struct, frozen=True):
    """A node that vanished without leaving."""

    at: float
    """When its last beat arrived."""
    host: str


class Plan(Struct, frozen=True, kw_only=True):
    """How many slots of which pool each node runs (doc kind "plan"). The leader writes it, nodes follow it."""

    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of slots, by node and pool."""
    unplaced: dict[str, str] = field(default_factory=dict)
    """The pools that should have more slots than fit on the nodes, each with the reason."""
    drained: dict[str, float] = field(default_factory=dict)
    """The nodes that a person wants empty, each with the time since when."""
    lost: dict[str, Lost] = field(default_factory=dict)
    """The nodes that vanished a short while ago and have not been replaced."""


JobOrder = Literal["newest", "oldest"]
"""Which jobs of a list come first, by when they were created (then by id)."""


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs to find, and in which order. Every given field must match."""

    ids: tuple[str, ...] | None = None
    status: tuple[JobStatus, ...] | None = None
    worker: str | None = None
    pool: str | None = None
    key: str | None = None
    unique_key: str | None = None
    instance: str | None = None
    tag: str | None = None
    flow: str | None = None
    error: str | None = None
    """A part of the last error's text."""
    created_after: float | None = None
    created_before: float | None = None
    order: JobOrder = "newest"
    after: str | None = None
    """Return only jobs behind this id in the result's order: the next page."""
    limit: int = 100
    whole: bool = False
    """Whether payloads and results are read whole. Otherwise a list has the beginning of each (`core.job_limits`)."""


class Cancel(Struct, frozen=True, tag="cancel"):
    """Cancel waiting jobs, and ask processing ones to stop. `core.amending` says what becomes of a job."""

    reason: str = "cancelled"


class Requeue(Struct, frozen=True, tag="requeue"):
    """Queue dead, cancelled, failed and scheduled jobs again, with their counts at zero."""

    run_at: float
    payload: bytes | None = None
    key: str | None = None
    """The concurrency key that the new payload makes; ignored without a payload."""


class Discard(Struct, frozen=True, tag="discard"):
    """Delete ended jobs."""


Change = Cancel | Requeue | Discard


class Amended(Struct, frozen=True):
    """What `amend` did with one id. `status` is the job's status before; None if there is no such job."""

    id: str
    ok: bool
    status: JobStatus | None


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened, kept for people."""

    at: float
    name: str
    subject: str
    message: str
    data: dict[str, Any] = field(default_factory=dict)
    seq: int = 0

    @property
    def by_person(self) -> bool:
        """Whether a person caused it; its data then name that person. These events are the audit log, pruned apart."""
        return "by" in self.data


EVENTS_KEPT: Final = 10_000
"""How many events are kept of those that people caused, and as many of all others, so that neither crowds out the
other."""
