"""A `Flow`: jobs that need each other, added together."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast

from msgspec import Struct, msgpack

from shiftwork.core.words import Duration, counted, timeout_of
from shiftwork.errors import FlowError
from shiftwork.handles.job import Job, RunBlocking
from shiftwork.handles.unawaited import report_forgotten
from shiftwork.handles.worker import Call

R = TypeVar("R")

MOST_FLOW_JOBS: Final = 20_000
"""How many jobs a flow may be added with. A running job can add more."""
MOST_FLOW_BYTES: Final = 50_000_000
"""How many bytes of arguments a flow may be added with. Stores add all of it in one step, or nothing."""


class FlowStatus(Struct, frozen=True):
    """How far a flow is."""

    state: Literal["running", "broken", "completed", "cancelled"]
    """`broken`: a job is dead, and everything that could go on without it has ended."""
    counts: dict[str, int]
    """How many of its jobs have which status."""
    stranded: int = 0
    """How many of those that wait cannot run until a dead or cancelled job before them is retried."""


class FlowControl(Protocol):
    """What a flow needs of the store. `shiftwork.control.jobs.flows` implements it."""

    async def status(self, flow_id: str) -> FlowStatus:
        """How far a flow is."""

    async def results(self, flow_id: str, jobs: Sequence[Job[Any]], timeout_seconds: float | None) -> list[Any]:
        """Wait for these jobs of the flow, and return their results."""

    async def cancel(self, flow_id: str) -> int:
        """Cancel what has not ended."""

    async def retry(self, flow_id: str) -> int:
        """Queue what is dead or cancelled again."""


@report_forgotten("flow", "flow.blocking.{name}(…)")
class Flow(Generic[R]):
    """Jobs that were added together by `enqueue_flow`."""

    def __init__(
        self,
        id: str,
        jobs: Sequence[Job[Any]],
        last: Sequence[Job[Any]],
        control: FlowControl,
        run_blocking: RunBlocking,
    ) -> None:
        self.id = id
        self.jobs: tuple[Job[Any], ...] = tuple(jobs)
        """Its jobs, each behind those that it needs. Jobs that a running job adds later are not among them."""
        self._last = tuple(last)
        self._control = control
        self._run_blocking = run_blocking

    @property
    def blocking(self) -> "BlockingFlow[R]":
        """Return the coroutines of this flow as plain calls, for code that has no event loop."""
        return BlockingFlow(self, self._run_blocking)

    async def status(self) -> FlowStatus:
        """Return how far it is."""
        return await self._control.status(self.id)

    async def result(self, timeout_seconds: Duration | None = None) -> R:
        """Wait for the calls that were passed to `enqueue_flow`, and return the result, or all of them in a tuple.

        Raises `FlowError` if a job that they need is dead or cancelled, because then they would wait for ever.
        """
        results = await self._control.results(self.id, self._last, timeout_of(timeout_seconds))
        return cast("R", results[0] if len(results) == 1 else tuple(results))

    async def cancel(self) -> int:
        """Cancel all its jobs that have not ended, and return how many."""
        return await self._control.cancel(self.id)

    async def retry(self) -> int:
        """Queue its dead and cancelled jobs again, and return how many: it goes on from where it broke."""
        return await self._control.retry(self.id)

    def __repr__(self) -> str:
        return f"<Flow {self.id} of {counted(len(self.jobs), 'job')}>"


class BlockingFlow(Generic[R]):
    """The coroutines of a flow as plain calls. Each works from any thread, and in a forked process."""

    __slots__ = ("_flow", "_run")

    def __init__(self, flow: Flow[R], run: RunBlocking) -> None:
        self._flow = flow
        self._run = run

    def status(self) -> FlowStatus:
        """Return how far it is."""
        return self._run(self._flow.status, "await flow.status()")

    def result(self, timeout_seconds: Duration | None = None) -> R:
        """Wait for the calls that were passed to `enqueue_flow`. See `Flow.result`."""
        return self._run(lambda: self._flow.result(timeout_seconds), "await flow.result()")

    def cancel(self) -> int:
        """Cancel all its jobs that have not ended, and return how many."""
        return self._run(self._flow.cancel, "await flow.cancel()")

    def retry(self) -> int:
        """Queue its dead and cancelled jobs again, and return how many: it goes on from where it broke."""
        return self._run(self._flow.retry, "await flow.retry()")


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
    size = sum(len(call.payload) for call in ordered)
    if size > MOST_FLOW_BYTES:
        message = (
            f"a flow with {size:,} bytes of arguments is too large: {MOST_FLOW_BYTES:,} can be added together. "
            "Pass references to large values, or let a job of the flow add the rest while it runs"
        )
        raise FlowError(message)
    if len(ordered) > MOST_FLOW_JOBS:
        message = (
            f"a flow of {len(ordered):,} jobs is too large: {MOST_FLOW_JOBS:,} can be added together. "
            "Let a job of the flow add the rest while it runs, or let each job do more"
        )
        raise FlowError(message)
    return list(ordered)


def child_ids(parent: str, calls: Sequence[Call[Any]], before: Sequence[str]) -> dict[Call[Any], str]:
    """Return the ids of calls that a running job adds, each behind those that it needs.

    An id says what the call is: the same call of the same parent has the same id, and the second of two equal calls has
    another one. `before` are the ids of all calls that this run has added.
    """
    ids: dict[Call[Any], str] = {}
    taken = set(before)
    for call in calls:
        needs = [(ids[one], whatever) for one, whatever in call.needed().items()]
        inputs = [(ids[one], path) for one, path in call.inputs]
        what = msgpack.encode((parent, call.worker.name, call.payload, needs, inputs))
        found = (sha256(b"%d " % n + what).hexdigest()[:32] for n in count())
        ids[call] = call.options.job_id or next(id for id in found if id not in taken)
        taken.add(ids[call])
    return ids


def _cycle(call: Call[Any], open_: Sequence[Call[Any]]) -> str:
    names = [one.worker.name for one in open_[open_.index(call) :]]
    return f"these calls wait for each other: {' → '.join([*names, call.worker.name])}"
