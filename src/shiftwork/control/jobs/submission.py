"""Adding jobs: what the handles of workers need (`handles.worker.Submitter`)."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from shiftwork.control.calling import Portal, refuse_on_a_loop
from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.known_calls import known_jobs
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.jobs import Added, Claimed, JobRecord, NewJob
from shiftwork.errors import FlowError, JobStateError, StoreError
from shiftwork.handles.job import Job, JobAccess, Look
from shiftwork.handles.redaction import secrets_of
from shiftwork.handles.worker import Call, CalledWorker
from shiftwork.runtime.outage_log import ADDS, OutageLog
from shiftwork.sentences import sentence
from shiftwork.store.abilities import add_blocking, transactional
from shiftwork.store.protocol import Store
from shiftwork.telemetry.tracing import sending

if TYPE_CHECKING:
    from shiftwork.core.model.workers import PoolConfig

R = TypeVar("R")
T = TypeVar("T")


class Submission(CommandFamily):
    """Adds jobs to the store. The clock is read once for all jobs of one call."""

    def __init__(self, services: ControlServices, portal: Portal, *, outages: OutageLog, look: Look) -> None:
        super().__init__(services)
        self._portal = portal
        self._outages = outages
        self._look = look
        self._published: set[str] = set()
        """The workers whose secrets, if they have any, are known to be published."""

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs in one step, and return for each the job that it stands for now."""
        store = self._access.open_for_adding or await self._access.open_to_add()
        if not self._all_published(calls):
            await self.publish_secrets({call.worker for call in calls})
        known: Mapping[str, JobRecord | None] = await self._known(store, calls) if _may_clash(calls) else {}
        now = self._now()
        with sending(self._new_jobs(calls, now)) as jobs:
            try:  # not `_heard`, which would be one more coroutine per job
                added = await store.add(jobs, now)
            except StoreError as error:
                self._failed(error)
                raise
        if self._outages.faults:  # seldom: one call less for each job
            self._outages.worked(ADDS)
        existing = [one.id for one in added if not one.created and one.id not in known]
        if existing:
            known = {**known, **await _records(store, existing)}
        return self._handles(calls, jobs, added, known, now)

    def submit_blocking(self, calls: Sequence[Call[Any]], instead: str) -> list[Job[Any]]:
        """Add jobs from synchronous code: on this very thread if the store can, otherwise on an event loop."""
        refuse_on_a_loop(instead)
        store = self._access.open_for_adding
        if store is None or not self._all_published(calls) or _may_clash(calls):
            return self.run_blocking(lambda: self.submit(calls), instead)
        now = self._now()
        with sending(self._new_jobs(calls, now)) as jobs:
            try:
                added = add_blocking(store, jobs, now)
            except StoreError as error:
                self._failed(error)
                raise
            if added is None:
                added = self.run_blocking(lambda: self._heard(store.add(jobs, now)), instead)
            if self._outages.faults:
                self._outages.worked(ADDS)
        existing = [one.id for one in added if not one.created]
        known = self.run_blocking(lambda: _records(store, existing), instead) if existing else {}
        return self._handles(calls, jobs, added, known, now)

    async def submit_jobs(
        self, calls: Sequence[Call[Any]], jobs: Sequence[NewJob], known: Mapping[str, JobRecord], now: float
    ) -> list[Job[Any]]:
        """Add these jobs, made of these calls, in one step, and return their handles. `known` exist already."""
        store = await self._access.open_to_add()
        await self.publish_secrets({call.worker for call in calls})
        with sending(jobs) as sent:
            added = await self._heard(store.add(sent, now))
        return self._handles(calls, sent, added, known, now)

    async def extend(self, calls: Sequence[Call[Any]], parent: Claimed, jobs: Sequence[NewJob], now: float) -> bool:
        """Add these jobs, made of these calls, if the parent's run is the current one. False if it is not."""
        store = await self._access.open_to_add()
        await self.publish_secrets({call.worker for call in calls})
        with sending(jobs) as sent:
            return await self._heard(store.extend(parent.id, parent.fence, sent, now)) is not None

    async def _known(self, store: Store, calls: Sequence[Call[Any]]) -> dict[str, JobRecord]:
        """Return the jobs that exist under the ids of these calls. Raises if a call cannot have its id."""
        _check_twins(calls)
        try:
            known = await known_jobs(store, calls)
        except StoreError as error:
            self._failed(error)
            raise
        self.check_ids(calls, known)
        return known

    async def _heard(self, adding: Awaitable[T]) -> T:
        """Wait for jobs to be added, and note whether the store works."""
        try:
            added = await adding
        except StoreError as error:
            self._failed(error)
            raise
        self._outages.worked(ADDS)
        return added

    def _failed(self, error: StoreError) -> None:
        self._outages.failed(ADDS, error, quietly=True)

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection."""
        store = transactional(await self._access.open_to_add(), "enqueue_with")
        await self._publish_new_secrets(calls)
        now = self._now()
        with sending(self._new_jobs(calls, now)) as jobs:
            return self._handles(calls, jobs, await store.add_with(connection, jobs, now), {}, now)

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection, from synchronous code."""
        instead = f"await {calls[0].worker.name}.enqueue_with(…)"
        store = transactional(self.run_blocking(self._access.open_to_add, instead), "enqueue_with_blocking")
        self.run_blocking(lambda: self._publish_new_secrets(calls), instead)
        now = self._now()
        with sending(self._new_jobs(calls, now)) as jobs:
            return self._handles(calls, jobs, store.add_with_blocking(connection, jobs, now), {}, now)

    def run_blocking(self, work: Callable[[], Coroutine[Any, Any, R]], instead: str) -> R:
        """Run a coroutine from synchronous code, on the loop of the running orchestrator if there is one."""
        return self._portal.call(work, instead)

    async def publish_secrets(self, workers: Iterable[CalledWorker]) -> None:
        """Publish which arguments are secret before a job has them, even if no node has ever run."""
        from shiftwork.core.doc_kinds import SCHEMA

        for worker in workers:
            if worker.name not in self._published and secrets_of(worker.schema) is not None:
                store = await self._access.open()
                if worker.name not in {doc.name for doc in await store.docs(SCHEMA)}:
                    await store.put([Doc(SCHEMA, worker.name, worker.schema or b"")])
            self._published.add(worker.name)

    async def template(self, call: Call[Any]) -> NewJob:
        """Return the job that a call stands for, without adding it."""
        await self.publish_secrets([call.worker])
        [job] = self._new_jobs([call], self._now())
        return job

    async def _publish_new_secrets(self, calls: Sequence[Call[Any]]) -> None:
        if not self._all_published(calls):
            await self.publish_secrets({call.worker for call in calls})

    def _all_published(self, calls: Sequence[Call[Any]]) -> bool:
        published = self._published
        for call in calls:  # noqa: SIM110 - for a single call, a generator takes longer than all the rest
            if call.worker.name not in published:
                return False
        return True

    def _new_jobs(self, calls: Sequence[Call[Any]], now: float) -> list[NewJob]:
        pools: dict[str, PoolConfig] = {}
        jobs: list[NewJob] = []
        for call in calls:
            if call.inputs or call.needs:
                message = f"{call.worker.name}: this call needs other calls: add all of them with enqueue_flow"
                raise FlowError(message)
            name = call.worker.config.pool
            if name not in pools:
                pools[name] = self._registry.pool(name)
            jobs.append(call.job(pools[name], now))
        return jobs

    def _handles(
        self,
        calls: Sequence[Call[Any]],
        jobs: Sequence[NewJob],
        added: Sequence[Added],
        known: Mapping[str, JobRecord | None],
        now: float,
    ) -> list[Job[Any]]:
        handles: list[Job[Any]] = []
        accesses: dict[CalledWorker, JobAccess] = {}
        for call, job, answer in zip(calls, jobs, added, strict=True):
            access = accesses.get(call.worker)
            if access is None:
                access = accesses[call.worker] = self._job_access(call.worker, now)
            if answer.created:
                handles.append(Job(job, access))
                continue
            record = known.get(answer.id)
            if record is not None:
                self._check_worker(record, call.worker)
            handles.append(Job(record or replace(job, id=answer.id), access))
        return handles

    def _job_access(self, worker: CalledWorker, now: float) -> JobAccess:
        decode, secrets = worker.signature.decode_result, secrets_of(worker.schema)
        return JobAccess(self._access.open, decode, secrets, self._look, self._portal.call, added_at=now)

    def check_ids(self, calls: Iterable[Call[Any]], known: Mapping[str, JobRecord]) -> None:
        """Raise if a job of another worker has the id of a call."""
        for call in calls:
            record = known.get(call.options.job_id or "")
            if record is not None:
                self._check_worker(record, call.worker)

    def _check_worker(self, record: JobRecord, worker: CalledWorker) -> None:
        if record.worker == worker.name:
            return
        known = self._registry.workers.get(record.worker)
        if known is None or known.signature is not worker.signature:  # an alias has the same one
            raise JobStateError(id_taken(record))


def id_taken(record: JobRecord) -> str:
    """Return the message that a job of another worker has an id."""
    return sentence(
        "the id {what} is taken by a job of {worker}: nothing was added for it; choose another one",
        what=f"{record.id!r}",
        worker=record.worker,
    )


def _may_clash(calls: Sequence[Call[Any]]) -> bool:
    """Return whether the ids of these calls must be looked up before any of them is added.

    A single call needs no look-up: if its id turns out to be taken, nothing else was added with it.
    """
    return len(calls) > 1 and any(call.options.job_id is not None for call in calls)


def _check_twins(calls: Iterable[Call[Any]]) -> None:
    """Raise if calls of different workers have the same id."""
    first: dict[str, CalledWorker] = {}
    for call in calls:
        id = call.options.job_id
        if id is None:
            continue
        twin = first.setdefault(id, call.worker)
        if twin.name != call.worker.name and twin.signature is not call.worker.signature:
            message = (
                f"two calls, of {twin.name} and of {call.worker.name}, have the job_id {id!r}: nothing was added; "
                "give each its own"
            )
            raise JobStateError(message)


async def _records(store: Store, ids: Sequence[str]) -> Mapping[str, JobRecord | None]:
    """Return the records of jobs that existed before, by id."""
    return dict(zip(ids, await store.get(ids), strict=True))
