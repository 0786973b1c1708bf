"""Firing schedules: fire times that have come become jobs, and cursors move past them.

Jobs are added first, cursors move second. A crash in between fires the same ids again, and the same id is the same job.
"""

import logging
from typing import Final

from shiftwork.core.admission import Lane
from shiftwork.core.docs import SCHEDULE
from shiftwork.core.model import Doc, NewJob, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.plurals import counted
from shiftwork.core.schedule import Cursor, Fire, fire
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.reporter import Reporter
from shiftwork.store.docs import stored_all, write
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

NO_ARGUMENTS: Final = b"\x80"
"""The payload of a scheduled run: an empty map."""


class Schedules:
    """Fires the schedules of the workers that have one."""

    def __init__(self, registry: Registry, store: Store, reporter: Reporter) -> None:
        self._registry = registry
        self._store = store
        self._reporter = reporter
        self._timed: dict[str, WorkerConfig] = {}
        self.adopt()

    def adopt(self) -> None:
        """Fire the schedules of all workers that are registered now."""
        self._timed = {
            name: worker.config
            for name, worker in self._registry.workers.items()
            if worker.config.execution_mode is not WorkerExecutionMode.TRIGGERED
        }

    async def poll(self, now: float) -> float | None:
        """Fire what is due; return when something will be due next."""
        if not self._timed:
            return None
        docs = await stored_all(self._store, SCHEDULE)
        cursors = {name: _cursor(docs.get(name), config) for name, config in self._timed.items()}
        fires = await self._fires(cursors, now)
        jobs = [job for name, fired in fires.items() for job in self._jobs(self._timed[name], fired, now)]
        if jobs:
            await self._store.add(jobs, now)
        for name, fired in fires.items():
            self._report_skipped(name, fired)
            if fired.cursor is not None and fired.cursor != cursors[name]:
                await self._advance(name, fired.cursor, docs.get(name))
        return min((fired.next_at for fired in fires.values() if fired.next_at is not None), default=None)

    async def _fires(self, cursors: dict[str, float | None], now: float) -> dict[str, Fire]:
        known = (await self._store.survey(self._timed, now)).lanes
        lanes = {name: known.get(name) or Lane(state=WorkerState(worker=name)) for name in self._timed}
        return {
            name: fire(self._timed[name], cursor=cursors[name], state=lane.state, live=lane.live, now=now)
            for name, lane in lanes.items()
            if lane.state.enabled
        }

    def _jobs(self, config: WorkerConfig, fired: Fire, now: float) -> list[NewJob]:
        aging = self._registry.pools[config.pool].priority_aging_seconds
        return [
            NewJob(
                id=job_id,
                worker=config.name,
                pool=config.pool,
                payload=NO_ARGUMENTS,
                run_at=min(at, now),
                priority=config.priority,
                head_start=config.priority * aging,
                cause="scheduled",
            )
            for job_id, at in zip(fired.ids, fired.times, strict=True)
        ]

    def _report_skipped(self, name: str, fired: Fire) -> None:
        if fired.skipped:
            message = f"the schedule of {name} skipped {counted(len(fired.skipped), 'fire time')}: {fired.why}"
            self._reporter.emit("schedule.skipped", name, message, times=fired.skipped[-100:])

    async def _advance(self, name: str, at: float, doc: Doc | None) -> None:
        """Move the cursor. Losing this race means that another leader has just moved it."""
        config = self._timed[name]
        cursor = Cursor(at, config.cron, config.timezone)
        await write(self._store, SCHEDULE, cursor, over=doc or Doc(SCHEDULE.name, name, b""))


def _cursor(doc: Doc | None, config: WorkerConfig) -> float | None:
    if doc is None:
        return None
    cursor = SCHEDULE.decode(doc.body)
    if cursor is not None:
        return cursor.of(config)
    why = SCHEDULE.damage(doc.body)
    logger.warning("the schedule record of %s cannot be read; the schedule starts again from now: %s", doc.name, why)
    return None
