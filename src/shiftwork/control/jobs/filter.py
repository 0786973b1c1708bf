"""Which jobs are meant, from what people write, and how many of them to read at a time.

A page is in memory at once, and payloads and results may be large.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict

from msgspec import MsgspecError, convert
from msgspec.structs import replace

from shiftwork.core.model.job_changes import JobFilter, JobOrder
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.values.misfits import misfit
from shiftwork.errors import ConfigurationError, UnknownOptionError, nearest
from shiftwork.sentences import sentence

FIRST_PAGE: Final = 50
"""How many jobs to read while their size is unknown."""
MOST_PAGE_BYTES: Final = 8 * 1_048_576


class JobSearch(TypedDict, total=False):
    """Which jobs to find, as people may write it. Every given field must match."""

    ids: Sequence[str] | None
    status: JobStatus | str | Iterable[JobStatus | str] | None
    worker: str | None
    pool: str | None
    key: str | None
    unique_key: str | None
    instance: str | None
    flow: str | None
    """The id of a flow."""
    tag: str | None
    error: str | None
    """A part of the last error's text."""
    created_after: float | datetime | None
    created_before: float | datetime | None
    order: JobOrder
    """Which come first: the "newest", or the "oldest"."""
    after: str | None
    """The last id of the page before."""
    limit: int
    whole: bool
    """Whether payloads are read whole; otherwise a large one is read by `job.refresh()`."""


class JobSelection(JobSearch, total=False):
    """Which jobs to change: those that match, or a group of dead jobs that failed alike."""

    group: str | None


def job_filter(**wanted: Any) -> JobFilter:
    """Return a filter, with statuses given by name and everything checked."""
    fields = JobFilter.__struct_fields__
    for name in wanted:
        if name not in fields:
            message = sentence("jobs cannot be found by {what}: {hint}", what=f"{name!r}", hint=nearest(name, fields))
            raise UnknownOptionError(message)
    status = wanted.pop("status", None)
    several = [status] if isinstance(status, str) or not isinstance(status, Iterable) else status
    statuses = None if status is None else tuple(_status(one) for one in several)
    plain = {name: value.timestamp() if isinstance(value, datetime) else value for name, value in wanted.items()}
    try:
        checked = convert(plain, JobFilter)
    except MsgspecError as error:
        message = sentence("jobs cannot be found like this: {why}", why=misfit(str(error)))
        raise ConfigurationError(message) from None
    if checked.limit < 0:
        message = sentence("limit must be 0 or more, not {n}", n=checked.limit)
        raise ConfigurationError(message)
    return replace(checked, status=statuses)


def _status(name: Any) -> JobStatus:
    try:
        return JobStatus(name)
    except ValueError:
        message = sentence(
            "there is no status {what}: {hint}",
            what=f"{name!r}",
            hint=nearest(str(name), [status.value for status in JobStatus]),
        )
        raise UnknownOptionError(message) from None


def weight(jobs: Sequence[JobRecord]) -> int:
    """Return about how many bytes the jobs have."""
    return sum(len(job.payload) + len(job.result or b"") for job in jobs)


def next_size(seen: Sequence[JobRecord], most: int) -> int:
    """Return how many jobs to read next, if they are as large as these."""
    each = weight(seen) // max(len(seen), 1)
    return max(1, min(most, MOST_PAGE_BYTES // max(each, 1)))
