"""Every error that shiftwork raises, in one tree.

    ShiftworkError
    ├── ConfigurationError            a registration or setting that cannot work; nothing has started
    │   ├── UnknownOptionError          an unknown option; names the nearest valid one
    │   ├── UnknownWorkerError          a worker name that is not registered
    │   ├── UnknownPoolError            a pool name that is not registered
    │   ├── UnknownScheduleError        a name under which no schedule is stored
    │   ├── UnknownNodeError            an unknown node, or an ambiguous part of a name
    │   ├── UnknownBreakerError         a breaker that guards no worker
    │   ├── DuplicateNameError          two workers or two pools with one name
    │   ├── DependencyCycleError        A waits for B, which waits for A
    │   ├── ScheduleError               a bad interval, cron expression or time zone
    │   ├── SignatureError              a function that cannot be called the way its mode calls it
    │   ├── UnknownStoreError           a store URL that is malformed or has an unknown scheme
    │   ├── AppImportError              `module:name` that cannot be imported, or is not an orchestrator
    │   ├── NamespaceInUseError         another app, with other workers, runs in the same namespace
    │   └── EncryptionKeyError          a key that is malformed, or missing where jobs are encrypted with it
    ├── PayloadError                  arguments or results that cannot be stored
    │   ├── PayloadTypeError            a missing, unknown or wrongly typed argument
    │   ├── PayloadTooLargeError        more bytes than `max_payload_bytes`
    │   ├── PayloadEncodingError        a value that cannot be encoded
    │   ├── PayloadDecodingError        stored bytes that no longer fit the function
    │   ├── PayloadNotReadError         a large payload of a job from a list, which holds its beginning alone
    │   └── ResultEncodingError         a return value that cannot be encoded
    ├── FlowError                     calls that cannot be one flow, or a flow that is broken
    │   └── UnknownFlowError            no flow has this id, or it was pruned
    ├── StepError                     a step of a durable function that cannot be run or kept
    ├── JobError                      an error about one job
    │   ├── UnknownJobError             no job has this id, or it was pruned
    │   ├── JobStateError               the job's status does not allow this
    │   ├── JobFailedError              the job is dead; carries the last error
    │   ├── JobCancelledError           the job was cancelled
    │   ├── ResultTimeoutError          the result did not arrive in time; the job continues
    │   ├── NodeSilentError             the job's node did not respond in time
    │   └── JobLimitError               the job has accumulated as much as a job may
    │       ├── SignalsFullError          too many signals, or too large ones, that it has not taken yet
    │       └── StepsFullError            too many steps, or too large results; also a StepError
    ├── StoreError                    the store could not do what it was asked
    │   ├── StoreUnavailableError       it cannot be reached or opened
    │   ├── StoreBusyError              something else kept it locked for too long
    │   ├── StoreFullError              it has no room left; nothing acknowledged was lost
    │   ├── CorruptStoreError           its content cannot be read
    │   └── SchemaVersionError          another version of shiftwork wrote it
    ├── HistoryError                  less history is kept than the question needs, or a recorded one cannot be read
    ├── MoveError                     a store whose content is moving, has moved, or cannot be moved
    └── LifecycleError                started twice, used after stop, or called from the wrong place

Messages name what is wrong, and the remedy. Nothing here does I/O or imports more of shiftwork than `sentences`.
"""

from typing import TYPE_CHECKING

from shiftwork.sentences import sentence, series

if TYPE_CHECKING:
    from collections.abc import Iterable


class ShiftworkError(Exception):
    """The root: catch this to catch everything shiftwork raises on purpose."""


class ConfigurationError(ShiftworkError):
    """A registration or setting cannot work."""


class UnknownOptionError(ConfigurationError):
    """An option is unknown."""


class UnknownWorkerError(ConfigurationError):
    """A worker name is not registered."""


class UnknownPoolError(ConfigurationError):
    """A pool name is not registered."""


class UnknownScheduleError(ConfigurationError):
    """No schedule is stored under this name."""


class UnknownNodeError(ConfigurationError):
    """A node is unknown, or a part of a name is ambiguous."""


class UnknownBreakerError(ConfigurationError):
    """A breaker guards no worker."""


class DuplicateNameError(ConfigurationError):
    """Two workers or two pools have one name."""


class DependencyCycleError(ConfigurationError):
    """Workers wait for each other."""


class ScheduleError(ConfigurationError):
    """An interval, cron expression or time zone is bad."""


class SignatureError(ConfigurationError):
    """A function cannot be called the way its mode calls it."""


class UnknownStoreError(ConfigurationError):
    """A store URL is malformed or has an unknown scheme."""


class AppImportError(ConfigurationError):
    """`module:name` cannot be imported, or is not an orchestrator."""


class NamespaceInUseError(ConfigurationError):
    """Another app, with other workers, runs in the same namespace."""


class EncryptionKeyError(ConfigurationError):
    """An encryption key is malformed, or missing where jobs are encrypted with it."""


class PayloadError(ShiftworkError):
    """Arguments or results cannot be stored."""


class PayloadTypeError(PayloadError):
    """An argument is missing, unknown or wrongly typed."""


class PayloadTooLargeError(PayloadError):
    """A payload or result has more bytes than `max_payload_bytes`."""


class PayloadEncodingError(PayloadError):
    """A value cannot be encoded."""


class PayloadDecodingError(PayloadError):
    """Stored bytes no longer fit the function."""


class PayloadNotReadError(PayloadError):
    """The job is from a list, and its payload is so large that only its beginning was read."""


class ResultEncodingError(PayloadError):
    """A return value cannot be encoded."""


class FlowError(ShiftworkError):
    """Calls cannot be added as one flow, or a flow is broken."""


class UnknownFlowError(FlowError):
    """No flow has this id."""


class StepError(ShiftworkError):
    """A step of a durable function cannot be run or kept. Another attempt would not help."""


class JobError(ShiftworkError):
    """The root of errors about one job."""


class UnknownJobError(JobError):
    """No job has this id."""


class JobStateError(JobError):
    """The job's status does not allow this."""


class JobFailedError(JobError):
    """The job is dead."""


class JobCancelledError(JobError):
    """The job was cancelled."""


class ResultTimeoutError(JobError, TimeoutError):
    """The result did not arrive in time; the job continues."""


class NodeSilentError(JobError, TimeoutError):
    """The job's node did not respond in time."""


class JobLimitError(JobError):
    """The job has accumulated as much as a job may."""


class SignalsFullError(JobLimitError):
    """The job has not taken the signals that were sent before, and has no room for another one."""


class StepsFullError(JobLimitError, StepError):
    """The job has no room for another step."""


class StoreError(ShiftworkError):
    """The store could not do what it was asked."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached or opened."""


class StoreBusyError(StoreError):
    """Something else kept the store locked for too long."""


class StoreFullError(StoreError):
    """The store has no room left."""


class CorruptStoreError(StoreError):
    """The store's content cannot be read."""


class SchemaVersionError(StoreError):
    """Another version of shiftwork wrote the store."""


class HistoryError(ShiftworkError):
    """Less history is kept than the question needs, or a recorded one cannot be read."""


class MoveError(ShiftworkError):
    """The content of a store is moving, has moved, or cannot be moved."""


class LifecycleError(ShiftworkError):
    """An orchestrator was started twice, used after stop, or called from the wrong place."""


_NAMES_SHOWN = 24
_MISSPELLED = 0.85
_CLOSE = 0.65
_SHORTEST_PREFIX = 3
_MOST_MEANT = 3
_ELSEWHERE = {
    "pool": "queue queue_name task_queue queues channel",
    "timeout_seconds": "time_limit soft_time_limit task_time_limit job_timeout execution_timeout run_timeout",
    "job_timeout": "timeout_seconds time_limit default_timeout",
    "interval_seconds": "every interval run_every period seconds minutes hours frequency",
    "cron": "schedule crontab cron_expression cron_string",
    "timezone": "tz zone time_zone tzinfo",
    "delay_seconds": "countdown delay defer_by schedule_in start_in wait",
    "run_at": "eta at when run_date defer_until scheduled_at schedule_at start_at",
    "max_retries": "max_attempts max_tries retries attempts tries num_retries retry_count",
    "retry": "requeue rerun replay backoff retry_policy retry_backoff retry_delay default_retry_delay retry_strategy",
    "base_seconds": "delay initial seconds backoff wait base min_backoff",
    "max_seconds": "max_backoff max_delay cap maximum",
    "factor": "multiplier exponent exponential",
    "failures": "fail_max threshold failure_threshold max_failures",
    "cool_down_seconds": "reset_timeout timeout recovery_timeout cooldown",
    "max_running": "concurrency max_concurrency max_instances max_concurrent concurrent parallelism concurrency_limit",
    "max_workers": "concurrency workers num_workers max_concurrency max_concurrent size threads max_size",
    "min_workers": "min_size minimum autoscale_min",
    "kind": "type executor mode pool_type worker_type",
    "execution_mode": "mode type worker_type",
    "depends_on": "dependencies depends requires upstream run_after after needs",
    "blocks": "conflicts conflicts_with exclusive exclusive_with mutex excludes",
    "rate_limit": "rate ratelimit throttle limit",
    "catch_up": "catchup coalesce misfire misfire_grace_time backfill",
    "max_consecutive_failures": "max_failures disable_after failure_limit",
    "keep_completed_seconds": "result_ttl keep_result result_expires retention ttl expires",
    "concurrency_key": "lock lock_key group_key concurrency_group",
    "unique_key": "unique singleton dedup_key dedupe_key idempotency_key queueing_lock lock_key job_key",
    "expires_seconds": "expires expiration expire_in expires_in time_to_live valid_until deadline",
    "tags": "tag labels",
    "payload": "args kwargs arguments data body params parameters",
    "name": "id title label identifier",
    "store": "url dsn db broker broker_url backend database storage redis_url",
    "job_id": "id task_id _job_id custom_id",
    "enabled": "active is_active disabled paused",
    "worker": "task function task_name",
    "status": "state states statuses health info ps",
    "run": "start worker serve beat scheduler up",
    "web": "dashboard ui flower server",
    "jobs": "list ls tasks queue",
    "job": "show inspect logs log result",
    "enqueue": "call send add submit delay push apply_async send_task kiq defer perform_async schedule_task",
    "cancel": "kill revoke abort stop terminate",
    "discard": "rm delete remove purge clear",
    "top": "monitor watch",
    "db": "migrate upgrade",
    "error": "exception reason message",
    "created_after": "since start from_date",
    "created_before": "until before end to_date",
    "job.dead": "job.failed job.error job.failure task_failure",
    "redis": "valkey keydb",
    "postgresql": "postgres pg psql postgresql+psycopg postgresql+psycopg2 postgresql+asyncpg",
    "sqlite": "sqlite3 sqlite+aiosqlite sqlite+pysqlite file",
    "completed": "done success succeeded finished complete ok",
    "processing": "running active started in_progress",
    "queued": "pending waiting enqueued ready",
    "dead": "failure errored dead_letter dlq",
    "triggered": "manual on_demand on-demand event task",
    "scheduled": "interval cron periodic timer",
    "continuous": "loop forever daemon long_running",
    "async": "asyncio coroutine coroutines aio",
    "thread": "threads threading threaded sync gevent",
    "process": "processes multiprocessing prefork fork cpu",
}
"""Our names, each with the words that other libraries use for the same thing."""


def nearest(name: str, known: "Iterable[str]") -> str:
    """Return the end of an error message: the names that were probably meant, or all valid names.

    The word of another library comes first, then a prefix, then the spelling.
    """
    names = sorted(known)
    meant = meant_by(name, names)
    if meant:
        return sentence("did you mean {names}?", names=series(" or ", [*map(repr, meant)]))
    if not names:
        return sentence("there are none")
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    return sentence("there are: {names}", names=shown)


def same_as(name: str, known: "Iterable[str]") -> str | None:
    """Return the name for which this is another spelling, or the word of another library."""
    word, names = _plain(name), sorted(known)
    spelled = [one for one in names if _plain(one) == word]
    return next(iter(spelled or [one for one in names if word in _ELSEWHERE.get(one, "").split()]), None)


def meant_by(name: str, known: "Iterable[str]") -> list[str]:
    """Return the names that were probably meant: one, seldom two or three, or none."""
    from difflib import get_close_matches

    word, names = _plain(name), sorted(known)
    same = same_as(name, names)
    by_word = {_plain(one): one for one in names}
    for found in (
        [] if same is None else [same],
        [one for one in names if len(word) >= _SHORTEST_PREFIX and _plain(one).startswith(word)],
        [by_word[one] for one in get_close_matches(word, by_word, n=1, cutoff=_MISSPELLED)],
        [one for one in names if len(one) >= _SHORTEST_PREFIX and word.startswith(_plain(one))],
    ):
        if 0 < len(found) <= _MOST_MEANT:
            return found
    return [by_word[one] for one in get_close_matches(word, by_word, n=1, cutoff=_CLOSE)]


def _plain(name: str) -> str:
    return name.strip().lstrip("-").lower().replace("-", "_").replace(" ", "_")
