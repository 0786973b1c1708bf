"""Claim as many jobs as there is room for, and have them run. What went astray on the way is handed back."""

import logging
from collections.abc import Iterable
from typing import Final

from shiftwork.core.model import Claimed, JobFilter, JobRecord, JobStatus
from shiftwork.core.sealing import is_sealed, key_of
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.inputs import with_inputs
from shiftwork.runtime.engine.outbox import Outbox
from shiftwork.runtime.engine.publication import Publication
from shiftwork.runtime.engine.runner import Runner
from shiftwork.runtime.engine.runs import Runs
from shiftwork.runtime.engine.settler import Settler
from shiftwork.runtime.engine.tenure import Tenure
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.store_voice import CLAIMS
from shiftwork.store.protocol import Claims, Store

logger: Final = logging.getLogger("shiftwork")

MOST_RECONCILED: Final = 10_000
BLIND_SECONDS: Final = 60.0
"""How long an instance claims nothing after it got a job that it has no key for. Other instances may have the key."""


class JobClaimer:
    """Claims jobs of one pool for one instance."""

    def __init__(
        self,
        pool: str,
        workers: Iterable[str],
        *,
        store: Store,
        clock: Clock,
        stopwatch: Stopwatch,
        tenure: Tenure,
        runner: Runner,
        runs: Runs,
        settler: Settler,
        outbox: Outbox,
        publication: Publication,
    ) -> None:
        self.slots = 0
        """How many jobs may run at a time."""
        self.in_doubt = False
        """Whether the store may have given us jobs of which we know nothing: a claim was begun and got no answer."""
        self.workers = frozenset(workers)
        """The workers whose jobs it claims."""
        self._blind_until = float("-inf")
        self._pool = pool
        self._store = store
        self._clock = clock
        self._stopwatch = stopwatch
        self._tenure = tenure
        self._runner = runner
        self._runs = runs
        self._settler = settler
        self._outbox = outbox
        self._publication = publication

    @property
    def free(self) -> int:
        """How many more jobs could run now."""
        if self._clock.now() < self._blind_until or not self._serves_as(self._tenure.instance):
            return 0
        return self.slots - len(self._runs.active)

    async def claim(self) -> Claims:
        """Claim as many jobs as there are free slots and start them. Returns what the store had."""
        if self.in_doubt:
            await self.reconcile()
        free, instance = self.free, self._tenure.instance
        if free <= 0:
            return Claims([])
        self.in_doubt = True
        edition = self._publication.edition
        claims = await self._stopwatch.time(
            CLAIMS,
            self._store.claim(instance, self._pool, free, self._clock.now(), self.workers, edition=edition),
        )
        if claims.stale and edition is not None:
            self.in_doubt = False
            await self._publication.renew(edition)
            return Claims([], next_at=self._clock.now())
        if claims.jobs:
            self._publication.fence = max(self._publication.fence, claims.jobs[-1].fence)
        jobs = await with_inputs(self._store, claims.jobs)
        if self._serves_as(instance):
            for job in jobs:
                self._start(job)
        else:  # the lease or the runner went away while the store answered
            for job in claims.jobs:
                self._settler.hand_back(job, self._clock.now())
        # Only now: if one of them cannot be started, the others are handed back.
        self.in_doubt = False
        return claims

    def _start(self, job: Claimed) -> None:
        """Start a job, unless its payload is still encrypted: then no attempt is used up, and another instance may."""
        if job.expires_at is not None and job.expires_at <= self._clock.now():
            self._settler.expire(job, self._clock.now())
            return
        if not is_sealed(job.payload):
            self._runs.start(job)
            return
        now = self._clock.now()
        if now >= self._blind_until:
            logger.error(
                "pool %s claims nothing for %g s: job %s of %s is encrypted with key %s, which this node does not "
                "have. Add the key to SHIFTWORK_ENCRYPTION_KEYS and restart the node",
                self._pool,
                BLIND_SECONDS,
                job.id,
                job.worker,
                key_of(job.payload),
                extra={"job_id": job.id, "worker": job.worker},
            )
        self._blind_until = now + BLIND_SECONDS
        self._settler.hand_back(job, now)

    def _serves_as(self, instance: str) -> bool:
        return self._tenure.holds(instance) and self._runner.open

    async def reconcile(self) -> None:
        """Hand back jobs that the store holds for us and that never arrived."""
        processing = (JobStatus.PROCESSING,)
        held = await self._store.find(
            JobFilter(instance=self._tenure.instance, status=processing, limit=MOST_RECONCILED)
        )
        known = self._runs.active.keys() | self._outbox.holds()
        for record in held:
            if record.id not in known:
                self._hand_back(record)
        self.in_doubt = False

    def _hand_back(self, record: JobRecord) -> None:
        logger.warning(
            "job %s of %s was claimed but never arrived; handing it back",
            record.id,
            record.worker,
            extra={"job_id": record.id, "worker": record.worker},
        )
        self._settler.hand_back(record.claimed(), record.started_at or self._clock.now())
