"""Pools: what is known about them, pausing them, and their bounds.

A change is a record in the store and holds for every process until it is changed again. Running nodes follow it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.control.access.audit import because
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.core.doc_kinds import POOL
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import Beat, InstanceRecord, WorkerInstance
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.options.configs import check_bounds
from shiftwork.core.scaling.bounds import bounded, bounds_at
from shiftwork.core.scaling.plan import Planned
from shiftwork.errors import ConfigurationError, UnknownPoolError, nearest
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.pool_planner import PoolPlanner
from shiftwork.sentences import sentence
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store
from shiftwork.views.instances import dashboard_entry, held, instance_of, place

Here = Callable[[], Mapping[str, tuple[Beat, list[str]]]]
"""Returns the instances of this process: what each would beat now, and the jobs that it runs."""
RUNNING_PAGE: Final = 1_000
"""How many running jobs are read at a time."""


class Pools(CommandFamily):
    """Reads and changes pools, for every process that shares the store."""

    def __init__(self, services: ControlServices, clock: Clock, here: Here) -> None:
        super().__init__(services)
        self._clock = clock
        self._here = here

    async def all(self) -> dict[str, PoolConfig]:
        """Return every pool that this process or another one registered in this store, as it was registered."""
        return dict(sorted((await self._definitions.pools() | self._registry.pool_configs()).items()))

    async def get(self, name: str) -> PoolConfig:
        """Return one pool as it was registered. Raises `UnknownPoolError`."""
        pools = await self.all()
        if name not in pools:
            message = sentence("there is no pool {what}: {hint}", what=f"{name!r}", hint=nearest(name, pools))
            raise UnknownPoolError(message)
        return pools[name]

    async def pause(self, name: str, reason: str | None = None) -> None:
        """Start no more jobs of a pool, anywhere. Running jobs continue."""
        since = self._clock.now()
        await self._change(name, lambda before: replace(before, paused=True, reason=reason, since=since))
        message = because(sentence("pool {pool} is paused", pool=name), reason)
        await self._audit.record("pool.paused", name, message, reason=reason)

    async def resume(self, name: str) -> None:
        """Start jobs of a paused pool again."""
        await self._change(name, lambda before: replace(before, paused=False, reason=None, since=None))
        await self._audit.record("pool.resumed", name, sentence("pool {pool} is resumed", pool=name), reason=None)

    async def scale(
        self, name: str, min_workers: int | None = None, max_workers: int | None = None, *, reset: bool = False
    ) -> PoolConfig:
        """Set a pool's bounds, one or both, for all nodes together, and return the pool with its new bounds.

        `reset` first restores the bounds that the pool was registered with.
        """
        if min_workers is None and max_workers is None and not reset:
            message = sentence(
                "pool {what}: nothing to change; give min_workers, max_workers or reset", what=f"{name!r}"
            )
            raise ConfigurationError(message)
        await self._access.open_to_change()
        pool, now = await self.get(name), self._clock.now()
        before, after = await self._change(name, _bounds_setter(pool, min_workers, max_workers, reset=reset, now=now))
        old, new = bounds_at(pool, before, now), bounds_at(pool, after, now)
        message = sentence(
            "pool {pool} may have {n} to {n2} slots, {why}; it was {n3} to {n4}",
            pool=name,
            n=new.low,
            n2=new.high,
            why=new.why,
            n3=old.low,
            n4=old.high,
        )
        data = {"min_workers": after.min_workers, "max_workers": after.max_workers}
        await self._audit.record("pool.bounds", name, message, **data)
        return bounded(pool, after, now)

    async def instances(self, pool: str | None = None) -> list[WorkerInstance]:
        """Return the running instances of every pool, or of one, with the jobs that they run."""
        found = [one for one in await self._instances() if pool in {None, one["pool"]}]
        return sorted(found, key=place)

    async def dashboard(self) -> dict[str, dict[str, Any]]:
        """Return every pool with its instances and its numbers."""
        store = await self._access.open()
        stats = (await store.stats(self._clock.now())).pools
        instances: dict[str, list[WorkerInstance]] = {}
        for one in await self._instances():
            instances.setdefault(one["pool"], []).append(one)
        names = sorted({*stats, *instances, *await self.all()})
        return {name: dashboard_entry(stats.get(name, PoolStats()), instances.get(name, [])) for name in names}

    async def plan(self) -> Planned:
        """Decide how many slots each pool should have, in a process that runs no node, and write it down."""
        store = await self._access.open()
        planned = await PoolPlanner(await self.all(), self._registry.workers, store, self._clock).plan()
        await self._audit.publish(planned.events)
        return planned

    async def _change(self, name: str, new: Callable[[PoolDoc], PoolDoc]) -> tuple[PoolDoc, PoolDoc]:
        await self.get(name)
        store = await self._access.open()
        before, after = await change(store, POOL, name, lambda before: new(before or PoolDoc()))
        return before or PoolDoc(), after

    async def _instances(self) -> list[WorkerInstance]:
        store, now = await self._access.open(), self._clock.now()
        known = {record.beat.instance: record for record in await store.instances() if record.beat.pool}
        here = self._here()
        jobs = await _held_elsewhere(store) if known.keys() - here.keys() else {}
        for name, (beat, runs) in here.items():
            before = known.get(name) or InstanceRecord(beat, math.inf, now)
            known[name], jobs[name] = replace(before, beat=beat), runs
        return [instance_of(record, jobs.get(name, []), now) for name, record in known.items()]


def _bounds_setter(
    pool: PoolConfig, low: int | None, high: int | None, *, reset: bool, now: float
) -> Callable[[PoolDoc], PoolDoc]:
    def set_bounds(before: PoolDoc) -> PoolDoc:
        if reset:
            before = replace(before, min_workers=None, max_workers=None)
        after = replace(
            before,
            min_workers=before.min_workers if low is None else low,
            max_workers=before.max_workers if high is None else high,
        )
        if low is not None or high is not None:
            check_bounds(pool, after, now)
        return after

    return set_bounds


async def _held_elsewhere(store: Store) -> dict[str, list[str]]:
    """Return the ids of the jobs that instances hold, by instance, as the store knows them."""
    found: list[JobRecord] = []
    wanted = JobFilter(status=(JobStatus.PROCESSING,), limit=RUNNING_PAGE)
    while True:
        page = await store.find(wanted)
        found += page
        if len(page) < RUNNING_PAGE:
            return held(found)
        wanted = replace(wanted, after=page[-1].id)
