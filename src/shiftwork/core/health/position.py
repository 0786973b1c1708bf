"""The position of a job in the queue of its pool: how much of it a store counts, and how the rest is estimated."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.observing.pool_stats import Stats

COUNTED_OWN: Final = 50_000
COUNTED_OTHER: Final = 10_000
"""How many jobs ahead a store counts of the job's own worker, and of each other one. Larger numbers are estimated
(`estimated_ahead`)."""
LANES: Final = 30
"""Of how many workers a store counts jobs ahead, beginning with the own and then those that have most."""
EXACT_UP_TO: Final = 1_000
"""Up to this position it is shown as exact; further back it is "about", because other jobs overtake meanwhile."""


class QueuePlace(Struct, frozen=True, order=True):
    """A place in the queue of a pool: in front of the jobs of a higher rank, or of the same and a higher id."""

    rank: float
    id: str
    worker: str
    """The worker of the job at the place, whether or not it is queued itself."""


class CountedLane(Struct, frozen=True):
    """How many ready jobs of one worker a store has counted ahead of some places."""

    worker: str
    queued: int
    """How many are queued, parked ones included."""
    ends: tuple[float, float]
    """The ranks of the first and the last ready one."""
    counts: Sequence[int]
    """Ahead of each place, in the order of the places: at most as many as `most_counted` says."""


class Ahead(Struct, frozen=True):
    """How many jobs are ahead of a place in the queue of a pool. Parked jobs do not count."""

    lanes: dict[str, int]
    """By worker, without those that have none ahead."""
    exact: bool = True
    """Whether they were counted; otherwise some numbers are `about`."""
    complete: bool = True
    """Whether every worker is listed that has jobs ahead."""


class Position(Struct, frozen=True):
    """The place of a job in the queue of its pool: 1 is the first."""

    n: int
    exact: bool


def most_counted(lane: str, own: Collection[str]) -> int:
    """Return how many jobs of a lane are counted ahead of places of these workers."""
    return COUNTED_OWN if lane in own else COUNTED_OTHER


def ahead_of_each(places: Sequence[QueuePlace], lanes: Sequence[CountedLane]) -> list[Ahead]:
    """Return how many jobs are ahead of each place, by what was counted for all of them together.

    `lanes` are those of the places' own workers and at least as many others as `LANES`, those with most jobs, by name
    where they have as many.
    """
    lanes = sorted(lanes, key=lambda lane: (-lane.queued, lane.worker))
    return [_ahead(n, place, lanes) for n, place in enumerate(places)]


def _ahead(n: int, place: QueuePlace, lanes: Sequence[CountedLane]) -> Ahead:
    exact, counts = True, dict[str, int]()
    for lane in sorted(lanes, key=lambda lane: lane.worker != place.worker)[:LANES]:
        count, most = lane.counts[n], most_counted(lane.worker, {place.worker})
        if count >= most:
            exact, count = False, estimated_ahead(most, lane.queued, place.rank, lane.ends)
        if count:
            counts[lane.worker] = count
    return Ahead(counts, exact=exact, complete=len(lanes) <= LANES)


def estimated_ahead(counted: int, ready: int, rank: float, ends: tuple[float, float]) -> int:
    """Return how many of a lane's ready jobs are ahead of a rank, if at least those are that were counted.

    `ends` are the ranks of its first and its last job: the jobs are taken to be spread evenly between them.
    """
    first, last = ends
    share = (rank - first) / (last - first) if last > first else 0.5
    return max(counted, round(ready * min(1.0, max(0.0, share))))


def position(ahead: Ahead, stats: Stats, pool: str) -> Position:
    """Return the position behind these jobs. Workers that are not listed are taken to be like those that are."""
    n = sum(ahead.lanes.values())
    if not ahead.complete:
        queued = sum(stats.workers[worker].queued for worker in ahead.lanes if worker in stats.workers)
        rest = max(0, stats.pools[pool].queued - queued) if pool in stats.pools else 0
        n += round(rest * min(1.0, n / queued)) if queued else 0
    return Position(n + 1, exact=ahead.exact and ahead.complete and n < EXACT_UP_TO)


def parked_position(place: Position, parked: int) -> Position:
    """Return the position of a parked job: those that are parked ahead of it with the same key count, too."""
    n = place.n + parked
    return Position(n, exact=place.exact and n <= EXACT_UP_TO)
