"""Histograms of the runs that have ended, by pool: how long jobs waited, how long they ran, how the runs ended.

A run gets marks, and a store counts each mark in the step that ends the run; so the counts are right across all
processes. This module decides which marks a run gets:

    w3         its job waited no longer than `BOUNDS[3]` seconds, and longer than `BOUNDS[2]` (w16: longer than all)
    r5         it ran no longer than `BOUNDS[5]` seconds, and longer than `BOUNDS[4]` (r16: longer than all)
    raised …   how it ended (`EndKind`), unless it returned
    retried    it failed, and its job runs again
    lease_lost its instance vanished, and the leader took the job over

Waits and run times are counted for runs that completed or failed, as in `PoolStats.run_seconds`.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model import JobStatus

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""The upper bounds of the buckets, in seconds. One more bucket holds what is longer."""
LEASE_LOST: Final = "lease_lost"
RETRIED: Final = "retried"

_BUCKETS: Final = range(len(BOUNDS) + 1)
_PAIRS: Final = [[f"w{wait} r{run}" for run in _BUCKETS] for wait in _BUCKETS]


def timed(waited: float, ran: float) -> str:
    """Return the marks of a run by how long its job waited and it ran, separated by a space."""
    return _PAIRS[bisect_left(BOUNDS, waited)][bisect_left(BOUNDS, ran)]


def marked(status: JobStatus, end: str, waited: float, ran: float) -> str:
    """Return the marks of a run that did not return."""
    if status is JobStatus.FAILED:
        return f"{timed(waited, ran)} {end} {RETRIED}"
    return f"{timed(waited, ran)} {end}" if status is JobStatus.DEAD else end


def waits(counts: Mapping[str, int]) -> list[int]:
    """Return the histogram of waits: one number for each of `BOUNDS`, and one for what is longer."""
    return [counts.get(f"w{bucket}", 0) for bucket in _BUCKETS]


def runs(counts: Mapping[str, int]) -> list[int]:
    """Return the histogram of run times, in the same buckets."""
    return [counts.get(f"r{bucket}", 0) for bucket in _BUCKETS]


def quantile(share: float, numbers: Sequence[int], total: float | None = None) -> float | None:
    """Return the seconds within which this share of a histogram stayed, interpolated; None if it is empty.

    `total` is the sum of all values, if it is known. Then the result is not larger than the sum allows: of jobs that
    took one second and a bit, 95 % did not take nearly 2.5 seconds, although the bucket is that wide.
    """
    rank = share * sum(numbers)
    if rank <= 0:
        return None
    below = 0.0
    for bucket, (bound, number) in enumerate(zip(BOUNDS, numbers, strict=False)):
        if number >= rank:
            seconds = below + (bound - below) * rank / number
            return seconds if total is None else min(seconds, _most(total, numbers, bucket, below, rank / number))
        rank -= number
        below = bound
    return BOUNDS[-1]


def _most(total: float, numbers: Sequence[int], bucket: int, below: float, share: float) -> float:
    """Return how large the value at this share of a bucket can be, by the sum of all values."""
    lowest = (0.0, *BOUNDS)
    rest = total - sum(n * lowest[place] for place, n in enumerate(numbers) if place != bucket)
    mean = rest / numbers[bucket]
    above = 1.0 - share
    return below + max(0.0, mean - below) / above if above > 0 else BOUNDS[bucket]
