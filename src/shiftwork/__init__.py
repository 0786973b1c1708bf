"""shiftwork: background workers and elastic worker pools, in one library and one command."""

from typing import TYPE_CHECKING, Never

from shiftwork.app import WorkerOrchestrator
from shiftwork.app.registration import WorkerFn
from shiftwork.core.beats import WorkerInstance
from shiftwork.core.model import Event, JobPriority, JobStatus, PoolConfig, WorkerConfig, WorkerExecutionMode
from shiftwork.core.option_types import PoolOptions, WorkerOptions
from shiftwork.core.policies import Breaker, Retry
from shiftwork.core.retry_requests import GiveUp, RetryAfter, Snooze
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
    JobStateError,
    LifecycleError,
    MoveError,
    NamespaceInUseError,
    NodeSilentError,
    PayloadDecodingError,
    PayloadEncodingError,
    PayloadError,
    PayloadTooLargeError,
    PayloadTypeError,
    ResultEncodingError,
    ResultTimeoutError,
    ScheduleError,
    SchemaVersionError,
    ShiftworkError,
    SignatureError,
    StepError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
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
from shiftwork.handles.call import Call
from shiftwork.handles.flow import Flow
from shiftwork.handles.job import Job
from shiftwork.handles.options import JobOptions
from shiftwork.handles.redaction import Secret
from shiftwork.runtime.engine.context import Context
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
    "GiveUp",
    "HistoryError",
    "Job",
    "JobCancelledError",
    "JobError",
    "JobFailedError",
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
    "SignatureError",
    "Snooze",
    "StepError",
    "StoreBusyError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "UnknownFlowError",
    "UnknownJobError",
    "UnknownNodeError",
    "UnknownOptionError",
    "UnknownPoolError",
    "UnknownScheduleError",
    "UnknownStoreError",
    "UnknownWorkerError",
    "WorkerConfig",
    "WorkerExecutionMode",
    "WorkerFn",
    "WorkerInstance",
    "WorkerOptions",
    "WorkerOrchestrator",
]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Never:
        """Name the nearest name that exists."""
        message = f"module 'shiftwork' has no attribute {name!r}; {nearest(name, __all__)}"
        raise AttributeError(message)
