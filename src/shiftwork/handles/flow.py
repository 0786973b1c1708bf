"""A `Flow`: jobs that need each other, added together."""

from collections.abc import Sequence
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast

from msgspec import Struct

from shiftwork.core.model import JobStatus
from shiftwork.errors import FlowError
from shiftwork.handles.call import Call
from shiftwork.handles.job import Job

R = TypeVar("R")

MOST_JOBS: Final = 20_000
"""How many jobs a flow may be added with. A running job can add more."""


class FlowStatus(Struct, frozen=True):
    """How far a flow is."""

    state: Literal["running", "broken", "completed", "cancelled"]
    """`broken`: a job is dead, and everything that could go on without it has ended."""
    counts: dict[str, int]
    """How many of its jobs have which status."""


class FlowControl(Protocol):
    """What a flow needs of the store. `shiftwork.control.flows` implements it."""

    async def status(self, flow_id: str) -> FlowStatus:
        """How far a flow is."""

    async def results(self, flow_id: str, jobs: Sequence[Job[Any]], timeout_seconds: float | None) -> list[Any]:
        """Wait for these jobs of the flow, and return their results."""

    async def cancel(self, flow_id: str) -> int:
        """Cancel what has not ended."""

    async def retry(self, flow_id: str) -> int:
        """Queue what is dead or cancelled again."""


class Flow(Generic[R]):
    """Jobs that were added together by `enqueue_flow`."""

    def __init__(self, id: str, jobs: Sequence[Job[Any]], last: Sequence[Job[Any]], control: FlowControl) -> None:
        self.id = id
        self.jobs = tuple(jobs)
        """Its jobs, each behind those that it needs. Jobs that a running job adds later are not among them."""
        self._last = tuple(last)
        self._control = control

    async def status(self) -> FlowStatus:
        """Return how far it is."""
        return await self._control.status(self.id)

    async def result(self, timeout_seconds: float | None = None) -> R:
        """Wait for the calls that were passed to `enqueue_flow`, and return the result, or all of them in a tuple.

        Raises `FlowError` if a job that they need is dead or cancelled, because then they would wait for ever.
        """
        results = await self._control.results(self.id, self._last, timeout_seconds)
        return cast("R", results[0] if len(results) == 1 else tuple(results))

    async def cancel(self) -> int:
        """Cancel all its jobs that have not ended, and return how many."""
        return await self._control.cancel(self.id)

    async def retry(self) -> int:
        """Queue its dead and cancelled jobs again, and return how many: it goes on from where it broke."""
        return await self._control.retry(self.id)

    def __repr__(self) -> str:
        return f"<Flow {self.id} of {len(self.jobs)} jobs>"


def in_order(calls: Sequence[Call[Any]]) -> list[Call[Any]]:
    """Return these calls and all that they need, each behind those that it needs. Raises `FlowError` for a cycle."""
    ordered: dict[Call[Any], None] = {}
    open_: dict[Call[Any], None] = {}
    stack: list[tuple[Call[Any], bool]] = [(call, False) for call in reversed(calls)]
    while stack:
        call, entered = stack.pop()
        if entered:
            del open_[call]
            ordered[call] = None
        elif call in open_:
            raise FlowError(_cycle(call, list(open_)))
        elif call not in ordered:
            open_[call] = None
            stack.append((call, True))
            stack += [(needed, False) for needed in reversed(call.needed()) if needed not in ordered]
    if len(ordered) > MOST_JOBS:
        message = (
            f"a flow of {len(ordered):,} jobs is too large: {MOST_JOBS:,} can be added together. "
            "Let a job of the flow add the rest while it runs, or let each job do more"
        )
        raise FlowError(message)
    return list(ordered)


def _cycle(call: Call[Any], open_: Sequence[Call[Any]]) -> str:
    names = [one.worker.name for one in open_[open_.index(call) :]]
    return f"these calls wait for each other: {' → '.join([*names, call.worker.name])}"


def state_of(counts: dict[str, int]) -> Literal["running", "broken", "completed", "cancelled"]:
    """Return how far a flow with jobs in these statuses is."""
    if any(counts.get(status) for status in ("scheduled", "failed", "queued", "processing")):
        return "running"
    if counts.get(JobStatus.DEAD):
        return "broken"
    return "cancelled" if counts.get(JobStatus.CANCELLED) else "completed"
