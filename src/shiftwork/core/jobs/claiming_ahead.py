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
from collections.abc import Iterable
from typing import Final, Protocol

from msgspec import Struct

from shiftwork.core.model.jobs import Claimed

CLAIM_AHEAD_SECONDS: Final = 0.02
"""What will start within this time may be claimed ahead."""
LONGEST_WAIT: Final = 0.1
"""How long a job that was claimed ahead may wait for a slot before it is handed back."""
RATE_SECONDS: Final = 0.05
"""How long an end counts for the present rate: after this time, a good third of it is left."""
MOST_AHEAD: Final = 500
"""Larger batches are no faster, and one claim holds up the store for longer."""
SAMPLE_SECONDS: Final = 0.002
"""How often to look, at most."""
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


class OngoingRun(Protocol):
    """A run that goes on."""

    @property
    def job(self) -> Claimed:
        """Its job."""

    @property
    def started_at(self) -> float:
        """When it was started."""


class PrefetchPace:
    """Measures one instance, and knows how many jobs it may claim ahead."""

    def __init__(self, now: float) -> None:
        self._rate = 0.0
        self._ends = 0
        """Short runs that have ended since the rate was last worked out."""
        self._run_times: dict[str, UsualRunTime] = {}
        """Of the workers whose runs take longer."""
        self._sampled_at = now
        self._allowed = 0

    def ended(self, run: OngoingRun, now: float) -> None:
        """Note how long a run took that has ended."""
        seconds = now - run.started_at
        if seconds <= CLAIM_AHEAD_SECONDS:
            self._ends += 1
        else:
            worker = run.job.worker
            self._run_times[worker] = run_time_after(self._run_times.get(worker), seconds)
            self._allowed = max(0, self._allowed - 1)  # it counted as one that ends soon

    def allowed(self, runs: Iterable[OngoingRun], now: float) -> int:
        """Return how many jobs may wait for a slot now. `runs` are all that go on, the oldest first."""
        passed = now - self._sampled_at
        if passed >= SAMPLE_SECONDS / 2:  # a timer may be a little early
            self._sampled_at = now
            self._rate, self._ends = rate_after(self._rate, self._ends, passed), 0
            self._allowed = allowance(self._rate, self._ending(runs, now))
        return self._allowed

    def _ending(self, runs: Iterable[OngoingRun], now: float) -> int:
        """Return how many of the longer runs end soon."""
        steady, soonest = self._steady()
        ending = 0
        for run in runs if steady else ():
            age = now - run.started_at
            if age < soonest - CLAIM_AHEAD_SECONDS:  # all that follow are younger
                break
            usual = steady.get(run.job.worker)
            ending += usual is not None and ends_soon(usual, age)
        return ending

    def look_at(self, runs: Iterable[OngoingRun], now: float) -> float | None:
        """Return when to look again although nothing has ended: several runs will be about to end by then."""
        steady, soonest = self._steady()
        if not steady:
            return None
        for run in runs:
            if now - run.started_at < soonest - CLAIM_AHEAD_SECONDS:
                return max(run.started_at + soonest - CLAIM_AHEAD_SECONDS / 2, self._sampled_at + SAMPLE_SECONDS)
        return None

    def _steady(self) -> tuple[dict[str, UsualRunTime], float]:
        """Return the workers whose run times are steady, and how long the shortest of them take."""
        if not self._run_times:
            return {}, 0.0
        steady = {worker: usual for worker, usual in self._run_times.items() if usual.steady}
        return steady, min((usual.seconds for usual in steady.values()), default=0.0)

    def forget(self) -> None:
        """Start over: the jobs that were claimed ahead are handed back."""
        self._rate, self._ends, self._allowed = 0.0, 0, 0
        self._run_times.clear()
