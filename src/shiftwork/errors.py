"""Every error that shiftwork raises, in one tree.

    ShiftworkError
    ├── ConfigurationError            what was registered or configured cannot work; nothing has started
    │   ├── UnknownOptionError          an unknown option, with the nearest valid name
    │   ├── UnknownWorkerError          a worker that is not registered
    │   ├── UnknownPoolError            a pool that is not registered
    │   ├── UnknownNodeError            a node that is not live, or a prefix that several nodes share
    │   ├── DuplicateNameError          two workers or two pools with the same name
    │   ├── DependencyCycleError        A waits for B, which waits for A
    │   ├── ScheduleError               a bad interval, cron expression or time zone
    │   ├── SignatureError              a function that cannot be called the way its mode calls it
    │   ├── UnknownStoreError           a store URL with an unknown scheme, or a malformed one
    │   ├── AppImportError              `module:name` that cannot be imported, or is not an orchestrator
    │   └── NamespaceInUseError         another app, with other workers, runs in the same namespace
    ├── PayloadError                  arguments or results that cannot be stored
    │   ├── PayloadTypeError            a missing, unknown or wrongly typed argument
    │   ├── PayloadTooLargeError        more bytes than `max_payload_bytes`
    │   ├── PayloadEncodingError        a value that has no encoding
    │   ├── PayloadDecodingError        stored bytes that no longer fit the function
    │   └── ResultEncodingError         a return value that has no encoding
    ├── JobError                      about one job
    │   ├── UnknownJobError             no job has this id (or it was pruned)
    │   ├── JobStateError               the job is not in a state that allows this
    │   ├── JobFailedError              the job is dead; carries the last error
    │   ├── JobCancelledError           the job was cancelled
    │   ├── ResultTimeoutError          the result was not available in time; the job continues
    │   └── NodeSilentError             the node that runs the job did not reply in time
    ├── StoreError                    the store cannot do what it was asked to do
    │   ├── StoreUnavailableError       it cannot be reached or opened
    │   ├── StoreBusyError              another process held its lock for too long
    │   ├── StoreFullError              no space left; nothing acknowledged was lost
    │   ├── CorruptStoreError           its content cannot be read
    │   └── SchemaVersionError          it was written by another version of shiftwork
    ├── MoveError                     a store whose content is moving, has moved, or cannot be moved
    └── LifecycleError                started twice, used after stop, called from the wrong place

Messages name the thing that is wrong and the remedy. Nothing here does I/O or imports another part of shiftwork.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ShiftworkError(Exception):
    """The root: catch this to catch everything shiftwork raises on purpose."""


class ConfigurationError(ShiftworkError):
    """What was registered or configured cannot work."""


class UnknownOptionError(ConfigurationError):
    """An unknown option."""


class UnknownWorkerError(ConfigurationError):
    """A worker that is not registered."""


class UnknownPoolError(ConfigurationError):
    """A pool that is not registered."""


class UnknownNodeError(ConfigurationError):
    """A node that is not live, or a prefix that several nodes share."""


class DuplicateNameError(ConfigurationError):
    """Two workers or two pools with the same name."""


class DependencyCycleError(ConfigurationError):
    """Workers that wait for each other."""


class ScheduleError(ConfigurationError):
    """A bad interval, cron expression or time zone."""


class SignatureError(ConfigurationError):
    """A function that cannot be called the way its mode calls it."""


class UnknownStoreError(ConfigurationError):
    """A store URL with an unknown scheme, or a malformed one."""


class AppImportError(ConfigurationError):
    """`module:name` that cannot be imported, or is not an orchestrator."""


class NamespaceInUseError(ConfigurationError):
    """Another app, with other workers, runs in the same namespace."""


class PayloadError(ShiftworkError):
    """Arguments or results that cannot be stored."""


class PayloadTypeError(PayloadError):
    """A missing, unknown or wrongly typed argument."""


class PayloadTooLargeError(PayloadError):
    """More bytes than `max_payload_bytes`."""


class PayloadEncodingError(PayloadError):
    """A value that has no encoding."""


class PayloadDecodingError(PayloadError):
    """Stored bytes that no longer fit the function."""


class ResultEncodingError(PayloadError):
    """A return value that has no encoding."""


class JobError(ShiftworkError):
    """An error about one job."""


class UnknownJobError(JobError):
    """No job has this id."""


class JobStateError(JobError):
    """The job is not in a state that allows this."""


class JobFailedError(JobError):
    """The job is dead."""


class JobCancelledError(JobError):
    """The job was cancelled."""


class ResultTimeoutError(JobError, TimeoutError):
    """The result was not available in time; the job continues."""


class NodeSilentError(JobError, TimeoutError):
    """The node that runs the job did not reply in time."""


class StoreError(ShiftworkError):
    """The store cannot do what it was asked to do."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached or opened."""


class StoreBusyError(StoreError):
    """Another process held the lock of the store for too long."""


class StoreFullError(StoreError):
    """The store has no space left."""


class CorruptStoreError(StoreError):
    """The content of the store cannot be read."""


class SchemaVersionError(StoreError):
    """The store was written by another version of shiftwork."""


class MoveError(ShiftworkError):
    """The content of a store is moving, has moved, or cannot be moved."""


class LifecycleError(ShiftworkError):
    """Started twice, used after stop, or called from the wrong place."""


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
