"""What a store knows about a system and its last day: what a day can be planned from."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.observing.beats import NodeBeat
from shiftwork.core.observing.pool_history import Hour
from shiftwork.core.scaling.bounds import bounds_at


class SystemRecord(Struct, frozen=True, kw_only=True):
    """What a store knows about a system and its last day."""

    now: float
    hours: Sequence[Hour]
    """Its history, in order."""
    pools: Mapping[str, PoolConfig]
    """The pools as registered."""
    changes: Mapping[str, PoolDoc]
    """What people changed about them."""
    workers: Mapping[str, WorkerConfig]
    machines: Sequence[NodeBeat]
    """The nodes that run now."""

    def pool(self, name: str) -> PoolConfig:
        """Return a pool with the bounds that people have set. Those of the clock stay what they are."""
        pool = self.pools.get(name) or PoolConfig(name=name)
        bounds = bounds_at(pool, self.changes.get(name), self.now)
        if bounds.by != "hand":
            return pool
        return replace(pool, min_workers=bounds.low, max_workers=bounds.high, bounds={})
