"""What is counted of runs that have ended, by pool: how long jobs waited, how long they ran, how the runs ended.

A mark is a short name, and a store counts how often each was given, in the step that ends the run; so the counts are
right across all processes, whoever asks. What a run is given is decided here:

    w3         it had been due for so long when it began: the third of `BOUNDS`, or less (w16: longer than all of them)
    r5         likewise, it ran for so long
    raised …   how it ended (`EndKind`), unless it returned
    retried    it failed, and is to run again
    lease_lost its instance vanished; the leader took the job

Waiting and running are counted of runs that completed or failed, as `PoolStats.run_seconds` is.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model import JobStatus

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""The seconds up to which each of the kinds of waits and runs goes; what is longer is of one kind more."""
LEASE_LOST: Final = "lease_lost"
RETRIED: Final = "retried"

_KINDS: Final = range(len(BOUNDS) + 1)
_PAIRS: Final = [[f"w{wait} r{run}" for run in _KINDS] for wait in _KINDS]


def timed(waited: float, ran: float) -> str:
    """The marks of a run that waited and ran for so many seconds, a space between them."""
    return _PAIRS[bisect_left(BOUNDS, waited)][bisect_left(BOUNDS, ran)]


def marked(status: JobStatus, end: str, waited: float, ran: float) -> str:
    """The marks of a run that did not return."""
    if status is JobStatus.FAILED:
        return f"{timed(waited, ran)} {end} {RETRIED}"
    return f"{timed(waited, ran)} {end}" if status is JobStatus.DEAD else end


def waits(counts: Mapping[str, int]) -> list[int]:
    """How many runs had waited for how long: one number for each of `BOUNDS`, and one for those beyond."""
    return [counts.get(f"w{kind}", 0) for kind in _KINDS]


def runs(counts: Mapping[str, int]) -> list[int]:
    """How many ran for how long, likewise."""
    return [counts.get(f"r{kind}", 0) for kind in _KINDS]


def quantile(share: float, numbers: Sequence[int]) -> float | None:
    """The seconds within which this share of them stayed, as near as the kinds tell. None if there are none."""
    rank = share * sum(numbers)
    if rank <= 0:
        return None
    below = 0.0
    for bound, number in zip(BOUNDS, numbers, strict=False):
        if number >= rank:
            return below + (bound - below) * rank / number
        rank -= number
        below = bound
    return BOUNDS[-1]
