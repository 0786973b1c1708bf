"""What a claim waits for, and what not: outcomes that are being written, and the counters of others."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from shiftwork.errors import LifecycleError, StoreError
from shiftwork.store.postgres.server.call_queue import LEAST_SHARED
from shiftwork.store.postgres.store import PostgresStore
from tests.polling import eventually
from tests.store.conformance.acts import NOW, add, claim, claim_ids, claim_one, finish, job, succeeded
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import names, server_url


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    made = PostgresStore(server_url(names()[0]), namespace=uuid4().hex)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def other(store: PostgresStore) -> Iterator["psycopg.Connection[Any]"]:
    """Another session, which locks rows until it ends."""
    with closing(psycopg.connect(server_url(names()[0]))) as conn:
        yield conn


async def test_a_claim_does_not_wait_for_an_outcome_that_is_being_written(
    store: PostgresStore, other: "psycopg.Connection[Any]"
) -> None:
    held, free = uuid4().hex, uuid4().hex
    await add(store, job(held))
    first = await claim_one(store, held)
    await add(store, job(free))
    other.execute("SELECT FROM shiftwork.jobs WHERE id = %s FOR UPDATE", (held,))
    writing = asyncio.create_task(finish(store, succeeded(first)))
    waits = "SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
    await eventually(lambda: other.execute(waits).fetchone() is not None)
    assert [one.id for one in await soon(claim(store), "the claim")] == [free]
    assert not writing.done()
    other.rollback()
    await soon(writing, "the outcome")


@pytest.mark.parametrize("end", ["completed", "failed", "withdrawn", "cancelled under way"])
async def test_a_claim_continues_when_the_call_before_it_is_over_however_it_ends(
    store: PostgresStore, end: str
) -> None:
    await add(store, job("1"))
    server = asyncio.Event()

    async def work(_: object) -> None:
        await server.wait()
        if end == "failed":
            raise StoreError(end)

    under_way = asyncio.create_task(store._connections.of_this_loop().calls.call(work))
    last: asyncio.Task[Any] = under_way
    await asyncio.sleep(0)
    if end == "withdrawn":
        last = asyncio.create_task(store.add([job("2")], NOW))
        await asyncio.sleep(0)
    claiming = asyncio.create_task(claim(store))
    for _ in range(5):
        await asyncio.sleep(0)
    if end in ("withdrawn", "cancelled under way"):
        last.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    as_it_should = last.done() == (end == "withdrawn")
    server.set()
    assert as_it_should, "a cancelled caller waits until its call has happened"
    assert [one.id for one in await soon(claiming, "the claim")] == ["1"]
    await asyncio.gather(last, under_way, return_exceptions=True)


async def test_a_claim_counts_where_no_outcome_and_no_added_job_does(
    store: PostgresStore, other: "psycopg.Connection[Any]"
) -> None:
    ended, id = uuid4().hex, uuid4().hex
    await add(store, job(ended))
    await finish(store, succeeded(await claim_one(store, ended)))
    await add(store, job(id))
    # Whatever the number of its session, an outcome or an added job counts in one of these.
    other.execute(
        "INSERT INTO shiftwork.lanes (namespace, worker, pool, slot) "
        "SELECT namespace, 'w', 'p', generate_series(0, 7) FROM shiftwork.jobs WHERE id = %s ON CONFLICT DO NOTHING",
        (id,),
    )
    other.commit()
    other.execute(
        "SELECT FROM shiftwork.lanes WHERE slot < 8 "
        "AND namespace = (SELECT namespace FROM shiftwork.jobs WHERE id = %s) FOR UPDATE",
        (id,),
    )
    assert [one.id for one in await soon(claim(store), "the claim")] == [id]
    other.rollback()
    numbers = (await store.stats(NOW)).pools["p"]
    assert (numbers.added, numbers.queued, numbers.processing, numbers.completed) == (2, 0, 1, 1)


async def test_a_store_that_is_closed_opens_no_connection_for_a_late_call(store: PostgresStore) -> None:
    await add(store, job("1"))
    await store.close()
    for call in (add(store, job("2")), claim(store), store.get(["1"]), store.stats(NOW)):
        with pytest.raises(LifecycleError, match="the store is closed"):
            await call
    await store.open()
    assert [one.id for one in await claim(store)] == ["1"]


async def test_a_transaction_that_connects_while_the_store_closes_does_not_open_it(store: PostgresStore) -> None:
    async def begin() -> None:
        async with store.transaction():
            pass

    await add(store, job("1"))
    beginning = asyncio.create_task(begin())
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(beginning, return_exceptions=True)
    assert not store._connections.doorbell.started
    await store.open()
    assert [one.id for one in await claim(store)] == ["1"]


async def test_a_claim_waits_for_what_was_called_before_a_call_that_is_withdrawn(store: PostgresStore) -> None:
    server = asyncio.Event()

    async def work(_: object) -> None:
        await server.wait()

    before = asyncio.create_task(store._connections.of_this_loop().calls.call(work))
    withdrawn = asyncio.create_task(store.add([job("1")], NOW))
    await asyncio.sleep(0)
    withdrawn.cancel()
    await asyncio.wait([withdrawn])
    pending = store._connections.of_this_loop().calls.pending_for_claims()
    server.set()
    await soon(before, "the first call")
    assert pending
    assert not store._connections.of_this_loop().calls.pending_for_claims()


async def test_of_many_calls_that_wait_half_go_together_however_many_items_they_have(store: PostgresStore) -> None:
    calls, sizes = store._connections.of_this_loop().calls, list[int]()

    async def echo(_: object, items: list[Any]) -> list[Any]:
        sizes.append(len(items))
        return items

    callers = 2 * LEAST_SHARED
    assert await asyncio.gather(*(calls.call_in_batch([n] * 5, echo) for n in range(callers))) == [
        [n] * 5 for n in range(callers)
    ]
    assert sizes[0] == 5 * LEAST_SHARED


async def test_a_claim_that_meets_locked_jobs_continues_with_the_next_by_rank(
    store: PostgresStore, other: "psycopg.Connection[Any]"
) -> None:
    """Otherwise nodes that claim at the same time would start jobs of other workers before those."""
    first, second, low = (uuid4().hex for _ in range(3))
    await add(store, job(first, "w"), job(second, "w", run_at=NOW + 1), job(low, "v", run_at=NOW + 2), now=NOW + 2)
    other.execute("SELECT FROM shiftwork.jobs WHERE id = %s FOR UPDATE", (first,))
    order = [await claim_ids(store, 1, workers=["v", "w"], now=NOW + 2) for _ in range(2)]
    other.rollback()
    assert order == [[second], [low]]
