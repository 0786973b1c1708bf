"""Which job a log line belongs to. Set where a job runs; read by log handlers."""

import logging
from contextvars import ContextVar
from typing import Final

from shiftwork.core.model.jobs import Claimed

_JOB: Final[ContextVar[Claimed | None]] = ContextVar("shiftwork_job", default=None)


def job_fields() -> dict[str, str | int]:
    """Return what names the job that this task or thread runs: `job_id`, `worker`, `attempt`, `pool`; {} if none."""
    job = _JOB.get()
    if job is None:
        return {}
    return {"job_id": job.id, "worker": job.worker, "attempt": job.attempt, "pool": job.pool}


def about_job(record: logging.LogRecord) -> bool:
    """A filter for log handlers that rejects nothing: it adds the job to every line logged inside one."""
    for name, value in job_fields().items():
        vars(record).setdefault(name, value)
    return True


def log_as(job: Claimed) -> None:
    """Attribute what this task or thread logs from now on to a job."""
    _JOB.set(job)
