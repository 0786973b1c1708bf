"""The store in memory: the contract of `shiftwork.store.protocol`, written to be read.

One lock makes every call happen at once, from any thread; no call ever waits for anything else. Every rule is called
directly: `core.workers.admission`, `core.jobs.transitions`, `core.jobs.transitions`, `core.workers.state`, and
`core.jobs.concurrency_keys` through `shiftwork.store.memory.rows`, which keeps the indices.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from msgspec.structs import replace

from shiftwork.core.doc_kinds import READ_BY_CLAIMS, damaged_docs
from shiftwork.core.health.health_values import Finding, integrity
from shiftwork.core.health.position import Ahead, QueuePlace
from shiftwork.core.jobs.durable_functions import (
    has_room_for_signal,
    has_room_for_step,
    next_steps,
    seen_parts,
    signalled,
    stepped,
)
from shiftwork.core.jobs.needs import LOST, POSTPONED, inherited, meets, needs_of, released
from shiftwork.core.jobs.transitions import EXPIRED, accepts, allows, amended, landed
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, Finished, JobFilter, Outcome, Requeue
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, Claimed, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.core.observing.pool_stats import PoolStats, Stats
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS, signals_full, steps_full
from shiftwork.core.values.rewriting import is_written, rewritten
from shiftwork.core.workers.admission import Choice, Facts, choose, neighbours
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.state import after_end, after_run
from shiftwork.store.bells import Bells
from shiftwork.store.machine_clock import SteadyClock
from shiftwork.store.memory import facts as lanes
from shiftwork.store.memory.docs import DocTable
from shiftwork.store.memory.events import EventLog
from shiftwork.store.memory.facts import StateTable
from shiftwork.store.memory.find import dead, find, members
from shiftwork.store.memory.lease import Instances, Places
from shiftwork.store.memory.rows import JobTable
from shiftwork.store.memory.stats import Totals
from shiftwork.store.protocol import Bell, Claims, Promoted


class MemoryStore:
    """A store for tests, for trying things out, and for work that may die with its process."""

    def __init__(self, url: str = "memory://") -> None:
        self.url = url
        self._clock = SteadyClock()
        self._lock = Lock()
        self._bells = Bells()
        self._jobs = JobTable()
        self._fence = 0
        self._docs = DocTable()
        self._states = StateTable()
        self._instances = Instances()
        self._places = Places()
        self._totals = Totals()
        self._events = EventLog()

    @contextmanager
    def _change(self, *topics: str) -> Iterator[JobTable]:
        """Hold the lock; afterwards, ring these topics and those that the changed jobs concern."""
        with self._lock:
            yield self._jobs
            concerned = {*topics, *self._jobs.topics}
            self._jobs.topics.clear()
        self._bells.ring(concerned)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: the data live as long as this object, also for others who hold it."""

    async def server_time(self) -> float:
        return self._clock.time()

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        with self._change() as table:
            return self._add_all(table, jobs, now)

    def _add_all(self, table: JobTable, jobs: Sequence[NewJob], now: float) -> list[Added]:
        new_flows = {job.flow for job in jobs if job.flow is not None and not table.flows.has_jobs(job.flow)}
        added = [self._add(table, job, now) for job in jobs]
        lost = {need.id for job in jobs for need in job.needs if self._is_lost(table, need.id)}
        tied = [job for job, answer in zip(jobs, added, strict=True) if answer.created and (job.needs or job.parent)]
        for job in tied:
            self._tie(table, job, lost, now)
        self._lose(table, [job.id for job in tied if self._is_lost(table, job.id)], now)
        for job, answer in zip(jobs, added, strict=True):
            if answer.created and job.flow is not None and job.flow in new_flows:
                table.flows.aim(job.flow, job.worker, job.tags)
        return added

    def _tie(self, table: JobTable, job: NewJob, lost: Collection[str], now: float) -> None:
        """Let a new job wait for what it needs, and let what waits for its parent wait for it.

        `lost` has the needed jobs that were lost before the call.
        """
        needs = [replace(need, broken=need.id in lost) for need in needs_of(job)]
        unmet = [need for need in needs if not meets(self._status(need.id), need, lost=need.broken)]
        table.flows.need(job.id, unmet)
        if job.needs and not unmet:
            table.write(released(table.by_id[job.id], now))
        for waiter, need in table.flows.waiters_of(job.parent or ""):
            if (more := inherited(job.id, need)) is not None:
                table.flows.need(waiter, [more])

    def _is_lost(self, table: JobTable, id: str) -> bool:
        return table.flows.is_lost(id, self._status(id))

    def _status(self, id: str) -> JobStatus | None:
        job = self._jobs.by_id.get(id)
        return None if job is None else job.status

    def _add(self, table: JobTable, job: NewJob, now: float) -> Added:
        if job.id in table.by_id:
            return Added(job.id, created=False)
        twin = table.unique.get((job.worker, job.unique_key)) if job.unique_key is not None else None
        if twin is not None:
            return Added(twin, created=False)
        record = JobRecord.of(job, now)
        table.write(replace(record, status=JobStatus.WAITING) if job.needs else record)
        self._totals.added(job.pool)
        return Added(job.id, created=True)

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        with self._change() as table:
            if edition is not None and self._docs.of_claims.edition != edition:
                return Claims([], stale=True)
            if instance in self._instances.lost or self._docs.of_claims.pools.get(pool, PoolDoc()).paused:
                return Claims([])
            ready = table.ready.keys() & frozenset(workers)
            candidates = {name: heads for name in ready if (heads := lanes.heads(table, pool, worker=name, n=n))}
            choice = choose(candidates, self._facts(candidates, now), limit=n, now=now)
            for worker in choice.started:
                self._note_start(table, worker, choice, now)
            return Claims([self._start(table, id, instance, now) for id in choice.ids], choice.next_at)

    def _note_start(self, table: JobTable, worker: str, choice: Choice, now: float) -> None:
        state = self._states.of(worker)
        state.last_started = now
        state.rate_at = choice.rate_at.get(worker, state.rate_at)
        docs = self._docs.of_claims
        gates = docs.gates.get(worker)
        # A dependency that let this one go first may be next; and no job gives way to jobs that wait for a probe.
        if gates is not None and (gates.after or docs.breakers.get(gates.breaker or "", BreakerState()).open):
            self._stir(table, worker)

    def _start(self, table: JobTable, id: str, instance: str, now: float) -> Claimed:
        job = replace(
            table.by_id[id],
            status=JobStatus.PROCESSING,
            instance=instance,
            fence=self._next_fence(),
            attempt=table.by_id[id].attempt + 1,
            started_at=now,
            ended_at=None,
            progress=None,
            wait=None,
        )
        table.write(replace(job, expires_at=None))
        return job.claimed()

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        with self._change() as table:
            answer = Finished([], [])
            for outcome in outcomes:
                job = table.by_id.get(outcome.id)
                if job is None or not accepts(job, outcome):
                    answer.accepted.append(False)
                    continue
                answer.accepted.append(True)
                if self._settle(table, job, outcome, now):
                    answer.disabled.append(job.worker)
            return answer

    def _settle(self, table: JobTable, job: JobRecord, outcome: Outcome, now: float) -> bool:
        """Write an accepted outcome. True if that disabled the worker."""
        settled = landed(job, outcome, now)
        table.write(settled)
        self._meet(table, settled, now)
        self._totals.finished(job, outcome)
        self._stir(table, job.worker)
        disabled = after_run(self._states.of(job.worker), outcome, settled.status)
        if disabled:
            table.topics |= {"state", "leader"}
        return disabled

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        orders = Orders([], [], await self.server_time())
        with self._change() as table:
            for beat in beats:
                if not self._instances.renew(beat, ttl, now):
                    orders.lost.append(beat.instance)
                    continue
                held = (table.by_id[id] for id in sorted(table.held.get(beat.instance, ())))
                orders.cancel.extend((job.id, job.fence) for job in held if job.cancelling)
            return orders

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        with self._change() as table:
            for note in notes:
                job = table.by_id.get(note.id)
                if job is not None and job.status is JobStatus.PROCESSING and job.fence == note.fence:
                    table.write(replace(job, progress=note.progress))

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        with self._change() as table:
            return [job.result if (job := table.by_id.get(id)) else None for id in ids]

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        with self._change() as table:
            job = _running(table, id, fence)
            if job is None:
                return False
            if step.number == len(job.steps) + 1:
                if not has_room_for_step(job, step):
                    raise steps_full(id)
                table.write(stepped(job, step, taking))
            return True

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        with self._change() as table:
            job = _running(table, id, fence)
            return None if job is None else next_steps(job.steps, after)

    async def signal(self, id: str, name: str) -> Signal | None:
        with self._change() as table:
            job = table.by_id.get(id)
            return None if job is None else next((one for one in job.signals if one.name == name), None)

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        with self._change() as table:
            job = table.by_id.get(id)
            return SeenParts() if job is None else seen_parts(job, steps, signals)

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        with self._change() as table:
            job = _running(table, parent, fence)
            if job is None or job.cancelling:
                return None
            return self._add_all(table, jobs, now)

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        with self._change() as table:
            job = table.by_id.get(id)
            if job is not None and job.status.live:
                if not has_room_for_signal(job, signal):
                    raise signals_full(id)
                table.write(signalled(job, signal, now))
            return None if job is None else job.status

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        with self._change() as table:
            return table.flows.records(behind, limit)

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        with self._change() as table:
            return members(table, flow, behind, limit)

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        with self._change() as table:
            ids = table.due.until(now, n)
            for id in ids:
                table.write(replace(table.by_id[id], status=JobStatus.QUEUED))
            expired = table.expiring.until(now, n)
            for id in expired:
                self._amend(table, id, Cancel(EXPIRED), now)
            heads = [head[0] for head in (table.due.head, table.expiring.head) if head]
            by_worker = Counter(table.by_id[id].worker for id in expired)
            return Promoted(len(ids) + len(expired), min(heads, default=None), dict(by_worker))

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        with self._change() as table:
            live = {holder, *self._instances.live(now)}
            orphans = [table.by_id[id] for name in table.held if name not in live for id in table.held[name]]
            orphans.sort(key=lambda job: (job.started_at, job.id))
            taken = [replace(job, fence=self._next_fence()) for job in orphans[:n]]
            for job in taken:
                table.write(replace(job, instance=holder))
                self._instances.lost.add(job.instance or "")
                table.topics.add("orders")
            self._bury(table, live)
            return [replace(job, steps=(), signals=()) for job in taken]

    def _bury(self, table: JobTable, live: Collection[str]) -> None:
        """Forget the dead instances: those that lost their jobs, and those that have none."""
        dead = {record.beat.instance for record in self._instances.all()}.difference(live)
        self._forget(table, [name for name in dead if name in self._instances.lost or name not in table.held])

    async def prune(self, n: int, now: float) -> int:
        with self._change() as table:
            jobs = [table.by_id[id] for id in table.disposable.until(now, n)]
            kept = {job.id for job in jobs if table.flows.keeps(job, table.by_id)}
            for job in jobs:
                if job.id in kept:
                    table.write(replace(job, keep_until=now + POSTPONED))
                else:
                    for waiter, _ in table.flows.waiters_of(job.id):
                        table.flows.meet(waiter, job.id)
                    table.delete(job.id)
            return len(jobs) + self._events.prune(n)

    async def leave(self, instances: Sequence[str], now: float) -> None:  # noqa: ARG002 - others note the time
        with self._change("leader") as table:
            self._forget(table, instances)

    def _forget(self, table: JobTable, instances: Iterable[str]) -> None:
        if self._instances.forget(instances):
            # Others may have given way to jobs that only these would have run.
            table.stir()

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        with self._change():
            return self._places.hold(name, holder, limit=limit, until=now + ttl, now=now)

    async def drop(self, name: str, holder: str) -> None:
        with self._change():
            self._places.drop(name, holder)

    # ── small versioned records ──────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        with self._change():
            return self._docs.of_kinds(kinds)

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        return self._change_docs(docs, self._docs.put)

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        return self._change_docs(docs, self._docs.erase)

    def _change_docs(self, docs: Sequence[Doc], change: Callable[[Doc], bool]) -> list[bool]:
        with self._change() as table:
            changed = [change(doc) for doc in docs]
            if any(changed):
                table.topics |= {"state", "leader"}
            if any(done and doc.kind in READ_BY_CLAIMS for done, doc in zip(changed, docs, strict=True)):
                table.stir()
            return changed

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        with self._change("state", "leader") as table:
            self._states.switch(worker, enabled=enabled, reason=reason, now=now)
            table.stir(neighbours([worker], self._docs.of_claims.gates))
            return self._states.copy_of(worker)

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:  # noqa: ARG002 - others note the time
        with self._change() as table:
            for job in jobs:
                table.delete(job.id)
            for job in jobs:
                if not (job.status.live and table.clashes(job)):
                    table.write(replace(job, unmet=()))
                    table.flows.need(job.id, job.unmet)
                    self._totals.know(job.pool)
                    self._stir(table, job.worker)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        with self._change("state", "leader") as table:
            for state in states:
                self._states.keep(state)
                table.stir(neighbours([state.worker], self._docs.of_claims.gates))
            self._totals.keep(totals)
            self._fence = max(self._fence, fence)
            return self._next_fence()

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        with self._change() as table:
            every_worker = {*self._states, *self._docs.of_claims.gates, *table.by_worker}
            return self._facts(every_worker if workers is None else workers, now)

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        with self._change() as table:
            lines = {name: pools[pool] for name, pools in table.ready.items() if pool in pools}
            return [
                Ahead({name: n for name, line in lines.items() if (n := line.before(place.rank, place.id))})
                for place in places
            ]

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        with self._change() as table:
            found = [table.whole(id) for id in ids]
            return found if whole else [job and replace(job, steps=(), signals=()) for job in found]

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        with self._change() as table:
            return find(table, wanted)

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        with self._change() as table:
            return dead(table.by_id, behind, limit)

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        with self._change() as table:
            return [self._amend(table, id, change, now) for id in ids]

    def _amend(self, table: JobTable, id: str, change: Change, now: float) -> Amended:
        job = table.whole(id)
        if job is None:
            return Amended(id, ok=False, status=None)
        ok = allows(job.status, change) and not (isinstance(change, Requeue) and table.clashes(job))
        ok = ok and not (isinstance(change, Discard) and table.flows.waiters_of(id))
        if ok:
            self._change_job(table, job, change, now)
        return Amended(id, ok=ok, status=job.status)

    def _change_job(self, table: JobTable, job: JobRecord, change: Change, now: float) -> None:
        changed = amended(job, change, now)
        if changed is None:
            table.delete(job.id)
            return
        table.write(replace(changed, unmet=()))
        self._meet(table, changed, now)
        if changed.cancelling:
            table.topics.add("orders")
            return
        if changed.status is JobStatus.CANCELLED:
            after_end(self._states.of(job.worker), now)
        self._stir(table, job.worker)

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        with self._change() as table:
            return [self._rewrite(table, rewrite) for rewrite in rewrites]

    def _rewrite(self, table: JobTable, rewrite: Rewrite) -> bool:
        job = table.by_id.get(rewrite.before.id)
        if job is None:
            return False
        table.by_id[job.id] = rewritten(job, rewrite)  # no index depends on what changes
        return is_written(table.by_id[job.id], rewrite)

    async def stats(self, now: float) -> Stats:  # noqa: ARG002 - others count at a time
        with self._change() as table:
            return self._totals.stats(table)

    async def instances(self) -> list[InstanceRecord]:
        with self._change():
            return self._instances.all()

    async def record(self, events: Sequence[Event]) -> None:
        with self._change():
            self._events.add(events)

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        with self._change():
            return self._events.between(after, before, limit)

    def listen(self, topics: Collection[str]) -> Bell:
        return self._bells.listen(topics)

    async def check(self) -> dict[str, Finding]:
        with self._change():
            return {
                "store": Finding("memory"),
                "durability": Finding("none: everything ends with this process"),
                "integrity": integrity(damaged_docs(self._docs.of_kinds(()))),
            }

    # ── what the calls share; the lock is held ───────────────────────────────────────────────────────────────────

    def _meet(self, table: JobTable, job: JobRecord, now: float) -> None:
        """Meet or break the needs of this job, which has changed, and release the jobs that need nothing else."""
        if job.status in LOST:
            self._lose(table, [job.id], now)
        elif job.status is JobStatus.COMPLETED:
            self._meet_all(table, [(waiter, job.id) for waiter, _ in table.flows.waiters_of(job.id)], now)
        else:
            table.flows.regain(job.id, self._status)

    def _lose(self, table: JobTable, ids: Iterable[str], now: float) -> None:
        """Break the needs of these jobs, which are lost, and release the jobs that any end will do for."""
        self._meet_all(table, table.flows.lose(ids, self._status), now)

    def _meet_all(self, table: JobTable, met: Iterable[tuple[str, str]], now: float) -> None:
        for waiter, needed in met:
            last = table.flows.meet(waiter, needed)
            if last and table.by_id[waiter].status is JobStatus.WAITING:
                table.write(released(table.by_id[waiter], now))

    def _next_fence(self) -> int:
        self._fence += 1
        return self._fence

    def _stir(self, table: JobTable, worker: str) -> None:
        """Ring for the workers that may wait for something that changed about this one."""
        gates = self._docs.of_claims.gates.get(worker)
        if gates is not None and not gates.open:
            table.stir(neighbours([worker], self._docs.of_claims.gates))

    def _facts(self, workers: Iterable[str], now: float) -> Facts:
        served = {beat.pool for beat in self._instances.live(now).values()}
        return lanes.facts(workers, self._jobs, self._docs.of_claims, states=self._states, served=served)


def _running(table: JobTable, id: str, fence: int) -> JobRecord | None:
    """The job, if it is processing under this fence."""
    job = table.by_id.get(id)
    return job if job is not None and job.status is JobStatus.PROCESSING and job.fence == fence else None
