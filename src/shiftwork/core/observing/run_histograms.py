"""Histograms of the runs that have ended: how long jobs waited, how long they ran, how the runs ended.

A run gets marks, and a store counts each mark for the run's pool in the step that ends the run; so the counts are right
across all processes. This module decides which marks a run gets, and reads them:

    w0.7s            its job waited no longer than 0.7 seconds, and longer than the next lower of `BOUNDS`
    r20s@resize      it ran no longer than 20 seconds, and longer than the next lower bound; it was a run of the worker
                     "resize" (a space in a name is written as "@", which no name contains)
    w>86400s         its job waited longer than the highest bound
    r>86400s@resize  it ran longer than the highest bound
    raised …         how it ended (`EndKind`), unless it returned
    retried          it failed, and its job runs again
    lease_lost       its instance vanished, and the leader took the job over

Waits and run times are counted for runs that completed or failed, as in `PoolStats.run_seconds`. A bucket has its bound
in its name, so counts from before a change of `BOUNDS` cannot be taken for others.

Stores of version 0.1 have counts by the number of the bucket: `w3` is what waited no longer than `OLD_BOUNDS[3]`, `r16`
what ran longer than all of them. Nodes of that version may still write them during a rolling deploy. Such a count says
that something took longer than the lower bound of its bucket, so that is where it is counted now.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model.jobs import JobStatus

BOUNDS: Final = (
    *(0.005, 0.007),
    *(0.01, 0.015, 0.02, 0.025, 0.035, 0.05, 0.07),
    *(0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 2.5, 3.5, 5.0, 7.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0),
    *(60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 420.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0),
    *(3600.0, 5400.0, 7200.0, 10800.0, 14400.0, 21600.0, 28800.0, 43200.0, 57600.0, 86400.0),
)
"""The upper bounds of the buckets, in seconds: each at most 1.5 times the one before, up to a day. One more bucket has
what is longer."""
OLD_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""The bounds of version 0.1."""
LONG_SHARE: Final = 0.9
"""The share of the time of slots that is filled by runs that are not too long to be usual."""
LEASE_LOST: Final = "lease_lost"
RETRIED: Final = "retried"

_NAMES: Final = (*(f"{bound:g}s" for bound in BOUNDS), f">{BOUNDS[-1]:g}s")
_WAITS: Final = tuple(f"w{name}" for name in _NAMES)
_RUNS: Final = tuple(f"r{name}" for name in _NAMES)
_PAIRS: Final = [[f"{wait} {run}@" for run in _RUNS] for wait in _WAITS]
_LOWEST: Final = (0.0, *BOUNDS)
"""What everything in a bucket is longer than."""
_HIGHEST: Final = (*BOUNDS, BOUNDS[-1])
_OLD_PLACES: Final = tuple(bisect_right(BOUNDS, lowest) for lowest in (0.0, *OLD_BOUNDS))
"""Where the counts of an old bucket belong."""
_OLD_WAITS: Final = tuple(f"w{old}" for old in range(len(_OLD_PLACES)))
_OLD_RUNS: Final = tuple(f"r{old}" for old in range(len(_OLD_PLACES)))
_OLD_MARKS: Final = frozenset((*_OLD_WAITS, *_OLD_RUNS))
_RUN_MARKS: Final = frozenset((*_RUNS, *_OLD_RUNS))


# ── marking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def timed(worker: str, waited: float, ran: float) -> str:
    """Return the marks of a run by how long its job waited and it ran, separated by a space."""
    times = _PAIRS[bisect_left(BOUNDS, waited)][bisect_left(BOUNDS, ran)]
    return times + worker if " " not in worker else times + worker.replace(" ", "@")


def marked(status: JobStatus, end: str, times: str) -> str:
    """Return the marks of a run that did not return; `times` are those of `timed`."""
    if status is JobStatus.FAILED:
        return f"{times} {end} {RETRIED}"
    return f"{times} {end}" if status is JobStatus.DEAD else end


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def split_by_worker(counts: Mapping[str, int]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return the counts of a pool without the names of workers, and those of each worker."""
    of_pool: dict[str, int] = {}
    of_workers: dict[str, dict[str, int]] = {}
    for name, n in counts.items():
        mark, _, worker = name.partition("@")
        of_pool[mark] = of_pool.get(mark, 0) + n
        if worker:
            of_workers.setdefault(worker.replace("@", " "), {})[mark] = n
    return of_pool, of_workers


def waits(counts: Mapping[str, int]) -> list[int]:
    """Return the histogram of waits: one number for each of `BOUNDS`, and one for what is longer."""
    return _histogram([counts.get(name, 0) for name in _WAITS], [counts.get(name, 0) for name in _OLD_WAITS])


def runs(counts: Mapping[str, int]) -> list[int]:
    """Return the histogram of run times, in the same buckets."""
    return _histogram([counts.get(name, 0) for name in _RUNS], [counts.get(name, 0) for name in _OLD_RUNS])


def from_old(numbers: Sequence[int]) -> list[int]:
    """Return a histogram in the buckets of version 0.1 in the present ones."""
    return _histogram([0] * len(_NAMES), numbers)


def long_runs(counts: Mapping[str, int]) -> float | None:
    """Return how long a worker's long runs take; None if none has ended.

    Runs that take no longer fill nine tenths of the time of its slots. Where one run in a thousand takes minutes and
    the others milliseconds, it is nearly always a long one that is seen running.
    """
    filled = [n * bound for n, bound in zip(runs(counts), _HIGHEST, strict=True)]
    left = LONG_SHARE * sum(filled)
    for seconds, bound in zip(filled, _HIGHEST, strict=True):
        left -= seconds
        if seconds and left <= 0:
            return bound
    return None


def run_marks(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the marks that say how long runs took."""
    return {mark: n for mark, n in counts.items() if mark in _RUN_MARKS}


def since(now: Mapping[str, int], then: Mapping[str, int]) -> dict[str, int]:
    """Return which marks were given between two readings, and how often."""
    return {mark: new for mark, n in now.items() if (new := n - then.get(mark, 0)) > 0}


def together(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of the counts."""
    return {
        mark: one.get(mark, 0) + other.get(mark, 0) for mark in (*one, *(mark for mark in other if mark not in one))
    }


def _histogram(numbers: list[int], old: Sequence[int]) -> list[int]:
    for place, n in zip(_OLD_PLACES, old, strict=False):
        numbers[place] += n
    return numbers


# ── quantiles ────────────────────────────────────────────────────────────────────────────────────────────────────────


def wait_quantile(share: float, counts: Mapping[str, int], total: float | None) -> float | None:
    """Return the seconds that this share of the waits did not exceed; `total` is their sum. See `quantile`."""
    return quantile(share, waits(counts), None if _OLD_MARKS & counts.keys() else total)


def run_quantile(share: float, counts: Mapping[str, int], total: float | None) -> float | None:
    """Return the seconds that this share of the runs did not exceed; `total` is their sum. See `quantile`."""
    return quantile(share, runs(counts), None if _OLD_MARKS & counts.keys() else total)


def quantile(share: float, numbers: Sequence[int], total: float | None) -> float | None:
    """Return the seconds within which this share of a histogram stayed, interpolated; None if it is empty.

    No result is larger than the largest value must have been. `total` is the sum of all values, None if it is not known
    or the bounds of some are not. With it, both ends are closer: of jobs that took one second and a bit, 95 % did not
    take nearly 1.5 seconds, although the bucket is that wide; and the largest is no less than the mean of its bucket.
    """
    rank = share * sum(numbers)
    if rank <= 0:
        return None
    top = max(bucket for bucket, number in enumerate(numbers) if number > 0)
    bucket = 0
    while numbers[bucket] < rank and bucket < top:
        rank -= numbers[bucket]
        bucket += 1
    part, low = min(1.0, rank / numbers[bucket]), _LOWEST[bucket]
    seconds = low + (_HIGHEST[bucket] - low) * part
    if total is None:
        return seconds if bucket < top else low
    seconds = min(seconds, _most(total, numbers, bucket, part))
    return seconds if bucket < top else min(seconds, _least_longest(total, numbers, top))


def _most(total: float, numbers: Sequence[int], bucket: int, share: float) -> float:
    """Return how large the value at this share of a bucket can be, by the sum of all values."""
    low = _LOWEST[bucket]
    rest = total - sum(n * _LOWEST[place] for place, n in enumerate(numbers) if place != bucket)
    above = 1.0 - share
    return low + max(0.0, rest / numbers[bucket] - low) / above if above > 0 else _HIGHEST[bucket]


def _least_longest(total: float, numbers: Sequence[int], top: int) -> float:
    """Return how large the largest value is at least: no less than the mean of the highest bucket."""
    rest = total - sum(n * _HIGHEST[place] for place, n in enumerate(numbers[:top]))
    return max(_LOWEST[top], rest / numbers[top])
