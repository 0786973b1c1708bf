"""The outbox as it really is, taking the steps of the model, on an event loop that runs when the walk says so."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.errors import StoreUnavailableError
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.runtime.outcomes import outbox
from shiftwork.runtime.outcomes.outbox import RETRY_SECONDS, Outbox, Settled
from tests.models.outbox import World

PATIENCE: Final = 5.0
TURNS: Final = 8
"""After this many iterations nothing is left for the loop to do."""


class HeldTimers(ManualClock):
    """Timers that go off when the walk says so, by how long they were to take."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.held: dict[float, Callable[[], None]] = {}

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        self.held[when] = callback
        return SimpleNamespace(cancel=lambda: None)


def turn(loop: asyncio.AbstractEventLoop, turns: int = TURNS) -> None:
    """Let the loop do what is due; with one turn, what is due now, and no more."""
    for _ in range(turns):
        loop.call_soon(loop.stop)
        loop.run_forever()


async def as_they_are(_: Sequence[Settled]) -> dict[str, Outcome]:
    """Let every node write every outcome."""
    return {}


class RealOutbox:
    """Takes the steps of the model one by one."""

    def __init__(self, runs: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._clock = clock = HeldTimers()
        self._jobs = ["held"] * runs
        self._told: list[int] = []
        self._request: list[int] | None = None
        self._accepted: list[bool] | None = None
        self._strays: list[int] = []
        self._reply: asyncio.Future[Finished]
        self._drain: asyncio.Task[int] | None = None
        outages = OutageLog(clock.monotonic)
        self._outbox = Outbox(
            cast("Any", self),
            clock,
            stopwatch=Stopwatch(clock.monotonic, outages),
            outages=outages,
            review=as_they_are,
            before_finish=(),
            on_written=self._follow_up,
        )

    def close(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self.loop_runs()
        self._loop.close()

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────────

    def finish(self, outcomes: Sequence[Outcome], now: float) -> "asyncio.Future[Finished]":
        self._request, self._accepted = [int(each.id) for each in outcomes], None
        self._reply = self._loop.create_future()
        return self._reply

    async def get(self, ids: Sequence[str]) -> list[Any]:
        fences = {"held": (1, JobStatus.PROCESSING), "ended": (1, JobStatus.COMPLETED), "taken": (2, JobStatus.QUEUED)}
        found = [(id, *fences[self._jobs[int(id)]]) for id in ids]
        return [SimpleNamespace(id=id, fence=fence, status=status) for id, fence, status in found]

    def _write(self, jobs: Sequence[int]) -> list[bool]:
        accepted = [self._jobs[job] == "held" for job in jobs]
        for job, ok in zip(jobs, accepted, strict=True):
            self._jobs[job] = "ended" if ok else self._jobs[job]
        return accepted

    def store_writes(self) -> None:
        assert self._request is not None
        self._accepted, self._request = self._write(self._request), None

    def store_replies(self) -> None:
        self.answer()
        self.loop_runs()

    def answer(self) -> None:
        """Let the answer arrive, before the loop does anything."""
        assert self._accepted is not None
        self._reply.set_result(Finished(self._accepted, []))

    def store_fails(self) -> None:
        self._request = None
        self._reply.set_exception(StoreUnavailableError("the store is away, says the model"))
        self.loop_runs()

    store_the_reply_is_lost = store_fails

    def store_writes_what_was_given_up(self) -> None:
        self._write(self._strays)
        self._strays = []

    def another_node_takes(self, job: int) -> None:
        self._jobs[job] = "taken"

    # ── the node ─────────────────────────────────────────────────────────────────────────────────────────────────

    def run_ends(self, job: int) -> None:
        outcome = Outcome(
            id=str(job),
            fence=1,
            worker="w",
            pool="p",
            status=JobStatus.COMPLETED,
            ended_at=0.0,
            run_at=0.0,
            attempt=1,
            crashes=0,
        )
        with self._within_the_loop():
            self._outbox.put(Settled(outcome, 0.0))

    def loop_runs(self, turns: int = TURNS) -> None:
        turn(self._loop, turns)
        self._let_go()

    def _let_go(self) -> None:
        """Note which request the outbox no longer waits for."""
        if self._request is not None and self._reply.cancelled():
            self._strays, self._request = [*self._strays, *self._request], None

    def clock_the_pause_is_over(self) -> None:
        self._clock.held.pop(RETRY_SECONDS)()
        self.loop_runs()

    def clock_the_patience_is_over(self) -> None:
        with self._within_the_loop():
            self._clock.held.pop(PATIENCE)()
        self._let_go()

    def node_drains(self) -> None:
        self._drain = self._loop.create_task(self._outbox.drain(PATIENCE))
        self.loop_runs()

    def node_is_gone(self) -> None:
        """Its leases are given up."""

    node_leaves_without_waiting = node_is_gone

    def _follow_up(self, batch: Sequence[Settled], finished: Finished) -> None:
        told = zip(batch, finished.accepted, strict=True)
        self._told += [int(settled.outcome.id) for settled, ok in told if ok]

    @contextmanager
    def _within_the_loop(self) -> Iterator[None]:
        """Be called by the loop, which has other things to do before it goes on."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────────────────────

    def seen(self) -> Any:
        here, drain = self._outbox, self._drain
        return (
            tuple(int(settled.outcome.id) for settled in here._waiting),
            tuple(int(settled.outcome.id) for settled in here._under_way),
            here._task is not None,
            None if self._request is None else tuple(self._request),
            tuple(self._told),
            tuple(self._jobs),
            drain.result() if drain is not None and drain.done() else None,
        )


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    return (
        world.waiting,
        world.under_way,
        bool(world.task),
        world.request,
        world.told,
        world.jobs,
        None if world.given_up is None else len(world.given_up),
    )


@contextmanager
def batches_of(largest: int) -> Iterator[None]:
    """Have no larger batches than this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox, "LARGEST_BATCH", largest)
        yield
