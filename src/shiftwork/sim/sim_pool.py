"""One simulated pool: its facts as the leader sees them at a look, when a look cannot change anything, and what is kept
of it: curves, scaling steps, cost.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from shiftwork.core.model.workers import PoolConfig, WorkerState
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.options.value_checks import parse_rate
from shiftwork.core.scaling.bounds import Bounds, bounds_at
from shiftwork.core.scaling.plan import PlanFacts, PlanMemory, cores_of, decide_pools, observed
from shiftwork.core.scaling.size import Decision, PoolLoad
from shiftwork.core.workers.admission import Facts, Gates, Lane
from shiftwork.sim.pool_queue import LimitedLane, PoolJob, PoolQueue
from shiftwork.sim.scenario import Configuration
from shiftwork.sim.simulated import PoolCourse, ScalingStep, waits_of
from shiftwork.sim.traffic import SimJob

_MINUTE: Final = 60.0


HOUR: Final = 3600.0


class Recorder(Struct):
    """Keeps the curves of a pool while it is simulated."""

    queue: PoolQueue
    depth: list[int] = field(default_factory=list)
    slots: list[float] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    steps: list[ScalingStep] = field(default_factory=list)
    unplaced: str | None = None
    gate: str | None = None
    """What held most jobs when most were queued, in words; None if they waited for slots."""
    gate_depth: int = 0
    """How many were queued then."""
    _slot_seconds: float = 0.0
    _added: int = 0
    _marked_at: float = 0.0

    def mark(self, at: float) -> None:
        """End a step of the curves."""
        queue = self.queue
        slot_seconds = queue.slot_seconds(at)
        self.depth.append(queue.take_peak())
        self.slots.append((slot_seconds - self._slot_seconds) / (at - self._marked_at))
        self.arrivals.append(queue.added - self._added)
        self._slot_seconds, self._added, self._marked_at = slot_seconds, queue.added, at

    def course(self, at: float, price: float) -> PoolCourse:
        """Return everything that was kept. `price`: of a core for an hour."""
        queue = self.queue
        counts = [queue.slots, *(n for step in self.steps for n in (step.before, step.after))]
        slot_hours = queue.slot_seconds(at) / HOUR
        return PoolCourse(
            depth=self.depth,
            slots=self.slots,
            arrivals=self.arrivals,
            waits=waits_of(wait for worker in range(len(queue.waits)) for wait in queue.waits_until(at, worker)),
            steps=self.steps,
            deepest=max(self.depth, default=0),
            fewest_slots=min(counts),
            most_slots=max(counts),
            left=queue.left,
            dead=queue.dead,
            slot_hours=slot_hours,
            busy_hours=queue.busy_seconds(at) / HOUR,
            cost=slot_hours * cores_of(queue.pool) * price,
            unplaced=self.unplaced,
            gate=self.gate,
        )


class SimPool:
    """A pool of a simulated day. Times are seconds since the start of the scenario."""

    def __init__(
        self, pool: PoolConfig, jobs: Mapping[str, Sequence[SimJob]], configuration: Configuration, *, start: float
    ) -> None:
        """`jobs` are those of the pool's workers, by worker."""
        traffic = [configuration.workers[name] for name in jobs]
        self.pool = pool
        self.workers: list[str] = list(jobs)
        self.priority: Final = max(one.priority for one in traffic)
        self.queue: PoolQueue = PoolQueue(
            pool,
            merged_jobs(jobs),
            head_starts=[one.priority.head_start(pool.priority_aging_seconds) for one in traffic],
            retries=[one.max_retries for one in traffic],
            limits={
                place: LimitedLane(parse_rate(one.rate_limit) if one.rate_limit else None, one.max_running)
                for place, one in enumerate(traffic)
                if one.is_limited
            },
        )
        self.recorder: Recorder = Recorder(self.queue)
        self.current = 0
        """How many slots the plan gives it."""
        self.decided: tuple[Decision, PoolLoad]
        """The last decision, and what it was made from."""
        self._start = start
        self._memory = PlanMemory()
        self._pools = {pool.name: pool}
        self._pool_of = dict.fromkeys(jobs, pool.name)
        self._gates = {
            self.workers[place]: Gates(
                worker=self.workers[place], pool=pool.name, rate=lane.rate, max_running=lane.most
            )
            for place, lane in self.queue.lanes.items()
        }
        self._bounds = bounds_at(pool, None, start)
        self._bounds_until = _MINUTE - start % _MINUTE
        self._idle_at_look = False
        self._added_at_look = 0

    def crowded(self, now: float) -> bool:
        """Whether a node asks for a plan soon: jobs wait, no slot is free, and the pool may have more."""
        return self.queue.full and self.current < self._bounds_now(now).high

    def look(self, now: float, *, soon: bool) -> Decision | None:
        """Decide how many slots it should have; None if the look cannot change that.

        A look comes `soon` if it comes because a pool is crowded. It can change nothing for the others: no rule makes
        a pool grow beyond its running and queued jobs, and a pool shrinks after whole seconds.
        """
        if (soon and not self.crowded(now)) or self._at_rest(now):
            return None
        if self._cannot_resize(now):
            self._memory = PlanMemory(observed(self._facts(now), self._memory))
            return None
        return self.decide(now)

    def decide(self, now: float) -> Decision:
        """Decide how many slots it should have."""
        decided, self._memory = decide_pools({self.pool.name: self.current}, self._facts(now), self._memory)
        self.decided = decided[self.pool.name]
        decision, load = self.decided
        if load.queue_depth > self.recorder.gate_depth:
            self.recorder.gate, self.recorder.gate_depth = load.gate or None, load.queue_depth
        return decision

    def _at_rest(self, now: float) -> bool:
        """Whether a look can be left out: its size is fixed, or it has its minimum and has been idle since one."""
        bounds = self._bounds_now(now)
        if self.current != bounds.low:
            return False
        queue = self.queue
        was_idle, added = self._idle_at_look, self._added_at_look
        self._idle_at_look, self._added_at_look = not (queue.busy or queue.depth), queue.added
        return bounds.low == bounds.high or (was_idle and self._idle_at_look and added == queue.added)

    def _cannot_resize(self, now: float) -> bool:
        """Whether it can neither grow nor shrink, so that the look only sees how busy it is.

        It cannot grow if it has its maximum, or more slots than running and queued jobs. It cannot shrink if it has its
        minimum, or while all slots are busy and the queue is too long for it.
        """
        queue, bounds = self.queue, self._bounds_now(now)
        if self.current == bounds.low:
            return queue.busy + queue.depth <= self.current
        return (
            self.current == bounds.high
            and queue.busy >= self.current
            and queue.depth >= max(1, self.pool.scale_down_threshold)
        )

    def _bounds_now(self, now: float) -> Bounds:
        if now >= self._bounds_until and self.pool.bounds:
            self._bounds = bounds_at(self.pool, None, self._start + now)
            self._bounds_until += _MINUTE  # a cron expression fires at whole minutes
        return self._bounds

    def _facts(self, now: float) -> PlanFacts:
        queue = self.queue
        oldest = queue.oldest_due
        stats = PoolStats(
            queued=queue.depth,
            processing=queue.busy,
            retrying=queue.retrying,
            oldest_run_at=None if oldest is None else self._start + oldest,
        )
        return PlanFacts(
            now=self._start + now,
            pools=self._pools,
            stats={self.pool.name: stats},
            workers={name: self._worker(place) for place, name in enumerate(self.workers)},
            pool_of=self._pool_of,
            admission=Facts(lanes=self._lanes(), gates=self._gates),
            beats=(),
            priorities={},
        )

    def _lanes(self) -> dict[str, Lane]:
        queue, start = self.queue, self._start
        return {
            (name := self.workers[place]): Lane(
                state=WorkerState(worker=name, rate_at=start + lane.rate_at), running=queue.busy_of[place]
            )
            for place, lane in queue.lanes.items()
        }

    def _worker(self, place: int) -> WorkerStats:
        queue = self.queue
        return WorkerStats(
            queued=queue.queued_of[place],
            processing=queue.busy_of[place],
            completed=queue.completed[place],
            failed=queue.failed[place],
            run_seconds=queue.run_seconds[place],
        )


def merged_jobs(jobs: Mapping[str, Sequence[SimJob]]) -> list[PoolJob]:
    """Return the jobs of all workers in the order in which they come."""
    return sorted((*job, worker) for worker, several in enumerate(jobs.values()) for job in several)
