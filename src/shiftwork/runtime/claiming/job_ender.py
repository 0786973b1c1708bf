"""From the end of a run to its outcome: `core.jobs.retry.settle` decides, the outbox writes, this counts."""

import logging
import random
from typing import Final

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.jobs.transitions import is_expired
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.runtime.claiming.instance_lease import InstanceLease
from shiftwork.runtime.claiming.instance_services import InstanceServices
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.running.run import Run

logger: Final = logging.getLogger("shiftwork")


class JobEnder:
    """Settles the runs of one instance."""

    def __init__(self, services: InstanceServices, tenure: InstanceLease) -> None:
        self.completed = 0
        self.failed = 0
        self._registry = services.registry
        self._outbox = services.outbox
        self._clock = services.clock
        self._tenure = tenure
        self._unasked_hand_backs = services.unasked_hand_backs

    def settle(self, run: Run, end: End) -> None:
        """Put the outcome of a run into the outbox."""
        if run.outcome is None:
            if end.kind is EndKind.DRAINED and not run.begun:
                end = replace(end, begun=False)
            self.end(run.job, replace(end, log=run.log) if run.log else end, run.started_at)
        else:
            self._settled_itself(run, run.outcome, end)

    def hand_back(self, job: Claimed, started_at: float) -> None:
        """Return a job that was claimed and has not begun. One that has expired meanwhile is cancelled."""
        expired = is_expired(job, self._clock.now())
        self.end(job, End(EndKind.EXPIRED if expired else EndKind.DRAINED, begun=False), started_at)

    def end(self, job: Claimed, end: End, started_at: float) -> None:
        """Put the outcome of a job into the outbox."""
        callee = self._registry.workers.get(job.worker)
        outcome = settle(
            job,
            end,
            callee.config if callee else None,
            started_at=started_at,
            now=self._clock.now(),
            rand=random.random(),
            instance=self._tenure.instance,
            hand_backs=self._unasked_hand_backs.count(job.id, self._clock.monotonic()) if end.unasked else 0,
        )
        if outcome.status is JobStatus.COMPLETED:
            self.completed += 1
        elif outcome.report is not None:
            self.failed += 1
        own = None if job.options is None else run_options_of(job.options).max_retries
        self._outbox.put(Settled(outcome, started_at, max_retries=own, final=end.final))

    def _settled_itself(self, run: Run, outcome: Outcome, end: End) -> None:
        """Count a job that its function ended in a transaction; what the function did afterwards does not count."""
        self.completed += 1
        self._outbox.put(Settled(outcome, run.started_at, written=True))
        if end.kind is not EndKind.RETURNED:
            logger.warning(
                "job %s of %s failed after it had completed: %s",
                run.job.id,
                run.job.worker,
                end.error or end.kind,
                extra={"job_id": run.job.id, "worker": run.job.worker},
            )
