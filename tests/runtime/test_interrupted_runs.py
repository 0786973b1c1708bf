"""A run that is interrupted costs its job neither its place in the queue nor a waiting time that it did not have."""

import threading
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from shiftwork import Job, WorkerOrchestrator
from shiftwork.runtime.clock import until_idle
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Stage

LEASE = 15.0
JOBS = 4

Kind = Literal["async", "thread"]


class Line:
    """Two orchestrators that serve a pool of one slot, and jobs that each run until the test lets them end."""

    def __init__(self, stage: Stage, kind: Kind) -> None:
        self.stage = stage
        self.first, self.second = stage.faulty_app(), stage.app()
        self.starts: list[int] = []
        self.jobs: list[Job[Any]] = []
        self._kind = kind
        self._free: dict[int, threading.Event] = {}
        self._worker = self._register(self.first)
        self._register(self.second)

    def _register(self, app: WorkerOrchestrator) -> Any:
        async def stand(number: int) -> None:
            free = self._begin(number)
            await eventually(free.is_set)

        def stand_still(number: int) -> None:
            assert self._begin(number).wait(DEADLINE)

        app.register_pool("line", kind=self._kind, min_workers=1, max_workers=1)
        function: Any = stand if self._kind == "async" else stand_still
        return app.task(name="stand", pool="line", timeout_seconds=None)(function)

    def _begin(self, number: int) -> threading.Event:
        free = self._free[number] = threading.Event()
        self.starts.append(number)
        return free

    async def form(self) -> None:
        """Add jobs, one a second; the first one runs for a hundred seconds."""
        await self.first.start()
        for number in range(JOBS):
            self.jobs.append(await self._worker.enqueue(number=number))
            await self.stage.clock.advance(1)
        await self.reach([0])
        await self.stage.clock.advance(100)

    async def reach(self, starts: list[int]) -> None:
        await eventually(lambda: self.starts == starts, f"starts {starts}")
        await until_idle()

    async def let_go(self, number: int) -> None:
        self._free[number].set()
        await self.stage.during(self.jobs[number].result(DEADLINE), step=0.001)

    async def goes_on(self, *, meanwhile: int = 0) -> None:
        """The first job runs again, after those at most that began during its pause; then the others, in order."""
        rest = [*range(1, 1 + meanwhile), 0, *range(1 + meanwhile, JOBS)]
        for place, number in enumerate(rest):
            await self.reach([0, *rest[: place + 1]])
            await self.let_go(number)

    async def waits(self) -> float:
        """How many seconds all jobs had waited when they started, their interrupted runs left out."""
        return (await self.stage.store.stats(self.stage.clock.now())).pools["line"].wait_seconds

    def close(self) -> None:
        for free in self._free.values():
            free.set()


@pytest.fixture(params=["async", "thread"])
async def line(stage: Stage, request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    line = Line(stage, request.param)
    await line.form()
    yield line
    line.close()


async def test_a_stop_hands_it_back_in_its_place(line: Line, stage: Stage) -> None:
    await stage.stop(line.first)
    await line.second.start()
    await line.goes_on()
    others = sum(103 - number for number in range(1, JOBS))  # they have waited while the first one ran
    assert others <= await line.waits() < others + 50, (
        "its first run, of a hundred seconds, does not count as waiting time"
    )


async def test_a_node_that_cannot_renew_its_lease_hands_it_back_in_its_place(line: Line, stage: Stage) -> None:
    stage.faults.fail("beat", "claim")
    await stage.clock.advance(0.9 * LEASE)
    stage.faults.clear()
    await stage.clock.advance(1)
    await line.goes_on()


async def test_a_node_that_vanished_gives_it_back_in_its_place_when_its_lease_has_ended(
    line: Line, stage: Stage
) -> None:
    await line.second.start()
    await stage.crash(line.first)
    await stage.clock.advance(2 * LEASE)
    assert (await line.jobs[0].refresh()).crashes == 1
    await line.goes_on(meanwhile=line.starts.count(1))


async def test_a_claim_whose_reply_was_lost_is_handed_back_in_its_place(line: Line, stage: Stage) -> None:
    stage.faults.fail("claim", kind="after", times=1)
    await line.let_go(0)
    await line.reach([0])
    await stage.clock.advance(1)
    for number in range(1, JOBS):
        await line.reach([*range(number + 1)])
        await line.let_go(number)
