"""The store in a SQLite file: the contract of `shiftwork.store.protocol`, for processes on one machine.

Each method hands an operation to the thread that writes or to the thread that reads. What an operation does is in the
file it comes from; nothing here looks into the database.
"""

import asyncio
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from shiftwork.core.health.health_values import Finding
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
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS, signals_full, steps_full
from shiftwork.core.workers.admission import Facts
from shiftwork.errors import CorruptStoreError, UnknownStoreError, nearest
from shiftwork.store.protocol import Bell, Claims, Promoted
from shiftwork.store.sqlite import doctor, durable
from shiftwork.store.sqlite.add import add, extend
from shiftwork.store.sqlite.amend import amend, rewrite, switch
from shiftwork.store.sqlite.claim import claim
from shiftwork.store.sqlite.docs import erase, put, stored_docs
from shiftwork.store.sqlite.events import events, record
from shiftwork.store.sqlite.facts import survey
from shiftwork.store.sqlite.file.call_servers import OutdatedReaderError, replaced
from shiftwork.store.sqlite.file.file_clock import FileClock
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from shiftwork.store.sqlite.file.store_threads import StoreThreads
from shiftwork.store.sqlite.find import ahead, dead, find, get
from shiftwork.store.sqlite.finish import bury_unreadable, finish, note
from shiftwork.store.sqlite.flows import flows, members, results
from shiftwork.store.sqlite.lead import promote, prune, reap
from shiftwork.store.sqlite.lease import beat, drop, hold, instances, leave
from shiftwork.store.sqlite.restore import restore, take_over
from shiftwork.store.sqlite.rows import Unreadable
from shiftwork.store.sqlite.stats import stats

T = TypeVar("T")
FEW_ADDED: Final = 4
"""Up to this many jobs are added in less time than it takes to wake a thread."""
READ_TRIES: Final = 3
SYNCHRONOUS: Final = ("off", "normal", "full", "extra")


class SqliteStore:
    """A store in one file, created where it does not exist. Any number of processes and namespaces may share it."""

    def __init__(self, path: str, *, synchronous: str = "normal", namespace: str = "default") -> None:
        if synchronous not in SYNCHRONOUS:
            raise UnknownStoreError(f"synchronous={synchronous!r}: {nearest(synchronous, SYNCHRONOUS)}")
        self._path = str(Path(path).resolve())
        self._synchronous = synchronous
        self._namespace = namespace
        self.url: str = f"sqlite:///{self._path}" + ("" if synchronous == "normal" else f"?synchronous={synchronous}")
        self._clock = FileClock()
        self._threads = StoreThreads(self._path, Path(path).absolute(), synchronous=synchronous, namespace=namespace)
        weakref.finalize(self, self._threads.abandon).atexit = False

    async def _write(self, todo: Callable[[SqliteSession], T], *, quick: bool = False) -> T:
        writer = self._threads.quick_writer if quick else None
        served = None if writer is None or writer.ended else writer.call_at_once(todo)
        return await self._threads.write(todo, quick=quick) if served is None else cast("T", served.answer())

    async def _read(self, todo: Callable[[SqliteSession], T]) -> T:
        pending = self._threads.pending_write()
        if pending is not None:  # a read sees the writes called before it
            await asyncio.wait([pending])
        for _ in range(READ_TRIES):
            try:
                return await self._threads.read(todo)
            except OutdatedReaderError:
                await self._write(_nothing)  # it opens the file that is there now
        raise replaced(self._path)

    async def _bury(self, broken: Unreadable) -> None:
        if broken:
            await self._write(partial(bury_unreadable, unreadable=broken))

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        self._threads.reopen()
        await self._write(_nothing)
        await self._read(_nothing)

    async def close(self) -> None:
        await asyncio.sleep(0)  # let the calls made before reach the threads
        await asyncio.to_thread(self._threads.close)

    async def server_time(self) -> float:
        now = await self._read(self._clock.look)
        return await self._write(self._clock.write) if now is None else now

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        return await self._write(partial(add, jobs=jobs, now=now), quick=len(jobs) <= FEW_ADDED)

    def add_blocking(self, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        served = self._threads.write_here(partial(add, jobs=jobs, now=now))
        return None if served is None else cast("list[Added]", served.answer())

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        todo = partial(claim, instance=instance, pool=pool, n=n, now=now, workers=workers, edition=edition)
        return await self._write(todo)

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        return await self._write(partial(finish, outcomes=outcomes, now=now))

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        orders = await self._write(partial(beat, beats=beats, ttl=ttl, now=now))
        return replace(orders, server_time=await self.server_time())

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        await self._write(partial(note, notes=notes))

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        return await self._read(partial(results, ids=ids))

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        call = partial(durable.keep_step, id=id, fence=fence, step=step, taking=taking)
        kept = await self._write(call, quick=True)
        if kept == "full":
            raise steps_full(id)
        return kept

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        return await self._read(partial(durable.steps, id=id, fence=fence, after=after))

    async def signal(self, id: str, name: str) -> Signal | None:
        return await self._read(partial(durable.first_signal, id=id, name=name))

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        return await self._read(partial(durable.parts, id=id, steps=steps, signals=signals))

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        todo = partial(extend, parent=parent, fence=fence, jobs=jobs, now=now)
        return await self._write(todo, quick=len(jobs) <= FEW_ADDED)

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        before = await self._write(partial(durable.send, id=id, signal=signal, now=now), quick=True)
        if before == "full":
            raise signals_full(id)
        return before

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        return await self._read(partial(flows, behind=behind, limit=limit))

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        return await self._read(partial(members, flow=flow, behind=behind, limit=limit))

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        return await self._write(partial(promote, n=n, now=now))

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        return await self._write(partial(reap, holder=holder, n=n, now=now, is_set=self._clock.is_set))

    async def prune(self, n: int, now: float) -> int:
        return await self._write(partial(prune, n=n, now=now))

    async def leave(self, instances: Sequence[str], now: float) -> None:
        await self._write(partial(leave, names=instances, now=now))

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        return await self._write(partial(hold, name=name, holder=holder, limit=limit, ttl=ttl, now=now))

    async def drop(self, name: str, holder: str) -> None:
        await self._write(partial(drop, name=name, holder=holder))

    # ── docs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        return await self._read(partial(stored_docs, kinds=kinds))

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        return await self._write(partial(put, docs=docs))

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        return await self._write(partial(erase, docs=docs))

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        return await self._write(partial(switch, worker=worker, enabled=enabled, reason=reason, now=now))

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:
        await self._write(partial(restore, jobs=jobs, now=now))

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        return await self._write(partial(take_over, states=states, totals=totals, fence=fence))

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        return await self._read(partial(survey, workers=workers, now=now))

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        return await self._read(partial(ahead, pool=pool, places=places))

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        broken = Unreadable()
        found = await self._read(partial(get, ids=ids, broken=broken, whole=whole))
        await self._bury(broken)
        return found

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        broken = Unreadable()
        found = await self._read(partial(find, wanted=wanted, broken=broken))
        await self._bury(broken)
        return found

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        return await self._read(partial(dead, behind=behind, limit=limit))

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        return await self._write(partial(amend, ids=ids, change=change, now=now))

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        return await self._write(partial(rewrite, rewrites=rewrites))

    async def stats(self, now: float) -> Stats:  # noqa: ARG002 - the counters do not depend on the time
        return await self._read(stats)

    async def instances(self) -> list[InstanceRecord]:
        return await self._read(instances)

    async def record(self, events: Sequence[Event]) -> None:
        await self._write(partial(record, events=events))

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        return await self._read(partial(events, after=after, before=before, limit=limit))

    def listen(self, topics: Collection[str]) -> Bell:
        return self._threads.listen(topics)

    async def try_room(self) -> None:
        await asyncio.to_thread(doctor.try_room, self._path, Path(f"{self._path}.side"))

    async def check(self) -> dict[str, Finding]:
        with suppress(CorruptStoreError):
            await self._write(_nothing)
        return await asyncio.to_thread(
            doctor.check, self._path, synchronous=self._synchronous, namespace=self._namespace
        )


def _nothing(session: SqliteSession) -> None:
    """Do nothing: the call opens the store."""
