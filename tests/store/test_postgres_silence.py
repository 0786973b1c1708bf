"""A PostgreSQL server that stops answering is noticed in seconds; a slow one costs few round trips, and no duty's."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from msgspec import msgpack

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.workers.admission import Gates
from shiftwork.errors import StoreUnavailableError
from shiftwork.store.postgres.server import call_queue, store_connections
from shiftwork.store.postgres.store import PostgresStore
from tests.polling import eventually
from tests.store.conformance.acts import NOW, add, claim, finish, job, signs, statuses, succeeded
from tests.store.conformance.expect import soon
from tests.store.proxy import Proxy
from tests.store.servers.postgres import Server, own_server
from tests.system.mill import Mill, gone

LISTENER = 2
"""The number of the connection that only listens and notifies."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = own_server()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server.socket) as made:
        yield made


def url_of(proxy: Proxy) -> str:
    return (
        f"postgresql://shiftwork@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&connect_timeout=2"
    )


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[PostgresStore]:
    made = PostgresStore(url_of(proxy), namespace=uuid4().hex)
    await made.open()
    await made.check()  # it waits until bells are heard
    yield made
    await made.close()


def calls(proxy: Proxy) -> int:
    """How many round trips calls have made."""
    return sum(made for number, made in enumerate(proxy.trips) if number != LISTENER)


# ── silence ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_call_to_a_silent_server_fails_soon_and_works_once_it_answers(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, job("before"))
    with monkeypatch.context() as impatient:  # calls give up after half a second, instead of twelve
        for module in (call_queue, store_connections):
            impatient.setattr(module, "CALL_SECONDS", 0.5)
        impatient.setattr(store_connections, "SEARCH_SECONDS", 0.5)
        proxy.fall_silent()
        calls = [store.add([job(f"{n}")], NOW) for n in range(30)]
        others = [store.stats(NOW), store.find(JobFilter()), store.beat([signs("i", "p")], 15, NOW), store.instances()]
        answers = await soon(asyncio.gather(*calls, *others, return_exceptions=True), "an answer to every call")
    assert {type(error) for error in answers} == {StoreUnavailableError}
    assert "has not answered for" in str(answers[0])
    assert "pg_stat_activity" in str(answers[0])
    proxy.speak()
    await soon(add(store, job("after")), "an answer")
    assert await statuses(store, "before", "after") == ["queued"] * 2


async def test_one_connection_that_is_forgotten_on_the_way_costs_one_call(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a firewall that has lost its table: old connections are silent forever, new ones work."""

    async def in_transaction() -> None:
        async with store.transaction() as transaction:
            await transaction.connection.execute("SELECT 1")

    def others() -> list[Awaitable[object]]:
        return [claim(store), store.stats(NOW), store.find(JobFilter()), in_transaction(), add(store, job(uuid4().hex))]

    await asyncio.gather(*others())
    proxy.forget_connections()
    with monkeypatch.context() as impatient:
        impatient.setattr(call_queue, "CALL_SECONDS", 0.5)
        with pytest.raises(StoreUnavailableError, match="has not answered"):
            await store.add([job("lost")], NOW)
    await soon(asyncio.gather(*others()), "an answer to every call, each at its first try")


async def test_a_lone_call_to_a_silent_server_fails_soon(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(call_queue.DIRECT_AFTER + 2):  # those that follow go the short way
        await add(store, job(f"before {n}"))
        await asyncio.to_thread(store.add_blocking, [job(f"in a thread {n}")], NOW)
    with monkeypatch.context() as impatient:
        for module in (call_queue, store_connections):
            impatient.setattr(module, "CALL_SECONDS", 0.5)
        proxy.fall_silent()
        both = (store.add([job("1")], NOW), asyncio.to_thread(store.add_blocking, [job("2")], NOW))
        answers = await soon(asyncio.gather(*both, return_exceptions=True), "an answer to both calls")
    assert [type(error) for error in answers] == [StoreUnavailableError] * 2
    assert all("has not answered for" in str(error) for error in answers)
    proxy.speak()
    await soon(add(store, job("after")), "an answer")
    assert await statuses(store, "before 3", "after") == ["queued"] * 2


async def test_the_deadline_of_a_call_is_seconds_and_longer_than_that_of_a_lock() -> None:
    assert 10.0 < call_queue.CALL_SECONDS <= 15.0


async def test_closing_does_not_wait_for_a_silent_server(store: PostgresStore, proxy: Proxy) -> None:
    proxy.fall_silent()
    adding = [store.add([job(f"{n}")], NOW) for n in range(3)]
    calls = asyncio.gather(*adding, store.find(JobFilter()), return_exceptions=True)
    await asyncio.sleep(0)
    began = time.monotonic()
    await soon(store.close(), "the end")
    told = await soon(calls, "an answer for everybody")
    assert time.monotonic() - began < call_queue.CALL_SECONDS, "no call has reached its deadline yet"
    assert {type(error) for error in told} == {StoreUnavailableError}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.soak), 2])
async def test_a_node_ends_though_its_store_is_silent(
    server: Server, proxy: Proxy, signals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    mill = Mill(tmp_path, lease=600.0, store=f"{url_of(proxy)}&schema=silent_{uuid4().hex[:8]}")
    node = await mill.up(mill.node("--stop-timeout", "1s" if signals == 1 else "600s"))
    await mill.module.endless.enqueue(number=0)
    await mill.noted("endless")
    children = node.children()
    proxy.fall_silent()
    node.signal(signal.SIGTERM)
    if signals == 2:
        await eventually(lambda: "a second signal stops them now" in node.said, failure=lambda: node.said)
        node.signal(signal.SIGTERM)
    await asyncio.to_thread(node.end)
    await eventually(lambda: gone(children), failure=lambda: node.said)
    assert "the store does not answer" in node.said
    proxy.speak()
    await mill.close()


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("busy", "at_most"), [(False, 30.0), (True, 40.0)])
async def test_a_silent_store_delays_the_end_of_a_node_by_twenty_seconds_at_most(
    proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, busy: bool, at_most: float
) -> None:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    url = url_of(proxy).removesuffix("&connect_timeout=2")
    mill = Mill(tmp_path, lease=15.0, store=f"{url}&schema=silent_{uuid4().hex[:8]}")
    node = await mill.up(mill.node("--stop-timeout", "20s"))
    if busy:
        await mill.module.endless.enqueue(number=0)
        await mill.noted("endless")
    children = node.children()
    proxy.fall_silent()
    began = time.monotonic()
    node.signal(signal.SIGTERM)
    await asyncio.to_thread(node.end, 120.0)
    assert time.monotonic() - began < at_most, node.said
    await eventually(lambda: gone(children), failure=lambda: node.said)
    proxy.speak()
    await mill.close()


@pytest.mark.soak
@pytest.mark.timeout(180)
async def test_a_node_continues_after_one_timeout_when_its_connections_were_forgotten(proxy: Proxy) -> None:
    url = url_of(proxy).removesuffix("&connect_timeout=2")
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    ran = asyncio.Event()

    @app.worker(execution_mode="continuous", interval_seconds=0.2)
    async def loop() -> None:
        ran.set()

    await app.start()
    await soon(ran.wait(), "the first run")
    proxy.forget_connections()
    began = time.monotonic()
    async with asyncio.timeout(60):
        while time.monotonic() - began < call_queue.CALL_SECONDS / 2:  # a run may have been under way
            ran.clear()
            await ran.wait()
    assert time.monotonic() - began < 1.8 * call_queue.CALL_SECONDS, "each connection was waited for by itself"
    await app.stop()


# ── round trips ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("many", [1, 300])
async def test_each_call_is_one_round_trip_whatever_the_batch(store: PostgresStore, proxy: Proxy, many: int) -> None:
    jobs = [job(f"{n}", unique_key=f"{n}") for n in range(many)]
    trips = []

    def count() -> None:
        trips.append(calls(proxy))

    await claim(store)
    count()
    await store.add(jobs, NOW)
    count()
    claimed = await claim(store, many)
    count()
    await finish(store, *(succeeded(one, result=b"r") for one in claimed))
    count()
    await store.beat([signs(f"i{n}", "p") for n in range(many)], 15, NOW)
    count()
    assert [after - before for before, after in pairwise(trips)] == [1, 1, 1, 1]


async def test_a_claim_that_gates_decide_is_two_round_trips(store: PostgresStore, proxy: Proxy) -> None:
    await store.put([Doc("gates", "w", msgpack.encode(Gates(worker="w", pool="p", max_running=5)))])
    await store.add([job(f"{n}") for n in range(20)], NOW)
    assert len(await claim(store, 2)) == 2  # it learns that there are gates
    before = calls(proxy)
    assert len(await claim(store, 3)) == 3
    assert calls(proxy) - before == 2
    before = calls(proxy)
    assert not await claim(store, 20), "the gate is closed"
    assert calls(proxy) - before == 2


async def test_a_start_does_not_wait_for_the_duties_of_its_node(store: PostgresStore, server: Server) -> None:
    await add(store, job("1"))
    await store.events()
    with psycopg.connect(server.url) as other:
        other.execute("LOCK TABLE shiftwork.events")
        event = Event(name="node.started", at=NOW, subject="n", message="m")
        duty = asyncio.ensure_future(store.record([event]))
        waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'shiftwork.events'::regclass"
        await eventually(lambda: other.execute(waits).fetchone() is not None)
        assert [one.id for one in await soon(claim(store), "a claim")] == ["1"]
        assert not duty.done()
        other.rollback()
        await duty
