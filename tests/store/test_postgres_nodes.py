"""Whole nodes on one database: they start together, are killed, lose their server, and follow its clock."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from tempfile import TemporaryFile
from typing import Any, Final, Self
from uuid import uuid4

import psycopg
import pytest

from shiftwork import Job, JobStatus, WorkerOrchestrator
from shiftwork.core.model.jobs import JobRecord
from shiftwork.errors import StoreError
from shiftwork.store.protocol import Store
from tests.polling import eventually, pass_time
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import Server, names, own_server, server_url

LONGEST: Final = 3_000
"""The number of jobs; enough that neither of two nodes runs them all, however fast it is."""
NEAR: Final = 20.0
"""How far two clocks that follow the same server may be apart: half of a round trip, which a busy machine prolongs."""
NODE: Final = """
import asyncio, sys, time

url, namespace, skew, lease = sys.argv[1:]
told = time.time
time.time = lambda: told() + float(skew)  # a machine whose clock is wrong

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(url, namespace=namespace, lease_seconds=float(lease), max_concurrent=8)

@app.task()
async def act() -> None:
    await asyncio.sleep(0.005)

asyncio.run(app.run())
"""


class Nodes:
    """Processes that run the task `act`, and the app that enqueues it."""

    def __init__(self, url: str, *, lease: float) -> None:
        self.namespace = uuid4().hex
        self._url = url
        self._lease = lease
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._log = TemporaryFile()  # noqa: SIM115 - closed at the end
        self.app = WorkerOrchestrator(url, namespace=self.namespace)

        @self.app.task()
        async def act() -> None: ...

        self.act = act

    def start(self, name: str, skew: float = 0.0) -> None:
        command = [sys.executable, "-c", NODE, self._url, self.namespace, str(skew), str(self._lease)]
        self._running[name] = subprocess.Popen(command, stderr=self._log)

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        assert process.poll() is None, "it ended by itself"
        process.kill()
        process.wait()

    async def enqueue(self, **options: Any) -> Job[Any]:
        """Enqueue a job, again and again until it is acknowledged."""
        task = self.act.with_options(job_id=uuid4().hex, **options)
        while True:
            try:
                return await task.enqueue()
            except StoreError:
                await pass_time(0.02)

    async def completed(self) -> int:
        try:
            stats = await (await self.app.control.store.open()).stats(self.app.control.now())
        except StoreError:
            return -1
        return stats.pools["default"].completed if "default" in stats.pools else 0

    async def until(self, completed: int) -> None:
        bell = (await self.app.control.store.open()).listen({"ended"})
        while await self.completed() < completed:
            await bell.wait()
        bell.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
        await self.app.close()
        with self._log:
            if error is not None:
                self._log.seek(0)
                sys.stderr.write(f"the nodes logged:\n{self._log.read().decode()}")


@pytest.fixture
def server() -> Iterator[Server]:
    made = own_server()
    made.start()
    yield made
    made.remove()


async def test_nodes_that_start_at_once_survive_kills_and_a_crash_of_the_server(server: Server) -> None:
    with closing(psycopg.connect(server.url, autocommit=True)) as conn:
        conn.execute("CREATE DATABASE fresh")
    async with Nodes(server.url_of("fresh"), lease=2.0) as nodes:
        nodes.start("a")
        nodes.start("b")  # both find an empty database
        # A node that has not started yet ends when the server goes away.
        await soon(both_there(await nodes.app.control.store.open()), "two nodes")
        jobs = [await nodes.enqueue() for _ in range(200)]
        await soon(nodes.until(20), "the first jobs")
        nodes.kill("a")
        jobs += [await nodes.enqueue() for _ in range(200)]
        await asyncio.to_thread(server.stop)  # SIGQUIT: as `pg_ctl restart -m immediate`
        await asyncio.to_thread(server.start)
        jobs += [await nodes.enqueue() for _ in range(200)]
        for n in range(100, len(jobs) + 1, 100):  # each part has its own deadline
            await soon(nodes.until(n), f"the end of {n} jobs")
        assert {await job.ended(30) for job in jobs} == {JobStatus.COMPLETED}
        nodes.kill("b")


@pytest.mark.parametrize("name", names())
async def test_nodes_with_wrong_clocks_agree_by_that_of_the_store(name: str) -> None:
    async with Nodes(server_url(name), lease=15.0) as nodes:
        nodes.start("ahead", 300.0)
        nodes.start("behind", -300.0)
        store = await nodes.app.control.store.open()
        begun = await store.server_time()
        await soon(both_there(store), "two nodes")
        jobs = [await nodes.enqueue(delay_seconds=0.3) for _ in range(20)]
        jobs += await asyncio.gather(*(nodes.enqueue() for _ in range(200)))
        records = await ended_records(nodes, store, jobs)
        while len({record.instance for record in records}) < 2 and len(jobs) < LONGEST:
            jobs += await asyncio.gather(*(nodes.enqueue() for _ in range(100)))
            records = await ended_records(nodes, store, jobs)
        ended = await store.server_time()
    assert len({record.instance for record in records}) == 2, "both took part"
    assert all(begun - NEAR <= record.run_at <= (record.started_at or 0) + NEAR for record in records)
    assert all((record.ended_at or 0) <= ended + NEAR for record in records)
    assert {(record.crashes, record.attempt) for record in records} == {(0, 1)}, "no lease was thought to have ended"


async def ended_records(nodes: Nodes, store: Store, jobs: list[Job[Any]]) -> list[JobRecord]:
    await soon(nodes.until(len(jobs)), "the end of every job")
    return [record for record in await store.get([job.id for job in jobs]) if record]


async def both_there(store: Store) -> None:
    async def there() -> bool:
        return len({known.beat.node for known in await store.instances() if known.beat.pool}) == 2

    await eventually(there)
