"""A storm of kill -9 over flows and durable functions: every job is released once, and every kept step counts once."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shiftwork import Flow, Job
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from tests.polling import eventually, pass_time
from tests.store.servers.postgres import postgres_servers
from tests.system.conftest import Start
from tests.system.mill import Mill
from tests.system.shared_stores import Place, on_postgres, on_sqlite, on_valkey
from tests.system.test_storm import Storm

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy

__all__ = ["postgres_servers"]

SLEEP = 2.0
"""How many seconds a durable function sleeps."""
CLOCKS = 1.0
"""By how many seconds the clocks of two processes may differ: each is set by a reply of the store that may be late."""


@pytest.fixture(params=[on_sqlite])
async def weaver(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Mill]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    place: Place = request.param
    with place(tmp_path) as url:
        mill = Mill(tmp_path, lease=15.0, program="weaver", store=url)
        yield mill
        await mill.close()


class Ends:
    """What the jobs of the weaver have noted, by what and number, in order."""

    def __init__(self, log: Path) -> None:
        self.of: defaultdict[tuple[str, int], list[tuple[float, str]]] = defaultdict(list)
        for at, _, what, number, detail in (line.split() for line in log.read_text().splitlines()):
            self.of[what, int(number)].append((int(at) / 1e9, detail))


async def weave(weaver: Mill, *, width: int, chains: int, links: int, crawl: tuple[int, int]) -> list[Flow[int]]:
    """Add a fan-out with its fan-in, chains that are joined, and a crawl that adds its own jobs."""
    module = weaver.module
    first = module.root.call(1)
    fan = module.total.call([module.leaf.call(first.output, number).output for number in range(width)])
    ends = []
    for chain in range(chains):
        end = module.root.call(chain)
        for number in range(links):
            end = module.link.call(end.output, chain * links + number)
        ends.append(end)
    pages, depth = crawl
    counted = module.crawled.call().after(module.crawl.call(0, width=pages, depth=depth))
    return [await weaver.app.enqueue_flow(last) for last in (fan, module.total.call([e.output for e in ends]), counted)]


async def approve(orders: list[Job[Any]], weaver: Mill) -> None:
    for place, job in enumerate(orders):
        await weaver.app.send(job.id, "approval", str(place))
        await pass_time(0.005)


class Work:
    """Flows and durable functions, and what must be left of them: everything, once."""

    def __init__(self, weaver: Mill, size: int) -> None:
        self._weaver = weaver
        self._size = size
        self._shape = (1_000, 50, 20, 10, 3) if size == 1_000 else (size, 4, 5, 3, 2)
        self._flows: list[Flow[int]] = []
        self._orders: list[Job[Any]] = []

    async def add(self) -> None:
        width, chains, links, pages, depth = self._shape
        module = self._weaver.module
        self._orders = await self._weaver.app.enqueue_many(
            [module.order.call(number, seconds=SLEEP) for number in range(self._size)]
        )
        self._flows = await weave(self._weaver, width=width, chains=chains, links=links, crawl=(pages, depth))

    async def end(self, within: float) -> None:
        """Wait for the end of everything, and look at it."""
        approving = asyncio.create_task(approve(self._orders, self._weaver))
        results = [await flow.result(within) for flow in self._flows]
        receipts = [await job.result(within) for job in self._orders]
        await approving
        width, chains, links, pages, depth = self._shape
        crawled = sum(pages**level for level in range(depth + 1))
        chained = sum(range(chains * links)) + sum(range(chains))
        assert results == [width + sum(range(width)), chained, crawled]
        sizes = [width + 2, chains * (links + 1) + 1, crawled + 1]
        assert [(await flow.status()).counts for flow in self._flows] == [{"completed": n} for n in sizes]
        await check_ends(self._weaver, jobs=sum(sizes) + self._size)
        check_steps(receipts, Ends(self._weaver.log))


async def check_ends(weaver: Mill, *, jobs: int) -> None:
    """Every job has ended once, and nothing waits."""
    store = weaver.app.control.store.store
    pools = (await store.stats(await store.server_time())).pools.values()
    assert sum(pool.completed for pool in pools) == jobs
    live = tuple(status for status in JobStatus if status.live)
    assert await store.find(JobFilter(status=live)) == []


def check_steps(receipts: list[list[str]], ends: Ends) -> None:
    """A kept step returned what its last run did: no effect came after it was kept."""
    repeated: Counter[str] = Counter()
    for place, (charged, approval, shipped) in enumerate(receipts):
        assert approval == str(place)
        for what, token in (("charge", charged), ("ship", shipped)):
            runs = [detail for _, detail in ends.of[what, place]]
            assert runs[-1] == token, (what, place)
            repeated[what] += len(runs) - 1
        slept = ends.of["slept", place][0][0] - ends.of["sleeps", place][0][0]
        assert slept >= SLEEP - CLOCKS, place
    print(f"steps that ran again: {dict(repeated)}")  # noqa: T201 - for people who run it by hand


async def test_a_kill_loses_no_release_and_no_step(weaver: Mill, start: Start) -> None:
    """One process does everything, and is killed in the middle of it."""
    work = Work(weaver, 20)
    await work.add()
    victim = start("weaver.py")
    await eventually(lambda: weaver.log.exists() and len(weaver.log.read_text().splitlines()) >= 60)
    victim.kill()
    victim.wait()
    start("weaver.py")
    await work.end(120)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("weaver", [on_sqlite, on_valkey, on_postgres], indirect=True)
async def test_a_storm_loses_no_release_and_no_step(weaver: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEAVER_NAP", "0.15")
    storm = Storm(weaver, node_every=4.0)
    storm.nodes += [weaver.node(), weaver.node()]
    for node in storm.nodes:
        await weaver.up(node)
    work = Work(weaver, 1_000)
    await work.add()
    raging = asyncio.create_task(storm.rage())
    await work.end(280)
    raging.cancel()
    with suppress(asyncio.CancelledError):
        await raging
    assert storm.killed["node"] == 2
    print(f"killed: {dict(storm.killed)}")  # noqa: T201 - for people who run it by hand
