"""Groups of dead jobs: of the same worker, with errors that differ only in numbers."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from shiftwork.core.model.jobs import DeadJob
from shiftwork.core.values.envelopes import key_of, replace_sealed

SAMPLES: Final = 5
NO_ERROR: Final = "no error recorded"
_NUMBER: Final = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}|\d+", re.IGNORECASE)
"""A number, an address, a UUID or a digest: two errors of the same cause usually name different ones."""


class Group(Struct, kw_only=True):
    """Dead jobs with the same worker and the same kind of error."""

    key: str
    """Identifies the group, and is the same in every process."""
    worker: str
    error: str
    """The error of the newest job."""
    count: int
    newest_at: float
    oldest_at: float
    sample_ids: list[str]
    """The ids of the newest jobs."""


def group_key(worker: str, error: str | None) -> str:
    """Return the key of the group that a dead job belongs to."""
    return _key(worker, _likeness(error))


def groups_of(jobs: Iterable[DeadJob]) -> list[Group]:
    """Return the groups of these jobs, which come newest first; the largest group is first."""
    groups: dict[tuple[str, str], Group] = {}
    for job in jobs:
        at = job.created_at if job.ended_at is None else job.ended_at
        alike = (job.worker, _likeness(job.error))
        group = groups.get(alike)
        if group is None:
            group = groups[alike] = Group(
                key=_key(*alike),
                worker=job.worker,
                error=job.error or NO_ERROR,
                count=0,
                newest_at=at,
                oldest_at=at,
                sample_ids=[],
            )
        group.count += 1
        group.newest_at = max(group.newest_at, at)
        group.oldest_at = min(group.oldest_at, at)
        if len(group.sample_ids) < SAMPLES:
            group.sample_ids.append(job.id)
    return sorted(groups.values(), key=lambda group: (-group.count, group.worker, group.error))


def _likeness(error: str | None) -> str:
    return _NUMBER.sub("N", replace_sealed(error or "", lambda value: f"encrypted with key {key_of(value)}"))


def _key(worker: str, likeness: str) -> str:
    return hashlib.sha256(f"{worker}\0{likeness}".encode(errors="replace")).hexdigest()[:24]
