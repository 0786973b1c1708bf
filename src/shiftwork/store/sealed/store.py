"""A store that encrypts what it writes and decrypts what it reads, around any other store.

What is encrypted is in `sealer`. Calls that carry nothing to encrypt are `FORWARDED`. A value that cannot be decrypted
is returned as it is stored. Two things cost more than without encryption: a search for a part of an error reads the
jobs that match otherwise and looks into each, and a requeue of several jobs with one new payload is one call for each,
because a payload is bound to its job.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Amended, Change, Finished, JobFilter, Outcome, Requeue
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS
from shiftwork.core.values.rewriting import is_written, rewritten
from shiftwork.core.workers.admission import Facts
from shiftwork.store.abilities import Transaction, Transactional, add_blocking, transactional, try_room
from shiftwork.store.protocol import Claims, Store
from shiftwork.store.sealed.key_ring import KeyRing
from shiftwork.store.sealed.sealer import Sealer

ERROR_SEARCH_PAGE: Final = 100
"""How many jobs are read at a time in search of a part of an error."""
FORWARDED: Final = frozenset(
    (
        *("open", "close", "server_time", "beat", "promote", "prune", "leave", "hold", "drop", "erase"),
        *("flows", "members", "ahead", "stats", "instances", "listen", "check"),
    )
)
"""The calls of `Store` that neither take nor return a value of a user. Any other one has to be written here."""


def sealed(store: Store, ring: KeyRing, *, namespace: str = "default") -> Store:
    """Return the store of a namespace, with a layer around it that encrypts."""
    kind = SealedDatabase if hasattr(store, "add_with") else SealedStore
    return kind(store, ring, namespace=namespace)


class SealedStore:
    """A store whose values are encrypted."""

    def __init__(self, inner: Store, ring: KeyRing, *, namespace: str = "default") -> None:
        self.inner = inner
        """The store itself, with its values as they are stored."""
        self.key_ids: tuple[str, ...] = ring.ids
        """The keys of this process; the first one encrypts."""
        self.sealer: Sealer = Sealer(ring, namespace)
        self.url: str = inner.url
        self.recorder: Any = getattr(inner, "recorder", None)
        """What the calls of the store inside are recorded with, if they are."""

    def __getattr__(self, name: str) -> Any:
        if name in FORWARDED:
            return getattr(self.inner, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        return await self.inner.add([self.sealer.seal_new(job) for job in jobs], now)

    def add_blocking(self, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        return add_blocking(self.inner, [self.sealer.seal_new(job) for job in jobs], now)

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        claims = await self.inner.claim(instance, pool, n, now, workers, edition=edition)
        return replace(claims, jobs=[self.sealer.open_claimed(job) for job in claims.jobs])

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        return await self.inner.finish([self.sealer.seal_outcome(outcome) for outcome in outcomes], now)

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        seal = self.sealer.seal_progress
        await self.inner.note([ProgressNote(note.id, note.fence, seal(note.id, note.progress)) for note in notes])

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        stored = await self.inner.results(ids)
        return [self.sealer.open_result(id, result) for id, result in zip(ids, stored, strict=True)]

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        return await self.inner.keep_step(id, fence, self.sealer.seal_step(id, step), taking=taking)

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        page = await self.inner.steps(id, fence, after)
        return page and replace(page, steps=[self.sealer.open_step(id, step) for step in page.steps])

    async def signal(self, id: str, name: str) -> Signal | None:
        signal = await self.inner.signal(id, name)
        return signal and self.sealer.open_signal(id, signal)

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        return self.sealer.open_parts(id, await self.inner.parts(id, steps=steps, signals=signals))

    async def extend(self, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        return await self.inner.extend(parent, fence, [self.sealer.seal_new(job) for job in jobs], now)

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        return await self.inner.send(id, self.sealer.seal_signal(id, signal), now)

    # ── leader and docs ─────────────────────────────────────────────────────────────────────────────────────────

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        return [self.sealer.open_record(job) for job in await self.inner.reap(holder, n, now)]

    async def docs(self, *kinds: str) -> list[Doc]:
        return [self.sealer.open_doc(doc) for doc in await self.inner.docs(*kinds)]

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        return await self.inner.put([self.sealer.seal_doc(doc) for doc in docs])

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        hidden = self.sealer.seal_error(worker, reason)
        return self.sealer.open_state(await self.inner.switch(worker, enabled=enabled, reason=hidden, now=now))

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:
        await self.inner.restore([self.sealer.seal_record(job) for job in jobs], now)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        return await self.inner.take_over([self.sealer.seal_state(state) for state in states], totals, fence)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        facts = await self.inner.survey(workers, now)
        lanes = {name: replace(lane, state=self.sealer.open_state(lane.state)) for name, lane in facts.lanes.items()}
        return replace(facts, lanes=lanes)

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        found = await self.inner.get(ids, whole=whole)
        return [None if job is None else self.sealer.open_record(job) for job in found]

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        if wanted.error is not None:
            return await self._find_error(wanted, wanted.error)
        return [self.sealer.open_record(job) for job in await self.inner.find(wanted)]

    async def _find_error(self, wanted: JobFilter, error: str) -> list[JobRecord]:
        found: list[JobRecord] = []
        after = wanted.after
        while len(found) < wanted.limit:
            page = await self.inner.find(replace(wanted, error=None, after=after, limit=ERROR_SEARCH_PAGE))
            opened = (self.sealer.open_record(job) for job in page)
            found += [job for job in opened if job.error is not None and error in job.error]
            if len(page) < ERROR_SEARCH_PAGE:
                break
            after = page[-1].id
        return found[: wanted.limit]

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        return [self.sealer.open_dead(job) for job in await self.inner.dead(behind, limit)]

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        if not isinstance(change, Requeue) or change.payload is None:
            return await self.inner.amend(ids, change, now)
        amended: list[Amended] = []
        for id in ids:
            hidden = replace(change, payload=self.sealer.seal_payload(id, change.payload))
            amended += await self.inner.amend([id], hidden, now)
        return amended

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        stored = await self.inner.get([rewrite.before.id for rewrite in rewrites], whole=True)
        hidden, written = list[Rewrite](), list[bool]()
        for job, rewrite in zip(stored, rewrites, strict=True):
            opened = rewrite.before if job is None else self.sealer.open_record(job)
            after = rewritten(opened, rewrite)
            written.append(is_written(after, rewrite))
            hidden.append(Rewrite(job or rewrite.before, self.sealer.seal_record(after)))
        return [one and other for one, other in zip(await self.inner.rewrite(hidden), written, strict=True)]

    async def record(self, events: Sequence[Event]) -> None:
        await self.inner.record([self.sealer.seal_event(event) for event in events])

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        return [self.sealer.open_event(event) for event in await self.inner.events(after, limit, before=before)]

    async def try_room(self) -> None:
        await try_room(self.inner)


class SealedTransaction:
    """A transaction in which the steps and the end of a job are encrypted."""

    def __init__(self, inner: Transaction, sealer: Sealer) -> None:
        self.connection: Any = inner.connection
        self._inner = inner
        self._sealer = sealer

    async def finish(self, outcome: Outcome, now: float) -> bool:
        return await self._inner.finish(self._sealer.seal_outcome(outcome), now)

    async def keep_step(self, id: str, fence: int, step: Step) -> bool:
        return await self._inner.keep_step(id, fence, self._sealer.seal_step(id, step))


class SealedDatabase(SealedStore):
    """A store whose values are encrypted, in a database that the user's own transactions reach."""

    @property
    def _database(self) -> Transactional:
        return transactional(self.inner, "a transaction")

    async def add_with(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        return await self._database.add_with(connection, [self.sealer.seal_new(job) for job in jobs], now)

    def add_with_blocking(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        return self._database.add_with_blocking(connection, [self.sealer.seal_new(job) for job in jobs], now)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SealedTransaction]:
        async with self._database.transaction() as inner:
            yield SealedTransaction(inner, self.sealer)
