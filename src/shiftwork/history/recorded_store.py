"""A store whose calls are recorded, around any other store. What is recorded of each is in `lines`.

The layer stands inside the one that encrypts, so it never sees what that hides. What it does not record it passes on,
the abilities of the store inside included. Calls of a transaction of the user's are answered when that is over, and
jobs that are added on a connection of the user's are never known to be there: they may be, once that commits.
"""

import os
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast
from weakref import WeakKeyDictionary
from zlib import crc32

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Amended, Change, Finished, Outcome
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.model.jobs import Added, JobRecord, JobStatus, NewJob, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat, Orders
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.history.history_file import HistoryFile
from shiftwork.history.lines import (
    AddArgs,
    AmendAnswer,
    BeatAnswer,
    BeatArgs,
    Call,
    ClaimArgs,
    CountArgs,
    ExtendArgs,
    FinishAnswer,
    NamesArgs,
    PlaceArgs,
    ReapArgs,
    SendArgs,
    SwitchArgs,
)
from shiftwork.history.recorded_values import (
    added_jobs,
    amendment,
    claimed,
    docs_named,
    finished,
    kept_step,
    new_jobs,
    reaped,
)
from shiftwork.history.recorder import HistoryRecorder
from shiftwork.store.abilities import Transaction, Transactional
from shiftwork.store.protocol import Claims, Promoted, Store
from shiftwork.store.urls import LazyStore

ABILITIES: Final = frozenset(("add_blocking", "add_with", "add_with_blocking", "transaction"))
"""What only some stores can do and is recorded: this store can do it if the store inside can."""


class RecordedCall:
    """One call, from before it leaves this process until it is over."""

    __slots__ = ("_number", "_recorder", "answer")

    def __init__(self, recorder: HistoryRecorder, call: Call, now: float | None, args: Any) -> None:
        self.answer: Any = None
        """What is recorded of the store's answer."""
        self._recorder = recorder
        self._number = recorder.asked(call, now, args)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over(error)

    def over(self, error: BaseException | None, *, maybe: bool | None = None) -> None:
        """Record the answer, or the error."""
        if error is None:
            self._recorder.answered(self._number, self.answer)
        else:
            self._recorder.failed(self._number, error, maybe=maybe)


class RecordedStore:
    """A store whose calls are recorded."""

    def __init__(self, inner: Store, recorder: HistoryRecorder) -> None:
        self.inner = inner
        self.recorder: HistoryRecorder = recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return getattr(self, f"_{name}") if name in ABILITIES else found

    def _call(self, call: Call, now: float | None, args: Any) -> RecordedCall:
        return RecordedCall(self.recorder, call, now, args)

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        with self._call("add", now, AddArgs(new_jobs(jobs))) as call:
            added = await self.inner.add(jobs, now)
            call.answer = added_jobs(added)
        return added

    def _add_blocking(self, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        call = self._call("add", now, AddArgs(new_jobs(jobs)))
        added: list[Added] | None = None
        try:
            added = cast("Any", self.inner).add_blocking(jobs, now)
        except BaseException as error:
            call.over(error)
            raise
        call.answer = added_jobs(added)
        call.over(NotHere() if added is None else None, maybe=False)
        return added

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        with self._call("claim", now, ClaimArgs(instance, pool, n)) as call:
            claims = await self.inner.claim(instance, pool, n, now, workers, edition=edition)
            call.answer = claimed(claims.jobs)
        return claims

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        with self._call("finish", now, finished(outcomes)) as call:
            answer = await self.inner.finish(outcomes, now)
            call.answer = FinishAnswer(answer.accepted, answer.disabled)
        return answer

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        with self._call("beat", now, BeatArgs([beat.instance for beat in beats], ttl)) as call:
            orders = await self.inner.beat(beats, ttl, now)
            call.answer = BeatAnswer(orders.cancel, orders.lost)
        return orders

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        with self._call("keep_step", None, kept_step(id, fence, step, taking)) as call:
            call.answer = kept = await self.inner.keep_step(id, fence, step, taking=taking)
        return kept

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        with self._call("extend", now, ExtendArgs(parent, fence, new_jobs(jobs))) as call:
            added = await self.inner.extend(parent, fence, jobs, now)
            call.answer = added_jobs(added)
        return added

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        with self._call("send", now, SendArgs(id, signal.name, crc32(signal.value))) as call:
            call.answer = status = await self.inner.send(id, signal, now)
        return status

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        with self._call("results", None, NamesArgs(list(ids))) as call:
            found = await self.inner.results(ids)
            call.answer = [None if result is None else crc32(result) for result in found]
        return found

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        with self._call("promote", now, CountArgs(n)) as call:
            promoted = await self.inner.promote(n, now)
            call.answer = promoted.moved, promoted.expired
        return promoted

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        with self._call("reap", now, ReapArgs(holder, n)) as call:
            taken = await self.inner.reap(holder, n, now)
            call.answer = reaped(taken)
        return taken

    async def prune(self, n: int, now: float) -> int:
        with self._call("prune", now, CountArgs(n)) as call:
            call.answer = pruned = await self.inner.prune(n, now)
        return pruned

    async def leave(self, instances: Sequence[str], now: float) -> None:
        with self._call("leave", now, NamesArgs(list(instances))):
            await self.inner.leave(instances, now)

    # ── coordination and small records ───────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        with self._call("hold", now, PlaceArgs(name, holder, limit, ttl)) as call:
            call.answer = held = await self.inner.hold(name, holder, limit, ttl, now)
        return held

    async def drop(self, name: str, holder: str) -> None:
        with self._call("drop", None, PlaceArgs(name, holder)):
            await self.inner.drop(name, holder)

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        with self._call("put", None, docs_named(docs)) as call:
            call.answer = written = await self.inner.put(docs)
        return written

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        with self._call("erase", None, docs_named(docs)) as call:
            call.answer = erased = await self.inner.erase(docs)
        return erased

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        with self._call("switch", now, SwitchArgs(worker, enabled)):
            return await self.inner.switch(worker, enabled=enabled, reason=reason, now=now)

    # ── moving in, and people ────────────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:
        with self._call("restore", now, NamesArgs([job.id for job in jobs])):
            await self.inner.restore(jobs, now)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        with self._call("take_over", None, NamesArgs([])) as call:
            call.answer = above = await self.inner.take_over(states, totals, fence)
        return above

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        with self._call("amend", now, amendment(ids, change)) as call:
            amended = await self.inner.amend(ids, change, now)
            call.answer = AmendAnswer([(one.ok, one.status) for one in amended])
        return amended

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        with self._call("rewrite", None, NamesArgs([one.after.id for one in rewrites])) as call:
            call.answer = written = await self.inner.rewrite(rewrites)
        return written

    # ── transactions of the user's ───────────────────────────────────────────────────────────────────────────────

    async def _add_with(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        call = self._call("add", now, AddArgs(new_jobs(jobs)))
        try:
            added = await cast("Transactional", self.inner).add_with(connection, jobs, now)
        except BaseException as error:
            call.over(error, maybe=False)
            raise
        call.over(NotCommitted())
        return added

    def _add_with_blocking(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        call = self._call("add", now, AddArgs(new_jobs(jobs)))
        try:
            added = cast("Transactional", self.inner).add_with_blocking(connection, jobs, now)
        except BaseException as error:
            call.over(error, maybe=False)
            raise
        call.over(NotCommitted())
        return added

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator["RecordedTransaction"]:
        calls: list[RecordedCall] = []
        theirs: BaseException | None = None
        try:
            async with cast("Transactional", self.inner).transaction() as inner:
                try:
                    yield RecordedTransaction(inner, self.recorder, calls)
                except BaseException as error:
                    theirs = error
                    raise
        except BaseException as error:
            for call in calls:
                call.over(error, maybe=theirs is None)  # what the block raised came before the commit
            raise
        for call in calls:
            call.over(None)


class RecordedTransaction:
    """A transaction whose calls are recorded: those that were accepted are answered when it is over."""

    def __init__(self, inner: Transaction, recorder: HistoryRecorder, calls: list[RecordedCall]) -> None:
        self.connection: Any = inner.connection
        self._inner = inner
        self._recorder = recorder
        self._calls = calls

    async def finish(self, outcome: Outcome, now: float) -> bool:
        call = RecordedCall(self._recorder, "finish", now, finished([outcome]))
        self._calls.append(call)
        accepted = await self._inner.finish(outcome, now)
        call.answer = FinishAnswer([accepted], [])
        return accepted

    async def keep_step(self, id: str, fence: int, step: Step) -> bool:
        if not step.number:  # nothing is kept: it is asked whether the run is the current one
            return await self._inner.keep_step(id, fence, step)
        call = RecordedCall(self._recorder, "keep_step", None, kept_step(id, fence, step, None))
        self._calls.append(call)
        call.answer = kept = await self._inner.keep_step(id, fence, step)
        return kept


class NotHere(Exception):  # noqa: N818 - it is never raised
    """Stands for an answer: the call was not made, and is made again in another way."""


class NotCommitted(Exception):  # noqa: N818 - it is never raised
    """Stands for an answer: the user's transaction decides whether the call has happened."""


def recorded(store: Store, folder: Path) -> Store:
    """Return a store whose calls are recorded in a file of this folder, or the same one if they are already."""
    if getattr(store, "recorder", None) is not None:
        return store
    file = HistoryFile(folder, partial(_url_of, store))
    recorder = HistoryRecorder(file)
    _in_files[recorder] = file
    return RecordedStore(store, recorder)


_in_files: Final[WeakKeyDictionary[HistoryRecorder, HistoryFile]] = WeakKeyDictionary()


def _forked() -> None:
    for recorder, file in [*_in_files.items()]:
        recorder.begin_anew()
        file.begin_anew()


if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_forked)


def _url_of(store: Store) -> str:
    """Return the URL of a store, unless that alone would import its driver."""
    return "" if isinstance(store, LazyStore) else store.url
