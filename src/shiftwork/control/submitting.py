"""The store, open, and jobs on their way into it: what the handles of workers and jobs need."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from shiftwork.app.registration import Registrations
from shiftwork.control.portal import Portal
from shiftwork.control.schema import Schema
from shiftwork.core.model import Added, Doc, JobRecord, NewJob, PoolConfig
from shiftwork.errors import ConfigurationError
from shiftwork.handles.redaction import secrets_of
from shiftwork.handles.worker import Call, Job, Worker
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.store.protocol import Store, transactional
from shiftwork.store.urls import open_store
from shiftwork.telemetry.tracing import sending
from shiftwork.transfer.move_record import refuse_to_add, refuse_to_change

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

R = TypeVar("R")


class Submitting:
    """Opens the store when it is first needed, and adds jobs to it."""

    def __init__(
        self, store: str | Store, *, namespace: str, max_concurrent: int, max_payload_bytes: int, clock: Clock | None
    ) -> None:
        if not namespace:
            message = f"namespace must be a string that is not empty, not {namespace!r}"
            raise ConfigurationError(message)
        self._url = store if isinstance(store, str) else None
        self._namespace = namespace
        self._store = open_store(store, namespace=namespace) if isinstance(store, str) else store
        self._clock = clock or SystemClock()
        self._registered = Registrations(self, max_concurrent=max_concurrent, max_payload_bytes=max_payload_bytes)
        self._opened = False
        self._may_add = False
        self._told_secrets: set[str] = set()
        self._portal = Portal()
        self._loop: AbstractEventLoop | None = None
        """The one that everything runs on here, if anything does."""

    async def store(self) -> Store:
        """The store, open. The first time, our clock is set by its own."""
        if not self._opened:
            await self._store.open()
            self._clock.follow(await self._store.server_time())
            self._opened = True
        return self._store

    async def _close_store(self) -> None:
        self._opened = self._may_add = False
        await self._store.close()

    async def _store_to_fill(self) -> Store:
        """The store, open, whose content has not moved elsewhere. That is looked up once."""
        store = await self.store()
        if not self._may_add:
            await refuse_to_add(store)
            self._may_add = True
        return store

    async def _store_to_change(self) -> Store:
        """The store, open, whose content neither has moved elsewhere nor is on its way."""
        store = await self.store()
        await refuse_to_change(store)
        return store

    @property
    def store_url(self) -> str:
        """How to open the same store from another process, without its password."""
        return self._store.url

    @property
    def schema(self) -> Schema:
        """The layout of the store's data, for `shiftwork db`."""
        return Schema(self._store)

    def now(self) -> float:
        """The time by the store's clock, in epoch seconds."""
        return self._clock.now()

    def pool(self, name: str) -> PoolConfig:
        """A pool's configuration."""
        return self._registered.pool(name)

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs; answers each with the job that stands for it now."""
        store = await self._store_to_fill()
        await self._tell_secrets({call.worker for call in calls})
        with sending(self._jobs(calls)) as jobs:
            added = await store.add(jobs, self.now())
        there = [answer.id for answer in added if not answer.created]
        known = dict(zip(there, await store.get(there), strict=True)) if there else {}
        return self._handles(calls, jobs, added, known)

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction that the user's connection is in."""
        store = transactional(await self._store_to_fill(), "enqueue_with")
        await self._tell_secrets({call.worker for call in calls})
        with sending(self._jobs(calls)) as jobs:
            return self._handles(calls, jobs, await store.add_with(connection, jobs, self.now()), {})

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """The same, from synchronous code."""
        store = transactional(self.from_outside(self._store_to_fill), "enqueue_with_blocking")
        self.from_outside(lambda: self._tell_secrets({call.worker for call in calls}))
        with sending(self._jobs(calls)) as jobs:
            return self._handles(calls, jobs, store.add_with_blocking(connection, jobs, self.now()), {})

    async def _tell_secrets(self, workers: Iterable[Worker[Any, Any]]) -> None:
        """Publish which arguments are secret before a job has them: who sees it must know, even if no node has run."""
        for worker in workers:
            if worker.name in self._told_secrets or secrets_of(worker.schema) is None:
                continue
            if worker.name not in {doc.name for doc in await self._store.docs("schema")}:
                await self._store.put(Doc("schema", worker.name, worker.schema or b""))
            self._told_secrets.add(worker.name)

    def _jobs(self, calls: Sequence[Call[Any]]) -> list[NewJob]:
        now = self.now()
        pools = {name: self.pool(name) for name in {call.worker.config.pool for call in calls}}
        return [call.job(pools[call.worker.config.pool], now) for call in calls]

    def _handles(
        self,
        calls: Sequence[Call[Any]],
        jobs: Sequence[NewJob],
        added: Sequence[Added],
        known: Mapping[str, JobRecord | None],
    ) -> list[Job[Any]]:
        now = self.now()
        secrets = {worker: secrets_of(worker.schema) for worker in {call.worker for call in calls}}
        handles: list[Job[Any]] = []
        for call, job, answer in zip(calls, jobs, added, strict=True):
            record = known.get(answer.id) or partial(_fresh, job, answer.id, now)
            handles.append(Job(record, self, call.worker.signature.decode_result, secrets[call.worker]))
        return handles

    def from_outside(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine from synchronous code, on the running orchestrator's loop if there is one."""
        return self._portal.call(work, loop=self._loop)


def _fresh(job: NewJob, id: str, now: float) -> JobRecord:
    """What a job that was just added is."""
    return JobRecord.of(replace(job, id=id), now)
