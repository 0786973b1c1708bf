"""Where a job is in its queue, and when it will start: the questions to the store. `views.explanation` has the words.

Three questions about the queue, the numbers and the instances, and a survey of the workers concerned; none of them
costs more because more jobs wait. A process that is asked again knows rates as well, from what has changed since.
"""

import asyncio
from collections.abc import Sequence
from heapq import nlargest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.core.doc_kinds import PLAN, PLAN_NAME
from shiftwork.core.health.position import LANES, Ahead, QueuePlace, parked_position, position
from shiftwork.core.health.start_estimate import (
    Line,
    Overtaking,
    QueueAhead,
    closed_until,
    growing_slots,
    overtaking,
    starts_in,
)
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.model.workers import PoolConfig, WorkerState
from shiftwork.core.observing.beats import Beat, slots_of
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.scaling.bounds import bounds_at
from shiftwork.core.scaling.demand import Demand, WorkerWindow, observe
from shiftwork.core.scaling.plan import pool_load
from shiftwork.core.scaling.size import PoolLoad
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, Obstacle, explain
from shiftwork.sentences import sentence
from shiftwork.store.docs import read
from shiftwork.store.protocol import Store
from shiftwork.views.explanation import Estimate, estimate_of, no_estimate
from shiftwork.views.snapshot import hosting

ESTIMATE_CALM_SECONDS: Final = 60.0
FORGOTTEN_SECONDS: Final = 300.0
"""What was seen longer ago than this is not used."""
KEY_JOBS: Final = 1_000
"""How many jobs with the same concurrency key are looked at: with more, there is no estimate for those behind it."""


class QueueFacts(Struct, frozen=True, kw_only=True):
    """What is known about the queue of a job at one moment."""

    now: float
    ahead: Ahead
    stats: Stats
    beats: Sequence[Beat]
    facts: Facts
    """About the worker, those that have jobs ahead of it, and those that run in the pool."""


class Estimates(CommandFamily):
    """Finds out where jobs are in their queues, and estimates when they start."""

    def __init__(self, services: ControlServices) -> None:
        super().__init__(services)
        self._windows: dict[str, WorkerWindow] = {}

    async def look(self, records: Sequence[JobRecord]) -> list[QueueFacts]:
        """Ask the store for what is known about the queues of jobs, once for all of them."""
        store, now = await self._access.open(), self._now()
        stats, instances, ahead = await asyncio.gather(store.stats(now), store.instances(), _aheads(store, records))
        busiest = sorted(stats.workers, key=lambda name: -stats.workers[name].processing)
        running = [name for name in busiest[:LANES] if stats.workers[name].processing]
        deepest = nlargest(LANES, stats.workers, lambda name: stats.workers[name].queued)
        lanes = {name for one in ahead.values() for name in one.lanes}
        facts = await store.survey({*(record.worker for record in records), *lanes, *running, *deepest}, now)
        for record in records:
            facts.gates.setdefault(record.worker, Gates(worker=record.worker, pool=record.pool))
            around = (record.worker, *ahead[record.id].lanes, *running)
            if any(name in facts.lanes and facts.lanes[name].ready is not None for name in around):
                # Parked jobs become free meanwhile, and some of them rank ahead.
                ahead[record.id] = replace(ahead[record.id], exact=False)
        self._observe(stats, now)
        beats = [known.beat for known in instances if known.expires_at > now]
        return [
            QueueFacts(now=now, ahead=ahead[record.id], stats=stats, beats=beats, facts=facts) for record in records
        ]

    async def of(self, record: JobRecord, waits: Sequence[Obstacle], seen: QueueFacts) -> Estimate:
        """Return where a job is that is queued or due later, and when it will start. `waits` is what it waits for."""
        place = position(seen.ahead, seen.stats, record.pool) if record.status is JobStatus.QUEUED else None
        unserved = next((wait for wait in waits if wait.code == "unserved"), None)
        if unserved is not None:
            return no_estimate(place, unserved.why)
        mine = self._line(record.worker, waits, seen)
        others = [self._line(name, _waits_of(name, seen), seen) for name in self._others(record, seen)]
        if record.parked and place is not None:
            same = await self._same_key(record)
            place = parked_position(place, sum(_is_ahead(other, record) and other.parked for other in same))
            if len(same) == KEY_JOBS:
                return no_estimate(
                    replace(place, exact=False),
                    sentence("{n} jobs or more have its key {key}", n=f"{KEY_JOBS:,}", key=f"{record.key!r}"),
                )
            worker_line, mine = mine, _key_line(record, mine, same)
            others.append(replace(worker_line, running=max(0, worker_line.running - mine.running)))
        load = self._load(record.pool, seen)
        queue = QueueAhead(
            now=seen.now,
            due_at=record.run_at if place is None else 0.0,
            mine=mine,
            others=others,
            slots=await self._slots(record, seen, load),
            behind_seconds=self._behind(record, seen),
            overtaking=await self._overtaking(record, load.demand, seen.now) if place is not None else (),
        )
        return estimate_of(place, queue, starts_in(queue), waits)

    def _observe(self, stats: Stats, now: float) -> None:
        known = {name: one for name, one in self._windows.items() if 0 <= now - one.at <= FORGOTTEN_SECONDS}
        self._windows = {
            name: observe(known.get(name), numbers, now, calm_seconds=ESTIMATE_CALM_SECONDS)
            for name, numbers in stats.workers.items()
        }

    def _of_pool(self, pool: str, seen: QueueFacts) -> list[str]:
        """Return the workers of the pool that concern the job, as far as they have been seen."""
        return [name for name, gates in seen.facts.gates.items() if gates.pool == pool and name in self._windows]

    def _others(self, record: JobRecord, seen: QueueFacts) -> list[str]:
        """Return the workers that take part: those with jobs ahead, and those that run in the pool."""
        running = {name for name in self._of_pool(record.pool, seen) if seen.stats.workers[name].processing}
        return sorted((seen.ahead.lanes.keys() | running) - {record.worker})

    def _line(self, worker: str, waits: Sequence[Obstacle], seen: QueueFacts) -> Line:
        gates = seen.facts.gates.get(worker) or Gates(worker=worker)
        lane = seen.facts.lanes[worker]
        ahead = seen.ahead.lanes.get(worker, 0)
        return Line(
            worker=worker,
            ahead=ahead,
            running=seen.stats.workers.get(worker, WorkerStats()).processing,
            run_seconds=self._run_seconds(worker),
            most=gates.max_running,
            rate=gates.rate,
            rate_at=lane.state.rate_at,
            opens_at=closed_until(
                waits, seen.facts.lanes, self._run_seconds, worker=worker, first=not ahead, now=seen.now
            ),
            eldest_at=lane.eldest.started_at if lane.eldest else None,
            newest_at=lane.newest_started_at,
        )

    def _run_seconds(self, worker: str) -> float | None:
        window = self._windows.get(worker)
        return None if window is None else window.run_seconds

    async def _same_key(self, record: JobRecord) -> list[JobRecord]:
        """Return the queued and running jobs that have the concurrency key of a job."""
        store = await self._access.open()
        live = (JobStatus.PROCESSING, JobStatus.QUEUED)
        return await store.find(JobFilter(worker=record.worker, key=record.key, status=live, limit=KEY_JOBS))

    def _behind(self, record: JobRecord, seen: QueueFacts) -> float | None:
        """Return the average run time of the jobs that are queued in the pool behind this one."""
        jobs = seconds = 0.0
        for name in self._of_pool(record.pool, seen):
            behind = seen.stats.workers[name].queued - seen.ahead.lanes.get(name, 0)
            if name != record.worker and behind > 0:
                jobs += behind
                seconds += behind * (self._run_seconds(name) or 0.0)
        return seconds / jobs if jobs else None

    def _load(self, pool: str, seen: QueueFacts) -> PoolLoad:
        """Return a pool as the scaling rules see it, as far as its workers have been surveyed."""
        return pool_load(
            seen.stats.pools.get(pool, PoolStats()),
            seen.stats.workers,
            {name: self._windows[name] for name in self._of_pool(pool, seen)},
            seen.facts,
            unknown=seen.stats.workers.keys() - {name for beat in seen.beats for name in beat.workers},
            slots=sum(slots_of(beat) for beat in seen.beats if beat.pool == pool),
            now=seen.now,
        )

    async def _slots(self, record: JobRecord, seen: QueueFacts, load: PoolLoad) -> list[tuple[float, int]]:
        """Return how many slots could run the job, now and once the pool has grown."""
        mine = [beat for beat in seen.beats if beat.pool == record.pool and record.worker in beat.workers]
        slots, now = sum(map(slots_of, mine)), seen.now
        if not any(hosts(beat, record.pool) for beat in seen.beats):
            return [(now, slots)]
        pool = await self._pool(record.pool)
        bounds = bounds_at(pool, seen.facts.pools.get(record.pool), now)
        if slots >= bounds.high or await self.no_more_slots(record.pool, seen.beats) is not None:
            return [(now, slots)]
        # Whatever holds the others, the job itself will want a slot.
        depth, unheld, startable = (max(1, n or 0) for n in (load.queue_depth, load.open, load.startable))
        wanted = replace(load, queue_depth=depth, open=unheld, startable=startable, current=slots)
        return growing_slots(pool, bounds, wanted, now)

    async def _pool(self, name: str) -> PoolConfig:
        ours = self._registry.pool_configs().get(name)
        if ours is not None:
            return ours
        return (await self._definitions.published()).pools.get(name) or PoolConfig(name=name)

    async def no_more_slots(self, name: str, beats: Sequence[Beat]) -> str | None:
        """Return why no node starts more slots of a pool; None if nothing is known against it."""
        plan = await read(await self._access.open(), PLAN, PLAN_NAME) or Plan()
        pool = await self._pool(name)
        match hosting(pool, beats, plan):
            case "labels":
                options = " ".join(f"--label {label}" for label in pool.labels)
                labels = ", ".join(pool.labels)
                return sentence(
                    "no live node has the labels of pool {pool} ({labels}): start one with `shiftwork run {options}`",
                    pool=name,
                    labels=labels,
                    options=options,
                )
            case "drained":
                return sentence("every node that could serve pool {pool} is drained or stopping", pool=name)
        why = plan.why_unplaced(name)
        return None if why is None else sentence("pool {pool} has no room for a slot: {why}", pool=name, why=why)

    async def _overtaking(self, record: JobRecord, demand: Demand, now: float) -> list[Overtaking]:
        """Return the slots that jobs will take which are still to come and rank ahead; none where no rate is known."""
        if not demand.shares:
            return []
        workers = self._registry.worker_configs()
        if any(share.worker not in workers for share in demand.shares):
            workers = (await self._definitions.published()).workers | workers
        aging = (await self._pool(record.pool)).priority_aging_seconds
        head_starts = {name: config.priority.head_start(aging) for name, config in workers.items()}
        return overtaking(record.rank, head_starts, demand, now)


async def _aheads(store: Store, records: Sequence[JobRecord]) -> dict[str, Ahead]:
    """Ask how many jobs are ahead of each of these jobs, one question for each pool."""
    by_pool: dict[str, list[JobRecord]] = {}
    for record in records:
        by_pool.setdefault(record.pool, []).append(record)
    asked = [
        store.ahead(pool, [QueuePlace(record.rank, record.id, record.worker) for record in some])
        for pool, some in by_pool.items()
    ]
    answers = await asyncio.gather(*asked)
    ids = [[record.id for record in some] for some in by_pool.values()]
    return {id: one for some, found in zip(ids, answers, strict=True) for id, one in zip(some, found, strict=True)}


def _key_line(record: JobRecord, worker_line: Line, same: Sequence[JobRecord]) -> Line:
    """Return the line of the jobs that share a concurrency key, at whose end a parked job stands."""
    running = [other for other in same if other.status is JobStatus.PROCESSING]
    began = [other.started_at or 0.0 for other in running]
    return replace(
        worker_line,
        ahead=sum(_is_ahead(other, record) for other in same),
        running=len(running),
        most=record.key_limit,
        key=record.key,
        eldest_at=min(began, default=None),
        newest_at=max(began, default=None),
    )


def _is_ahead(other: JobRecord, record: JobRecord) -> bool:
    return other.status is JobStatus.QUEUED and (other.rank, other.id) < (record.rank, record.id)


def hosts(beat: Beat, pool: str) -> bool:
    """Return whether this is the beat of a node that can start slots of a pool."""
    return beat.machine is not None and pool in beat.machine.pools and pool not in beat.machine.failing


def _waits_of(worker: str, seen: QueueFacts) -> list[Obstacle]:
    """Return what holds back the first job of another worker."""
    lane = seen.facts.lanes.get(worker) or Lane(state=WorkerState(worker=worker))
    return explain(worker, lane.head or Head(0.0, "", seen.now), seen.facts, seen.now)
