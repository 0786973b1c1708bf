"""Single jobs: adding one by its worker's name, reading it, explaining it, and changing it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.jobs.explanations import Explanations
from shiftwork.control.jobs.filter import job_filter
from shiftwork.control.jobs.job_stack import read_stack
from shiftwork.control.jobs.submission import Submission, id_taken
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.jobs.transitions import status_word
from shiftwork.core.model.job_changes import Cancel, Change, Discard, Requeue
from shiftwork.core.model.job_parts import SeenParts, Signal
from shiftwork.core.model.jobs import CheckedJobOptions, JobRecord, NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.errors import JobStateError, UnknownJobError
from shiftwork.handles.codec import Packed
from shiftwork.handles.job import Job, JobAccess, Look, RunBlocking
from shiftwork.handles.payload_schema import max_bytes_of
from shiftwork.handles.payloads import check_signal_size, encode_signal, pack_plain
from shiftwork.handles.plain_values import plain
from shiftwork.handles.redaction import secrets_of
from shiftwork.handles.worker import new_id
from shiftwork.sentences import sentence
from shiftwork.telemetry.tracing import sending
from shiftwork.views.explanation import Estimate, Explanation
from shiftwork.views.instances import JobStack

_REFUSED: Final[Mapping[type[Any], str]] = {
    Cancel: sentence("it has ended already and cannot be cancelled"),
    Requeue: sentence("only dead, cancelled, failed and scheduled jobs can be queued again"),
    Discard: sentence("only ended jobs can be discarded; cancel it first"),
}

_NEEDED: Final = sentence("another job of its flow waits for it; cancel the flow, or that job, first")


class JobHandles(CommandFamily):
    """Makes handles of records, by the workers registered here or published by other processes."""

    def __init__(self, services: ControlServices, look: Look, run_blocking: RunBlocking) -> None:
        super().__init__(services)
        self._look = look
        self._run_blocking = run_blocking

    async def of(self, records: Sequence[JobRecord]) -> list[Job[Any]]:
        here = self._registry.workers
        others: dict[str, float] = {}
        for record in records:
            if record.worker not in here:
                others[record.worker] = max(record.created_at, others.get(record.worker, 0.0))
        schemas = await self._definitions.schemas(others) if others else {}
        handles: list[Job[Any]] = []
        for record in records:
            known = here.get(record.worker)
            secrets = secrets_of(known.schema if known else schemas.get(record.worker))
            decode = known.signature.decode_result if known else None
            access = JobAccess(self._access.open, decode, secrets, self._look, self._run_blocking)
            handles.append(Job(record, access))
        return handles

    async def one(self, record: JobRecord) -> Job[Any]:
        return (await self.of([record]))[0]


class Jobs(CommandFamily):
    """Reads and changes single jobs."""

    def __init__(
        self, services: ControlServices, *, explanations: Explanations, submission: Submission, handles: JobHandles
    ) -> None:
        super().__init__(services)
        self._explanations = explanations
        self._submission = submission
        self._handles = handles

    async def enqueue(
        self, worker: str, payload: Mapping[str, Any], options: CheckedJobOptions | None = None
    ) -> tuple[Job[Any], bool]:
        """Add a job of a worker by its name; return the job that stands for it now, and whether that one is new.

        The worker may be registered by another process in this store. Then its payload is checked by the schema that
        process published, and again when the job runs. Raises `JobStateError` if a job of another worker has the id.
        """
        await self._access.open_to_add()
        config, pool, packed = await self._prepare(worker, payload)
        now = self._now()
        job, created = await self.add(_new_job(config, pool, packed, options or CheckedJobOptions(), now), now)
        if job.worker != worker:
            raise JobStateError(id_taken(job.record))
        return job, created

    async def template(
        self, worker: str, payload: Mapping[str, Any], options: CheckedJobOptions, original: Mapping[str, Any] | None
    ) -> NewJob:
        """Return a job of a worker by its name, checked as `enqueue` checks it, without adding it.

        A value that is hidden in the payload is taken from the original.
        """
        config, pool, packed = await self._prepare(worker, payload, original)
        return _new_job(config, pool, packed, options, self._now())

    async def add(self, job: NewJob, now: float) -> tuple[Job[Any], bool]:
        """Add a job as it is; return the job that stands for it now, and whether that one is new."""
        store = await self._access.open_to_add()
        with sending([job]) as jobs:
            [added] = await store.add(jobs, now)
        record = JobRecord.of(jobs[0], now) if added.created else await self._record(added.id)
        return await self._handles.one(record), added.created

    async def get(self, job_id: str) -> Job[Any]:
        """Return a job by its id, whole. Raises `UnknownJobError`."""
        return await self._handles.one(await self._record(job_id))

    async def find(self, **wanted: Any) -> list[Job[Any]]:
        """Return the jobs that match, newest first. See `WorkerOrchestrator.find_jobs`."""
        store = await self._access.open()
        return await self._handles.of(await store.find(job_filter(**wanted)))

    async def placed(self, jobs: Sequence[Job[Any]]) -> dict[str, Estimate]:
        """Return where the queued jobs of a list are in their queues, by id, and when they start, about."""
        return await self._explanations.listed([job.record for job in jobs])

    async def explain(self, job_id: str) -> Explanation:
        """Return why a job is not running, or how it ended."""
        return await self._explanations.of(await self._record(job_id))

    async def get_explained(self, job_id: str) -> tuple[Job[Any], Explanation]:
        """Return a job and its explanation, from a single read of the job."""
        record = await self._record(job_id)
        return await self._handles.one(record), await self._explanations.of(record)

    async def get_shown(self, job_id: str) -> tuple[Job[Any], Explanation, SeenParts]:
        """Return a job, its explanation, and what people see of its steps and signals."""
        job, why = await self.get_explained(job_id)
        return job, why, await (await self._access.open()).parts(job_id)

    async def stack(self, job_id: str) -> JobStack:
        """Return what a running job is doing now: its own stack first, then everything else in its process.

        Raises `JobStateError` if it is not running, and `NodeSilentError` if its node does not reply in time.
        """
        store = await self._access.open_to_change()
        record = await self._record(job_id)
        stack = await read_stack(store, record, self._now, reread=self._record)
        message = sentence("the stack of job {id} of {worker} was read", id=record.id, worker=record.worker)
        await self._audit.record("job.inspected", record.id, message, worker=record.worker)
        return stack

    async def cancel(self, job_id: str, *, reason: str | None = None) -> Job[Any]:
        """Cancel a waiting job, or ask a running one to stop."""
        await self._amend(job_id, Cancel())
        return await self._changed(job_id, "cancelled", reason)

    async def retry(
        self, job_id: str, *, payload: Mapping[str, Any] | None = None, reason: str | None = None
    ) -> Job[Any]:
        """Queue a dead, cancelled, failed or scheduled job again, its counts at zero; `payload` replaces its own."""
        if payload is None:
            await self._amend(job_id, Requeue(self._now()))
        else:
            record = await self._record(job_id)
            if run_options_of(record.options).inputs:
                message = sentence(
                    "job {id} of {worker}: its arguments are results of other jobs; retry it as it is",
                    id=job_id,
                    worker=record.worker,
                )
                raise JobStateError(message)
            _, _, packed = await self._prepare(record.worker, payload, plain(record.payload))
            await self._amend(job_id, Requeue(self._now(), packed.payload, packed.key))
        return await self._changed(job_id, "retried", reason, edited=payload is not None)

    async def send(self, job_id: str, name: str, value: Any = None) -> None:
        """Send a value to a job that waits for it, or will.

        Raises `JobStateError` if the job has ended, `PayloadTooLargeError` if the value is larger than a payload of its
        worker may be, and `SignalsFullError` if too many signals wait for it already.
        """
        encoded = encode_signal(name, value)
        store, now = await self._access.open_to_change(), self._now()
        check_signal_size(name, encoded, await self._max_bytes(job_id))
        status = await store.send(job_id, Signal(name, encoded, now), now)
        if status is None:
            await self._record(job_id)
        elif not status.live:
            message = sentence("job {id} is {state}: it accepts no more signals", id=job_id, state=status_word(status))
            raise JobStateError(message)
        message = sentence("signal {name} was sent to job {id}", name=f"{name!r}", id=job_id)
        await self._audit.record("job.signalled", job_id, message, signal=name)

    async def _max_bytes(self, job_id: str) -> int:
        """Return how many bytes a value may have that is sent to a job: as many as a payload of the app.

        A process without the app looks up what the job's worker has published.
        """
        if self._registry.max_payload_bytes is not None:
            return self._registry.max_payload_bytes
        worker = (await self._record(job_id)).worker
        return max_bytes_of((await self._definitions.schemas({worker: 0.0})).get(worker))

    async def discard(self, job_id: str, *, reason: str | None = None) -> None:
        """Delete a job that has ended."""
        record = await self._record(job_id)
        await self._amend(job_id, Discard())
        await self._audit.record_change(record, "discarded", reason=reason)

    async def _record(self, job_id: str) -> JobRecord:
        store = await self._access.open()
        record = (await store.get([job_id]))[0]
        if record is None:
            message = sentence("no job has the id {what}; ended jobs are pruned after a while", what=f"{job_id!r}")
            raise UnknownJobError(message)
        return record

    async def _amend(self, job_id: str, change: Change) -> None:
        store = await self._access.open_to_change()
        amended = (await store.amend([job_id], change, self._now()))[0]
        if amended.status is None:
            await self._record(job_id)
        elif not amended.ok:
            needed = isinstance(change, Discard) and not amended.status.live
            message = sentence(
                "job {id} is {state}: {because}",
                id=job_id,
                state=status_word(amended.status),
                because=_NEEDED if needed else _REFUSED[type(change)],
            )
            raise JobStateError(message)

    async def _changed(self, job_id: str, what: str, reason: str | None, **data: Any) -> Job[Any]:
        record = await self._record(job_id)
        await self._audit.record_change(record, what, reason=reason, **data)
        return await self._handles.one(record)

    async def _prepare(
        self, worker: str, payload: Mapping[str, Any], original: Mapping[str, Any] | None = None
    ) -> tuple[WorkerConfig, PoolConfig, Packed]:
        """Return a worker, its pool and a payload for it, checked as far as the worker is known here.

        A value that is hidden in the payload is taken from the original.
        """
        here = self._registry.workers.get(worker)
        if here is not None:
            await self._submission.publish_secrets([here])
            whole = _unmasked(worker, here.schema, payload, original)
            packed = here.signature.pack(here.config.concurrency_key, whole)
            return here.config, self._registry.pool(here.config.pool), packed
        known = await self._definitions.worker(worker, self._registry.workers)
        whole = _unmasked(worker, known.schema, payload, original)
        return known.config, known.pool, pack_plain(known.config, whole, known.schema)


def _unmasked(
    worker: str, schema: bytes | None, payload: Mapping[str, Any], original: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    secrets = secrets_of(schema)
    restored: Mapping[str, Any] = payload if secrets is None else secrets.restore(worker, payload, original)
    return restored


def _new_job(config: WorkerConfig, pool: PoolConfig, packed: Packed, options: CheckedJobOptions, now: float) -> NewJob:
    return NewJob.of(config, pool, packed.payload, options, id=options.job_id or new_id(now), now=now, key=packed.key)
