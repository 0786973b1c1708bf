"""Which jobs are meant, from what people write."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import MsgspecError, convert
from msgspec.structs import replace

from shiftwork.core.model import JobFilter, JobStatus
from shiftwork.errors import ConfigurationError, UnknownOptionError, nearest


def job_filter(**wanted: Any) -> JobFilter:
    """Return a filter, with statuses given by name and everything checked."""
    fields = JobFilter.__struct_fields__
    for name in wanted:
        if name not in fields:
            message = f"jobs cannot be found by {name!r}: {nearest(name, fields)}"
            raise UnknownOptionError(message)
    status = wanted.pop("status", None)
    several = [status] if isinstance(status, str) or not isinstance(status, Iterable) else status
    statuses = None if status is None else tuple(_status(one) for one in several)
    plain = {name: value.timestamp() if isinstance(value, datetime) else value for name, value in wanted.items()}
    try:
        checked = convert(plain, JobFilter)
    except MsgspecError as error:
        message = f"jobs cannot be found like this: {error}"
        raise ConfigurationError(message) from None
    if checked.limit < 0:
        message = f"limit must be 0 or more, not {checked.limit}"
        raise ConfigurationError(message)
    return replace(checked, status=statuses)


def _status(name: Any) -> JobStatus:
    try:
        return JobStatus(name)
    except ValueError:
        message = f"there is no status {name!r}: {nearest(str(name), [status.value for status in JobStatus])}"
        raise UnknownOptionError(message) from None
