"""How many jobs to read at a time. A page is in memory at once, and payloads and results may be large."""

from collections.abc import Sequence
from typing import Final

from shiftwork.core.model.jobs import JobRecord

FIRST_PAGE: Final = 50
"""How many jobs to read while their size is unknown."""
MOST_PAGE_BYTES: Final = 8 * 1_048_576


def weight(jobs: Sequence[JobRecord]) -> int:
    """Return about how many bytes the jobs have."""
    return sum(len(job.payload) + len(job.result or b"") for job in jobs)


def next_size(seen: Sequence[JobRecord], most: int) -> int:
    """Return how many jobs to read next, if they are as large as these."""
    each = weight(seen) // max(len(seen), 1)
    return max(1, min(most, MOST_PAGE_BYTES // max(each, 1)))
