"""structlog: a processor that adds the job to every line that is logged inside one."""

from structlog.typing import EventDict, WrappedLogger

from shiftwork.runtime.context.job_log import job_fields

__all__ = ["add_job"]


def add_job(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add `job_id`, `worker`, `attempt` and `pool`; what the line has of its own stays."""
    return {**job_fields(), **event}
