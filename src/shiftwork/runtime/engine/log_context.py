"""Which job a log line belongs to. Set where a job runs; read by log handlers."""

import logging
from contextvars import ContextVar
from typing import Final

_JOB: Final[ContextVar[tuple[str, str, int] | None]] = ContextVar("shiftwork_job", default=None)


def about_job(record: logging.LogRecord) -> bool:
    """A filter for log handlers that rejects nothing: it adds the job to every line logged inside one."""
    job = _JOB.get()
    if job is not None:
        for name, value in zip(("job_id", "worker", "attempt"), job, strict=True):
            vars(record).setdefault(name, value)
    return True


def log_as(job_id: str, worker: str, attempt: int) -> None:
    """Attribute what this task or thread logs from now on to a job."""
    _JOB.set((job_id, worker, attempt))
