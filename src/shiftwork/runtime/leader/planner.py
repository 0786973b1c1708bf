"""The leader's plan: how many workers each pool shall have in all, and on which nodes. Nodes keep to it.

The deciding is `core.scaling`'s; here is the looking and the writing down. Anybody may do it: the plan is changed by
compare-and-set, and whoever comes second looks again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from shiftwork.core.model import (
    Beat,
    Doc,
    Event,
    JobPriority,
    Lost,
    Plan,
    PoolConfig,
    PoolDoc,
    PoolStats,
    Stats,
)
from shiftwork.core.scaling import Decision, Memory, NodeCapacity, Placement, Seen, Want, decide, place
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.registry import Known
from shiftwork.store.protocol import Store

LOOK_SECONDS: Final = 1.0
SOON_SECONDS: Final = 0.2
"""How soon after the last plan a pool that has no free worker left is looked at again."""
PLAN: Final = "plan"
"""The name of the plan's doc."""
DRAIN_REMEMBERED_SECONDS: Final = 86_400.0
"""How long a drained node stays drained that is not heard of: one that was frozen comes back as it was."""
LOST_REMEMBERED_SECONDS: Final = 600.0
"""How long a node that vanished is missed, unless it is back, or another has begun on its machine."""
CORES_A_PROCESS: Final = 1.0
"""What a worker of a process pool takes, unless the pool says otherwise. Others are taken to wait most of the time."""


class Look(Struct, frozen=True):
    """What was seen of a pool at a time; two of them make a rate."""

    at: float
    stats: PoolStats


class Planned(Struct, frozen=True):
    """What was decided, on what grounds, and what is worth telling."""

    decisions: dict[str, tuple[Decision, Seen]]
    events: list[Event]


class Planner:
    """Looks at the queues and the nodes, and writes the plan."""

    def __init__(
        self, pools: Mapping[str, PoolConfig], workers: Mapping[str, Known], store: Store, clock: Clock
    ) -> None:
        self._pools = pools
        self._workers = workers
        self._store = store
        self._clock = clock
        self._looks: dict[str, Look] = {}
        self._memories: dict[str, Memory] = {}

    async def plan(self) -> Planned:
        """Decide for every pool, place its workers, write down what has changed."""
        while True:
            now = self._clock.now()
            stats = await self._store.stats(now)
            beats = [known.beat for known in await self._store.instances() if known.expires_at > now]
            changes = await pool_docs(self._store)
            doc, plan = await read_plan(self._store)
            nodes = {beat.node: beat for beat in beats if beat.machine is not None}
            pools = await self._known_pools(nodes.values())
            bounds = {name: bounded(pool, changes.get(name)) for name, pool in pools.items()}
            decided = self._decide(bounds, plan if plan.nodes.keys() & nodes.keys() else Plan(), stats, now)
            placement = place(self._wants(bounds, decided, beats), _capacities(nodes, plan))
            after = Plan(
                nodes=placement.nodes,
                unplaced={
                    name: left.why if placement.nodes or not nodes else "every node is drained or stopping"
                    for name, left in placement.unplaced.items()
                },
                drained={
                    name: since
                    for name, since in plan.drained.items()
                    if name in nodes or now - since < DRAIN_REMEMBERED_SECONDS
                },
                lost=_missed(plan.lost, nodes, now),
            )
            if after == plan:
                break
            if await self._store.put(Doc("plan", PLAN, msgpack.encode(after), doc.version)):
                break
        decisions = {name: _fitted(decision, name, placement) for name, (decision, _) in decided.items()}
        return Planned(
            {name: (decision, decided[name][1]) for name, decision in decisions.items()},
            [_event(name, decision, now) for name, decision in decisions.items() if _changed(name, decision, plan)],
        )

    async def _known_pools(self, nodes: Iterable[Beat]) -> dict[str, PoolConfig]:
        """Every pool that a live node can host: our own, and those that only others know."""
        hosted = {pool for beat in nodes if beat.machine for pool in beat.machine.pools}
        found = {name: pool for name, pool in self._pools.items() if name in hosted or not hosted}
        if hosted - found.keys():
            for doc in await self._store.docs("pool_config"):
                if doc.name in hosted and doc.name not in found:
                    with suppress(MsgspecError, UnicodeDecodeError):
                        found[doc.name] = msgpack.decode(doc.body, type=PoolConfig)
        return found

    def _decide(
        self, pools: Mapping[str, PoolConfig], plan: Plan, stats: Stats, now: float
    ) -> dict[str, tuple[Decision, Seen]]:
        decided: dict[str, tuple[Decision, Seen]] = {}
        current = totals(plan)
        for name, pool in pools.items():
            look = Look(now, stats.pools.get(name, PoolStats()))
            before = self._looks.get(name)
            seen = observe(look, before, workers=current[name], busy=look.stats.processing)
            if before is None or now - before.at >= LOOK_SECONDS / 2:
                self._looks[name] = look
            decision = decide(pool, seen, self._memories.get(name, Memory()), now=now)
            self._memories[name] = decision.memory
            decided[name] = decision, seen
        return decided

    def _wants(
        self, pools: Mapping[str, PoolConfig], decided: Mapping[str, tuple[Decision, Seen]], beats: Sequence[Beat]
    ) -> list[Want]:
        return [
            Want(
                pool=name,
                target=decision.target,
                min_workers=pools[name].min_workers,
                cpu=_cores(pools[name]),
                memory=max(pools[name].memory or 0, _used(pools[name], beats)),
                labels=frozenset({f"pool {name}", *pools[name].labels}),
                priority=max(
                    (callee.config.priority for callee in self._workers.values() if callee.config.pool == name),
                    default=JobPriority.NORMAL,
                ),
            )
            for name, (decision, _) in decided.items()
        ]


def _cores(pool: PoolConfig) -> float:
    if pool.cpu is not None:
        return pool.cpu
    return CORES_A_PROCESS if pool.kind == "process" else 0.0


def _used(pool: PoolConfig, beats: Sequence[Beat]) -> int:
    """What a process of the pool really takes, on average."""
    used = [beat.memory for beat in beats if beat.pool == pool.name and beat.apart and beat.memory]
    return sum(used) // len(used) if used and pool.kind == "process" else 0


def _capacities(nodes: Mapping[str, Beat], plan: Plan) -> list[NodeCapacity]:
    """What each node has; several on one machine share it."""
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


def _missed(lost: Mapping[str, Lost], nodes: Mapping[str, Beat], now: float) -> dict[str, Lost]:
    begun: dict[str, float] = {}
    for beat in nodes.values():
        if beat.machine is not None:
            begun[beat.machine.host] = max(beat.started_at, begun.get(beat.machine.host, 0.0))
    return {
        name: one
        for name, one in lost.items()
        if name not in nodes and begun.get(one.host, 0.0) <= one.at and now - one.at < LOST_REMEMBERED_SECONDS
    }


async def miss(store: Store, lost: dict[str, Lost]) -> None:
    """Write down that these nodes have vanished."""
    while True:
        doc, plan = await read_plan(store)
        after = replace(plan, lost=plan.lost | lost)
        if await store.put(Doc("plan", PLAN, msgpack.encode(after), doc.version)):
            return


def totals(plan: Plan) -> Counter[str]:
    """How many workers each pool has in all."""
    counted: Counter[str] = Counter()
    for pools in plan.nodes.values():
        counted.update(pools)
    return counted


def _fitted(decision: Decision, name: str, placement: Placement) -> Decision:
    """The decision as far as there is room for it."""
    left = placement.unplaced.get(name)
    if left is None:
        return decision
    if not placement.nodes:
        return replace(decision, reason=f"{decision.reason}; but {left.why}")
    target = decision.target - left.n
    reason = f"{decision.reason}; {left.n} more fit nowhere: {left.why}"
    action = "none" if target == decision.current else "scale_up" if target > decision.current else "scale_down"
    return replace(decision, target=target, action=action, reason=reason)


def _changed(name: str, decision: Decision, plan: Plan) -> bool:
    return bool(plan.nodes) and decision.target != totals(plan)[name]


def _event(name: str, decision: Decision, now: float) -> Event:
    message = f"pool {name}: {decision.current} → {decision.target} workers: {decision.reason}"
    data = {"before": decision.current, "after": decision.target}
    return Event(at=now, name="pool.scaled", subject=name, message=message, data=data)


async def read_plan(store: Store) -> tuple[Doc, Plan]:
    """The plan as it is written; one that cannot be read is no plan."""
    for doc in await store.docs("plan"):
        if doc.name == PLAN:
            try:
                return doc, msgpack.decode(doc.body, type=Plan)
            except (MsgspecError, UnicodeDecodeError):
                return doc, Plan()
    return Doc("plan", PLAN, b""), Plan()


def observe(look: Look, before: Look | None, *, workers: int, busy: int) -> Seen:
    """A pool as the scaling rules see it. Without an earlier look there are no rates."""
    stats = look.stats
    arrivals = mean_run = None
    if before is not None and look.at > before.at:
        arrivals = max(0, stats.added - before.stats.added) / (look.at - before.at)
    ended = stats.completed + stats.failed
    if ended:
        mean_run = stats.run_seconds / ended
    oldest = None if stats.oldest_run_at is None else max(0.0, look.at - stats.oldest_run_at)
    return Seen(
        queue_depth=stats.queued,
        busy_workers=busy,
        current=workers,
        oldest_wait_seconds=oldest,
        arrivals_per_second=arrivals,
        mean_run_seconds=mean_run,
    )


def bounded(pool: PoolConfig, change: PoolDoc | None) -> PoolConfig:
    """The pool with the bounds that people set at run time.

    Should the app have been registered anew since with a bound that no longer fits, that one gives way.
    """
    if change is None:
        return pool
    low = pool.min_workers if change.min_workers is None else change.min_workers
    high = pool.max_workers if change.max_workers is None else change.max_workers
    if low > high:
        low, high = (high, high) if change.min_workers is None else (low, low)
    return replace(pool, min_workers=low, max_workers=high)


async def pool_docs(store: Store) -> dict[str, PoolDoc]:
    """What people changed about pools at run time."""
    return {doc.name: pool_doc(doc) for doc in await store.docs("pool")}


def pool_doc(doc: Doc) -> PoolDoc:
    """What such a record says; one that cannot be read says nothing."""
    try:
        return msgpack.decode(doc.body, type=PoolDoc)
    except (MsgspecError, UnicodeDecodeError):
        return PoolDoc()
