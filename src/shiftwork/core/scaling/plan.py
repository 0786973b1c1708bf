"""The plan: how many slots each pool has in all, and on which nodes.

`next_plan` makes the whole decision, from the plan as it is written and from what was seen of queues and nodes. It
decides for every pool how many slots there should be (`core.scaling.size.decide`), places them on nodes
(`core.scaling.placement.place`), and keeps what the plan remembers: which nodes are drained and which have vanished. It
writes nothing; the leader's `PoolPlanner` gathers the facts and writes the plan.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from shiftwork.core.model.doc_types import LostNode, Plan, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import Beat
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.scaling.backlog import backlog, largest_gate, unserved
from shiftwork.core.scaling.bounds import Bounds, bounds_at
from shiftwork.core.scaling.demand import WorkerWindow, observe, pool_demand
from shiftwork.core.scaling.placement import NodeCapacity, Placement, Want, place
from shiftwork.core.scaling.size import Decision, Floor, Memory, PoolLoad, decide
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Facts
from shiftwork.sentences import parts_of, plain, sentence, series

PLAN_SECONDS: Final = 1.0
"""How often the leader plans."""
REST_SECONDS: Final = 5.0
"""How often the leader plans while nothing happens; anything that happens wakes it."""
SOON_SECONDS: Final = 0.2
"""How soon after the last plan a pool without a free slot is planned for again."""
DRAIN_REMEMBERED_SECONDS: Final = 86_400.0
"""How long a node without beats stays drained, so that one that was frozen comes back as it was."""
LOST_REMEMBERED_SECONDS: Final = 600.0
"""How long a node that vanished is reported, unless it is back or another one has started on its machine."""
CORES_PER_PROCESS: Final = 1.0
"""How many cores a process of a process pool takes, unless the pool says otherwise. Other kinds mostly wait."""


class PlanMemory(Struct, frozen=True):
    """What is carried from one plan to the next. A new leader begins without it."""

    windows: Mapping[str, WorkerWindow] = field(default_factory=dict)
    """What was seen of each worker lately."""
    scaling: Mapping[str, Memory] = field(default_factory=dict)
    """What the last decision about each pool left for the next one."""


class PlanFacts(Struct, frozen=True, kw_only=True):
    """What a plan is made from."""

    now: float
    pools: Mapping[str, PoolConfig]
    """Every pool that a live node can host, as it was registered."""
    changes: Mapping[str, PoolDoc] = field(default_factory=dict)
    """What people changed about pools at run time."""
    floors: Mapping[str, Floor] = field(default_factory=dict)
    """How many slots a pool should have at least by what is expected, within its bounds."""
    stats: Mapping[str, PoolStats]
    workers: Mapping[str, WorkerStats] = field(default_factory=dict)
    pool_of: Mapping[str, str] = field(default_factory=dict)
    """The pool of each worker. Without it, nothing is known about how long jobs of the pool take."""
    admission: Facts = field(default_factory=Facts)
    """What gates say about workers with queued jobs. A worker without a lane here has no gates."""
    unknown: Collection[str] = ()
    """The workers with queued jobs that no live node has."""
    beats: Sequence[Beat]
    """The beats of all live instances; those of nodes have a `machine`."""
    priorities: Mapping[str, JobPriority]
    """The highest priority among the workers of each pool."""


Decided = dict[str, tuple[Decision, PoolLoad]]
"""The decision about each pool, and what was measured of it."""


class Planned(Struct, frozen=True, kw_only=True):
    """A plan, the decisions behind it, and the events that are worth recording."""

    plan: Plan
    decisions: Decided
    events: list[Event]
    memory: PlanMemory


def next_plan(before: Plan, facts: PlanFacts, memory: PlanMemory) -> Planned:
    """Decide for every pool, and place its slots."""
    live = {beat.node for beat in facts.beats if beat.machine is not None}
    # A plan whose nodes are all gone says nothing about how many slots there are now.
    current = totals(before) if before.nodes.keys() & live else Counter[str]()
    decided, after = decide_pools(current, facts, memory)
    return placed(before, facts, decided, after)


def placed(before: Plan, facts: PlanFacts, decided: Decided, memory: PlanMemory) -> Planned:
    """Place the slots that were decided on. `memory` is what the decisions leave for the next plan."""
    nodes = {beat.node: beat for beat in facts.beats if beat.machine is not None}
    placement = place(_wants(facts, decided), _capacities(nodes, before))
    fitted = {name: (_fitted(decision, name, placement), load) for name, (decision, load) in decided.items()}
    unplaced = _unplaced(placement, nodes)
    return Planned(
        plan=Plan(
            nodes=placement.nodes,
            unplaced={name: plain(why) for name, why in unplaced.items()},
            unplaced_parts={name: parts for name, why in unplaced.items() if (parts := parts_of(why))},
            drained=_still_drained(before.drained, nodes, facts.now),
            lost=_still_lost(before.lost, nodes, facts.now),
        ),
        decisions=fitted,
        events=[
            _event(name, decision, facts.now)
            for name, (decision, _) in fitted.items()
            if _is_new(name, decision, before)
        ],
        memory=memory,
    )


def is_at_rest(planned: Planned, facts: PlanFacts, before: PlanMemory) -> bool:
    """Return whether the next plan can wait: nothing has happened since the one before, and no pool is to change.

    Never while there are several nodes: if one leaves, its slots are wanted elsewhere at once.
    """
    if sum(beat.machine is not None for beat in facts.beats) > 1:
        return False
    quiet = all(_is_quiet(before.windows.get(worker), seen) for worker, seen in planned.memory.windows.items())
    return quiet and all(_has_its_size(decision) for decision, _ in planned.decisions.values())


def _is_quiet(before: WorkerWindow | None, seen: WorkerWindow) -> bool:
    return before is not None and not before.live and not seen.live and before.ended == seen.ended


def _has_its_size(decision: Decision) -> bool:
    """Return whether the pool has as many slots as it wants, and will not shrink after a while."""
    wanted = decision.memory.wanted
    return decision.action == "none" and bool(wanted) and wanted[-1][1] == decision.current


def totals(plan: Plan) -> Counter[str]:
    """Return how many slots each pool has in all."""
    counted: Counter[str] = Counter()
    for pools in plan.nodes.values():
        counted.update(pools)
    return counted


def with_lost(plan: Plan, lost: Mapping[str, LostNode]) -> Plan:
    """Return the plan with these nodes recorded as vanished."""
    return replace(plan, lost={**plan.lost, **lost})


# ── how many ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def decide_pools(current: Mapping[str, int], facts: PlanFacts, memory: PlanMemory) -> tuple[Decided, PlanMemory]:
    """Decide for every pool how many slots it should have. `current` is how many each has by the last plan."""
    decided: Decided = {}
    windows, scaling = observed(facts, memory), {**memory.scaling}
    by_pool: dict[str, dict[str, WorkerWindow]] = {}
    for worker, window in windows.items():
        by_pool.setdefault(facts.pool_of[worker], {})[worker] = window
    for name, pool in facts.pools.items():
        load = pool_load(
            facts.stats.get(name, PoolStats()),
            facts.workers,
            by_pool.get(name, {}),
            facts.admission,
            unknown=facts.unknown,
            slots=current.get(name, 0),
            now=facts.now,
        )
        decision = decide(
            pool,
            load,
            scaling.get(name, Memory()),
            now=facts.now,
            bounds=_bounds(name, facts),
            floor=facts.floors.get(name),
        )
        scaling[name] = decision.memory
        decided[name] = decision, load
    return decided, PlanMemory(windows, scaling)


def observed(facts: PlanFacts, memory: PlanMemory) -> dict[str, WorkerWindow]:
    """Return what was seen of each worker lately, up to now."""
    return {
        name: observe(
            memory.windows.get(name),
            stats,
            facts.now,
            calm_seconds=facts.pools[facts.pool_of[name]].scale_down_after_seconds,
        )
        for name, stats in facts.workers.items()
        if facts.pool_of.get(name) in facts.pools
    }


def pool_load(
    stats: PoolStats,
    workers: Mapping[str, WorkerStats],
    windows: Mapping[str, WorkerWindow],
    admission: Facts,
    *,
    unknown: Collection[str],
    slots: int,
    now: float,
) -> PoolLoad:
    """Return a pool as the scaling rules see it. `windows`: its workers; `unknown`: those that no live node has."""
    full = stats.processing >= slots
    backlogs = {
        name: unserved(name, workers[name].queued)
        if name in unknown
        else backlog(name, workers[name], admission, now, run_seconds=window.run_seconds, full=full)
        for name, window in windows.items()
        if workers[name].queued and (name in unknown or name in admission.lanes)
    }
    gate = largest_gate(backlogs.values())
    ungated = max(0, stats.queued - sum(one.queued for one in backlogs.values()))
    return PoolLoad(
        queue_depth=stats.queued,
        busy_slots=stats.processing,
        current=slots,
        oldest_wait_seconds=None if stats.oldest_run_at is None else max(0.0, now - stats.oldest_run_at),
        open=ungated + sum(one.open for one in backlogs.values()),
        startable=ungated + sum(one.startable for one in backlogs.values()),
        gate=gate.why if gate is not None else "",
        demand=pool_demand(windows, backlogs),
    )


def _bounds(name: str, facts: PlanFacts) -> Bounds:
    return bounds_at(facts.pools[name], facts.changes.get(name), facts.now)


def _fitted(decision: Decision, name: str, placement: Placement) -> Decision:
    """Return the decision as far as there is room for it."""
    left = placement.unplaced.get(name)
    if left is None:
        return decision
    if not placement.nodes:
        return replace(decision, reason=series("; ", [decision.reason, sentence("but {because}", because=left.why)]))
    target = decision.target - left.n
    no_room = sentence("no room for {n} of them: {why}", n=left.n, why=left.why)
    reason = series("; ", [decision.reason, no_room])
    action = "none" if target == decision.current else "scale_up" if target > decision.current else "scale_down"
    return replace(decision, target=target, action=action, reason=reason)


def _is_new(name: str, decision: Decision, plan: Plan) -> bool:
    return bool(plan.nodes) and decision.target != totals(plan)[name]


def _event(name: str, decision: Decision, now: float) -> Event:
    message = sentence(
        "pool {pool}: {n} → {slots}: {why}",
        pool=name,
        n=decision.current,
        slots=counted(decision.target, "slot"),
        why=decision.reason,
    )
    data = {"before": decision.current, "after": decision.target}
    return Event(at=now, name="pool.scaled", subject=name, message=plain(message), parts=parts_of(message), data=data)


# ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wants(facts: PlanFacts, decided: Mapping[str, tuple[Decision, PoolLoad]]) -> list[Want]:
    return [_want(facts.pools[name], decision.target, facts) for name, (decision, _) in decided.items()]


def _want(pool: PoolConfig, target: int, facts: PlanFacts) -> Want:
    return Want(
        pool=pool.name,
        target=target,
        min_workers=_bounds(pool.name, facts).low,
        cpu=cores_of(pool),
        memory=max(pool.memory or 0, _used(pool, facts.beats)),
        labels=frozenset({f"pool {pool.name}", *pool.labels}),
        priority=facts.priorities.get(pool.name, JobPriority.NORMAL),
    )


def cores_of(pool: PoolConfig) -> float:
    """Return how many cores a slot of the pool takes."""
    if pool.cpu is not None:
        return pool.cpu
    return CORES_PER_PROCESS if pool.kind == "process" else 0.0


def _used(pool: PoolConfig, beats: Sequence[Beat]) -> int:
    """Return how many bytes a process of the pool really takes, on average."""
    used = [beat.memory for beat in beats if beat.pool == pool.name and beat.apart and beat.memory]
    return sum(used) // len(used) if used and pool.kind == "process" else 0


def _capacities(nodes: Mapping[str, Beat], plan: Plan) -> list[NodeCapacity]:
    """Return what each node that takes work has; several nodes on one machine share it."""
    sharing = Counter(beat.machine.host for beat in nodes.values() if beat.machine)
    return [
        NodeCapacity(
            node=name,
            cores=beat.machine.cores / sharing[beat.machine.host],
            memory=beat.machine.memory // sharing[beat.machine.host],
            labels=frozenset({*beat.machine.labels, *(f"pool {pool}" for pool in beat.machine.pools)}),
            placed=plan.nodes.get(name, {}),
        )
        for name, beat in nodes.items()
        if beat.machine and name not in plan.drained and beat.status != "draining"
    ]


def _unplaced(placement: Placement, nodes: Mapping[str, Beat]) -> dict[str, str]:
    none_takes_work = bool(nodes) and not placement.nodes
    return {
        name: sentence("every node is drained or stopping") if none_takes_work else left.why
        for name, left in placement.unplaced.items()
    }


# ── what a plan remembers ────────────────────────────────────────────────────────────────────────────────────────────


def _still_drained(drained: Mapping[str, float], nodes: Mapping[str, Beat], now: float) -> dict[str, float]:
    return {name: since for name, since in drained.items() if name in nodes or now - since < DRAIN_REMEMBERED_SECONDS}


def _still_lost(lost: Mapping[str, LostNode], nodes: Mapping[str, Beat], now: float) -> dict[str, LostNode]:
    started: dict[str, float] = {}
    for beat in nodes.values():
        if beat.machine is not None:
            started[beat.machine.host] = max(beat.started_at, started.get(beat.machine.host, 0.0))
    return {
        name: one
        for name, one in lost.items()
        if name not in nodes and started.get(one.host, 0.0) <= one.at and now - one.at < LOST_REMEMBERED_SECONDS
    }
