"""A storm of kill -9 over instances and nodes: everything completes, nothing overlaps, the guilty are found."""

import asyncio
import random
import signal
from collections import Counter
from contextlib import suppress

import psutil
import pytest

from shiftwork import Job, JobStatus
from tests.polling import pass_time
from tests.store.servers.postgres import postgres_servers
from tests.system.mill import Mill, MillNode, statuses
from tests.system.shared_stores import on_postgres, on_sqlite, on_valkey

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy

__all__ = ["postgres_servers"]

KILL_EVERY = 0.5


class Storm:
    """Kills an instance every half second, and each node once."""

    def __init__(self, mill: Mill, *, node_every: float) -> None:
        self._mill = mill
        self._dice = random.Random(7)
        self._node_every = node_every
        self.nodes: list[MillNode] = []
        self.killed: Counter[str] = Counter()

    async def rage(self) -> None:
        victims = list(self.nodes)
        clock = asyncio.get_running_loop().time
        next_node = clock() + self._node_every
        while True:
            await pass_time(KILL_EVERY)
            if victims and clock() > next_node:
                next_node = clock() + self._node_every
                victims.pop(0).signal(signal.SIGKILL)
                self.nodes.append(self._mill.node())
                self.killed["node"] += 1
            await self._kill_one()

    async def _kill_one(self) -> None:
        ours = {child.pid for node in self.nodes for child in node.children()}
        instances = [it for it in await self._mill.instances() if it["pid"] in ours]
        if instances:
            victim = self._dice.choice(instances)
            with suppress(psutil.NoSuchProcess):
                psutil.Process(victim["pid"]).kill()
                self.killed[victim["pool"]] += 1


async def endure(mill: Mill, *, jobs: int, shortest: float, longest: float, node_every: float, within: float) -> None:
    dice = random.Random(1)
    module = mill.module
    storm = Storm(mill, node_every=node_every)
    storm.nodes += [mill.node(), mill.node()]
    for node in storm.nodes:
        await mill.up(node)
    workers = [module.nap_apart, module.nap_in_a_thread, module.nap_in_a_coroutine] * 3
    workers += [module.left, module.right, module.middle]
    calls = [
        workers[number % len(workers)].call(number=number, seconds=dice.uniform(shortest, longest))
        for number in range(jobs)
    ]
    poisons = [
        worker.call(number=jobs)
        for worker in (module.poison_apart, module.poison_in_a_thread, module.poison_in_a_coroutine)
    ]
    added: list[Job[object]] = await mill.app.enqueue_many([*calls[: jobs // 2], *poisons, *calls[jobs // 2 :]])
    guilty_ids = {job.id for job in added[jobs // 2 : jobs // 2 + len(poisons)]}
    raging = asyncio.create_task(storm.rage())
    ended = await mill.all_ended(added, within)
    raging.cancel()
    with suppress(asyncio.CancelledError):
        await raging

    innocent = [job for job in ended if job.id not in guilty_ids]
    assert statuses(innocent) == {JobStatus.COMPLETED: jobs}, [job.error for job in innocent if job.error][:5]
    done = {line.number for line in mill.lines(what="end")}
    assert done >= set(range(jobs))
    assert not mill.lines(what="overlap")
    for job in ended:
        if job.id in guilty_ids:
            assert job.status is JobStatus.DEAD
            assert job.record.crashes >= 3  # and more if the storm killed it, too
            assert "SIGABRT" in (job.error or "")
    assert storm.killed["node"] == 2
    assert sum(storm.killed.values()) > 5


async def test_a_storm_loses_nothing(mill: Mill) -> None:
    await endure(mill, jobs=180, shortest=0.02, longest=0.1, node_every=1.5, within=120)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("place", [on_sqlite, on_valkey, on_postgres])
async def test_a_long_storm_loses_nothing(mill: Mill) -> None:
    await endure(mill, jobs=2_000, shortest=0.05, longest=0.5, node_every=20.0, within=1500)
