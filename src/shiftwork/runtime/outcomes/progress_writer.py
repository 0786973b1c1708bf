"""Progress and log lines of running jobs on their way to the store: the newest of each job, a few times a second."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from shiftwork.core.model.jobs import Claimed, Progress, ProgressNote
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.outage_log import PROGRESS, OutageLog
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.store.protocol import Store

PROGRESS_SECONDS: Final = 0.2
"""How long progress is gathered before it is written."""


class ProgressWriter:
    """Writes the newest progress of each job."""

    def __init__(self, store: Store, clock: Clock, outages: OutageLog) -> None:
        self._store = store
        self._clock = clock
        self._outages = outages
        self._loop = asyncio.get_running_loop()
        self._notes: dict[str, ProgressNote] = {}
        self._due = False
        self._task: asyncio.Task[None] | None = None

    def report(self, job: Claimed, progress: Progress) -> None:
        """Take progress over. Safe from any thread."""
        self._notes[job.id] = ProgressNote(job.id, job.fence, progress)
        if not self._due:
            self._due = True
            self._loop.call_soon_threadsafe(self._schedule)

    def _schedule(self) -> None:
        self._clock.call_at(self._clock.now() + PROGRESS_SECONDS, self._begin)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self.flush(), name="shiftwork progress")

    async def before_end(self, batch: Sequence[Settled]) -> None:
        """Write the last progress of jobs that end, while the store still accepts it."""
        if any(settled.outcome.id in self._notes for settled in batch):
            await self.flush()

    async def flush(self) -> None:
        """Write what there is. Progress is not retried: the next one is newer."""
        self._due = False
        notes, self._notes = self._notes, {}
        if not notes:
            return
        with suppress(StoreError):
            await self._outages.track(PROGRESS, self._store.note(list(notes.values())))
