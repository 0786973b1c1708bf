"""Looks at the queues and resizes the engines of this process. The deciding is `core.scaling`'s."""

from collections.abc import Mapping
from typing import Final

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from windlass.core.model import Doc, PoolConfig, PoolDoc, PoolStats, Stats
from windlass.core.scaling import Decision, Memory, Seen, decide
from windlass.runtime.clock import Clock
from windlass.runtime.engine import Engine
from windlass.runtime.reporter import Reporter
from windlass.store.protocol import Store

LOOK_SECONDS: Final = 1.0


class Look(Struct, frozen=True):
    """What was seen of a pool at a time; two of them make a rate."""

    at: float
    stats: PoolStats


class Scaler:
    """Decides for every engine how many jobs it may run at a time."""

    def __init__(self, engines: Mapping[str, Engine], store: Store, clock: Clock, reporter: Reporter) -> None:
        self._engines = engines
        self._store = store
        self._clock = clock
        self._reporter = reporter
        self._looks: dict[str, Look] = {}
        self._memories: dict[str, Memory] = {}

    async def poll(self) -> float | None:
        """Scale; look again soon if there is anything to scale."""
        elastic = any(engine.pool.min_workers != engine.pool.max_workers for engine in self._engines.values())
        if not elastic:
            return None
        await self.scale()
        return self._clock.now() + LOOK_SECONDS

    async def scale(self) -> dict[str, tuple[Decision, Seen]]:
        """Decide for every pool, and resize the engines accordingly; answers with each decision and what it saw."""
        now = self._clock.now()
        stats = await self._store.stats(now)
        changes = await pool_docs(self._store)
        decisions = {name: self._decide(engine, stats, changes, now) for name, engine in self._engines.items()}
        for name, (decision, _) in decisions.items():
            if decision.target != decision.current:
                self._engines[name].resize(decision.target)
                message = f"pool {name}: {decision.current} → {decision.target} workers: {decision.reason}"
                self._reporter.emit("pool.scaled", name, message, before=decision.current, after=decision.target)
        return decisions

    def _decide(
        self, engine: Engine, stats: Stats, changes: Mapping[str, PoolDoc], now: float
    ) -> tuple[Decision, Seen]:
        name = engine.pool.name
        look = Look(now, stats.pools.get(name, PoolStats()))
        seen = observe(look, self._looks.get(name), workers=engine.slots, busy=len(engine.runs))
        pool = bounded(engine.pool, changes.get(name))
        decision = decide(pool, seen, self._memories.get(name, Memory()), now=now)
        self._looks[name] = look
        self._memories[name] = decision.memory
        return decision, seen


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
    """The pool with the bounds that people set at run time."""
    if change is None:
        return pool
    low = pool.min_workers if change.min_workers is None else change.min_workers
    high = pool.max_workers if change.max_workers is None else change.max_workers
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
