"""shiftwork: background workers and elastic worker pools, in one library and one command."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from shiftwork.core.jobs.retry import GiveUp, RetryAfter, Snooze
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_parts import FlowFailure
from shiftwork.core.model.jobs import JobPriority, JobStatus
from shiftwork.core.model.workers import Breaker, PoolConfig, Retry, WorkerConfig, WorkerExecutionMode
from shiftwork.core.observing.beats import WorkerInstance
from shiftwork.core.options.option_types import PoolOptions, WorkerOptions
from shiftwork.errors import (
    AppImportError,
    ConfigurationError,
    CorruptStoreError,
    DependencyCycleError,
    DuplicateNameError,
    EncryptionKeyError,
    FlowError,
    HistoryError,
    JobCancelledError,
    JobError,
    JobFailedError,
    JobLimitError,
    JobStateError,
    LifecycleError,
    MoveError,
    NamespaceInUseError,
    NodeSilentError,
    PayloadDecodingError,
    PayloadEncodingError,
    PayloadError,
    PayloadNotReadError,
    PayloadTooLargeError,
    PayloadTypeError,
    ResultEncodingError,
    ResultTimeoutError,
    ScheduleError,
    SchemaVersionError,
    ShiftworkError,
    SignalsFullError,
    SignatureError,
    StepError,
    StepsFullError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnknownBreakerError,
    UnknownFlowError,
    UnknownJobError,
    UnknownNodeError,
    UnknownOptionError,
    UnknownPoolError,
    UnknownScheduleError,
    UnknownStoreError,
    UnknownWorkerError,
    nearest,
)
from shiftwork.version import __version__ as __version__

__all__ = [
    "AppImportError",
    "Breaker",
    "Call",
    "ConfigurationError",
    "Context",
    "CorruptStoreError",
    "DependencyCycleError",
    "DuplicateNameError",
    "EncryptionKeyError",
    "Event",
    "Flow",
    "FlowError",
    "FlowFailure",
    "GiveUp",
    "HistoryError",
    "Job",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
    "JobLimitError",
    "JobOptions",
    "JobPriority",
    "JobStateError",
    "JobStatus",
    "LifecycleError",
    "MoveError",
    "NamespaceInUseError",
    "NodeSilentError",
    "PayloadDecodingError",
    "PayloadEncodingError",
    "PayloadError",
    "PayloadNotReadError",
    "PayloadTooLargeError",
    "PayloadTypeError",
    "PoolConfig",
    "PoolOptions",
    "ResultEncodingError",
    "ResultTimeoutError",
    "Retry",
    "RetryAfter",
    "ScheduleError",
    "SchemaVersionError",
    "Secret",
    "ShiftworkError",
    "SignalsFullError",
    "SignatureError",
    "Snooze",
    "StepError",
    "StepsFullError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "UnknownBreakerError",
    "UnknownFlowError",
    "UnknownJobError",
    "UnknownNodeError",
    "UnknownOptionError",
    "UnknownPoolError",
    "UnknownScheduleError",
    "UnknownStoreError",
    "UnknownWorkerError",
    "Worker",
    "WorkerConfig",
    "WorkerExecutionMode",
    "WorkerFn",
    "WorkerInstance",
    "WorkerOptions",
    "WorkerOrchestrator",
]

if TYPE_CHECKING:
    from shiftwork.app import WorkerOrchestrator
    from shiftwork.app.registration import WorkerFn
    from shiftwork.handles.flow import Flow
    from shiftwork.handles.job import Job
    from shiftwork.handles.options import JobOptions
    from shiftwork.handles.redaction import Secret
    from shiftwork.handles.worker import Call, Worker
    from shiftwork.runtime.context.context import Context
else:
    _LATE: Final = {
        "Call": "handles.worker",
        "Context": "runtime.context.context",
        "Flow": "handles.flow",
        "Job": "handles.job",
        "JobOptions": "handles.options",
        "Secret": "handles.redaction",
        "Worker": "handles.worker",
        "WorkerFn": "app.registration",
        "WorkerOrchestrator": "app",
    }
    """What is imported when it is first used, and where it is: a node runs no app, and most commands make none."""

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            message = f"module 'shiftwork' has no attribute {name!r}; {nearest(name, __all__)}"
            raise AttributeError(message)
        value = globals()[name] = getattr(import_module(f"shiftwork.{_LATE[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
