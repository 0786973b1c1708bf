"""How many jobs an instance may claim before it has a free slot for them: those that it will start very soon.

A worker that claims only when a slot is free waits for the store, and the store waits for it. A job that is claimed too
early is held back from an idle neighbour. So an instance claims ahead what it will start within `CLAIM_AHEAD_SECONDS`,
judged by what has ended there:

* Runs shorter than that free their slots again and again: their present rate says how many will start.
* Longer runs count one by one. If the runs of a worker have all taken nearly the same time, the end of one that is
  nearly over is known; otherwise it is not, and nothing is claimed ahead for it.

Where this is wrong, because runs suddenly take longer, a job that has waited for `LONGEST_WAIT` is handed back.
"""

import math
from typing import Final

from msgspec import Struct

CLAIM_AHEAD_SECONDS: Final = 0.02
"""What will start within this time may be claimed ahead."""
LONGEST_WAIT: Final = 0.1
"""How long a job that was claimed ahead may wait for a slot before it is handed back."""
RATE_SECONDS: Final = 0.05
"""How long an end counts for the present rate: after this time, a good third of it is left."""
MOST_AHEAD: Final = 500
"""Larger batches are no faster, and one claim holds up the store for longer."""
_MEAN_SHARE: Final = 1 / 8
_SPREAD_SHARE: Final = 1 / 4


def rate_after(rate: float, ends: int, seconds: float) -> float:
    """Return the rate of ends per second after `ends` more in the last `seconds`; unchanged if no time has passed."""
    if seconds <= 0:
        return rate
    left = math.exp(-seconds / RATE_SECONDS)
    return rate * left + ends / seconds * (1 - left)


class UsualRunTime(Struct, frozen=True):
    """How long the runs of a worker take, and by how much they differ from that; recent ones count more."""

    seconds: float
    spread: float

    @property
    def steady(self) -> bool:
        """Return whether the end of a run can be foreseen."""
        return self.spread <= CLAIM_AHEAD_SECONDS / 2


def run_time_after(before: UsualRunTime | None, seconds: float) -> UsualRunTime:
    """Return the usual run time of a worker after one more run. It takes several runs to be steady."""
    if before is None:
        return UsualRunTime(seconds, seconds / 2)
    off = seconds - before.seconds
    return UsualRunTime(before.seconds + _MEAN_SHARE * off, before.spread + _SPREAD_SHARE * (abs(off) - before.spread))


def ends_soon(usual: UsualRunTime, age: float) -> bool:
    """Return whether a run of this age ends within `CLAIM_AHEAD_SECONDS`. Nobody knows when an overdue one ends."""
    return usual.steady and abs(usual.seconds - age) <= CLAIM_AHEAD_SECONDS


def allowance(rate: float, ending: int) -> int:
    """Return how many jobs may wait for a slot, by the rate of short runs and the number of long ones that end soon."""
    return min(MOST_AHEAD, int(rate * CLAIM_AHEAD_SECONDS) + ending)


def to_claim(free: int, waiting: int, allowed: int) -> int:
    """Return how many jobs to claim now. While all slots are busy, a few free places are not worth a claim."""
    spare = free - waiting
    room = allowed + spare
    return room if spare > 0 or (room > 0 and 2 * room >= allowed) else 0
