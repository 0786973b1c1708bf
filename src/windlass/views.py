"""Everything at a glance: each worker, each pool, who leads, what is wrong. What status and a dashboard show.

Only reads, and asks nothing for which a store would have to look at ended jobs.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from windlass.core.admission import Facts, Lane
from windlass.core.health import Health
from windlass.core.model import (
    InstanceRecord,
    PoolConfig,
    PoolDoc,
    PoolStats,
    Stats,
    WorkerConfig,
    WorkerState,
    WorkerStats,
)
from windlass.core.schedule import describe
from windlass.operations import leader_of, next_due
from windlass.store.protocol import Store


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker: its policy, its state, its jobs in numbers."""

    config: WorkerConfig
    schedule: str
    """The schedule in words."""
    state: WorkerState
    stats: WorkerStats
    next_due: float | None
    """When its schedule wants it next; None while it is disabled, has no schedule, or has never run."""


class PoolView(Struct, frozen=True, kw_only=True):
    """A pool: its bounds, what people changed about it, its jobs in numbers, and who serves it."""

    name: str
    config: PoolConfig | None
    """None for a pool that has jobs, but that no process has made known."""
    change: PoolDoc
    stats: PoolStats
    instances: int
    """Live processes that serve it."""
    workers: int
    """How many jobs these can run at a time."""
    busy: int
    oldest_wait_seconds: float | None


class Overview(Struct, frozen=True, kw_only=True):
    """All of it, at one moment."""

    at: float
    store: str
    health: Health
    leader: str | None
    """The node that leads."""
    nodes: list[str]
    """Every live node."""
    pools: list[PoolView]
    workers: list[WorkerView]


async def look(
    store: Store,
    *,
    workers: Mapping[str, WorkerConfig],
    pools: Mapping[str, PoolConfig],
    cursors: Mapping[str, float],
    health: Health,
    now: float,
) -> Overview:
    """Look once at everything. `cursors`: up to when each cron schedule has been dealt with."""
    facts = await store.survey(None, now)
    stats = await store.stats(now)
    live = [known for known in await store.instances() if known.expires_at > now]
    return Overview(
        at=now,
        store=store.url,
        health=health,
        leader=leader_of(live, now),
        nodes=sorted({known.beat.node for known in live}),
        pools=[
            _pool(name, pools.get(name), stats=stats, facts=facts, live=live, now=now)
            for name in sorted({*pools, *stats.pools})
        ],
        workers=[_worker(config, stats, facts, cursors) for config in workers.values()],
    )


def _worker(config: WorkerConfig, stats: Stats, facts: Facts, cursors: Mapping[str, float]) -> WorkerView:
    name = config.name
    lane = facts.lanes.get(name) or Lane(state=WorkerState(worker=name))
    due = next_due(config, cursor=cursors.get(name), state=lane.state) if lane.state.enabled else None
    return WorkerView(
        config=config,
        schedule=describe(config),
        state=lane.state,
        stats=stats.workers.get(name, WorkerStats()),
        next_due=due,
    )


def _pool(
    name: str, config: PoolConfig | None, *, stats: Stats, facts: Facts, live: Sequence[InstanceRecord], now: float
) -> PoolView:
    numbers = stats.pools.get(name, PoolStats())
    beats = [known.beat for known in live if known.beat.pool == name]
    return PoolView(
        name=name,
        config=config,
        change=facts.pools.get(name) or PoolDoc(),
        stats=numbers,
        instances=len(beats),
        workers=sum(beat.slots for beat in beats),
        busy=sum(beat.busy for beat in beats),
        oldest_wait_seconds=_waited(numbers, now),
    )


def _waited(numbers: PoolStats, now: float) -> float | None:
    return None if numbers.oldest_run_at is None else max(0.0, now - numbers.oldest_run_at)
