"""A snapshot of everything, and what is wrong in it. Only values: `control` reads them from the store."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from shiftwork.core.health.health_values import (
    UNKNOWN_SECONDS,
    Health,
    HealthFacts,
    Hosting,
    InstanceFacts,
    NodeFacts,
    PoolFacts,
    StrandedFacts,
    Strays,
    UnknownFacts,
    WorkerFacts,
    WriteFault,
)
from shiftwork.core.health.verdict import judge
from shiftwork.core.model.doc_types import Plan, PoolDoc
from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, NodeBeat, slots_of
from shiftwork.core.observing.pool_stats import ExpiredLately, PoolStats, Stats, WorkerStats
from shiftwork.core.observing.run_histograms import long_runs
from shiftwork.core.scaling.backlog import Backlog, backlog, main_gate, unserved
from shiftwork.core.scaling.bounds import bounded
from shiftwork.core.schedules.fire_times import Cursor, pause, upcoming
from shiftwork.core.schedules.timing import Rescheduled
from shiftwork.core.workers.admission import Facts, Lane, Running
from shiftwork.core.workers.edition import Edition
from shiftwork.core.workers.state import is_failing
from shiftwork.sentences import sentence


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything that the overview and the health rules need, read once.

    Each part is what the store held at one moment, but the parts are read side by side, some milliseconds apart. A job
    that starts in between may be counted as queued and found running, or neither. The rules bear that: what they call
    wrong has lasted for seconds.
    """

    at: float
    """When the store was asked, by its clock."""
    facts: Facts
    stats: Stats
    instances: list[InstanceRecord]
    workers: dict[str, WorkerConfig]
    """Every published worker, with the schedule that holds."""
    rescheduled: dict[str, Rescheduled] = {}
    """What people changed about the schedules of workers."""
    pools: dict[str, PoolConfig]
    """Every published pool."""
    cursors: dict[str, Cursor]
    """How far the schedules have fired."""
    plan: Plan
    keys_in_use: set[str]
    """The ids of the keys that jobs are encrypted with."""
    edition: Edition | None = None
    """Which definitions the store holds."""
    expired: dict[str, ExpiredLately] = {}
    """How many jobs of each pool have expired lately."""
    stranded: list[StrandedFacts] = []
    """Flows with jobs that cannot run, some of the newest."""


def judged(
    seen: Snapshot, strays: Mapping[str, Strays], *, lease_seconds: float, store_fault: WriteFault | None = None
) -> Health:
    """Return what is wrong in a snapshot. `store_fault`: what this process cannot do with the store."""
    live = [known.beat for known in seen.instances if known.expires_at > seen.at and known.beat.machine is not None]
    nodes = [(known, known.beat.machine) for known in seen.instances if known.beat.machine]
    faults = {
        sentence("node {node}", node=beat.node): WriteFault(beat.machine.store_fault, beat.machine.store_fault_since)
        for beat in live
        if beat.machine and beat.machine.store_fault
    }
    if store_fault is not None:
        faults[sentence("this process")] = store_fault
    there = {worker for beat in live for worker in beat.workers}
    return judge(
        HealthFacts(
            store_faults=faults,
            workers=[_worker_facts(config, seen) for name, config in seen.workers.items() if name in there or not live],
            unknown=_unknown(seen, live, there),
            nodes=[_node_facts(known, machine, lease_seconds) for known, machine in nodes],
            instances=[_instance_facts(known, strays, lease_seconds) for known in seen.instances if known.beat.pool],
            lost=seen.plan.lost,
            pools=_pool_facts(seen, live),
            stranded=seen.stranded,
            breakers=seen.facts.breakers,
            leader=leader_of(seen.instances, seen.at) is not None,
            leaderless_since=max(led_until(seen.instances), default=None),
            keys_in_use=seen.keys_in_use,
            edition=seen.edition,
        ),
        seen.at,
    )


def _unknown(seen: Snapshot, nodes: Sequence[Beat], there: Container[str]) -> dict[str, UnknownFacts]:
    """Return how many jobs are queued for workers that no live node has. Pools that no node has are not counted.

    Only those count that have waited for some time, beside a node that has run for some time.
    """
    if not any(seen.at - beat.started_at > UNKNOWN_SECONDS for beat in nodes):
        return {}
    pools = {pool for beat in nodes if beat.machine for pool in beat.machine.pools}
    return {
        name: UnknownFacts(stats.queued, _head_since(seen, name))
        for name, stats in seen.stats.workers.items()
        if stats.queued
        and name not in there
        and _has_waited(seen, name)
        and (name not in seen.workers or seen.workers[name].pool in pools)
    }


def _has_waited(seen: Snapshot, worker: str) -> bool:
    since = _head_since(seen, worker)
    return since is None or seen.at - since > UNKNOWN_SECONDS


def _head_since(seen: Snapshot, worker: str) -> float | None:
    lane = seen.facts.lanes.get(worker)
    return lane.head.since if lane is not None and lane.head is not None else None


def _worker_facts(config: WorkerConfig, seen: Snapshot) -> WorkerFacts:
    lane = seen.facts.lanes.get(config.name) or Lane(state=WorkerState(worker=config.name))
    due = next_due(config, cursor=seen.cursors.get(config.name), state=lane.state, live=False)
    retrying = seen.stats.workers.get(config.name, WorkerStats()).retrying
    waits_since = None if lane.head is None else lane.head.since
    return WorkerFacts(
        config=config, state=lane.state, next_due=due, live=lane.live, retrying=retrying, waits_since=waits_since
    )


def next_due(config: WorkerConfig, *, cursor: Cursor | None, state: WorkerState, live: bool) -> float | None:
    """Return when the worker's schedule runs it next; None without a schedule, or before the first run.

    An interval counts from the end of the last run, so it is not known while a job of the worker is `live`: while it
    waits, runs, or is to be retried.
    """
    if config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return None
    at = None if cursor is None else cursor.of(config, state)
    if config.cron is not None:
        return None if at is None else next(iter(upcoming(config, at, 1)), None)
    ended = state.last_ended if at is None else at
    return None if live or ended is None else ended + pause(config)


def _node_facts(known: InstanceRecord, machine: NodeBeat, lease_seconds: float) -> NodeFacts:
    return NodeFacts(
        name=known.beat.node,
        host=machine.host,
        last_beat_at=known.last_beat_at,
        ttl=lease_seconds,
        keys=machine.keys,
    )


def _instance_facts(known: InstanceRecord, strays: Mapping[str, Strays], lease_seconds: float) -> InstanceFacts:
    beat, stuck = known.beat, strays.get(known.beat.instance, Strays())
    return InstanceFacts(
        id=beat.instance,
        node=beat.node,
        pool=beat.pool,
        last_beat_at=known.last_beat_at,
        ttl=lease_seconds,
        stuck_threads=stuck.runs,
        stuck_since=stuck.since,
    )


def _pool_facts(seen: Snapshot, nodes: Sequence[Beat]) -> list[PoolFacts]:
    superseded, slots = _superseded(seen), _slots(seen)
    by_pool, held = _workers_by_pool(seen), backlogs(seen, nodes)
    return [
        _pool_fact(
            name,
            seen,
            nodes,
            by_pool.get(name, ()),
            superseded=superseded[name],
            slots=slots[name],
            held=held.get(name, ()),
        )
        for name in {*seen.pools, *seen.stats.pools}
    ]


def backlogs(seen: Snapshot, nodes: Sequence[Beat]) -> dict[str, list[Backlog]]:
    """Return what holds the queued jobs of each worker that has any, by pool. `nodes`: the beats of live nodes."""
    there, slots = {worker for beat in nodes for worker in beat.workers}, _slots(seen)
    found: dict[str, list[Backlog]] = {}
    for pool, workers in _workers_by_pool(seen).items():
        numbers = {name: one for name in workers if (one := seen.stats.workers[name]).queued}
        full = seen.stats.pools.get(pool, PoolStats()).processing >= slots[pool]
        found[pool] = [
            backlog(name, one, seen.facts, seen.at, full=full)
            if name in there or not nodes
            else unserved(name, one.queued)
            for name, one in numbers.items()
        ]
    return found


def _slots(seen: Snapshot) -> Counter[str]:
    """Return how many slots each pool has, on live instances."""
    slots: Counter[str] = Counter()
    for known in seen.instances:
        if known.expires_at > seen.at and known.beat.pool:
            slots[known.beat.pool] += slots_of(known.beat)
    return slots


def _workers_by_pool(seen: Snapshot) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in seen.stats.workers:
        gates, config = seen.facts.gates.get(name), seen.workers.get(name)
        pool = config.pool if config is not None else gates.pool if gates is not None else ""
        found.setdefault(pool, []).append(name)
    return found


def _superseded(seen: Snapshot) -> Counter[str]:
    """Return how many dead jobs of each pool are runs of schedules that have succeeded since: nothing is left to do."""
    counts: Counter[str] = Counter()
    for name, config in seen.workers.items():
        lane, stats = seen.facts.lanes.get(name), seen.stats.workers.get(name)
        if config.execution_mode is WorkerExecutionMode.TRIGGERED or lane is None or stats is None:
            continue
        if lane.state.last_success is not None and not is_failing(lane.state):
            counts[config.pool] += stats.dead
    return counts


def _pool_fact(
    name: str,
    seen: Snapshot,
    nodes: Sequence[Beat],
    workers: Sequence[str],
    *,
    superseded: int,
    slots: int,
    held: Iterable[Backlog],
) -> PoolFacts:
    change, stats = seen.facts.pools.get(name) or PoolDoc(), seen.stats.pools.get(name) or PoolStats()
    config = bounded(seen.pools.get(name) or PoolConfig(name=name, min_workers=0), change, seen.at)
    runs, expired = _runs_of(workers, seen), seen.expired.get(name, ExpiredLately())
    return PoolFacts(
        name=name,
        queued=stats.queued,
        oldest_wait_seconds=None if stats.oldest_run_at is None else seen.at - stats.oldest_run_at,
        target_latency_seconds=config.target_latency_seconds,
        min_workers=config.min_workers,
        max_workers=config.max_workers,
        paused=change.paused,
        paused_at=change.since,
        reason=change.reason,
        served=name in seen.facts.served,
        served_until=None if name in seen.facts.served else _served_until(name, seen),
        slots=slots,
        running=stats.processing,
        gate=main_gate(held),
        newest_start=max((one.newest for one in runs), default=None),
        usual_seconds=max((one.usual for one in runs if one.usual is not None), default=None),
        long_seconds=max((one.long for one in runs if one.long is not None), default=None),
        untimed=any(one.usual is None for one in runs),
        eldest=min(runs, key=lambda one: one.eldest.started_at).eldest.id if runs else None,
        expired=expired.number(seen.at),
        expired_since=expired.since(seen.at),
        dead=max(0, stats.dead - superseded),
        hosting=hosting(config, nodes, seen.plan),
        labels=config.labels,
        failing=failing_on(name, nodes),
        unplaced=seen.plan.why_unplaced(name) if nodes else None,
    )


def _served_until(pool: str, seen: Snapshot) -> float | None:
    """Return when the lease of the pool's last instance ended; None if none is known any longer, or if one lives."""
    ended = [known.expires_at for known in seen.instances if known.beat.pool == pool]
    return max((at for at in ended if at <= seen.at), default=None)


class _Runs(Struct, frozen=True):
    """The runs of a worker."""

    newest: float
    eldest: Running
    usual: float | None
    """How long a run takes on average; None if none has ended."""
    long: float | None
    """How long its long runs take; None if that was not counted."""


def _runs_of(workers: Sequence[str], seen: Snapshot) -> list[_Runs]:
    found: list[_Runs] = []
    for name in workers:
        lane, stats = seen.facts.lanes.get(name), seen.stats.workers[name]
        if lane is None or lane.eldest is None or lane.newest_started_at is None:
            continue
        ended = stats.completed + stats.failed
        usual = stats.run_seconds / ended if ended else None
        found.append(_Runs(lane.newest_started_at, lane.eldest, usual, long_runs(stats.marks)))
    return found


def hosting(pool: PoolConfig, nodes: Iterable[Beat], plan: Plan) -> Hosting:
    """Return whether any of these nodes could run workers of the pool."""
    there = [(beat, beat.machine) for beat in nodes if beat.machine is not None]
    knowing = [(beat, machine) for beat, machine in there if pool.name in machine.pools]
    fit = [beat for beat, machine in knowing if {*pool.labels} <= {*machine.labels}]
    if not fit:
        return "labels" if knowing else "unknown" if there else "no_node"
    return "ready" if any(beat.node not in plan.drained and beat.status != "draining" for beat in fit) else "drained"


def failing_on(pool: str, nodes: Iterable[Beat]) -> dict[str, str]:
    """Return the nodes that cannot start processes of the pool, with the error."""
    return {beat.node: beat.machine.failing[pool] for beat in nodes if beat.machine and pool in beat.machine.failing}


def led_until(instances: Iterable[InstanceRecord]) -> Iterator[float]:
    """Yield until when each instance that led, or leads, has its lease."""
    return (known.expires_at for known in instances if not known.beat.pool and known.beat.status == "busy")


def leader_of(instances: Iterable[InstanceRecord], now: float) -> str | None:
    """Return the leader's node, if there is a leader: a busy instance without a pool."""
    leaders = (known for known in instances if not known.beat.pool and known.beat.status == "busy")
    return next((known.beat.node for known in leaders if known.expires_at > now), None)
