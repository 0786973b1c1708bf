"""Rescues jobs of instances whose leases have ended: takes them over under new fences, and settles them.

It does the same with the jobs of nodes that are proven dead (`rescue_from`), whose leases it ends first.

What it knows of the jobs that it has taken over, which it holds in the store under its name `holder`:

    certain ── `reap` is sent ──▶ in doubt ── all of them are settled ──▶ certain
                                   │    ▲
                                   └────┘ a call raises: the store may have done it, and the answer got lost. The next
                                          rescue also settles what the store says `holder` holds, as far as it is
                                          not on its way through the outbox already; so do later ones now and then,
                                          because the request may still be on its way (`LateCalls`)

When it acts (`poll`):

    watching ── polls were more than half a lease apart ──▶ waiting, until `_recovers_at` ──▶ watching

Such a gap means that this process or its machine slept, or that the clock was set: other nodes may have had no chance
to renew their leases either. `recover` itself waits for nothing, because a person asked for it.

When it looks at the instances: every quarter of a lease (`_look_at`), or as soon as the first lease that it knows of
has ended (`_first_end`). This must come before `reap`, which makes the store forget them; another node may have
rescued their jobs, so what was seen at the look before counts too.
"""

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Final

from msgspec.structs import replace

from shiftwork.core.doc_kinds import PLAN, PLAN_NAME
from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.model.doc_types import LostNode, Plan
from shiftwork.core.model.job_changes import JobFilter, Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.observing.beats import Beat, InstanceRecord
from shiftwork.core.observing.run_histograms import LEASE_LOST
from shiftwork.core.scaling.plan import with_lost
from shiftwork.runtime.claiming.instance_services import InstanceServices
from shiftwork.runtime.claiming.job_claimer import LateCalls
from shiftwork.runtime.duty import together
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.sentences import sentence
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store

RESCUE_BATCH: Final = 1_000


class JobRescuer:
    """Takes over the jobs of instances whose leases have ended."""

    def __init__(self, services: InstanceServices, *, ttl: float) -> None:
        here = services
        self.holder: str = f"{here.node}/leader"
        """The instance that holds lost jobs until they are settled."""
        self._registry = here.registry
        self._store = here.store
        self._clock = here.clock
        self._outbox = here.outbox
        self._reporter = here.reporter
        self._node = here.node
        self._ttl = ttl
        self._renamed = 0
        self._polled_at = here.clock.now()
        self._recovers_at = 0.0
        self._in_doubt = False
        self._late = LateCalls(here.clock)
        self._look_at = 0.0
        self._first_end = 0.0
        self._beats: dict[str, Beat] = {}
        """The beats of the instances at the last two looks."""
        self._seen: dict[str, Beat] = {}
        """The beats of the instances at the last look."""
        self._lock = asyncio.Lock()
        """One rescue at a time: another one would settle jobs that the first is about to settle."""
        self._reported: set[str] = set()
        """The lost nodes that were reported, as long as the store remembers them."""

    def rename(self) -> None:
        """Continue under a new name: another leader has taken over what this one had taken over."""
        self._renamed += 1
        self.holder = f"{self._node}/leader.{self._renamed}"

    def note_poll(self, now: float) -> None:
        """Take note that this node polls now, leading or not."""
        if abs(now - self._polled_at) > self._ttl / 2:
            self._recovers_at = now + self._ttl / 2
        self._polled_at = now

    async def poll(self, now: float) -> float | None:
        """Recover, unless it must wait; return when to poll again."""
        if now < self._recovers_at:
            return self._recovers_at
        return now if await self.recover() >= RESCUE_BATCH else None

    async def recover(self) -> int:
        """Take over the jobs of instances that are gone, and settle them; return how many there were."""
        async with self._lock:
            now = self._clock.now()
            if not now < min(self._look_at, self._first_end) <= now + self._ttl / 4:
                self._look_at = now + self._ttl / 4
                await self._look(await self._store.instances(), now)
            return await self._recover_jobs(now)

    async def rescue_from(self, nodes: Collection[str], instances: Sequence[InstanceRecord]) -> None:
        """End the leases of nodes that are proven dead, and take over their jobs."""
        async with self._lock:
            now = self._clock.now()
            dead = [known for known in instances if known.beat.node in nodes]
            self.note(instances)
            died = "its process has died"
            reported = self._report_lost([(known, died) for known in dead if known.beat.machine])
            await together(reported, self._recover_from([known.beat.instance for known in dead], now))

    async def _recover_from(self, dead: Sequence[str], now: float) -> None:
        await self._store.leave(dead, now)
        while await self._recover_jobs(now) >= RESCUE_BATCH:
            now = self._clock.now()

    async def _recover_jobs(self, now: float) -> int:
        lost = await self._take_over(now)
        whole = await self._store.get([record.id for record in lost]) if lost else []
        for record, known in zip(lost, whole, strict=True):
            losses = sum(attempt.kind == EndKind.LOST for attempt in known.attempts) if known else 0
            self._settle(record, losses)
        self._in_doubt = False
        return len(lost)

    # ── instances ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _look(self, instances: Sequence[InstanceRecord], now: float) -> None:
        self.note(instances)
        self._first_end = min((known.expires_at for known in instances), default=inf)
        lost = {known.beat.instance: known for known in instances if known.expires_at <= now and known.beat.machine}
        new = [lost[instance] for instance in sorted(lost.keys() - self._reported)]
        await self._report_lost([(known, _silence(now - known.last_beat_at)) for known in new])
        self._reported = {*lost}

    def note(self, instances: Sequence[InstanceRecord]) -> None:
        """Note who is there, leading or not: another node may end their leases, and this one take over their jobs."""
        before, self._seen = self._seen, {known.beat.instance: known.beat for known in instances}
        self._beats = {**before, **self._seen}

    async def _report_lost(self, nodes: Sequence[tuple[InstanceRecord, str]]) -> None:
        hosts = {
            one.beat.node: LostNode(one.last_beat_at, one.beat.machine.host) for one, _ in nodes if one.beat.machine
        }
        if hosts:
            await _record_lost(self._store, hosts)
        for known, why in nodes:
            self._reporter.emit(
                "node.lost", known.beat.node, sentence("node {node} is lost: {why}", node=known.beat.node, why=why)
            )

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _take_over(self, now: float) -> list[JobRecord]:
        unsettled = await self._unsettled() if self._in_doubt or self._late.due else []
        self._in_doubt = True
        return [*unsettled, *await self._store.reap(self.holder, RESCUE_BATCH, now)]

    async def _unsettled(self) -> list[JobRecord]:
        """Return the jobs that an earlier rescue took over without hearing of it."""
        wanted = JobFilter(instance=self.holder, status=(JobStatus.PROCESSING,), limit=RESCUE_BATCH)
        held: list[JobRecord] = []
        while page := await self._store.find(wanted):
            held += page
            wanted = replace(wanted, after=page[-1].id)
        if self._in_doubt:
            self._late.expect()
        else:
            self._late.asked()
        known = self._outbox.holds()
        return [record for record in held if record.id not in known]

    def _settle(self, record: JobRecord, losses: int) -> None:
        now = self._clock.now()
        who = (
            sentence("an instance")
            if record.instance == self.holder
            else sentence("instance {instance}", instance=record.instance)
        )
        message = sentence(
            "job {id} of {worker} was lost: {who} vanished while running it",
            id=record.id,
            worker=record.worker,
            who=who,
        )
        self._reporter.emit("job.lost", record.id, message, worker=record.worker, instance=record.instance)
        outcome = self._outcome(record, self._end(record, who), losses, now)
        marked = replace(outcome, marks=f"{outcome.marks} {LEASE_LOST}")
        self._outbox.put(Settled(marked, record.started_at or now))

    def _end(self, record: JobRecord, who: str) -> End:
        beat = self._beats.get(record.instance or "")
        # A process that ran its jobs itself may have died of this one; a node that only watches over them did not. An
        # instance that the store has forgotten has left in good order: the reply to its last claim never arrived.
        kind = EndKind.LOST if beat is None or (beat.pool and beat.apart) else EndKind.CRASHED
        log = record.progress.log if record.progress else ()
        return End(kind, error=f"{who} vanished while running it", log=log)

    def _outcome(self, record: JobRecord, end: End, losses: int, now: float) -> Outcome:
        worker = self._registry.workers.get(record.worker)
        return settle(
            record.claimed(),
            end,
            worker.config if worker else None,
            started_at=record.started_at or now,
            now=now,
            rand=random.random(),
            instance=record.instance,
            losses=losses,
        )


async def _record_lost(store: Store, lost: Mapping[str, LostNode]) -> None:
    """Record in the plan that these nodes have vanished."""
    await change(store, PLAN, PLAN_NAME, lambda plan: with_lost(plan or Plan(), lost))


def _silence(seconds: float) -> str:
    return sentence("it did not renew its lease: {n} s without a beat", n=f"{seconds:.0f}")
