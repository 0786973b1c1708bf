"""What a worker and a pool are: their policies, and what a worker's runs have left behind.

`core.jobs.retry` and `core.workers.breaker` have the rules for `Retry` and `Breaker`.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from shiftwork.core.model.jobs import SECONDS_A_DAY, JobPriority
from shiftwork.core.model.option_structs import OptionStructMeta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shiftwork.core.words import Duration


# Unlike other options, the cycle collector visits it: as people write it, it has classes, which may refer to it.
class Retry(Struct, frozen=True, metaclass=OptionStructMeta):
    """Which failures are tried again, and after how long: `base · factor^n`, capped, plus or minus the jitter."""

    base_seconds: float = 5.0
    factor: float = 2.0
    max_seconds: float = 3600.0
    jitter: float = cast("float", None)
    """The share by which each wait varies. None is replaced: 0.1, or 0 for waits that are given one by one."""
    delays: tuple[float, ...] | None = None
    """The wait before each retry, instead of a growing one; the last one repeats."""
    on: tuple[str, ...] | None = None
    """The exceptions that are tried again; None for all. Given as classes, kept as their names."""
    never_on: tuple[str, ...] = ()
    """The exceptions that are never tried again. Given as classes, kept as their names."""

    if TYPE_CHECKING:  # what people may write; `core.options.configs` makes the values above of it

        def __init__(
            self,
            base_seconds: Duration = 5.0,
            factor: float = 2.0,
            max_seconds: Duration = 3600.0,
            jitter: float | None = None,
            *,
            delays: Sequence[Duration] | None = None,
            on: Sequence[type[BaseException] | str] | None = None,
            never_on: Sequence[type[BaseException] | str] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        if cast("float | None", self.jitter) is None:
            force_setattr(self, "jitter", 0.1 if self.delays is None else 0.0)


class Breaker(Struct, frozen=True, gc=False, metaclass=OptionStructMeta):
    """When to stop calling something broken: `failures` in the window open it, a probe after the cool-down decides.

    `name` is the destination it guards; workers that name the same destination share a breaker. Without a name, a
    worker has its own.
    """

    failures: int = 5
    window_seconds: float = 60.0
    cool_down_seconds: float = 30.0
    name: str | None = None

    if TYPE_CHECKING:  # as in `Retry`

        def __init__(
            self,
            failures: int = 5,
            window_seconds: Duration = 60.0,
            cool_down_seconds: Duration = 30.0,
            name: str | None = None,
        ) -> None: ...


class WorkerExecutionMode(StrEnum):
    """What starts a run: the clock, a call, or the end of the previous run."""

    SCHEDULED = "scheduled"
    TRIGGERED = "triggered"
    CONTINUOUS = "continuous"


class WorkerConfig(Struct, frozen=True, kw_only=True, gc=False, metaclass=OptionStructMeta):
    """A worker's policy. `shiftwork.core.options.configs` checks it; a running function finds it in its `Context`."""

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
    """Former names of the worker: jobs added under one of them run with its function. See `core.options.graph`."""

    def __post_init__(self) -> None:
        if not isinstance(self.depends_on, dict):
            force_setattr(self, "depends_on", list(self.depends_on))
        force_setattr(self, "blocks", tuple(self.blocks))
        force_setattr(self, "aliases", tuple(self.aliases))

    @property
    def demands(self) -> dict[str, str]:
        """Return the workers it depends on, each with what it demands of them: "done" or "fresh"."""
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
    """Over how many processes an async or thread pool spreads its slots on a node. See `core.scaling.placement`."""
    max_jobs_per_instance: int | None = None
    max_memory_per_instance: int | None = None
    priority_aging_seconds: float = 3600.0
    labels: tuple[str, ...] = ()
    """The labels that a node must have to host the pool, such as "gpu"."""
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bounds by the clock: minimum and maximum by cron expression; the last to fire holds: `core.scaling.bounds`."""
    timezone: str = "UTC"
    """The time zone of those cron expressions, and of "yesterday at this time"."""
    look_ahead: bool = True
    """Whether yesterday's curve raises the number of slots before a peak. See `core.scaling.forecast`."""


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
        """Return the state as it is now; a worker without one has never run."""
        if state is None:
            return cls()
        return cls(state.enabled, state.failures, state.last_started, state.last_success, state.last_error)
