"""Durable functions: signals that are sent to a job, and the job that was handed back to wait for one.

A job waits for the signal number `nth` with a name. While fewer were sent, it is scheduled for the end of its patience
(`run_at`), and it holds no slot. The signal makes it due at once, whether it comes before or after the job is handed
back. A job that has ended takes no signals.

The memory and SQLite stores call these functions. Redis and PostgreSQL repeat them.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from shiftwork.core.job_parts import Signal, Wait
from shiftwork.core.model import JobRecord, JobStatus


def arrived(wait: Wait | None, signals: Iterable[Signal]) -> bool:
    """Whether the signal that is waited for is among these."""
    return wait is not None and sum(signal.name == wait.name for signal in signals) >= wait.nth


def signalled(job: JobRecord, signal: Signal, now: float) -> JobRecord:
    """The live job after a signal: due at once if it waits for this one."""
    changed = replace(job, signals=(*job.signals, signal))
    if job.status is JobStatus.SCHEDULED and arrived(job.wait, changed.signals):
        return replace(changed, status=JobStatus.QUEUED, run_at=now, rank=now - job.head_start)
    return changed
