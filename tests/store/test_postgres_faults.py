"""Faults of a server: each is reported with its remedy, and no job is lost or stuck."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Final
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import Added, JobStatus
from shiftwork.errors import (
    SchemaVersionError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnknownStoreError,
)
from shiftwork.store.postgres.server import migrations
from shiftwork.store.postgres.server.faults import translate
from shiftwork.store.postgres.store import PostgresStore
from shiftwork.store.protocol import Bell, Store
from shiftwork.store.urls import open_store
from tests.polling import pass_time
from tests.store.conformance.acts import NOW, add, claim, claim_one, finish, job, statuses, succeeded
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import Server, names, own_server, server_url

LINGUISTIC: Final = "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
"""In the order of words, "a" comes before "B". Not every server can: then the test is about the rest."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Yield a server that tests may stop and start."""
    made = own_server()
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="module", params=names())
def url(request: pytest.FixtureRequest) -> str:
    return server_url(request.param)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    made = PostgresStore(url, namespace=uuid4().hex)
    await made.open()
    yield made
    await made.close()


async def refusal(url: str) -> str:
    store = open_store(url)
    with pytest.raises(StoreUnavailableError) as caught:
        await store.open()
    await store.close()
    return str(caught.value)


def run(server: Server, sql: str, database: str = "postgres") -> None:
    with closing(psycopg.connect(server.url_of(database), autocommit=True)) as conn:
        conn.execute(sql)


# ── the way in ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_wrong_password_is_named_and_not_shown(server: Server) -> None:
    run(server, "CREATE ROLE guest LOGIN PASSWORD 'right'")
    url = server.url_of("postgres", "guest:wrong-secret")
    said = await refusal(url)
    assert "password is wrong" in said
    assert "wrong-secret" not in said
    assert "wrong-secret" not in open_store(url).url
    assert "secret" not in open_store("postgresql://h/d?password=secret&user=u").url


async def test_no_rights_to_make_the_schema(server: Server) -> None:
    run(server, "CREATE ROLE lodger LOGIN PASSWORD 'x'")
    said = await refusal(server.url_of("postgres", "lodger:x"))
    assert "CREATE on the database" in said


async def test_what_is_not_there(server: Server) -> None:
    assert "createdb" in await refusal(server.url_of("nowhere"))
    assert "nothing listens" in await refusal("postgresql://shiftwork@127.0.0.1:1/postgres")


async def test_a_standby_is_named(server: Server) -> None:
    run(server, "CREATE DATABASE frozen")
    run(server, "ALTER DATABASE frozen SET default_transaction_read_only = on")
    said = await refusal(server.url_of("frozen"))
    assert "is read-only" in said
    assert "primary" in said


async def test_a_newer_schema_is_refused_and_one_that_prepares_it_is_not(server: Server) -> None:
    run(server, "CREATE DATABASE future")
    url = server.url_of("future")
    store = PostgresStore(url)
    await store.open()
    await store.close()
    run(server, "INSERT INTO shiftwork.migrations (number, phase) VALUES (999, 'before')", "future")
    await store.open()
    await store.close()
    run(server, "INSERT INTO shiftwork.migrations (number, phase) VALUES (999, 'after')", "future")
    with pytest.raises(SchemaVersionError, match=r"version 999.*Upgrade shiftwork"):
        await store.open()
    await store.close()


async def test_many_that_open_at_once_make_one_schema(server: Server) -> None:
    run(server, "CREATE DATABASE crowded")
    stores = [PostgresStore(server.url_of("crowded")) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(add(store, job(f"{n}")) for n, store in enumerate(stores)))
    assert len(await claim(stores[0], 10)) == 6
    await asyncio.gather(*(store.close() for store in stores))


async def test_another_schema_and_what_the_commands_will_say(server: Server) -> None:
    run(server, "CREATE DATABASE shared")
    url = server.url_of("shared")
    one, other = PostgresStore(url), PostgresStore(f"{url}?schema=Other_1")
    await asyncio.gather(one.open(), other.open())
    await add(one, job("1"))
    assert await statuses(other, "1") == [None]
    await add(other, job("1"))
    await finish(other, succeeded(await claim_one(other, "1")))
    assert (await other.check())["integrity"].text == "ok"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        assert [step.done for step in await migrations.status(conn, "Other_1")] == [True] * 5
        assert [step.done for step in await migrations.status(conn, "none")] == [False] * 5
        await conn.execute(migrations.sql("printed").encode())
        assert await migrations.upgrade(conn, "printed") == []
        assert len(await migrations.upgrade(conn, "made")) == 5
    await one.close()
    await other.close()


async def test_the_settings_of_a_database_or_a_role_do_not_count(server: Server) -> None:
    """Two that wait for each other must see what the other one has done, and ids are ordered by their bytes."""
    with closing(psycopg.connect(server.url)) as conn:
        linguistic = conn.execute("SELECT FROM pg_collation WHERE collname = 'en-US-x-icu'").fetchone() is not None
    run(server, f"CREATE DATABASE isolated TEMPLATE template0 {LINGUISTIC if linguistic else ''}")
    run(server, "ALTER DATABASE isolated SET default_transaction_isolation = serializable")
    run(server, "ALTER DATABASE isolated SET extra_float_digits = -9")
    url = server.url_of("isolated")
    one, other = stores = PostgresStore(url), PostgresStore(url)
    await asyncio.gather(*(store.open() for store in stores))
    await add(one, *(job(f"{n}") for n in range(20)))
    claims = [claim(store, 1, instance=f"{n}", now=NOW + 0.123456) for n in range(10) for store in stores]
    claimed = await asyncio.gather(*claims)
    assert len({found.id for [found] in claimed}) == 20
    await asyncio.gather(*(finish(other, succeeded(found)) for [found] in claimed))
    assert {lane.state.last_started for lane in (await one.survey(None, NOW)).lanes.values()} == {NOW + 0.123456}
    await add(one, job("a", "w"), job("B", "v"), job("c", "v"), job("D", "w"))
    assert [found.id for found in await claim(one, 2, workers=["w", "v"])] == ["B", "D"]
    await asyncio.gather(*(store.close() for store in stores))
    pooled = PostgresStore(f"{url}?pooling=transaction")
    with pytest.raises(StoreUnavailableError, match="is serializable, and shiftwork needs read committed: ALTER ROLE"):
        await pooled.open()
    await pooled.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://h/d?pooling=statement", "session or transaction"),
        ("postgresql://h/d?schema=a-b", "schema"),
        ("postgresql://h/d?pool_size=0", "pool_size"),
        ("postgresql://h/d?scheme=x", "did you mean 'schema'"),
        ("postgresql://u:secret@[h/d", "postgresql://user@host"),
    ],
)
def test_urls_that_lead_nowhere(url: str, words: str) -> None:
    with pytest.raises(UnknownStoreError, match=words) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("shiftwork.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnknownStoreError, match=r"shiftwork\[postgres\]"):
        open_store("postgresql://localhost/shop")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (pg.DiskFull("could not extend file"), StoreFullError, "Free some space"),
        (pg.LockNotAvailable("canceling statement due to lock timeout"), StoreBusyError, "pg_stat_activity"),
        (pg.AdminShutdown("terminating connection"), StoreUnavailableError, "terminating"),
        (pg.UndefinedTable('relation "shiftwork.jobs" does not exist'), StoreUnavailableError, "schema=NAME"),
        (psycopg.OperationalError("connection to postgresql://u:geheim@h failed"), StoreUnavailableError, "u:***@h"),
        (pg.TooManyConnections("sorry, too many clients already"), StoreUnavailableError, "max_connections"),
    ],
)
def test_faults_have_remedies(error: psycopg.Error, kind: type[StoreError], words: str) -> None:
    message = translate(error, "postgresql://u@h/d")
    assert type(message) is kind
    assert words in str(message)


# ── what is stored ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_nul_in_an_error_is_escaped_and_in_an_id_refused(store: PostgresStore) -> None:
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    await finish(store, succeeded(claimed, error="a\x00b"))
    [record] = await store.get(["1"])
    assert record
    assert record.error == "a\\x00b"
    with pytest.raises(StoreError, match="NUL"):
        await store.add([job("a\x00b")], NOW)
    for n in range(2, 6):  # the last of them go the short way, which would add a job with the id "a"
        await add(store, job(f"{n}"))
    for adding in (store.add([job("a\x00b")], NOW), asyncio.to_thread(store.add_blocking, [job("a\x00b")], NOW)):
        with pytest.raises(StoreError, match="NUL"):
            await adding


async def test_one_bad_job_does_not_harm_those_it_went_with(store: PostgresStore) -> None:
    bad = job("bad", key_limit=1 << 40)
    calls = [store.add([job(f"{n}")], NOW) for n in range(3)]
    answers = await asyncio.gather(*calls, store.add([bad], NOW), store.add([job("3")], NOW), return_exceptions=True)
    assert [isinstance(answer, StoreError) for answer in answers] == [False, False, False, True, False]
    assert await statuses(store, "0", "3", "bad") == ["queued", "queued", None]


async def test_a_caller_whose_item_breaks_a_batch_in_an_unknown_way_fails_alone(store: PostgresStore) -> None:
    async def echo(_: object, items: list[str]) -> list[str]:
        if "bad" in items:
            raise ValueError("bad")
        return items

    calls = store._connections.of_this_loop().calls
    async with asyncio.timeout(30):
        together = [calls.call_in_batch([item], echo) for item in ("1", "bad", "2")]
        answers = await asyncio.gather(*together, return_exceptions=True)
    assert [isinstance(answer, ValueError) or answer for answer in answers] == [["1"], True, ["2"]]


async def test_if_the_server_goes_while_a_batch_is_made_one_by_one_those_that_wait_fail_at_once(
    store: PostgresStore,
) -> None:
    made = []

    async def vanish(_: object, items: list[str]) -> list[str]:
        made.append(items)
        raise StoreError("bad") if len(items) > 1 else StoreUnavailableError("gone")

    calls = store._connections.of_this_loop().calls
    together = [calls.call_in_batch([item], vanish) for item in "123"]
    answers = await asyncio.gather(*together, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailableError] * 3
    assert made == [["1", "2", "3"], ["1"]], "each would have waited for the server as long again"


@pytest.mark.parametrize("pooling", ["session", "transaction"])
async def test_one_bad_statement_does_not_repeat_those_it_went_with(url: str, pooling: str) -> None:
    store = PostgresStore(f"{url}?pooling={pooling}", namespace=uuid4().hex)
    await store.open()
    name = uuid4().hex
    good, bad = store.put([Doc("plan", name, b"{}")]), store.put([Doc("plan", f"{name}\x00", b"{}")])
    written, refused = await asyncio.gather(good, bad, return_exceptions=True)
    assert written == [True], "it was written once, and says so"
    assert isinstance(refused, StoreError)
    assert [doc.version for doc in await store.docs("plan") if doc.name == name] == [1]
    await store.close()


async def test_a_lone_job_is_added_though_its_statement_is_gone(store: PostgresStore) -> None:
    """As after an update of the server, or of another part of it that a plan depends on."""
    for n in range(4):  # the last of them go the short way
        await add(store, job(f"{n}"))
    calls = store._connections.of_this_loop().calls
    assert calls._conn is not None
    await calls._conn.execute("DEALLOCATE ALL")
    assert await store.add([job("4")], NOW) == [Added("4", created=True)]
    assert await store.add([job("4")], NOW) == [Added("4", created=False)]
    for n in range(4):
        await asyncio.to_thread(store.add_blocking, [job(f"in a thread {n}")], NOW)
    line = store._connections.blocking._link
    assert line is not None
    line.execute("DEALLOCATE ALL")
    assert await asyncio.to_thread(store.add_blocking, [job("5")], NOW) is None, "nothing has happened"
    assert await store.add([job("5")], NOW) == [Added("5", created=True)]
    assert (await store.stats(NOW)).pools["p"].queued == 6 + 2


async def test_namespaces_do_not_meet(url: str, store: PostgresStore) -> None:
    other = PostgresStore(url, namespace=uuid4().hex)
    await other.open()
    bell = other.listen({"pool:p"})
    await add(store, job("1", unique_key="u", key="k"))
    await add(other, job("1", unique_key="u", key="k"))
    await soon(bell.wait(), "its own ring")
    await claim_one(store, "1")
    await claim_one(other, "1")
    assert (await other.stats(NOW)).pools["p"].processing == 1
    bell.close()
    await other.close()


# ── a server that goes and comes ─────────────────────────────────────────────────────────────────────────────────────


async def patiently(store: Store) -> None:
    """Try until the store answers."""
    while True:
        try:
            await store.server_time()
        except StoreUnavailableError:
            await pass_time(0.02)
        else:
            return


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
async def test_a_restart_is_survived(server: Server, how: signal.Signals) -> None:
    store = PostgresStore(server.url, namespace=uuid4().hex)
    await store.open()
    await add(store, job("1"), job("2"))
    held = await claim_one(store, "1")
    await asyncio.to_thread(server.stop, how)
    with pytest.raises(StoreUnavailableError):
        await store.add([job("3")], NOW)
    await asyncio.to_thread(server.start)
    await soon(patiently(store), "the store's answer")
    bell = store.listen({"pool:p"})
    other = PostgresStore(server.url, namespace=store._connections.namespace)
    await other.open()
    await soon(rings_again(other, bell), "a ring after the restart")
    await finish(store, succeeded(held))
    await claim_one(store, "2")
    bell.close()
    await other.close()
    await store.close()


async def rings_again(other: Store, bell: Bell) -> None:
    await add(other, job("rings", "v"))
    await bell.wait()


async def test_a_restart_between_calls_goes_unnoticed(server: Server) -> None:
    store = PostgresStore(server.url, namespace=uuid4().hex)
    await store.open()
    await add(store, job("1"))
    await asyncio.to_thread(server.stop, signal.SIGINT)
    await asyncio.to_thread(server.start)
    await claim_one(store, "1")
    await store.close()


WORK: Final = """
import asyncio, sys
from shiftwork.errors import StoreError
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import NOW, claim, signs, succeeded

async def main(url, namespace, instance):
    store = open_store(url, namespace=namespace)
    while True:
        try:
            await store.beat([signs(instance)], 1e9, NOW)
            taken = await claim(store, 7, instance=instance)
            await store.finish([succeeded(one) for one in taken], NOW)
            print(len(taken), flush=True)
        except StoreError:
            await asyncio.sleep(0.02)

asyncio.run(main(*sys.argv[1:]))
"""


def start_worker(server: Server, namespace: str, instance: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WORK, server.url, namespace, instance]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_every_acknowledged_job_ends_though_workers_and_server_are_killed(server: Server) -> None:
    namespace, total = uuid4().hex, 300
    store = PostgresStore(server.url, namespace=namespace)
    await store.open()
    workers = {name: start_worker(server, namespace, name) for name in ("a", "b")}
    acknowledged = 0
    for turn in range(3):
        for n in range(turn * 100, turn * 100 + 100):
            await add_until_acknowledged(store, f"{n:03}")
            acknowledged += 1
        victim = workers.pop("ab"[turn % 2] if turn < 2 else "c0")
        victim.kill()
        victim.wait()
        if victim.stdout:
            victim.stdout.close()
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await patiently(store)
        await store.leave(["a" if turn == 0 else "b" if turn == 1 else "c0"], NOW)
        workers[f"c{turn}"] = start_worker(server, namespace, f"c{turn}")
    await soon(all_ended(store, namespace, total), "the end of every job")
    for worker in workers.values():
        worker.kill()
        worker.wait()
        if worker.stdout:
            worker.stdout.close()
    assert acknowledged == total
    await store.close()


async def add_until_acknowledged(store: Store, id: str) -> None:
    while True:
        try:
            await store.add([job(id)], NOW)
        except StoreError:
            await pass_time(0.02)
        else:
            return


async def all_ended(store: Store, holder: str, total: int) -> None:
    """Recover lost jobs, as a leader does, until all are completed."""
    await store.beat([], 1e9, NOW)
    while True:
        try:
            lost = await store.reap(holder, 100, NOW)
            await store.finish([succeeded(record.claimed()) for record in lost], NOW)
            found = await store.find(JobFilter(status=(JobStatus.COMPLETED,), limit=total + 1))
        except StoreError:
            found = []
        if len(found) == total:
            return
        await pass_time(0.02)


# ── behind a proxy that pools transactions ───────────────────────────────────────────────────────────────────────────


async def test_transaction_pooling_polls_and_prepares_nothing(url: str) -> None:
    namespace = uuid4().hex
    one, other = (PostgresStore(f"{url}?pooling=transaction", namespace=namespace) for _ in range(2))
    await asyncio.gather(one.open(), other.open())
    bell = other.listen({"pool:p"})
    for n in range(8):
        await add(one, job(f"{n}"))
    await soon(bell.wait(), "a ring by the clock")
    assert len(await claim(other)) == 8
    assert one._connections.doorbell.listens is False
    assert "polling" in (await one.check())["wake-up"].text
    bell.close()
    await one.close()
    await other.close()
