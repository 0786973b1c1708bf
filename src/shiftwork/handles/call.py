"""A `Call`: a job that is not added yet."""

from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from shiftwork.core.model import NewJob, PoolConfig, WorkerConfig, shown_without_payload
from shiftwork.handles.codec import Packed, Signature
from shiftwork.handles.ids import new_id
from shiftwork.handles.options import Options

R_co = TypeVar("R_co", covariant=True)


class CalledWorker(Protocol):
    """What a call needs to know of its worker."""

    config: WorkerConfig
    signature: Signature

    @property
    def name(self) -> str:
        """Return the worker's name."""

    @property
    def schema(self) -> bytes | None:
        """Return the JSON Schema of its payload, or None if it takes none."""


class Call(Struct, Generic[R_co], frozen=True):
    """A job to be added by `enqueue_many`: a worker, its payload and its options."""

    worker: CalledWorker
    payload: bytes
    key: str | None
    options: Options

    __repr__ = shown_without_payload

    def job(self, pool: PoolConfig, now: float) -> NewJob:
        """Return the job in the form in which the store takes it."""
        return new_job(self.worker.config, pool, Packed(self.payload, self.key), self.options, now=now)


def new_job(config: WorkerConfig, pool: PoolConfig, packed: Packed, options: Options, *, now: float) -> NewJob:
    """Return a job of this worker in the form in which the store takes it."""
    priority = config.priority if options.priority is None else options.priority
    run_at = options.run_at if options.run_at is not None else now + (options.delay_seconds or 0.0)
    return NewJob(
        id=options.job_id or new_id(now),
        worker=config.name,
        pool=config.pool,
        payload=packed.payload,
        run_at=run_at,
        priority=priority,
        head_start=priority * pool.priority_aging_seconds,
        unique_key=options.unique_key,
        key=packed.key,
        key_limit=config.max_running or 1,
        cause=options.cause,
    )
