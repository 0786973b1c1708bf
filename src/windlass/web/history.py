"""The last hour of every pool, for the charts: numbers that the store keeps anyway, looked at every few seconds.

One sampler for all who look. It lives in this process's memory, so it begins when the process does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field

from windlass.errors import WindlassError
from windlass.runtime.planner import read_plan, totals
from windlass.shapes import iso
from windlass.store.protocol import Store

logger: Final = logging.getLogger("windlass")

STEP_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 3_600


class PoolSample(Struct, frozen=True):
    """A pool at one moment."""

    queued: int
    processing: int
    workers: int
    wanted: int
    oldest_wait: float | None
    completed: int
    failed: int


NOTHING: Final = PoolSample(0, 0, 0, 0, None, 0, 0)
"""A pool that had not had a job yet."""


class Sample(Struct, frozen=True):
    """All pools at one moment."""

    at: float
    pools: dict[str, PoolSample]


class PoolSeries(Struct, kw_only=True):
    """A pool over time; null where it was not known. What ended is counted since the moment before."""

    queued: list[int | None] = field(default_factory=list)
    processing: list[int | None] = field(default_factory=list)
    workers: list[int | None] = field(default_factory=list)
    wanted: list[int | None] = field(default_factory=list)
    oldest_wait: list[float | None] = field(default_factory=list)
    completed: list[int | None] = field(default_factory=list)
    failed: list[int | None] = field(default_factory=list)


class Series(Struct, frozen=True, kw_only=True):
    """All pools over time. Every list is as long as `at`."""

    step: float
    at: list[str | None]
    pools: dict[str, PoolSeries]


class History:
    """Remembers."""

    def __init__(
        self, store: Callable[[], Awaitable[Store]], now: Callable[[], float], *, step: float = STEP_SECONDS
    ) -> None:
        self._store = store
        self._now = now
        self._step = step
        self._samples: deque[Sample] = deque(maxlen=int(KEPT_SECONDS / step) + 1)

    async def run(self, sampled: Callable[[], None]) -> None:
        """Look again and again, until cancelled. A store that is away leaves a gap."""
        while True:
            try:
                await self.sample()
            except WindlassError as error:
                logger.debug("no sample for the charts: %s", error)
            except Exception:  # it goes on sampling, whatever happens
                logger.exception("no sample for the charts")
            sampled()
            await asyncio.sleep(self._step)

    async def sample(self) -> None:
        """Look once: three questions, whose cost does not depend on how many jobs there are."""
        store, now = await self._store(), self._now()
        stats = (await store.stats(now)).pools
        beats = [known.beat for known in await store.instances() if known.expires_at > now]
        wanted = totals((await read_plan(store))[1])
        slots: dict[str, int] = {}
        for beat in beats:
            if beat.pool and beat.status != "draining":
                slots[beat.pool] = slots.get(beat.pool, 0) + beat.slots
        pools = {
            name: PoolSample(
                queued=pool.queued,
                processing=pool.processing,
                workers=slots.get(name, 0),
                wanted=wanted[name],
                oldest_wait=None if pool.oldest_run_at is None else max(0.0, now - pool.oldest_run_at),
                completed=pool.completed,
                failed=pool.failed,
            )
            for name, pool in stats.items()
        }
        self._samples.append(Sample(now, pools))

    def series(self, seconds: float) -> Series:
        """The last so many seconds."""
        since = self._now() - seconds
        samples = [sample for sample in self._samples if sample.at >= since]
        before = next((sample for sample in reversed(self._samples) if sample.at < since), None)
        names = sorted({name for sample in samples for name in sample.pools})
        pools = {name: PoolSeries() for name in names}
        for sample in samples:
            for name in names:
                _append(pools[name], sample.pools.get(name), before.pools.get(name, NOTHING) if before else None)
            before = sample
        return Series(step=self._step, at=[iso(sample.at) for sample in samples], pools=pools)


def _append(series: PoolSeries, now: PoolSample | None, before: PoolSample | None) -> None:
    series.queued.append(now.queued if now else None)
    series.processing.append(now.processing if now else None)
    series.workers.append(now.workers if now else None)
    series.wanted.append(now.wanted if now else None)
    series.oldest_wait.append(now.oldest_wait if now else None)
    grown = now is not None and before is not None
    series.completed.append(max(0, now.completed - before.completed) if grown and now and before else None)
    series.failed.append(max(0, now.failed - before.failed) if grown and now and before else None)
