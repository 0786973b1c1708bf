"""Jobs whose payload does not fit the function here. `core.jobs.undecodable` decides whether another version may try.

The store is asked only when such a job has ended here, before its outcome is written.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from shiftwork.core.jobs.undecodable import left_to_others, reviewed
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.observing.beats import Beat
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")


class Refusals:
    """Reviews refused jobs for all instances of one node, and knows which workers it leaves to other nodes."""

    def __init__(self, registry: Registry, store: Store, clock: Clock) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self.elsewhere: dict[str, tuple[float, float]] = {}
        """The workers that are left to nodes of other versions, each with the time from when until when."""

    def claimable(self, workers: frozenset[str]) -> frozenset[str]:
        """Return those of these workers whose jobs may be claimed here now."""
        now = self._clock.now()
        self.elsewhere = {worker: times for worker, times in self.elsewhere.items() if now < times[1]}
        return workers.difference(worker for worker, (since, _) in self.elsewhere.items() if since <= now)

    async def review(self, refused: Sequence[Settled]) -> dict[str, Outcome]:
        """Return the outcomes to be written instead of these, by the ids of their jobs."""
        ids = [settled.outcome.id for settled in refused]
        known, records = await asyncio.gather(self._store.instances(), self._store.get(ids))
        now = self._clock.now()
        nodes = [one.beat for one in known if one.expires_at > now and one.beat.machine is not None]
        return {
            record.id: self._reviewed(settled.outcome, record, nodes)
            for settled, record in zip(refused, records, strict=True)
            if record is not None
        }

    def _reviewed(self, outcome: Outcome, record: JobRecord, nodes: Sequence[Beat]) -> Outcome:
        after = reviewed(outcome, self._registry.version, record.attempts, nodes)
        if after.status is JobStatus.QUEUED:
            if after.report is not None and outcome.worker not in self.elsewhere:
                _log(outcome)
            self._leave_to_others(after)
        return after

    def _leave_to_others(self, handed_back: Outcome) -> None:
        since, until = left_to_others(handed_back)
        before = self.elsewhere.get(handed_back.worker)
        if before is not None and self._clock.now() < before[1]:
            since, until = min(since, before[0]), max(until, before[1])
        self.elsewhere[handed_back.worker] = since, until


def _log(outcome: Outcome) -> None:
    logger.warning(
        "job %s of %s goes back for a node that runs another version of the app: %s",
        outcome.id,
        outcome.worker,
        outcome.error,
        extra={"job_id": outcome.id, "worker": outcome.worker},
    )
