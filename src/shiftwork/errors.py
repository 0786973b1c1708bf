"""Every error that shiftwork raises, in one tree.

    ShiftworkError
    ├── ConfigurationError            a registration or setting that cannot work; nothing has started
    │   ├── UnknownOptionError          an unknown option; names the nearest valid one
    │   ├── UnknownWorkerError          a worker name that is not registered
    │   ├── UnknownPoolError            a pool name that is not registered
    │   ├── UnknownNodeError            an unknown node, or an ambiguous part of a name
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
    │   └── ResultEncodingError         a return value that cannot be encoded
    ├── JobError                      an error about one job
    │   ├── UnknownJobError             no job has this id, or it was pruned
    │   ├── JobStateError               the job's status does not allow this
    │   ├── JobFailedError              the job is dead; carries the last error
    │   ├── JobCancelledError           the job was cancelled
    │   ├── ResultTimeoutError          the result did not arrive in time; the job continues
    │   └── NodeSilentError             the job's node did not respond in time
    ├── StoreError                    the store could not do what it was asked
    │   ├── StoreUnavailableError       it cannot be reached or opened
    │   ├── StoreBusyError              something else kept it locked for too long
    │   ├── StoreFullError              it has no room left; nothing acknowledged was lost
    │   ├── CorruptStoreError           its content cannot be read
    │   └── SchemaVersionError          another version of shiftwork wrote it
    ├── MoveError                     a store whose content is moving, has moved, or cannot be moved
    └── LifecycleError                started twice, used after stop, or called from the wrong place

Messages name what is wrong, and the remedy. Nothing here does I/O or imports another part of shiftwork.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

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


class UnknownNodeError(ConfigurationError):
    """A node is unknown, or a part of a name is ambiguous."""


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


class ResultEncodingError(PayloadError):
    """A return value cannot be encoded."""


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


class MoveError(ShiftworkError):
    """The content of a store is moving, has moved, or cannot be moved."""


class LifecycleError(ShiftworkError):
    """An orchestrator was started twice, used after stop, or called from the wrong place."""


_SHOWN = 12


def nearest(name: str, known: "Iterable[str]") -> str:
    """Return the end of an error message: the name that was probably meant, or all valid names."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "there are none"
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"there are: {shown}"
