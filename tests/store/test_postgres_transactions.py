"""Jobs that begin and end within transactions: they commit with the user's writes, or not at all."""

import asyncio
import runpy
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any
from uuid import uuid4

import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from shiftwork import Breaker, Context, JobStatus, Retry, WorkerOrchestrator
from shiftwork.contrib.sqlalchemy import enqueue_after_commit
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.observing.run_histograms import waits
from shiftwork.errors import (
    ConfigurationError,
    JobStateError,
    LifecycleError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from shiftwork.store.postgres.store import PostgresStore, PostgresTransaction
from shiftwork.store.protocol import Store
from tests.polling import eventually
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import NOW, claim_one, job, statuses
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import names, server_url


@pytest.fixture(scope="module", params=names())
def url(request: pytest.FixtureRequest) -> str:
    return server_url(request.param)


@pytest.fixture
async def app(url: str) -> AsyncIterator[WorkerOrchestrator]:
    """Yield an app in a namespace of its own, with a task, and create a table `notes`."""
    made = WorkerOrchestrator(url, namespace=uuid4().hex)

    made.register_pool("mail")

    @made.task(pool="mail")
    async def send(to: str) -> None: ...

    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute("CREATE TABLE IF NOT EXISTS notes (note text)")
    yield made
    await made.close()


def send(app: WorkerOrchestrator) -> Any:
    return worker_of(app, "send")


def alchemy(url: str) -> sqlalchemy.URL:
    info = conninfo_to_dict(url)
    rest = {name: str(value) for name, value in info.items() if name not in ("user", "password", "dbname")}
    password = str(info["password"]) if "password" in info else None
    return sqlalchemy.URL.create(
        "postgresql+psycopg", username=str(info["user"]), password=password, database=str(info["dbname"]), query=rest
    )


async def there(app: WorkerOrchestrator, *jobs: Any) -> list[bool]:
    store = await app.control.store.open()
    return [record is not None for record in await store.get([one.id for one in jobs])]


# ── enqueue ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_psycopg_commits_or_rolls_back(app: WorkerOrchestrator, url: str) -> None:
    bell = (await app.control.store.open()).listen({"pool:mail"})
    async with await AsyncConnection.connect(url) as conn:
        undone = await send(app).enqueue_with(conn, to="a")
        await conn.rollback()
        assert await there(app, undone) == [False]
        await conn.execute("INSERT INTO notes VALUES ('kept')")
        done = await send(app).enqueue_with(conn, to="b")
        assert await there(app, done) == [False]
        await conn.commit()
    assert await there(app, undone, done) == [False, True]
    await soon(bell.wait(), "a ring with the commit")
    bell.close()
    stats = await (await app.control.store.open()).stats(app.control.now())
    assert (stats.pools["mail"].queued, stats.pools["mail"].added) == (1, 1)


@pytest.mark.parametrize("as_session", [False, True])
async def test_async_sqlalchemy(app: WorkerOrchestrator, url: str, *, as_session: bool) -> None:
    engine = create_async_engine(alchemy(url))
    async with AsyncSession(engine) if as_session else engine.connect() as conn:
        undone = await send(app).enqueue_with(conn, to="a")
        await conn.rollback()
        await conn.execute(sqlalchemy.text("INSERT INTO notes VALUES ('kept')"))
        done = await send(app).enqueue_with(conn, to="b")
        await conn.commit()
    await engine.dispose()
    assert await there(app, undone, done) == [False, True]


async def test_after_the_commit_of_an_async_session(app: WorkerOrchestrator, url: str) -> None:
    engine = create_async_engine(alchemy(url))
    async with AsyncSession(engine) as session:
        for to in ("a", "b"):
            await session.execute(sqlalchemy.text("INSERT INTO notes VALUES ('kept')"))
            enqueue_after_commit(session, app, send(app).call(to=to))
            assert await app.find_jobs() == []
            await (session.rollback() if to == "a" else session.commit())
    await engine.dispose()
    assert [found.payload for found in await app.find_jobs()] == [{"to": "b"}]


def by_psycopg(url: str, work: Callable[[Any], Any]) -> tuple[Any, Any]:
    with closing(psycopg.connect(url)) as conn:
        undone = work(conn)
        conn.rollback()
        done = work(conn)
        conn.commit()
    return undone, done


def by_sqlalchemy(url: str, work: Callable[[Any], Any]) -> tuple[Any, Any]:
    engine = sqlalchemy.create_engine(alchemy(url))
    with engine.connect() as conn:
        undone = work(conn)
        conn.rollback()
        done = work(conn)
        conn.commit()
    engine.dispose()
    return undone, done


def by_session(url: str, work: Callable[[Any], Any]) -> tuple[Any, Any]:
    engine = sqlalchemy.create_engine(alchemy(url))
    with Session(engine) as session:
        undone = work(session)
        session.rollback()
        done = work(session)
        session.commit()
    engine.dispose()
    return undone, done


def by_django(url: str, work: Callable[[Any], Any]) -> tuple[Any, Any]:
    info = conninfo_to_dict(url)
    if not settings.configured:
        settings.configure(DATABASES={})
        django.setup()
    name = uuid4().hex
    place = {"HOST": info["host"], "PORT": info.get("port", ""), "USER": info["user"], "NAME": info["dbname"]}
    connections.settings[name] = connections.configure_settings(
        {
            "default": {},
            name: {"ENGINE": "django.db.backends.postgresql", "PASSWORD": info.get("password", ""), **place},
        }
    )[name]
    with transaction.atomic(using=name):
        undone = work(connections[name])
        transaction.set_rollback(True, using=name)
    with transaction.atomic(using=name):
        done = work(connections[name])
    connections[name].close()
    return undone, done


@pytest.mark.parametrize("by", [by_psycopg, by_sqlalchemy, by_session, by_django])
async def test_blocking(
    app: WorkerOrchestrator, url: str, by: Callable[[str, Callable[[Any], Any]], tuple[Any, Any]]
) -> None:
    undone, done = await asyncio.to_thread(by, url, lambda conn: send(app).enqueue_with_blocking(conn, to="a"))
    assert await there(app, undone, done) == [False, True]


async def test_an_open_transaction_delays_nothing_else(url: str) -> None:
    store = PostgresStore(url, namespace=uuid4().hex)
    await store.open()
    async with await AsyncConnection.connect(url) as conn:
        await store.add_with(conn, [job("slow", key="k"), job("slow too")], NOW)
        await asyncio.gather(*(store.add([job(f"{n}", key="k"), job(f"{n} too")], NOW) for n in range(20)))
        taken = await store.claim("i", "p", 100, NOW, ["w"])
        assert len(taken.jobs) == 21
        await conn.commit()
    assert (await store.promote(10, NOW)).moved == 1  # a job with a key is queued by the leader
    assert await statuses(store, "slow", "slow too") == ["queued", "queued"]
    await claim_one(store, "slow too")
    await store.prune(10, NOW)
    stats = await store.stats(NOW)
    assert (stats.pools["p"].added, stats.pools["p"].queued, stats.pools["p"].processing) == (42, 20, 22)
    await store.close()


async def test_the_same_job_twice_is_one(app: WorkerOrchestrator, url: str) -> None:
    async with await AsyncConnection.connect(url) as conn:
        once = send(app).with_options(unique_key="u")
        first, second = await once.enqueue_with(conn, to="a"), await once.enqueue_with(conn, to="a")
        await conn.commit()
    assert first.id == second.id
    assert (await once.enqueue(to="a")).id == first.id


TWICE = [job("a", "first", flow="f"), job("b", "second", flow="f"), job("a", flow="f"), job("c", "last", flow="f")]


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_flow_is_named_by_its_last_job_also_when_an_id_is_given_twice(url: str, *, blocking: bool) -> None:
    store = PostgresStore(url, namespace=uuid4().hex)
    await store.open()
    if blocking:
        with closing(psycopg.connect(url)) as conn, conn:
            added = store.add_with_blocking(conn, TWICE, NOW)
    else:
        async with await AsyncConnection.connect(url) as other:
            added = await store.add_with(other, TWICE, NOW)
    assert [one.created for one in added] == [True, True, False, True]
    assert [(flow.id, flow.worker) for flow in await store.flows()] == [("f", "last")]
    await store.close()


async def test_an_object_that_is_not_a_connection_is_refused(app: WorkerOrchestrator, url: str) -> None:
    with pytest.raises(LifecycleError, match="AsyncSession"):
        await send(app).enqueue_with(object(), to="a")
    with closing(psycopg.connect(url)) as conn, pytest.raises(LifecycleError, match="enqueue_with_blocking"):
        await send(app).enqueue_with(conn, to="a")
    async with await AsyncConnection.connect(url) as other:
        with pytest.raises(LifecycleError, match="await enqueue_with"):
            await asyncio.to_thread(send(app).enqueue_with_blocking, other, to="a")


async def test_other_stores_say_that_they_cannot() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task(max_retries=0)
    async def send(ctx: Context, to: str) -> None:
        async with ctx.transaction():
            pass

    with pytest.raises(ConfigurationError, match="postgresql://"):
        await send.enqueue_with(object(), to="a")
    await app.start()
    sent = await send.enqueue(to="a")
    assert await sent.ended(30) is JobStatus.DEAD
    assert "postgresql://" in (sent.error or "")
    await app.stop()


# ── finish ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def table(url: str) -> Iterator[str]:
    """Yield the name of a table with one counter, at 0."""
    name = f"counter_{uuid4().hex}"
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        conn.execute(f"CREATE TABLE {name} (n int)")
        conn.execute(f"INSERT INTO {name} VALUES (0)")
        yield name
        conn.execute(f"DROP TABLE {name}")


def count_of(url: str, table: str) -> int:
    with closing(psycopg.connect(url)) as conn:
        row = conn.execute(f"SELECT n FROM {table}").fetchone()
        return int(row[0]) if row else -1


async def test_the_job_completes_with_the_users_writes(url: str, table: str, caplog: pytest.LogCaptureFixture) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    completed: list[str | None] = []
    app.on("job.completed")(lambda event: completed.append(event.subject))

    @app.task()
    async def count(ctx: Context, *, fail: bool) -> str:
        async with ctx.transaction() as conn:
            await conn.execute(f"UPDATE {table} SET n = n + 1")
        with pytest.raises(JobStateError, match="has ended"):
            async with ctx.transaction():
                pass
        if fail:
            message = "too late to matter"
            raise RuntimeError(message)
        return "not kept"

    await app.start()
    well = await count.enqueue(fail=False)
    late = await count.enqueue(fail=True)
    assert [await well.ended(30), await late.ended(30)] == [JobStatus.COMPLETED] * 2
    await eventually(lambda: len(completed) == 2)
    [instance] = (await app.get_pool_dashboard())["default"]["workers"]
    await app.stop()
    assert sorted(map(str, completed)) == sorted([well.id, late.id]), "its hooks are called as after any other job"
    assert (instance["completed"], instance["failed"]) == (2, 0)
    warned = [record.message for record in caplog.records if "after it had completed" in record.message]
    assert warned == [f"job {late.id} of count failed after it had completed: RuntimeError: too late to matter"]
    assert count_of(url, table) == 2
    assert (well.record.result, late.history) == (None, ())
    await app.close()


async def test_what_raises_is_rolled_back_and_tried_again(url: str, table: str) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)

    @app.task(retry=Retry(base_seconds=0.01, jitter=0.0))
    async def count(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(f"UPDATE {table} SET n = n + 1")
            if ctx.attempt < 3:
                message = "not yet"
                raise RuntimeError(message)

    await app.start()
    job = await count.enqueue()
    assert await job.ended(30) is JobStatus.COMPLETED
    await app.stop()
    assert (count_of(url, table), job.attempt) == (1, 3)
    [pool] = (await (await app.control.store.open()).stats(app.control.now())).pools.values()
    assert (sum(waits(pool.marks)), pool.marks["raised"], pool.marks["retried"]) == (3, 2, 2)
    await app.close()


async def lose_lease(store: Store, job_id: str, app: WorkerOrchestrator) -> None:
    """Let another instance take a running job."""
    [record] = await store.get([job_id])
    await store.leave([str(record and record.instance)], app.control.now())
    while not await store.reap("another", 10, app.control.now()):  # it may have sent a beat in between
        await store.leave([str(record and record.instance)], app.control.now())


async def test_a_stale_run_writes_nothing(url: str, table: str) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    store = await app.control.store.open()
    refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @app.task()
    async def count(ctx: Context) -> None:
        try:
            async with ctx.transaction() as conn:
                await conn.execute(f"UPDATE {table} SET n = n + 1")
                await lose_lease(store, ctx.job_id, app)
        except (JobStateError, asyncio.CancelledError) as error:  # it may learn first that it has lost its lease
            refused.set_result(str(error) or "stale: cancelled")
            raise

    await app.start()
    await count.enqueue()
    assert "stale" in await soon(refused, "the refusal")
    await app.stop()
    assert count_of(url, table) == 0
    await app.close()


async def test_a_step_and_its_writes_are_kept_together_or_not_at_all(url: str, table: str) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)

    async def raise_it(conn: psycopg.AsyncConnection[Any], by: int, *, fail: bool) -> int:
        row = await (await conn.execute(f"UPDATE {table} SET n = n + {by} RETURNING n")).fetchone()
        assert row
        if fail:
            message = "after the write"
            raise RuntimeError(message)
        return int(row[0])

    kept: list[tuple[int, int]] = []

    @app.task(retry=Retry(base_seconds=0.01, jitter=0.0))
    async def count(ctx: Context) -> list[int]:
        [record] = await store.get([ctx.job_id], whole=True)
        kept.append((len(record.steps) if record else -1, count_of(url, table)))
        first = await ctx.step("first", ctx.in_transaction(raise_it), 1, fail=ctx.attempt == 1)
        if ctx.attempt == 2:
            message = "between two steps"
            raise RuntimeError(message)
        return [first, await ctx.step("second", ctx.in_transaction(raise_it), 10, fail=False)]

    store = await app.control.store.open()
    await app.start()
    job = await count.enqueue()
    assert await job.result(30) == [1, 11]
    await app.stop()
    assert kept == [(0, 0), (0, 0), (1, 1)]  # a rollback leaves neither, a commit leaves both
    assert [step.name for step in (await app.control.jobs.get_shown(job.id))[2].steps] == ["first", "second"]
    await app.close()


@pytest.mark.parametrize("as_step", [False, True])
async def test_psycopg_rollback_is_a_failure_and_no_end(url: str, table: str, *, as_step: bool) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)

    async def undo(conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute(f"UPDATE {table} SET n = n + 1")
        raise psycopg.Rollback

    @app.task(max_retries=0)
    async def count(ctx: Context) -> None:
        if as_step:
            await ctx.step("undo", ctx.in_transaction(undo))
        async with ctx.transaction() as conn:
            await undo(conn)

    await app.start()
    job = await count.enqueue()
    assert await job.ended(30) is JobStatus.DEAD
    assert "psycopg.Rollback has undone everything; raise an exception of your own" in str(job.error)
    await app.stop()
    assert count_of(url, table) == 0


async def test_a_step_of_a_stale_run_writes_nothing(url: str, table: str) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    store = await app.control.store.open()
    refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @app.task()
    async def count(ctx: Context) -> None:
        async def lose(conn: psycopg.AsyncConnection[Any]) -> None:
            await conn.execute(f"UPDATE {table} SET n = n + 1")
            await lose_lease(store, ctx.job_id, app)

        try:
            await ctx.step("lose", ctx.in_transaction(lose))
        except (JobStateError, asyncio.CancelledError) as error:  # it may learn first that it has lost its lease
            refused.set_result(str(error) or "stale: cancelled")
            raise

    await app.start()
    await count.enqueue()
    assert "stale" in await soon(refused, "the refusal")
    await app.stop()
    assert count_of(url, table) == 0
    await app.close()


async def end_connection(url: str, conn: psycopg.AsyncConnection[Any]) -> None:
    """End a connection as a server does that shuts down."""
    async with await AsyncConnection.connect(url, autocommit=True) as other:
        await other.execute("SELECT pg_terminate_backend(%s)", (conn.info.backend_pid,))


@pytest.mark.parametrize("when", ["begin", "work", "commit"])
async def test_a_step_in_a_transaction_survives_a_lost_connection(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    lost: list[str] = []

    real = PostgresStore.transaction

    @asynccontextmanager
    async def losing(self: PostgresStore) -> AsyncIterator[Any]:
        if when == "begin" and not lost:
            lost.append(when)
            raise StoreUnavailableError("the server is away, says the test")
        async with real(self) as transaction:
            yield transaction
        if when == "commit" and not lost:  # it was committed, and the reply is lost
            lost.append(when)
            raise StoreUnavailableError("no reply, says the test")

    monkeypatch.setattr(PostgresStore, "transaction", losing)

    async def raise_it(conn: psycopg.AsyncConnection[Any]) -> int:
        row = await (await conn.execute(f"UPDATE {table} SET n = n + 1 RETURNING n")).fetchone()
        if when == "work" and not lost:
            lost.append(when)
            await end_connection(url, conn)
            await conn.execute("SELECT 1")
        assert row
        return int(row[0])

    @app.task(max_retries=0)
    async def count(ctx: Context) -> int:
        try:
            first = await ctx.step("first", ctx.in_transaction(raise_it))
        except Exception:  # noqa: BLE001 - it must get none
            return -1
        return first + 10 * await ctx.step("second", ctx.in_transaction(raise_it))

    await app.start()
    job = await count.enqueue()
    assert await job.result(30) == 21
    await app.stop()
    assert (lost, count_of(url, table)) == ([when], 2)
    found, _, parts = await app.control.jobs.get_shown(job.id)
    assert ([step.name for step in parts.steps], found.attempt) == (["first", "second"], 1)
    await app.close()


async def test_a_step_in_a_transaction_waits_for_a_commit_that_is_under_way(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost after the commit was sent, and the server is slow: the step must not run a second time."""
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    late: list[asyncio.Task[None]] = []
    real = PostgresStore.transaction

    async def commit_when_the_next_one_waits(first: Any, waited_for: int) -> None:
        only_ours = "-c search_path=pg_catalog"
        async with await AsyncConnection.connect(url, autocommit=True, options=only_ours) as other:
            waits = "SELECT 1 WHERE %s = ANY (SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity)"

            async def waits_for_it() -> object:
                return await (await other.execute(waits, (waited_for,))).fetchone()

            await eventually(waits_for_it)
        await first.__aexit__(None, None, None)

    @asynccontextmanager
    async def losing(self: PostgresStore) -> AsyncIterator[Any]:
        if late:
            async with real(self) as transaction:
                yield transaction
            return
        first = real(self)
        transaction = await first.__aenter__()
        yield transaction
        pid = transaction.connection.info.backend_pid
        late.append(asyncio.create_task(commit_when_the_next_one_waits(first, pid)))
        raise StoreUnavailableError("no reply, says the test")

    monkeypatch.setattr(PostgresStore, "transaction", losing)

    async def raise_it(conn: psycopg.AsyncConnection[Any]) -> int:
        row = await (await conn.execute(f"UPDATE {table} SET n = n + 1 RETURNING n")).fetchone()
        assert row
        return int(row[0])

    @app.task(max_retries=0)
    async def count(ctx: Context) -> int:
        return await ctx.step("only", ctx.in_transaction(raise_it))

    await app.start()
    job = await count.enqueue()
    assert await job.result(60) == 1
    await asyncio.gather(*late)
    await app.stop()
    assert (len(late), count_of(url, table)) == (1, 1)
    await app.close()


@pytest.mark.parametrize("when", ["work", "commit"])
async def test_an_end_in_a_transaction_survives_a_lost_connection(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    lost: list[str] = []
    real = PostgresStore.transaction

    @asynccontextmanager
    async def losing(self: PostgresStore) -> AsyncIterator[Any]:
        async with real(self) as transaction:
            yield transaction
        if when == "commit" and not lost:
            lost.append(when)
            raise StoreUnavailableError("no reply, says the test")

    monkeypatch.setattr(PostgresStore, "transaction", losing)

    @app.task(max_retries=0)
    async def count(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(f"UPDATE {table} SET n = n + 1")
            if when == "work" and not lost:
                lost.append(when)
                await end_connection(url, conn)
                await conn.execute("SELECT 1")

    await app.start()
    job = await count.enqueue()
    assert await job.ended(30) is JobStatus.COMPLETED
    await app.stop()
    assert (lost, count_of(url, table), job.attempt) == ([when], 1, 1)
    await app.close()


@pytest.mark.parametrize("error", [StoreUnavailableError, StoreBusyError, StoreFullError])
async def test_an_end_in_a_transaction_that_the_store_cannot_write_costs_no_attempt(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch, error: type[StoreError]
) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    refused: list[str] = []
    real = PostgresTransaction.finish

    async def refusing(self: PostgresTransaction, outcome: Outcome, now: float) -> bool:
        if not refused:
            refused.append(outcome.id)
            raise error("not now, says the test")
        return await real(self, outcome, now)

    monkeypatch.setattr(PostgresTransaction, "finish", refusing)

    @app.task(max_retries=0)
    async def count(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(f"UPDATE {table} SET n = n + 1")

    await app.start()
    job = await count.enqueue()
    assert await job.ended(30) is JobStatus.COMPLETED
    await app.stop()
    assert (refused, count_of(url, table), job.attempt) == ([job.id], 1, 1)
    await app.close()


async def test_an_error_of_the_users_own_statement_is_theirs(url: str, table: str) -> None:
    app = WorkerOrchestrator(url, namespace=uuid4().hex)

    async def break_it(conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute(f"SELECT 1 / n FROM {table}")

    @app.task(max_retries=0)
    async def count(ctx: Context, *, as_step: bool) -> None:
        if as_step:
            await ctx.step("break", ctx.in_transaction(break_it))
        async with ctx.transaction() as conn:
            await break_it(conn)

    await app.start()
    for as_step in (False, True):
        job = await count.enqueue(as_step=as_step)
        assert await job.ended(30) is JobStatus.DEAD
        assert "DivisionByZero" in str(job.error)
    await app.stop()
    await app.close()


async def test_a_breaker_hears_of_an_end_in_a_transaction(url: str) -> None:
    guard = Breaker(failures=2, window_seconds=60.0, cool_down_seconds=0.2)
    app = WorkerOrchestrator(url, namespace=uuid4().hex)
    heard: list[str] = []
    for name in ("breaker.opened", "breaker.closed"):
        app.on(name)(lambda event: heard.append(event.name))

    @app.task(breaker=guard, max_retries=0)
    async def act(ctx: Context, *, well: bool) -> None:
        async with ctx.transaction():
            if not well:
                message = "it broke"
                raise RuntimeError(message)

    await app.start()
    for _ in range(2):
        assert await (await act.enqueue(well=False)).ended(30) is JobStatus.DEAD
    jobs = [await act.enqueue(well=True) for _ in range(5)]  # the first of them is the probe
    assert [await job.ended(30) for job in jobs] == [JobStatus.COMPLETED] * 5
    await app.stop()  # by then all ends are known
    assert heard == ["breaker.opened", "breaker.closed"]
    await app.close()


def test_the_example_adds_a_job_with_its_order_or_not_at_all(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["transaction", url])
    runpy.run_module("examples.transaction", run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["billed the lamp", "the chair is sold out: no order, no job"]
    assert printed[2].count("of bill: completed>") == 1
