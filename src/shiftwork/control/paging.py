"""How many jobs to read at a time. A page is in memory at once, and payloads and results may be large."""

from collections.abc import Sequence
from typing import Final

from shiftwork.core.model import JobRecord

FEW: Final = 50
"""As long as nobody knows how large they are."""
PAGE_BYTES: Final = 8 * 1_048_576


def weight(jobs: Sequence[JobRecord]) -> int:
    """About how many bytes they have."""
    return sum(len(job.payload) + len(job.result or b"") for job in jobs)


def next_size(seen: Sequence[JobRecord], most: int) -> int:
    """How many to ask for next, if they are as large as these."""
    each = weight(seen) // max(len(seen), 1)
    return max(1, min(most, PAGE_BYTES // max(each, 1)))
