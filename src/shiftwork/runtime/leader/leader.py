"""The one node that looks after everybody: fires schedules, promotes what is due, recovers what was lost, prunes.

Leading is a lease like any other. Two leaders at once would do no harm: a fire time is one job by its id, and
promoting, reaping and pruning are single steps of the store. The lease only saves them the work.
"""

import logging
import random
from collections.abc import Sequence
from math import inf
from typing import Final

from msgspec.structs import replace

from shiftwork.core.admission import Facts, Lane
from shiftwork.core.docs import SCHEDULE
from shiftwork.core.model import (
    Beat,
    Doc,
    InstanceRecord,
    JobFilter,
    JobRecord,
    JobStatus,
    Lost,
    NewJob,
    WorkerConfig,
    WorkerExecutionMode,
    WorkerState,
)
from shiftwork.core.retry import End, EndKind, settle
from shiftwork.core.run_histograms import LEASE_LOST
from shiftwork.core.schedule import Cursor, Fire, fire
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.outbox import Outbox, Settled
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.reporter import Reporter
from shiftwork.runtime.leader.planner import record_lost
from shiftwork.store.docs import stored_all, write
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

BATCH: Final = 1_000
PRUNE_SECONDS: Final = 30.0
NOTHING: Final = b"\x80"
"""The payload of a run that takes no arguments: an empty map."""


class Leader:
    """Holds the lead if it can, and does what a leader does."""

    def __init__(
        self,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        reporter: Reporter,
        node: str,
        ttl: float,
    ) -> None:
        self.leading = False
        self.holder = f"{node}/leader"
        """The instance under whose name lost jobs are taken over until they are settled."""
        self._registry = registry
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._reporter = reporter
        self._node = node
        self._ttl = ttl
        self._lives = 0
        self._held_until = 0.0
        self._prune_at = 0.0
        self._polled_at = clock.now()
        self._recovers_at = 0.0
        self._in_doubt = False
        self._look_at = 0.0
        self._beats: dict[str, Beat] = {}
        """The instances there were when it last looked."""
        self._first_end = 0.0
        """When the first of their leases ends, unless it is renewed."""
        self._mourned: set[str] = set()
        """Nodes whose end was told, as long as they are not forgotten."""
        self._timed = {
            name: callee.config
            for name, callee in registry.workers.items()
            if callee.config.execution_mode is not WorkerExecutionMode.TRIGGERED
        }

    async def poll(self) -> float | None:
        """Keep the lead, and do what is due; answers when something will be due next."""
        now = self._clock.now()
        if now - self._polled_at > self._ttl / 2:
            # It slept, the machine did, or the clock was set: others may have had no chance to renew their leases.
            self._recovers_at = now + self._ttl / 2
        self._polled_at = now
        if not await self._lead(now):
            return now + self._ttl / 3
        wishes = [self._held_until - self._ttl * 2 / 3]
        wishes.append(await self.promote() or wishes[0])
        if now < self._recovers_at:
            wishes.append(self._recovers_at)
        elif await self.recover() == BATCH:
            wishes.append(now)
        wishes.append(await self._fire_schedules(now) or wishes[0])
        if now >= self._prune_at:
            pruned = await self._store.prune(BATCH, now)
            self._prune_at = now if pruned >= BATCH else now + PRUNE_SECONDS
            wishes.append(self._prune_at)
        return min(wishes)

    async def promote(self) -> float | None:
        """Queue what is due; answers when more will be. A visitor does this too: perhaps nobody leads."""
        now = self._clock.now()
        promoted = await self._store.promote(BATCH, now)
        return now if promoted.moved == BATCH else promoted.next_at

    def rename(self) -> None:
        """Somebody else has taken over what it had taken over: go on under a new name."""
        self._lives += 1
        self.holder = f"{self._node}/leader.{self._lives}"

    async def resign(self) -> None:
        """Let somebody else lead at once."""
        if self.leading:
            self.leading = False
            await self._store.drop("leader", self._node)

    async def _lead(self, now: float) -> bool:
        if self.leading and now < self._held_until - self._ttl * 2 / 3:
            return True
        leads = await self._store.hold("leader", self._node, 1, self._ttl, now)
        if leads and not self.leading:
            self._reporter.emit("leader.elected", self._node, f"node {self._node} leads")
        elif self.leading and not leads:
            logger.warning("node %s lost the lead", self._node)
        self.leading = leads
        self._held_until = now + self._ttl
        return leads

    # ── recovery ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def recover(self) -> int:
        """Take the jobs of instances that are gone, and settle them; answers how many there were."""
        now = self._clock.now()
        if now >= min(self._look_at, self._first_end):  # before anybody is forgotten
            self._look_at = now + self._ttl / 4
            await self._see(await self._store.instances(), now)
        lost = await self._left_behind() if self._in_doubt else []
        self._in_doubt = True
        lost += await self._store.reap(self.holder, BATCH, now)
        self._in_doubt = False
        whole = await self._store.get([record.id for record in lost]) if lost else []
        for record, known in zip(lost, whole, strict=True):
            losses = sum(attempt.kind == EndKind.LOST for attempt in known.attempts) if known else 0
            self._settle_lost(record, losses)
        return len(lost)

    async def _see(self, instances: Sequence[InstanceRecord], now: float) -> None:
        self._beats = {known.beat.instance: known.beat for known in instances}
        self._first_end = min((known.expires_at for known in instances), default=inf)
        lost = {known.beat.instance: known for known in instances if known.expires_at <= now and known.beat.machine}
        new = [lost[instance] for instance in sorted(lost.keys() - self._mourned)]
        gone = {one.beat.node: Lost(one.last_beat_at, one.beat.machine.host) for one in new if one.beat.machine}
        if gone:
            await record_lost(self._store, gone)
        for known in new:
            message = f"node {known.beat.node} did not renew its lease: {now - known.last_beat_at:.0f} s without a beat"
            self._reporter.emit("node.lost", known.beat.node, message)
        self._mourned = {*lost}

    async def _left_behind(self) -> list[JobRecord]:
        """Jobs that a recovery took over without our ever hearing of it: the answer got lost."""
        held = await self._store.find(JobFilter(instance=self.holder, status=(JobStatus.PROCESSING,), limit=BATCH))
        known = self._outbox.holds()
        return [record for record in held if record.id not in known]

    def _settle_lost(self, record: JobRecord, losses: int) -> None:
        now = self._clock.now()
        who = "an instance" if record.instance == self.holder else f"instance {record.instance}"
        beat = self._beats.get(record.instance or "")
        # A process that ran its jobs itself may have died of this one; a node that only watches over them did not.
        kind = EndKind.LOST if beat is not None and beat.pool and beat.apart else EndKind.CRASHED
        log = record.progress.log if record.progress else ()
        end = End(kind, error=f"{who} vanished while running it", log=log)
        message = f"job {record.id} of {record.worker} was lost by {who} and runs again"
        self._reporter.emit("job.lost", record.id, message, worker=record.worker, instance=record.instance)
        callee = self._registry.workers.get(record.worker)
        started_at = record.started_at or now
        outcome = settle(
            record.claimed(),
            end,
            callee.config if callee else None,
            started_at=started_at,
            now=now,
            rand=random.random(),
            instance=record.instance,
            losses=losses,
        )
        self._outbox.put(Settled(replace(outcome, marks=f"{outcome.marks} {LEASE_LOST}"), started_at))

    # ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _fire_schedules(self, now: float) -> float | None:
        if not self._timed:
            return None
        facts = await self._store.survey(self._timed, now)
        cursors = await stored_all(self._store, SCHEDULE)
        fires: dict[str, Fire] = {}
        for name, config in self._timed.items():
            lane = _lane(facts, name)
            if lane.state.enabled:
                cursor = _cursor(cursors.get(name), config)
                fires[name] = fire(config, cursor=cursor, state=lane.state, live=lane.live, now=now)
        # Jobs first, cursors second: a crash in between fires the same ids again, and the same id is the same job.
        jobs = [job for name, fired in fires.items() for job in self._jobs(self._timed[name], fired, now)]
        if jobs:
            await self._store.add(jobs, now)
        for name, fired in fires.items():
            await self._advance(name, fired, cursors.get(name))
        return min((fired.next_at for fired in fires.values() if fired.next_at is not None), default=None)

    def _jobs(self, config: WorkerConfig, fired: Fire, now: float) -> list[NewJob]:
        aging = self._registry.pools[config.pool].priority_aging_seconds
        return [
            NewJob(
                id=job_id,
                worker=config.name,
                pool=config.pool,
                payload=NOTHING,
                run_at=min(at, now),
                priority=config.priority,
                head_start=config.priority * aging,
                cause="scheduled",
            )
            for job_id, at in zip(fired.ids, fired.times, strict=True)
        ]

    async def _advance(self, name: str, fired: Fire, doc: Doc | None) -> None:
        if fired.skipped:
            many = len(fired.skipped)
            message = f"{name} was not started at {many} fire time{'s' if many > 1 else ''}: {fired.why}"
            self._reporter.emit("schedule.skipped", name, message, times=fired.skipped[-100:])
        config = self._timed[name]
        if fired.cursor is not None and fired.cursor != _cursor(doc, config):
            cursor = Cursor(fired.cursor, config.cron, config.timezone)
            await write(self._store, SCHEDULE, cursor, over=doc or Doc(SCHEDULE.name, name, b""))


def _lane(facts: Facts, name: str) -> Lane:
    return facts.lanes.get(name) or Lane(state=WorkerState(worker=name))


def _cursor(doc: Doc | None, config: WorkerConfig) -> float | None:
    if doc is None:
        return None
    cursor = SCHEDULE.decode(doc.body)
    if cursor is None:
        logger.warning(
            "how far the schedule of %s has fired cannot be read; it starts again from now: %s",
            doc.name,
            SCHEDULE.damage(doc.body),
        )
        return None
    return cursor.of(config)
