"""Pools that are no longer registered, but in which registered workers still have jobs."""

import logging
from collections.abc import Collection
from typing import Final

from shiftwork.core.model import LIVE, JobFilter, JobStatus, PoolConfig
from shiftwork.core.stats import Stats
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")


async def left_pools(
    store: Store, *, registered: Collection[str], workers: Collection[str], stats: Stats
) -> list[PoolConfig]:
    """The pools beside the registered ones in which these workers have jobs. Each is served with one slot."""
    left: list[PoolConfig] = []
    live = tuple(JobStatus(status) for status in LIVE)
    for name in stats.pools.keys() - set(registered):
        for worker in workers:
            if await store.find(JobFilter(pool=name, worker=worker, status=live, limit=1)):
                logger.info("pool %s is not registered, but %s has jobs in it; they run one at a time", name, worker)
                left.append(PoolConfig(name=name, max_workers=1))
                break
    return left
