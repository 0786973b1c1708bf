"""Claims as many jobs as there is room for, and starts them. Jobs of a claim whose answer got lost are handed back.

Besides what fits the free slots, it claims what will start very soon, as `core.jobs.claiming_ahead` allows. These jobs
wait in the `PrefetchedJobs` and start as soon as slots become free, without another question to the store.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from shiftwork.core.jobs.claiming_ahead import LONGEST_WAIT, MOST_AHEAD, PrefetchPace, to_claim
from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.jobs.run_options import is_damaged
from shiftwork.core.jobs.transitions import is_expired
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import Claimed, JobRecord, JobStatus
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.values.envelopes import is_sealed, key_of
from shiftwork.runtime.claiming.flow_inputs import Complete, with_failures, with_inputs
from shiftwork.runtime.claiming.instance_services import InstanceLease, InstanceServices
from shiftwork.runtime.claiming.runs import JobEnder, Runs
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.outage_log import CLAIMS
from shiftwork.runtime.running.job_run import Run
from shiftwork.runtime.running.runner import Runner
from shiftwork.store.protocol import Claims

logger: Final = logging.getLogger("shiftwork")

MOST_RECONCILED: Final = 10_000
UNANSWERED_SECONDS: Final = 0.05
"""When to look again whether the jobs of a lost answer are handed back, unless their pool rings first."""
DAMAGED: Final = "its options cannot be decoded; enqueue it again"
"""Why a job is dead whose own options are damaged."""
BLIND_SECONDS: Final = 60.0
"""How long an instance claims nothing after it got a job that it has no key for. Other instances may have the key."""
FIRST_LATE_LOOK_SECONDS: Final = 1.0
"""How soon to ask again; each pause is twice as long as the one before."""
LATE_CALL_SECONDS: Final = 600.0
"""For how long to ask again and again."""


class JobClaimer:
    """Claims jobs of one pool for one instance."""

    def __init__(
        self,
        pool: PoolConfig,
        workers: Iterable[str],
        services: InstanceServices,
        *,
        lease: InstanceLease,
        runner: Runner,
        runs: Runs,
        ender: JobEnder,
    ) -> None:
        self.slots = 0
        """How many jobs may run at a time."""
        self.in_doubt: bool = False
        """Whether the store may have given us jobs of which we know nothing: a claim was begun and got no answer."""
        self.workers: frozenset[str] = frozenset(workers)
        """The workers whose jobs it claims."""
        self._blind_until: float | None = None
        self._unanswered: set[str] = set()
        """The jobs that never arrived, while it is not written yet that they are handed back."""
        self._pool = pool
        self._store = services.store
        self._clock = services.clock
        self._stopwatch = services.gauge.stopwatch
        self._lease = lease
        self._runner = runner
        self._runs = runs
        self._ender = ender
        self._outbox = services.outbox
        self._publication = services.publication
        self._refusals = services.refusals
        self._pace = PrefetchPace(services.clock.now())
        self._prefetched = PrefetchedJobs(services.clock, on_overdue=self.hand_back)
        self._late = LateCalls(services.clock)

    @property
    def free(self) -> int:
        """How many more jobs could run now."""
        return self.slots - len(self._runs.active) if self._serves else 0

    @property
    def _room(self) -> int:
        """How many more jobs the runner takes: none that it would begin when it is to be replaced."""
        places = self._runner.places
        return self.slots - len(self._runs.active) + (min(places, self._left) if places else 0)

    @property
    def waiting(self) -> int:
        """How many jobs wait for a free slot here."""
        return len(self._prefetched.jobs)

    @property
    def look_at(self) -> float | None:
        """When to claim again because runs are about to end, unless something else prompts a claim first."""
        return self._pace.look_at(self._runs.active.values(), self._clock.now())

    @property
    def _serves(self) -> bool:
        blind = self._blind_until is not None and self._clock.now() < self._blind_until
        return not blind and self._serves_as(self._lease.name)

    def _wanted(self) -> int:
        if not self._serves:
            return 0
        allowed = self._pace.allowed(self._runs.active.values(), self._clock.now())
        return to_claim(self.free, self.waiting, min(allowed, self._left))

    @property
    def _left(self) -> int:
        """How many jobs may still be claimed ahead before the process is replaced."""
        most = self._pool.max_jobs_per_instance
        if most is None or not self._runner.apart:
            return MOST_AHEAD
        return max(0, most - self._runner.served - self.slots)

    def _serves_as(self, instance: str) -> bool:
        return self._lease.held == instance and not self._lease.draining and self._runner.open

    async def claim(self) -> tuple[int, Claims]:
        """Claim jobs and start those that there are slots for. Returns how many were wanted, and what the store had."""
        if self.in_doubt or self._late.due:
            await self.reconcile()
        self.refill()
        wanted, instance = self._wanted(), self._lease.name
        if not wanted:
            return 0, Claims([])
        if self._unanswered and self._are_held(self._unanswered):  # they are first in line, but not in the queue yet
            return wanted, Claims([], next_at=self._clock.now() + UNANSWERED_SECONDS)
        self.in_doubt = True
        edition, refusals = self._publication.edition, self._refusals
        workers = refusals.claimable(self.workers) if refusals.elsewhere else self.workers
        claims = await self._stopwatch.time(
            CLAIMS, self._store.claim(instance, self._pool.name, wanted, self._clock.now(), workers, edition=edition)
        )
        if claims.stale and edition is not None:
            self.in_doubt = False
            return wanted, Claims([], next_at=await self._publication.renew(edition))
        if claims.jobs:
            self._publication.fence = max(self._publication.fence, claims.jobs[-1].fence)
        in_flows = any(job.options is not None for job in claims.jobs)  # some of them may be
        complete = await self._completed(claims.jobs) if in_flows else Complete(claims.jobs)
        if self._serves_as(instance):
            for job in complete.jobs:
                self._accept(job)
            for job, why in complete.misfits:
                self._ender.end(job, End(EndKind.UNDECODABLE, error=why, final=True), self._clock.now())
        else:  # the lease or the runner went away while the store answered
            for job in claims.jobs:
                self._ender.hand_back(job, self._clock.now())
        # Only now: if one of them cannot be started, the others are handed back.
        self.in_doubt = False
        return wanted, claims

    async def _completed(self, jobs: Sequence[Claimed]) -> Complete:
        return await with_inputs(self._store, await with_failures(self._store, jobs))

    def _accept(self, job: Claimed) -> None:
        """Start a job, or let it wait for a slot.

        If its payload is still encrypted it is handed back: no attempt is used up, and another instance may have it.
        """
        if (job.expires_at is not None or job.options is not None) and self._ended_unstarted(job):
            return
        if not is_sealed(job.payload):
            if self._prefetched.jobs or self._room <= 0:
                self._prefetched.put(job)
            else:
                self._runs.start(job)
            return
        now = self._clock.now()
        if self._blind_until is None or now >= self._blind_until:
            logger.error(
                "pool %s claims nothing for %g s: job %s of %s is encrypted with key %s, which this node does not "
                "have. Add the key to SHIFTWORK_ENCRYPTION_KEYS and restart the node",
                self._pool.name,
                BLIND_SECONDS,
                job.id,
                job.worker,
                key_of(job.payload),
                extra={"job_id": job.id, "worker": job.worker},
            )
        self._blind_until = now + BLIND_SECONDS
        self._ender.hand_back(job, now)

    def _ended_unstarted(self, job: Claimed) -> bool:
        """End a job that must not start: it has expired, or its options are damaged. False if it may start."""
        now = self._clock.now()
        if is_expired(job, now):
            self._ender.hand_back(job, now)
        elif is_damaged(job.options):
            self._ender.end(job, End(EndKind.UNDECODABLE, error=DAMAGED), now)
        else:
            return False
        return True

    # ── jobs that wait for a slot ────────────────────────────────────────────────────────────────────────────────

    def ended(self, run: Run) -> None:
        """Start the next job that waits for the slot of a run that has ended."""
        self._pace.ended(run, self._clock.now())
        self.refill()

    def refill(self) -> None:
        """Start jobs that wait, as far as there are slots, or places to wait for one."""
        waiting = self._prefetched.jobs
        if not waiting:
            return
        room = self._room
        while waiting and room > 0 and self._serves:
            room -= self._start_waiting(self._prefetched.take())

    def _start_waiting(self, job: Claimed) -> bool:
        if job.expires_at is not None and is_expired(job, self._clock.now()):
            self._ender.hand_back(job, self._clock.now())
            return False
        try:
            self._runs.start(job)
        except Exception as error:  # noqa: BLE001 - out of threads, or the process has just ended: others may run it
            self._ender.hand_back(job, self._clock.now())
            about = {"job_id": job.id, "worker": job.worker}
            logger.warning("cannot start job %s of %s: %s; handed it back", job.id, job.worker, error, extra=about)
            return False
        return True

    def cancel(self, job_id: str, fence: int) -> None:
        """End a job that waits here and that a person has cancelled. It never runs."""
        job = self._prefetched.remove(job_id, fence)
        if job is not None:
            self._ender.end(job, End(EndKind.CANCELLED), self._clock.now())

    def hand_back(self) -> None:
        """Let other instances have the jobs that wait here, and claim no others ahead for a while."""
        self._pace.forget()
        for job in self._prefetched.empty():
            self._ender.hand_back(job, self._clock.now())

    # ── jobs that never arrived ──────────────────────────────────────────────────────────────────────────────────

    async def reconcile(self) -> None:
        """Hand back jobs that the store holds for us and that never arrived."""
        processing = (JobStatus.PROCESSING,)
        held = await self._store.find(JobFilter(instance=self._lease.name, status=processing, limit=MOST_RECONCILED))
        known = self._runs.active.keys() | self._prefetched.jobs.keys() | self._outbox.holds()
        for record in held:
            if record.id not in known:
                self._unanswered.add(record.id)
                self._hand_back_lost(record)
        if self.in_doubt:
            self._late.expect()
        else:
            self._late.asked()
        self.in_doubt = False

    def _are_held(self, held: set[str]) -> bool:
        """Return whether some of these jobs are still to be handed back; forget those that are not."""
        held &= self._outbox.holds()
        return bool(held)

    def _hand_back_lost(self, record: JobRecord) -> None:
        logger.warning(
            "job %s of %s was claimed but never arrived; handing it back",
            record.id,
            record.worker,
            extra={"job_id": record.id, "worker": record.worker},
        )
        self._ender.hand_back(record.claimed(), record.started_at or self._clock.now())


class LateCalls:
    """Knows when to ask the store again what it holds for us, after a call that handed something out got no reply.

    Its request may still be on its way, or be carried out just now: a server that stood still, or waited for its disk,
    does what it was asked although the caller has given up. What that brings would stay where it is for ever.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._again: float | None = None
        self._pause = FIRST_LATE_LOOK_SECONDS

    @property
    def due(self) -> bool:
        """Whether it is time to ask again."""
        return self._again is not None and self._clock.monotonic() >= self._again

    def expect(self) -> None:
        """Note that a call got no reply."""
        self._pause = FIRST_LATE_LOOK_SECONDS
        self._again = self._clock.monotonic() + self._pause

    def asked(self) -> None:
        """Note that the store was asked again."""
        self._pause *= 2
        self._again = None if self._pause > LATE_CALL_SECONDS / 2 else self._clock.monotonic() + self._pause


class PrefetchedJobs:
    """Keeps jobs until there is a slot, and calls `on_overdue` when one has waited for too long.

    That is for when all slots are taken by runs that go on longer than foreseen. It is looked at now and then, so a job
    may wait for up to twice `LONGEST_WAIT`.
    """

    def __init__(self, clock: Clock, on_overdue: Callable[[], None]) -> None:
        self._clock = clock
        self._on_overdue = on_overdue
        self.jobs: dict[str, Claimed] = {}
        """The jobs by id, the next one first."""
        self._watched: Claimed | None = None
        """The one that was first when the timer was set; None while there is no timer."""

    def put(self, job: Claimed) -> None:
        """Keep a job until there is a slot."""
        self.jobs[job.id] = job
        if self._watched is None:
            self._watch()

    def take(self) -> Claimed:
        """Return the next job, which starts now."""
        return self.jobs.pop(next(iter(self.jobs)))

    def remove(self, job_id: str, fence: int) -> Claimed | None:
        """Take one of the jobs out of the row, if it is here under this fence."""
        job = self.jobs.get(job_id)
        return self.jobs.pop(job_id) if job is not None and job.fence == fence else None

    def empty(self) -> list[Claimed]:
        """Take all jobs out."""
        jobs = list(self.jobs.values())
        self.jobs.clear()
        return jobs

    def _watch(self) -> None:
        self._watched = next(iter(self.jobs.values()))
        self._clock.call_in(LONGEST_WAIT, self._look)

    def _look(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None and self.jobs.get(watched.id) is watched:
            self._on_overdue()
        elif self.jobs:
            self._watch()
