"""A real server goes away under durable functions in every kind of pool: none of them fails, and no step runs twice."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shiftwork import Job, JobStatus
from tests.polling import eventually, pass_time
from tests.store.servers.postgres import own_server
from tests.store.servers.redis import KILLED, Server, binary, required, wheel_binary
from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


class Engine(NamedTuple):
    """A server that a test stops and starts."""

    url: str
    stop: Callable[[], None]
    start: Callable[[], Any]

    async def be_away(self, seconds: float) -> None:
        """Go away for a while."""
        await asyncio.to_thread(self.stop)
        await pass_time(seconds)  # how long the outage lasts
        await asyncio.to_thread(self.start)


@contextmanager
def valkey() -> Iterator[Engine]:
    program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
    with Server(program, *KILLED) as server:
        yield Engine(server.url, server.kill, server.start)


@contextmanager
def postgres() -> Iterator[Engine]:
    server = own_server()
    try:
        server.start()
        yield Engine(server.url, server.stop, server.start)
    finally:
        server.remove()


class Office:
    """The clerks and their server."""

    def __init__(self, mill: Mill, engine: Engine) -> None:
        self.mill = mill
        self.engine = engine
        self.jobs: list[Job[Any]] = []

    async def open(self, jobs: int) -> None:
        """Add this many jobs to each pool, and start a node."""
        module = self.mill.module
        workers = (module.coroutine, module.thread, module.apart, module.apart_async)
        calls = [worker.call(number) for number, worker in enumerate(w for _ in range(jobs) for w in workers)]
        self.jobs = await self.mill.app.enqueue_many(calls)
        for job in self.jobs:
            await self.mill.app.send(job.id, "approval", "yes")
        self.mill.node()
        await eventually(lambda: self.at_work(len(workers)), failure=self.mill.logs)

    def at_work(self, first: int) -> bool:
        """Whether each of the first jobs, one of every pool, has run a step."""
        return {line.number for line in self.mill.lines()} >= {*range(first)}

    async def close(self, *, repeated: bool) -> None:
        """Wait for the end of everything, and look at it: each effect once, unless runs were ended by a lost lease."""
        ended = await self.mill.all_ended(self.jobs, 150)
        assert Counter((job.status, job.attempt) for job in ended) == {(JobStatus.COMPLETED, 1): len(ended)}, (
            self.mill.logs()
        )
        steps = self.mill.module.STEPS
        for number, job in enumerate(ended):
            assert await job.result(30) == f"{steps * number} yes {number}"
        await eventually(
            lambda: len({line.number for line in self.mill.lines("child")}) == len(ended), failure=self.mill.logs
        )
        effects = Counter((line.worker, line.number) for line in self.mill.lines())
        assert len(effects) == len(ended) * (steps + 2)
        if not repeated:
            assert set(effects.values()) == {1}, effects.most_common(5)


@pytest.fixture(params=[valkey, postgres])
async def office(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lease: float
) -> AsyncIterator[Office]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    with request.param() as engine:
        mill = Mill(tmp_path, lease=lease, program="clerks", store=engine.url)
        yield Office(mill, engine)
        await mill.close()


async def test_an_outage_costs_durable_functions_nothing(office: Office) -> None:
    await office.open(3)
    await office.engine.be_away(1.0)
    await office.close(repeated=False)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("lease", "longest"), [(15.0, 4.0), (3.0, 6.0)])
async def test_many_outages_cost_durable_functions_nothing(office: Office, lease: float, longest: float) -> None:
    await office.open(60)
    for _ in range(12):
        await office.engine.be_away(random.uniform(0.0, longest))
        await pass_time(random.uniform(0.0, 2.0))
    await office.close(repeated=longest > lease)
