"""One pool in virtual time: its queue, its slots, and what is counted of both.

A slot is starting, free, busy or draining; a draining one is busy, and ends with its job::

    resize up          ready         a job           its end
    ─────────▶ starting ───▶ free ─────────▶ busy ─────────▶ free, or busy with the next job
                  │            │               │
                  └────────────┴─ resize down ─┴─▶ draining ──▶ gone

Jobs are claimed in the order of the store: by rank, which is when they are due minus their head start. Those of a
worker with a limit of its own wait in a lane of their own, so that what the limit holds back takes no slot from others.
Times are seconds since the start of the scenario.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from math import inf
from typing import Any, Final

from msgspec import Struct, field

from shiftwork.core.jobs.retry import backoff
from shiftwork.core.model.workers import PoolConfig, Retry
from shiftwork.core.workers.admission import RateLimit

PROCESS_START_SECONDS: Final = 1.0
"""How long a process takes to start and to import the app."""
_READY: Final = -1
_DUE: Final = -2
_OPENS: Final = -3
_NEVER: Final = (inf, 0.0, 0, 0)
_RETRY: Final = Retry()
_NO_JITTER: Final = 0.5

PoolJob = tuple[float, float, int, int]
"""When a job comes, how long an attempt runs, how many attempts fail, and the number of its worker."""


class LimitedLane(Struct):
    """The limit of a worker, and its jobs that wait."""

    rate: RateLimit | None
    most: int | None
    """How many may run at a time."""
    rate_at: float = 0.0
    """The position of the rate limit."""
    waiting: list[tuple[Any, ...]] = field(default_factory=list)
    """A heap, as that of the pool."""
    wakes_at: float | None = None
    """When its rate limit is looked at again."""

    def opens_at(self, running: int) -> float:
        """Return when its next job may start; infinity if a running one has to end before."""
        if self.most is not None and running >= self.most:
            return inf
        return -inf if self.rate is None else self.rate.opens_at(self.rate_at)

    def started(self, at: float) -> None:
        """Count a start."""
        if self.rate is not None:
            self.rate_at = self.rate.after_start(self.rate_at, at)


class PoolQueue:
    """A simulated pool."""

    def __init__(
        self,
        pool: PoolConfig,
        jobs: Sequence[PoolJob],
        *,
        head_starts: Sequence[float],
        retries: Sequence[int],
        limits: Mapping[int, LimitedLane] | None = None,
    ) -> None:
        """`limits` are those of the workers that have any, by their number."""
        self.pool = pool
        self._jobs = [*jobs, _NEVER]
        self.added: int = 0
        """How many of them have come."""
        self._head_starts = head_starts
        self._retries = retries
        self._queue: list[tuple[Any, ...]] = []
        """A heap of waiting jobs: rank, when due, run time, failures, worker, attempt."""
        self.lanes: Mapping[int, LimitedLane] = limits or {}
        """The limits of workers, with the jobs that wait of these."""
        self.depth: int = 0
        """How many jobs are queued."""
        self._events: list[tuple[Any, ...]] = []
        """A heap of times: of the end of a run (worker, run time, failures, attempt), a ready slot, a due retry, a rate
        limit that opens."""
        self.next_at: float = self._jobs[0][0]
        """When something happens next."""
        self.waits: list[list[float]] = [[] for _ in retries]
        """How long the jobs of each worker have waited for their first start."""
        self.completed: list[int] = [0] * len(retries)
        self.failed: list[int] = [0] * len(retries)
        self.run_seconds: list[float] = [0.0] * len(retries)
        self.dead: int = 0
        self.retrying: int = 0
        self.queued_of: list[int] = [0] * len(retries)
        self.busy_of: list[int] = [0] * len(retries)
        self.full: bool = False
        """Whether jobs wait and no slot is free, as of the last `advance`."""
        self.free: int = 0
        self.busy: int = 0
        self.starting: int = 0
        self.draining: int = 0
        self._peak = 0
        self._slot_seconds = 0.0
        self._counted_at = 0.0

    @property
    def slots(self) -> int:
        """How many slots the plan gives it: those that drain are no longer among them."""
        return self.starting + self.free + self.busy - self.draining

    @property
    def oldest_due(self) -> float | None:
        """When the first job of the queue became due."""
        heads = [heap[0] for heap in (self._queue, *(lane.waiting for lane in self.lanes.values())) if heap]
        return min(heads)[1] if heads else None

    @property
    def left(self) -> int:
        """How many jobs have come and have not ended."""
        return self.depth + self.busy + self.retrying

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, until: float) -> None:
        """Let everything happen that is due until then."""
        events, jobs, place = self._events, self._jobs, self.added
        while True:
            at = jobs[place][0]
            if events and events[0][0] <= at:
                if events[0][0] > until:
                    break
                self._happen(heappop(events))
            elif at > until:
                break
            else:
                _, run, failures, worker = jobs[place]
                place += 1
                self._come(at, run, failures, worker, 1)
        self.added = place
        self.next_at = min(at, events[0][0]) if events else at
        self.full = bool(self.depth) and not self.free

    def _come(self, at: float, run: float, failures: int, worker: int, attempt: int) -> None:
        """Start a job that is due, or queue it."""
        lane = self.lanes.get(worker)
        if self.free and (lane is None or not (lane.waiting or lane.opens_at(self.busy_of[worker]) > at)):
            self._start(at, run, failures, worker, attempt)
            if attempt == 1:
                self.waits[worker].append(0.0)
            return
        heap = self._queue if lane is None else lane.waiting
        heappush(heap, (at - self._head_starts[worker], at, run, failures, worker, attempt))
        self.queued_of[worker] += 1
        self.depth += 1
        self._peak = max(self._peak, self.depth)
        if lane is not None and self.free:
            self._wake(worker, lane, lane.opens_at(self.busy_of[worker]))

    def _happen(self, event: tuple[Any, ...]) -> None:
        at, worker = event[0], event[1]
        if worker >= 0:
            self.busy -= 1
            self.busy_of[worker] -= 1
            self._end(*event)
            if self.draining:
                self.draining -= 1
                self._count(at, self.slots + self.draining + 1)
            else:
                self.free += 1
        elif worker == _READY:
            self.starting -= 1
            self.free += 1
        elif worker == _OPENS:
            self.lanes[event[2]].wakes_at = None
        else:
            self.retrying -= 1
            self._come(at, *event[2:])
        while self.free and self.depth and self._start_next(at):
            pass

    def _end(self, at: float, worker: int, run: float, failures: int, attempt: int) -> None:
        self.run_seconds[worker] += run
        if not failures:
            self.completed[worker] += 1
            return
        self.failed[worker] += 1
        if attempt > self._retries[worker]:
            self.dead += 1
            return
        self.retrying += 1
        due = at + backoff(_RETRY, attempt, _NO_JITTER)
        heappush(self._events, (due, _DUE, run, failures - 1, worker, attempt + 1))

    def _start_next(self, at: float) -> bool:
        """Start the first job that may start, in a slot that is free; False if there is none."""
        heap = self._first(at) if self.lanes else self._queue
        if not heap:
            return False
        _, due, run, failures, worker, attempt = heappop(heap)
        self.queued_of[worker] -= 1
        self.depth -= 1
        if attempt == 1:
            self.waits[worker].append(at - due)
        self._start(at, run, failures, worker, attempt)
        return True

    def _first(self, at: float) -> list[tuple[Any, ...]]:
        """Return the heap whose first job goes before those of the others, as far as limits let them start."""
        best = self._queue
        for worker, lane in self.lanes.items():
            if not lane.waiting:
                continue
            opens = lane.opens_at(self.busy_of[worker])
            if opens > at:
                self._wake(worker, lane, opens)
            elif not best or lane.waiting[0] < best[0]:
                best = lane.waiting
        return best

    def _wake(self, worker: int, lane: LimitedLane, opens: float) -> None:
        """Look at the lane again once its rate limit opens. The end of a run is looked at anyway."""
        if lane.wakes_at is None and opens < inf:
            lane.wakes_at = opens
            heappush(self._events, (opens, _OPENS, worker))

    def _start(self, at: float, run: float, failures: int, worker: int, attempt: int) -> None:
        self.free -= 1
        self.busy += 1
        self.busy_of[worker] += 1
        if worker in self.lanes:
            self.lanes[worker].started(at)
        heappush(self._events, (at + run, worker, run, failures, attempt))

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────

    def open(self, slots: int) -> None:
        """Begin with this many slots, all ready."""
        self.free = slots

    def resize(self, at: float, target: int) -> None:
        """Have this many slots from now on. No running job is interrupted for it."""
        more = target - self.slots
        self._count(at, self.slots + self.draining)
        if more > 0:
            self._grow(at, more)
        else:
            self._shrink(-more)
        self.next_at = min(self.next_at, self._events[0][0]) if self._events else self.next_at

    def _grow(self, at: float, n: int) -> None:
        """Add slots. Where a process has several, it is there already, unless the pool had none at all."""
        apart = self.pool.kind == "process"
        if not apart:
            kept = min(n, self.draining)
            self.draining -= kept
            n -= kept
        ready = at + PROCESS_START_SECONDS if apart or not (self.free or self.busy) else at
        self.starting += n
        for _ in range(n):
            heappush(self._events, (ready, _READY))

    def _shrink(self, n: int) -> None:
        """Remove slots: those that are starting, then free ones; the others drain."""
        gone = min(n, self.starting)
        if gone:
            self._forget_starting(gone)
        idle = min(n - gone, self.free)
        self.free -= idle
        self.draining += n - gone - idle

    def _forget_starting(self, n: int) -> None:
        starting = sorted(event for event in self._events if event[1] == _READY)
        for event in starting[-n:]:
            self._events.remove(event)
        heapify(self._events)
        self.starting -= n

    def _count(self, at: float, slots: int) -> None:
        self._slot_seconds += slots * (at - self._counted_at)
        self._counted_at = at

    def slot_seconds(self, at: float) -> float:
        """Return how long all slots have existed together, those that drain included."""
        self._count(at, self.slots + self.draining)
        return self._slot_seconds

    def busy_seconds(self, at: float) -> float:
        """Return how long slots have run jobs, those that run now included."""
        running: float = sum(event[2] - (event[0] - at) for event in self._events if event[1] >= 0)
        return sum(self.run_seconds) + running

    def take_peak(self) -> int:
        """Return the most jobs that were queued at a time since this was last asked."""
        peak, self._peak = self._peak, self.depth
        return peak

    def waits_until(self, at: float, worker: int) -> list[float]:
        """Return how long all jobs of a worker have waited; those that wait still have waited until now."""
        queued = chain(self._queue, *(lane.waiting for lane in self.lanes.values()))
        waiting = (at - due for _, due, _, _, its, attempt in queued if its == worker and attempt == 1)
        return [*self.waits[worker], *waiting]
