"""The overview: every worker, pool and node, the leader, and what is wrong. Status and the dashboard show it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from shiftwork.core.health.health_values import Health, Hosting
from shiftwork.core.model.doc_types import Plan, PoolDoc
from shiftwork.core.model.workers import Breaker, PoolConfig, WorkerConfig, WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, slots_of
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.scaling.backlog import Held, held_of
from shiftwork.core.scaling.bounds import Bounds, bounded, bounds_at
from shiftwork.core.scaling.plan import totals
from shiftwork.core.schedules.fire_times import describe
from shiftwork.core.schedules.timing import Rescheduled
from shiftwork.core.workers.admission import Facts, Lane
from shiftwork.core.workers.breaker import BreakerState, BreakerStatus
from shiftwork.views.snapshot import Snapshot, backlogs, failing_on, hosting, leader_of, next_due


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker: its policy, its state, and the numbers of its jobs."""

    config: WorkerConfig
    schedule: str
    """The schedule in words: the one that holds, whether it comes from the code or from a person."""
    rescheduled: Rescheduled | None
    """Who changed its schedule at run time, and when; None if it is the one in the code."""
    state: WorkerState
    stats: WorkerStats
    known: bool
    """Whether a live node has it; true of every worker while no node is live."""
    next_due: float | None
    """When its schedule runs it next; None while it is disabled, has no schedule, has never run, or while a job of it
    is under way or to be retried: its interval is counted from the end of that one."""


class PoolView(Struct, frozen=True, kw_only=True):
    """A pool: its bounds, what people changed about it, the numbers of its jobs, and what serves it."""

    name: str
    config: PoolConfig | None
    """Its configuration with the current bounds; None for a pool that has jobs but was never published."""
    bounds: Bounds | None
    """The current bounds, and where they come from."""
    change: PoolDoc
    stats: PoolStats
    instances: int
    """The number of live instances that serve it."""
    slots: int
    """How many jobs it can run at a time."""
    busy: int
    oldest_wait_seconds: float | None
    wanted: int
    """The number of slots that the plan wants it to have."""
    hosting: Hosting
    """Tells whether a live node could run its workers."""
    failing: dict[str, str]
    """The nodes that cannot start its processes, with the error."""
    unplaced: str | None
    """The reason why it has fewer slots than it should, if no node has room for more."""

    @property
    def by_hand(self) -> bool:
        """Return whether a person changed its bounds."""
        return self.change.min_workers is not None or self.change.max_workers is not None

    @property
    def running(self) -> int:
        """Return how many of its slots run a job now. Jobs that were claimed ahead are processing too."""
        return min(self.stats.processing, self.slots)


class NodePool(Struct, frozen=True, kw_only=True):
    """What a node runs of one pool."""

    pool: str
    instances: int
    workers: int
    busy: int
    memory: int
    """The bytes that its processes use."""
    cpu: float | None
    """The percentage of one core that its processes use; None if it is not known."""
    lag: float | None
    """The largest lag of its processes, in seconds; None if it is not known."""


class NodeView(Struct, frozen=True, kw_only=True):
    """A live node."""

    name: str
    host: str
    pid: int
    started_at: float
    last_beat_at: float
    leads: bool
    status: Literal["serving", "draining", "drained", "stopping"]
    """While draining, a drained node still runs jobs; once drained, it is empty."""
    drained_at: float | None
    cores: float
    memory: int
    labels: tuple[str, ...]
    pools: tuple[str, ...]
    """The pools that the node could host."""
    runs: list[NodePool]
    failing: dict[str, str]
    """The pools whose processes it cannot start, with the error."""
    cpu: float | None
    """The percentage of one core that it and its processes use; None if it is not known."""
    memory_used: int | None
    """The bytes that it and its processes use; None if it is not known."""
    lag: float | None
    """The lag of its event loop in seconds; None if it is not known."""
    store_seconds: float | None
    """How long the store takes to reply to it; None if it is not known."""


class BreakerView(Struct, frozen=True, kw_only=True):
    """A breaker: what it guards, its state, and who holds it open, if a person does."""

    name: str
    workers: list[str]
    """The workers that it guards; none if all of them are gone."""
    state: BreakerStatus
    since: float | None
    """Since when it has had this state; None if it was never open."""
    failures: int
    """How many failures opened it; while it is closed, how many it has counted lately."""
    until: float | None
    """When a run may probe it; None if it is not open, or if only a person closes it."""
    forced_by: str | None
    """Who holds it open; None if its failures opened it, or if it is not open."""
    reason: str | None


class Overview(Struct, frozen=True, kw_only=True):
    """Everything that a page shows; its parts are read side by side, see `Snapshot`."""

    at: float
    store: str
    health: Health
    leader: str | None
    """The leader's node; None if there is no leader."""
    nodes: list[str]
    """The names of all live nodes."""
    pools: list[PoolView]
    workers: list[WorkerView]
    breakers: dict[str, BreakerView]
    """Every breaker that guards a worker, or did, by name."""
    held: dict[str, Held]
    """What gates hold of each pool's queued jobs, if they hold any."""


def overview_of(seen: Snapshot, health: Health, *, store: str) -> Overview:
    """Return the overview of a snapshot. `store`: the URL of the store."""
    live = [known for known in seen.instances if known.expires_at > seen.at]
    nodes = [one.beat for one in live if one.beat.machine is not None]
    there = set[str]().union(*(beat.workers for beat in nodes)) if nodes else seen.workers
    renamed = {alias: name for name, config in seen.workers.items() for alias in config.aliases}
    return Overview(
        at=seen.at,
        store=store,
        health=health,
        leader=leader_of(live, seen.at),
        nodes=sorted({known.beat.node for known in live}),
        pools=pool_views(seen.pools, stats=seen.stats, facts=seen.facts, live=live, plan=seen.plan, now=seen.at),
        workers=[
            _worker(config, seen, known=name in there, alias_of=renamed.get(name))
            for name, config in sorted(seen.workers.items())
        ],
        breakers=breaker_views(seen.facts, seen.workers, seen.at),
        held={pool: held for pool, these in backlogs(seen, nodes).items() if (held := held_of(these)) is not None},
    )


def _worker(config: WorkerConfig, seen: Snapshot, *, known: bool, alias_of: str | None) -> WorkerView:
    name = config.name
    lane = seen.facts.lanes.get(name) or Lane(state=WorkerState(worker=name))
    due = next_due(config, cursor=seen.cursors.get(name), state=lane.state, live=lane.live)
    change = seen.rescheduled.get(name)
    if not lane.state.enabled or (due is not None and due <= seen.at and lane.live):
        due = None
    return WorkerView(
        config=config,
        schedule=describe(config, alias_of=alias_of),
        rescheduled=change if change is not None and change.timing is not None else None,
        state=lane.state,
        stats=seen.stats.workers.get(name, WorkerStats()),
        known=known,
        next_due=due,
    )


def breaker_views(facts: Facts, workers: Mapping[str, WorkerConfig], now: float) -> dict[str, BreakerView]:
    """Return every breaker that guards a worker, or did, by name."""
    guarded: dict[str, list[str]] = {name: [] for name in facts.breakers}
    for gate in facts.gates.values():
        if gate.breaker:
            guarded.setdefault(gate.breaker, []).append(gate.worker)
    return {
        name: _breaker(name, sorted(members), facts.breakers.get(name, BreakerState()), workers, now)
        for name, members in sorted(guarded.items())
    }


def _breaker(
    name: str, members: list[str], state: BreakerState, workers: Mapping[str, WorkerConfig], now: float
) -> BreakerView:
    status = state.status(now)
    policy = next((known.breaker for member in members if (known := workers.get(member)) and known.breaker), Breaker())
    recent = [at for at in state.failed_at if state.open or at > now - policy.window_seconds]
    return BreakerView(
        name=name,
        workers=members,
        state=status,
        since=state.since(now),
        failures=len(recent),
        until=state.probe_at if status == "open" else None,
        forced_by=state.forced_by if status == "open" else None,
        reason=state.reason if status == "open" else None,
    )


def pool_views(
    pools: Mapping[str, PoolConfig],
    *,
    stats: Stats,
    facts: Facts,
    live: Sequence[InstanceRecord],
    plan: Plan,
    now: float,
) -> list[PoolView]:
    """Return every pool that is known or has jobs. `live`: the instances whose leases hold."""
    beats = [known.beat for known in live]
    nodes = [beat for beat in beats if beat.machine is not None]
    alive = Plan(
        nodes={beat.node: plan.nodes.get(beat.node, {}) for beat in nodes},
        unplaced=plan.unplaced if nodes else {},
        unplaced_parts=plan.unplaced_parts,
        drained=plan.drained,
    )
    return [
        _pool(name, pools.get(name), stats.pools.get(name, PoolStats()), facts=facts, beats=beats, plan=alive, now=now)
        for name in sorted({*pools, *stats.pools})
    ]


def _pool(
    name: str,
    config: PoolConfig | None,
    numbers: PoolStats,
    *,
    facts: Facts,
    beats: Sequence[Beat],
    plan: Plan,
    now: float,
) -> PoolView:
    change = facts.pools.get(name) or PoolDoc()
    members = [beat for beat in beats if beat.pool == name]
    return PoolView(
        name=name,
        config=None if config is None else bounded(config, change, now),
        bounds=None if config is None else bounds_at(config, change, now),
        change=change,
        stats=numbers,
        instances=len(members),
        slots=sum(map(slots_of, members)),
        busy=sum(beat.busy for beat in members),
        oldest_wait_seconds=_waited(numbers, now),
        wanted=totals(plan)[name],
        hosting=hosting(config or PoolConfig(name=name), beats, plan),
        failing=failing_on(name, beats),
        unplaced=plan.why_unplaced(name),
    )


def node_views(instances: Iterable[InstanceRecord], plan: Plan, now: float) -> list[NodeView]:
    """Return every live node, oldest first."""
    live = [known for known in instances if known.expires_at > now]
    found = [_node(known, [one.beat for one in live], plan) for known in live if known.beat.machine is not None]
    return sorted(found, key=lambda node: (node.started_at, node.name))


def _node(known: InstanceRecord, beats: Sequence[Beat], plan: Plan) -> NodeView:
    beat, machine = known.beat, known.beat.machine
    assert machine is not None  # noqa: S101 - that is what makes it a node
    members = [one for one in beats if one.node == beat.node and one.pool]
    status: Literal["serving", "draining", "drained", "stopping"] = "serving"
    if beat.status == "draining":
        status = "stopping"
    elif beat.node in plan.drained:
        status = "draining" if members else "drained"
    return NodeView(
        name=beat.node,
        host=machine.host,
        pid=beat.pid,
        started_at=beat.started_at,
        last_beat_at=known.last_beat_at,
        leads=beat.status == "busy",
        status=status,
        drained_at=plan.drained.get(beat.node),
        cores=machine.cores,
        memory=machine.memory,
        labels=machine.labels,
        pools=machine.pools,
        runs=[_runs(name, members) for name in sorted({one.pool for one in members})],
        failing=machine.failing,
        cpu=machine.cpu,
        memory_used=machine.memory_used,
        lag=machine.lag,
        store_seconds=machine.store_seconds,
    )


def _runs(pool: str, members: Iterable[Beat]) -> NodePool:
    mine = [beat for beat in members if beat.pool == pool]
    return NodePool(
        pool=pool,
        instances=len(mine),
        workers=sum(map(slots_of, mine)),
        busy=sum(beat.busy for beat in mine),
        memory=sum(beat.memory for beat in mine),
        cpu=None if all(beat.cpu is None for beat in mine) else sum(beat.cpu or 0.0 for beat in mine),
        lag=max((beat.lag for beat in mine if beat.lag is not None), default=None),
    )


def _waited(numbers: PoolStats, now: float) -> float | None:
    return None if numbers.oldest_run_at is None else max(0.0, now - numbers.oldest_run_at)
