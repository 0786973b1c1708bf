"""The options of workers, schedules and pools as people may write them: names and types, for type checkers.

`core.options.configs` checks the values and makes a `WorkerConfig`, a `Timing` or a `PoolConfig` of them; a test
compares the names.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import Breaker, Retry, WorkerExecutionMode
from shiftwork.core.options.retry_rules import RetryRule
from shiftwork.core.words import Duration


class WorkerOptions(TypedDict, total=False):
    """The options of `register_worker`."""

    execution_mode: WorkerExecutionMode | Literal["scheduled", "triggered", "continuous"]
    interval_seconds: Duration
    every: Duration
    """Another name for `interval_seconds`."""
    cron: str | None
    timezone: str
    timeout_seconds: Duration | None
    max_retries: int
    retry: Retry | RetryRule
    priority: JobPriority
    max_consecutive_failures: int | None
    depends_on: Sequence[str] | Mapping[str, str]
    blocks: Sequence[str]
    aliases: Sequence[str]
    pool: str
    breaker: Breaker | None
    rate_limit: str | None
    max_running: int | None
    concurrency_key: str | None
    overlap: Literal["skip", "queue", "allow"]
    catch_up: Literal["latest", "none", "all"]
    keep_completed_seconds: Duration
    enabled: bool
    is_enabled: bool
    """Another name for `enabled`."""


class NamedWorkerOptions(WorkerOptions, total=False):
    """The options of `@app.worker` and `@app.task`, which can also name the worker."""

    name: str


class TimingOptions(TypedDict, total=False):
    """When something runs, for `put_schedule` and `reschedule_worker`: a cron expression, or an interval."""

    cron: str | None
    timezone: str | None
    """The zone of the cron expression."""
    interval_seconds: Duration | None
    every: Duration | None
    """Another name for `interval_seconds`."""


class PoolOptions(TypedDict, total=False):
    """The options of `register_pool`."""

    kind: Literal["async", "thread", "process"]
    min_workers: int
    max_workers: int
    processes: int | Literal["auto"]
    scale_up_threshold: int
    scale_down_threshold: int
    target_latency_seconds: Duration | None
    scale_down_after_seconds: Duration
    job_timeout: Duration | None
    heartbeat_interval: Duration
    cpu: float | None
    memory: int | str | None
    max_jobs_per_instance: int | None
    max_memory_per_instance: int | str | None
    priority_aging_seconds: Duration
    labels: Sequence[str]
    bounds: Mapping[str, tuple[int, int]]
    timezone: str
    look_ahead: bool
