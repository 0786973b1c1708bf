"""Flows in PostgreSQL: calls that meet in the middle, users' transactions, and what a large flow costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import product
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import AsyncConnection

from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.model.job_changes import Requeue
from shiftwork.core.model.job_parts import Need, Step
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.postgres.add import add as add_in
from shiftwork.store.postgres.lead import prune
from shiftwork.store.postgres.store import PostgresStore
from tests.polling import eventually
from tests.store.conformance.acts import (
    NOW,
    add,
    claim,
    claim_ids,
    claim_one,
    finish,
    get,
    get_whole,
    job,
    outcome,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import names, server_url
from tests.store.test_postgres_plans import place

PATIENCE = 30.0


@pytest.fixture(scope="module", params=names())
def url(request: pytest.FixtureRequest) -> str:
    return server_url(request.param)


@asynccontextmanager
async def opened(url: str, namespace: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, namespace=namespace)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def two(url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    """The same namespace, as two processes see it."""
    namespace = uuid4().hex
    async with opened(url, namespace) as one, opened(url, namespace) as other:
        yield one, other


async def blocked(url: str, *, unless: asyncio.Task[Any] | None = None) -> None:
    """Return once a session waits for a lock, or this task is done."""
    async with await AsyncConnection.connect(url, autocommit=True) as conn:

        async def waits() -> bool:
            found = await conn.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            return (unless is not None and unless.done()) or await found.fetchone() is not None

        await eventually(waits, "a session that waits for a lock", within=PATIENCE)


# ── at the same moment ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_last_two_needs_are_met_by_two_transactions_at_once(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    """Neither sees what the other one has done: the second waits for the first, and then releases."""
    store, other = two
    await add(store, job("a"), job("b"), job("c", needs=(Need("a"), Need("b")), flow="f"))
    first, second = await claim(store)
    async with store.transaction() as transaction:
        assert await transaction.finish(succeeded(first), NOW)
        finishing = asyncio.create_task(finish(other, succeeded(second)))
        await blocked(url)
    await soon(finishing, "the second end")
    assert await statuses(store, "c") == ["queued"]
    assert await claim_ids(store) == ["c"]


NET = (  # two ends meet at "any": each directly, or through a chain of its own, or through one that they share
    (("any", "a", "b"),),
    (("c", "a"), ("any", "c", "b")),
    (("c", "a"), ("d", "b"), ("any", "c", "d")),
    (("c", "a", "b"), ("d", "c"), ("any", "d")),
    (("c", "a", "b"), ("any", "a", "b", "c")),
)
FIRST_ENDS = tuple(product("ab", (JobStatus.DEAD, JobStatus.CANCELLED, JobStatus.COMPLETED), (True, False)))


@pytest.mark.parametrize("net", NET)
async def test_two_ends_that_meet_at_a_job_that_needs_any_end(
    two: tuple[PostgresStore, PostgresStore], url: str, net: tuple[tuple[str, ...], ...]
) -> None:
    """In both orders, with every end of the first, which commits or is rolled back: the job starts, and once."""
    store, other = two
    for n, (first, status, commits) in enumerate(FIRST_ENDS):
        rest = [
            job(f"{n}{id}", needs=tuple(Need(f"{n}{one}", whatever=id == "any") for one in needs), flow="f")
            for id, *needs in net
        ]
        await add(store, job(f"{n}a"), job(f"{n}b"), *rest)
        one, two_ = sorted(await claim(store, 2), key=lambda claimed: claimed.id[-1] != first)
        with suppress(psycopg.Error):
            async with store.transaction() as transaction:
                assert await transaction.finish(outcome(one, status, error="e"), NOW)
                finishing = asyncio.create_task(finish(other, outcome(two_, JobStatus.DEAD, error="e")))
                await blocked(url, unless=finishing)
                if not commits:
                    await transaction.connection.execute("SELECT 1 / 0")
        await soon(finishing, "the second end")
        if not commits:
            await finish(store, outcome(one, status, error="e"))
        started: list[str] = []
        while ready := await claim(store):
            started += [claimed.id for claimed in ready]
            await finish(store, *(succeeded(claimed) for claimed in ready))
        assert started.count(f"{n}any") == 1, (first, status, commits, started)


async def test_a_job_that_is_stranded_while_another_is_added_that_needs_it(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    """The addition waits for the end, which reaches the job that it needs through another one, or vice versa."""
    store, other = two
    await add(store, job("a"), job("b", needs=(Need("a"),)), job("c", needs=(Need("b"),)))
    claimed = await claim_one(store, "a")
    async with store.transaction() as transaction:
        assert await transaction.finish(outcome(claimed, JobStatus.DEAD, error="e"), NOW)
        adding = asyncio.create_task(add(other, job("d", needs=(Need("c", whatever=True),))))
        await blocked(url)
    await soon(adding, "the addition")
    assert await claim_ids(store) == ["d"]
    await store.amend(["a"], Requeue(run_at=NOW), NOW)
    claimed = await claim_one(store, "a")
    async with store.transaction() as transaction:
        await add_in(transaction._session, [(job("e", needs=(Need("c", whatever=True),)), NOW)])
        finishing = asyncio.create_task(finish(other, outcome(claimed, JobStatus.DEAD, error="e")))
        await blocked(url)
    await soon(finishing, "the end")
    assert await claim_ids(store) == ["e"]


async def test_a_job_that_is_stranded_while_what_stranded_it_before_is_retried(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    store, other = two
    await add(store, job("a", "v"), job("b"), job("c", needs=(Need("a"), Need("b"))), job("d", needs=(Need("c"),)))
    await finish(store, outcome(await claim_one(store, "a", workers=["v"]), JobStatus.DEAD, error="e"))
    claimed = await claim_one(store, "b", workers=["w"])
    async with store.transaction() as transaction:
        assert await transaction.finish(outcome(claimed, JobStatus.DEAD, error="e"), NOW)
        retrying = asyncio.create_task(other.amend(["a"], Requeue(run_at=NOW), NOW))
        await blocked(url)
    await soon(retrying, "the retry")
    assert (await get(store, "c")).unmet == (Need("a"), Need("b", broken=True))
    assert (await get(store, "d")).unmet == (Need("c", broken=True),)
    await store.amend(["b"], Requeue(run_at=NOW), NOW)
    assert (await get(store, "d")).unmet == (Need("c"),)


async def test_a_child_that_a_users_transaction_adds_may_be_dead_before_it_is_tied(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    store, _ = two
    await add(
        store, job("parent"), job("end", needs=(Need("parent"),)), job("any", needs=(Need("end", whatever=True),))
    )
    parent = await claim_one(store, "parent")
    async with await AsyncConnection.connect(url) as conn:
        await store.add_with(conn, [job("child", parent="parent")], NOW)
    await finish(store, outcome(await claim_one(store, "child"), JobStatus.DEAD, error="e"))
    await finish(store, succeeded(parent))
    assert (await get(store, "end")).unmet == (Need("child", broken=True),)
    assert await claim_ids(store) == ["any"]


async def test_a_job_that_ends_while_another_is_added_that_needs_it(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    store, other = two
    await add(store, job("a"))
    claimed = await claim_one(store, "a")
    async with store.transaction() as transaction:
        assert await transaction.finish(succeeded(claimed), NOW)
        adding = asyncio.create_task(add(other, job("b", needs=(Need("a"),), flow="f")))
        await blocked(url)
    await soon(adding, "the addition")
    assert await statuses(store, "b") == ["queued"]


async def test_a_job_is_not_pruned_while_another_is_added_that_needs_it(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """Before the addition is committed, it is left alone; then it is kept, because the other one waits for it."""
    store, other = two
    await add(store, job("a"))
    await finish(store, outcome(await claim_one(store, "a"), JobStatus.CANCELLED, keep_until=NOW + 1))
    async with store.transaction() as transaction:
        await add_in(transaction._session, [(job("b", needs=(Need("a"),)), NOW + 2)])
        assert await soon(other.prune(10, NOW + 2), "the prune") == 0
    assert await other.prune(10, NOW + 2) == 1
    assert (await get(store, "a")).keep_until == NOW + 2 + POSTPONED
    assert (await get(store, "b")).unmet == (Need("a", broken=True),)


async def test_a_job_that_is_pruned_while_another_is_added_that_needs_it(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    """The addition waits for the end of the prune, and a job that is gone holds nothing."""
    store, other = two
    await add(store, job("a"))
    await finish(store, outcome(await claim_one(store, "a"), JobStatus.CANCELLED, keep_until=NOW + 1))
    async with store.transaction() as transaction:
        assert await prune(transaction._session, 10, NOW + 2) == 1
        adding = asyncio.create_task(add(other, job("b", needs=(Need("a"),)), now=NOW + 2))
        await blocked(url)
    await soon(adding, "the addition")
    assert await statuses(store, "a", "b") == [None, "queued"]


async def test_a_stale_run_adds_nothing_while_its_job_is_taken_over(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    """The addition waits for the new fence to be committed, and then sees it."""
    store, other = two
    await add(store, job("a"))
    claimed = await claim_one(store, "a")
    async with await AsyncConnection.connect(url) as conn:
        await conn.execute(
            "UPDATE shiftwork.jobs SET fence = fence + 1 WHERE id = 'a' AND fence = %s", (claimed.fence,)
        )
        adding = asyncio.create_task(other.extend("a", claimed.fence, [job("b", parent="a", flow="a")], NOW))
        await blocked(url)
        await conn.commit()
    assert await soon(adding, "the addition") is None
    assert await statuses(store, "b") == [None]


# ── in transactions of the user ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_flow_begins_with_the_commit(two: tuple[PostgresStore, PostgresStore], url: str) -> None:
    """A user's transaction, however long it lasts, keeps no job from ending that the new jobs need."""
    store, other = two
    await add(store, job("a"), job("b"))
    first, second = sorted(await claim(store), key=lambda one: one.id)
    bell = other.listen({"leader"})
    async with await AsyncConnection.connect(url) as conn:
        inside = job("in", flow="f"), job("after", needs=(Need("in"),), flow="f")
        outside = job("c", needs=(Need("a"), Need("in")), flow="f"), job("d", needs=(Need("b"),), flow="f")
        await store.add_with(conn, [*inside, *outside], NOW)
        await finish(store, succeeded(first))
        assert await statuses(store, "c") == [None]
        await conn.commit()
    await soon(bell.wait(), "the leader is woken")
    bell.close()
    await other.promote(10, NOW)
    assert (await get(store, "c")).unmet == (Need("in"),)
    await finish(store, succeeded(second))
    assert await statuses(store, "in", "after", "c", "d") == ["queued", "waiting", "waiting", "queued"]
    counted = (await store.stats(NOW)).pools["p"]
    assert (counted.waiting, counted.queued, counted.added) == (2, 2, 6)
    await finish(store, *(succeeded(one) for one in await claim(store)))
    assert sorted(await claim_ids(store)) == ["after", "c"]


async def test_what_waits_for_a_parent_waits_for_jobs_that_its_transaction_adds(
    two: tuple[PostgresStore, PostgresStore], url: str
) -> None:
    """Even if the parent ends before the leader gets to them."""
    store, _ = two
    await add(store, job("parent", flow="f"), job("end", needs=(Need("parent"),), flow="f"))
    parent = await claim_one(store, "parent")
    async with await AsyncConnection.connect(url) as conn:
        await store.add_with(conn, [job("child", parent="parent", flow="f")], NOW)
    await finish(store, succeeded(parent))
    assert (await get(store, "end")).unmet == (Need("child"),)
    await finish(store, succeeded(await claim_one(store, "child")))
    assert await claim_ids(store) == ["end"]


async def test_a_step_commits_with_the_transaction(two: tuple[PostgresStore, PostgresStore]) -> None:
    store, _ = two
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    step = Step(1, "charge", b"r", NOW, NOW + 1)
    with suppress(psycopg.Error):
        async with store.transaction() as transaction:
            assert await transaction.keep_step("1", claimed.fence, step)
            await transaction.connection.execute("SELECT 1 / 0")
    assert (await get_whole(store, "1")).steps == ()
    async with store.transaction() as transaction:
        assert not await transaction.keep_step("1", claimed.fence - 1, step)
        assert await transaction.keep_step("1", claimed.fence, step)
    assert (await get_whole(store, "1")).steps == (step,)


async def test_steps_of_many_jobs_are_kept_in_few_transactions(url: str) -> None:
    schema = f"steps_{uuid4().hex}"
    async with opened(place(url, schema), "default") as store:
        await add(store, *(job(f"{n}") for n in range(20)))
        claimed = await claim(store, 20)
        step = Step(1, "s", b"r", NOW, NOW)
        stale = claimed[7]
        kept = await asyncio.gather(
            *(store.keep_step(one.id, one.fence - (one is stale), step) for one in claimed),
            store.keep_step("unknown", 1, step),
        )
        assert kept == [one is not stale for one in claimed] + [False]
        assert [(await get_whole(store, one.id)).steps for one in claimed] == [
            () if one is stale else (step,) for one in claimed
        ]
        with psycopg.connect(url, autocommit=True, options="-c search_path=pg_catalog") as conn:
            transactions = conn.execute(f'SELECT count(DISTINCT xmin::text) FROM "{schema}".steps'.encode()).fetchone()
            assert transactions in {(1,), (2,)}
            conn.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_deleted_job_leaves_nothing_behind(url: str) -> None:
    schema = f"traces_{uuid4().hex}"
    async with opened(place(url, schema), "default") as store:
        parts: Any = {"tags": ("t", "u"), "flow": "f"}
        await add(store, job("a", **parts), job("b", needs=(Need("a"),), **parts))
        claimed = await claim_one(store, "a")
        await store.keep_step("a", claimed.fence, Step(1, "s", b"", NOW, NOW))
        await finish(store, succeeded(claimed, keep_until=NOW))
        await finish(store, succeeded(await claim_one(store, "b"), keep_until=NOW))
        assert await store.prune(10, NOW) == 2
        with psycopg.connect(url, autocommit=True) as conn:
            for table in ("jobs", "needs", "loose", "flows", "tags", "steps"):
                assert conn.execute(f'SELECT count(*) FROM "{schema}".{table}'.encode()).fetchone() == (0,), table
            conn.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
