"""A `Call`: a job that is not added yet, and how it becomes a job with an id."""

import os
from collections.abc import Iterable
from itertools import count
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from msgspec import Struct

from shiftwork.core.model.jobs import CheckedJobOptions, NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.errors import PayloadTypeError
from shiftwork.handles.codec import Signature
from shiftwork.handles.output import Output, Path

R = TypeVar("R")
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


class Call(Struct, Generic[R_co], eq=False):
    """A job to be added by `enqueue_many`, or with the calls that it needs by `enqueue_flow`."""

    worker: CalledWorker
    payload: bytes
    key: str | None
    options: CheckedJobOptions
    inputs: tuple[tuple["Call[Any]", Path], ...] = ()
    """The calls whose outputs are among its arguments, each with the place of its output."""
    needs: tuple[tuple["Call[Any]", bool], ...] = ()
    """The calls that must end before it starts, each with whether any end will do."""

    def __repr__(self) -> str:
        return f"<Call of {self.worker.name}>"

    @property
    def output(self) -> R_co:
        """Return what stands for its result in the arguments of another call of the same flow."""
        return cast("R_co", Output(self))

    def after(self, *calls: "Call[Any]", whatever: bool = False) -> "Call[R_co]":
        """Start it only after these calls have completed, or with `whatever` after they have ended. Returns itself."""
        others = [call for call in cast("tuple[object, ...]", calls) if not isinstance(call, Call)]
        if others:
            message = f"{self.worker.name}: after() takes calls, as WORKER.call(…) returns them, not {others[0]!r}"
            raise PayloadTypeError(message)
        self.needs += tuple((call, whatever) for call in calls)
        return self

    def needed(self) -> dict["Call[Any]", bool]:
        """Return all calls that it waits for, each with whether any end will do."""
        return dict(self.needs) | {call: False for call, _ in self.inputs}

    def job(self, pool: PoolConfig, now: float) -> NewJob:
        """Return the job in the form in which the store takes it."""
        return NewJob.of(
            self.worker.config,
            pool,
            self.payload,
            self.options,
            id=self.options.job_id or new_id(now),
            now=now,
            key=self.key,
        )


def listed(calls: Iterable[Call[R]]) -> list[Call[R]]:
    """Return the calls that `enqueue_many` was given. Raises a `PayloadTypeError` if that is something else."""
    if not isinstance(cast("object", calls), Iterable):
        message = f"enqueue_many takes a list of calls: [WORKER.call(…), …], not {calls!r}"
        raise PayloadTypeError(message)
    given = list(calls)
    if {*map(type, given)} - {Call}:
        check_call("enqueue_many", *given)
    return given


def check_call(method: str, *calls: object) -> None:
    """Raise a `PayloadTypeError` if one of these is not a call."""
    for call in calls:
        if not isinstance(call, Call):
            message = f"{method} takes a call, as WORKER.call(…) returns it, not {call!r}"
            raise PayloadTypeError(message)


_order: Final = count()


def new_id(now: float) -> str:
    """Return a job id: milliseconds, a count and 56 random bits, in 32 hexadecimal digits that sort by time.

    The count keeps jobs with the same timestamp in the order in which they were enqueued. The random part belongs to
    this process and keeps its ids apart from those of other processes.
    """
    return f"{int(now * 1000):012x}{next(_order) & 0xFFFFFF:06x}{_random_part}"


def _draw() -> None:
    global _random_part  # noqa: PLW0603 - a forked process must draw its own
    _random_part = os.urandom(7).hex()


_random_part = ""
_draw()
if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_draw)
