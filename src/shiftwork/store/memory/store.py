"""The store in memory: the contract of `shiftwork.store.protocol`, written to be read.

Each method hands an operation the tables, while one lock makes every call happen at once, from any thread; no call ever
waits for anything else. What an operation does is in the file it comes from, and every rule is called directly:
`core.workers.admission`, `core.jobs.transitions`, `core.workers.state`, and `core.jobs.parked_jobs` through
`rows`, which keeps the indices.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from msgspec.structs import replace

from shiftwork.core.doc_kinds import damaged_docs
from shiftwork.core.health.health_values import Finding, integrity
from shiftwork.core.health.position import Ahead, QueuePlace
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Change, Finished, JobFilter, Outcome
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.core.observing.pool_stats import PoolStats, Stats
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS
from shiftwork.core.workers.admission import Facts
from shiftwork.store.bells import Bells
from shiftwork.store.machine_clock import SteadyClock
from shiftwork.store.memory import durable, lease
from shiftwork.store.memory.add import add, extend
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.amend import amend, rewrite, switch
from shiftwork.store.memory.claim import claim
from shiftwork.store.memory.docs import erase, put
from shiftwork.store.memory.find import ahead, dead, find, get
from shiftwork.store.memory.finish import finish, note
from shiftwork.store.memory.flows import members, results
from shiftwork.store.memory.lead import promote, prune, reap
from shiftwork.store.memory.restore import restore, take_over
from shiftwork.store.protocol import Bell, Claims, Promoted


class MemoryStore:
    """A store for tests, for trying things out, and for work that may die with its process."""

    def __init__(self, url: str = "memory://", *, bells: Bells | None = None) -> None:
        self.url = url
        self._clock = SteadyClock()
        self._lock = Lock()
        self._bells = bells or Bells()
        self._tables = Tables()

    @contextmanager
    def _call(self) -> Iterator[Tables]:
        """Hold the lock; afterwards, ring the topics that the operation concerns."""
        with self._lock:
            yield self._tables
            topics = self._tables.jobs.take_topics()
        self._bells.ring(topics)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: the data live as long as this object, also for others who hold it."""

    async def server_time(self) -> float:
        return self._clock.time()

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        with self._call() as tables:
            return add(tables, jobs, now)

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        with self._call() as tables:
            return claim(tables, instance, pool, n=n, now=now, workers=workers, edition=edition)

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        with self._call() as tables:
            return finish(tables, outcomes, now)

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        with self._call() as tables:
            orders = lease.beat(tables, beats, ttl=ttl, now=now)
        return replace(orders, server_time=await self.server_time())

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        with self._call() as tables:
            note(tables, notes)

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        with self._call() as tables:
            return results(tables, ids)

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        with self._call() as tables:
            return durable.keep_step(tables, id, fence, step, taking)

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        with self._call() as tables:
            return durable.steps(tables, id, fence, after)

    async def signal(self, id: str, name: str) -> Signal | None:
        with self._call() as tables:
            return durable.first_signal(tables, id, name)

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        with self._call() as tables:
            return durable.parts(tables, id, steps, signals)

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        with self._call() as tables:
            return extend(tables, parent, fence, jobs, now)

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        with self._call() as tables:
            return durable.send(tables, id, signal, now)

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        with self._call() as tables:
            return tables.jobs.flows.records(behind, limit)

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        with self._call() as tables:
            return members(tables, flow, behind, limit)

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        with self._call() as tables:
            return promote(tables, n, now)

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        with self._call() as tables:
            return reap(tables, holder, n, now)

    async def prune(self, n: int, now: float) -> int:
        with self._call() as tables:
            return prune(tables, n, now)

    async def leave(self, instances: Sequence[str], now: float) -> None:  # noqa: ARG002 - others note the time
        with self._call() as tables:
            lease.leave(tables, instances)

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        with self._call() as tables:
            return tables.places.hold(name, holder, limit=limit, until=now + ttl, now=now)

    async def drop(self, name: str, holder: str) -> None:
        with self._call() as tables:
            tables.places.drop(name, holder)

    # ── docs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        with self._call() as tables:
            return tables.docs.of_kinds(kinds)

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        with self._call() as tables:
            return put(tables, docs)

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        with self._call() as tables:
            return erase(tables, docs)

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        with self._call() as tables:
            return switch(tables, worker, enabled=enabled, reason=reason, now=now)

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:  # noqa: ARG002 - others note the time
        with self._call() as tables:
            restore(tables, jobs)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        with self._call() as tables:
            return take_over(tables, states, totals, fence)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        with self._call() as tables:
            return tables.survey(workers, now)

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        with self._call() as tables:
            return ahead(tables.jobs, pool, places)

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        with self._call() as tables:
            return get(tables.jobs, ids, whole=whole)

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        with self._call() as tables:
            return find(tables.jobs, wanted)

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        with self._call() as tables:
            return dead(tables.jobs.by_id, behind, limit)

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        with self._call() as tables:
            return amend(tables, ids, change, now)

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        with self._call() as tables:
            return rewrite(tables, rewrites)

    async def stats(self, now: float) -> Stats:  # noqa: ARG002 - others count at a time
        with self._call() as tables:
            return tables.totals.stats(tables.jobs)

    async def instances(self) -> list[InstanceRecord]:
        with self._call() as tables:
            return tables.instances.all()

    async def record(self, events: Sequence[Event]) -> None:
        with self._call() as tables:
            tables.events.add(events)

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        with self._call() as tables:
            return tables.events.between(after, before, limit)

    def listen(self, topics: Collection[str]) -> Bell:
        return self._bells.listen(topics)

    async def check(self) -> dict[str, Finding]:
        with self._call() as tables:
            return {
                "store": Finding("memory"),
                "durability": Finding("none: everything ends with this process"),
                "integrity": integrity(damaged_docs(tables.docs.of_kinds(()))),
            }
