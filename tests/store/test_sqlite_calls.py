"""Calls on their way through the threads: grouped, in order, each with its own answer, and nothing left behind."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import JobFilter, Requeue
from shiftwork.core.model.jobs import JobStatus
from shiftwork.errors import LifecycleError, StoreError
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file import calls, checkpoint, driver
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from tests.store.conformance.acts import NOW, add, claim, claim_ids, finish, job, succeeded

DEADLINE = 30.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shiftwork.db")


@pytest.fixture
async def store(path: str) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    await opened.open()
    yield opened
    await opened.close()


class Held:
    """Keeps the writer busy until it is let go, so that calls gather behind it."""

    def __init__(self, store: SqliteStore) -> None:
        self._go = threading.Event()
        self._store = store

    async def __aenter__(self) -> None:
        busy = threading.Event()

        def wait(_: SqliteSession) -> None:
            busy.set()
            assert self._go.wait(DEADLINE)

        self._waiting = asyncio.create_task(self._store._write(wait))
        await asyncio.to_thread(busy.wait, DEADLINE)

    async def __aexit__(self, *_: object) -> None:
        self._go.set()
        await self._waiting


async def traced(store: SqliteStore) -> list[str]:
    """What the writer does from now on."""
    statements: list[str] = []
    await store._write(lambda session: session.db.set_trace_callback(statements.append))
    statements.clear()
    return statements


def fail(_: SqliteSession) -> None:
    raise ValueError("on purpose")


def misspell(session: SqliteSession) -> None:
    session.db.execute("SELEC")


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_calls_that_wait_share_a_commit(store: SqliteStore) -> None:
    statements = await traced(store)
    async with Held(store):
        adding = [asyncio.create_task(add(store, job(f"{n:03}"))) for n in range(100)]
        await asyncio.sleep(0)
    await asyncio.gather(*adding)
    assert statements.count("COMMIT") == 2  # what kept the writer busy, and all that waited
    assert len(await store.find(JobFilter(limit=1_000))) == 100


async def test_a_failing_call_harms_no_other(store: SqliteStore) -> None:
    async with Held(store):
        together = asyncio.gather(
            store.add([job("1")], NOW),
            store._write(fail),
            store.add([job("2")], NOW),
            store._write(misspell),
            store.put([Doc("kind", "name", b"body")]),
            store.claim("i", "p", 10, NOW, {"w"}),
            return_exceptions=True,
        )
        await asyncio.sleep(0)
    first, failed, second, misspelt, put, claims = await together
    assert isinstance(failed, ValueError)
    assert type(misspelt) is StoreError
    assert not isinstance(first, BaseException)
    assert not isinstance(second, BaseException)
    assert put == [True]
    assert not isinstance(claims, BaseException | None | bool | list)
    assert [one.id for one in claims.jobs] == ["1", "2"]
    stats = (await store.stats(NOW)).pools["p"]
    assert (stats.added, stats.processing) == (2, 2)


async def test_what_a_failing_call_did_is_undone(store: SqliteStore) -> None:
    def add_and_fail(session: SqliteSession) -> None:
        session.workers.number("nobody")
        session.db.execute("DELETE FROM jobs")
        session.count(1, 1, 2, 40)
        session.ring("pool:p")
        fail(session)

    await add(store, job("1"))
    bell = store.listen(["pool:p"])
    with pytest.raises(ValueError, match="on purpose"):
        await store._write(add_and_fail)
    assert (await store.stats(NOW)).pools["p"].queued == 1
    assert (await store.survey(None, NOW)).lanes.keys() == {"w"}
    waiting = asyncio.create_task(bell.wait())
    await store.get(["1"])
    assert not waiting.done()
    await add(store, job("2", worker="nobody"))
    await waiting
    assert await claim_ids(store, workers=["nobody"]) == ["2"]


async def test_a_job_that_cannot_be_stored_fails_alone(store: SqliteStore) -> None:
    async with Held(store):
        together = asyncio.gather(
            store.add([job("1")], NOW),
            store.add([job("2", payload=None)], NOW),
            store.add([job("3")], NOW),
            return_exceptions=True,
        )
        await asyncio.sleep(0)
    answers = await together
    assert isinstance(answers[1], TypeError)
    assert await claim_ids(store) == ["1", "3"]


async def test_a_group_is_bounded(store: SqliteStore) -> None:
    n = 2 * calls.LARGEST_GROUP
    async with Held(store):
        adding = asyncio.gather(*(add(store, job(f"{i:04}")) for i in range(n)))
        await asyncio.sleep(0)
    await adding
    assert await claim_ids(store, n) == [f"{i:04}" for i in range(n)]


async def test_many_event_loops_share_a_store(store: SqliteStore) -> None:
    def run(name: str) -> None:
        async def work() -> None:
            for n in range(50):
                await add(store, job(f"{name}-{n}"))
                assert (await store.get([f"{name}-{n}"]))[0] is not None

        asyncio.run(work())

    await asyncio.gather(*(asyncio.to_thread(run, name) for name in "abcd"))
    assert (await store.stats(NOW)).pools["p"].added == 200


async def test_a_loop_that_is_gone_harms_nothing_else(store: SqliteStore) -> None:
    def run() -> None:
        async def call_and_leave() -> None:
            _ = store._threads.write(lambda _: None)

        asyncio.run(call_and_leave())

    async with Held(store):
        await asyncio.to_thread(run)
        adding = asyncio.create_task(add(store, job("1")))
        await asyncio.sleep(0)
    await adding


async def test_a_cancelled_call_harms_nothing_else(store: SqliteStore) -> None:
    async with Held(store):
        cancelled = asyncio.create_task(add(store, job("1")))
        adding = asyncio.create_task(add(store, job("2")))
        await asyncio.sleep(0)
        cancelled.cancel()
    await adding
    assert "2" in await claim_ids(store)


# ── reads ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_read_does_not_wait_for_other_people_s_writes(store: SqliteStore) -> None:
    await add(store, job("1"))

    def read() -> list[str]:
        async def find() -> list[str]:
            return [record.id for record in await store.find(JobFilter())]

        return asyncio.run(find())

    async with Held(store):
        assert await asyncio.to_thread(read) == ["1"]


async def test_a_read_sees_every_write_that_was_called_before(store: SqliteStore) -> None:
    for n in range(50):
        _, found = await asyncio.gather(store.add([job(f"{n}")], NOW), store.get([f"{n}"]))
        assert found[0] is not None


# ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("shiftwork-")}


def descriptors(path: str) -> set[str]:
    """The files of this process that belong to the store there."""
    folder = Path("/proc/self/fd")
    links = (str(link.readlink()) for link in folder.iterdir() if link.is_symlink())
    return {link for link in links if path in link}


async def until(settled: Callable[[], bool]) -> None:
    """Wait for something that threads do in their own time."""
    async with asyncio.timeout(DEADLINE):
        while not settled():
            await asyncio.to_thread(gc.collect)


async def test_closing_finishes_what_was_called(path: str) -> None:
    store = SqliteStore(path)
    adding = [asyncio.create_task(add(store, job(f"{n}"))) for n in range(100)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*adding)
    await store.open()
    assert len(await claim(store, 1_000)) == 100
    await store.close()


async def test_closing_leaves_nothing(path: str) -> None:
    before = threads()  # other tests of this process may have let theirs go only just now
    store = SqliteStore(path)
    await store.open()
    bell = store.listen(["pool:p"])
    await add(store, job("1"))
    waiting = asyncio.create_task(bell.wait())
    assert len(threads() - before) == 3
    await store.close()
    await waiting
    await store.close()
    assert threads() <= before
    assert await asyncio.to_thread(descriptors, path) == set()
    assert [entry.name for entry in await asyncio.to_thread(lambda: [*Path(f"{path}.side").iterdir()])] == ["turn"]


async def test_a_store_that_was_never_opened_holds_nothing(path: str) -> None:
    before = threads()
    store = SqliteStore(path)
    await store.close()
    assert threads() <= before
    assert not await asyncio.to_thread(Path(path).exists)


async def test_a_forgotten_store_ends_by_itself(path: str) -> None:
    before = threads()
    store = SqliteStore(path)
    await add(store, job("1"))
    store.listen(["pool:p"])
    assert threads() - before
    del store
    await until(lambda: threads() <= before)
    assert await asyncio.to_thread(descriptors, path) == set()


async def test_opening_twice_is_opening_once(store: SqliteStore) -> None:
    before = threads()
    await store.open()
    assert threads() <= before


# ── namespaces ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_namespaces_do_not_meet(path: str) -> None:
    one, other = (SqliteStore(path, namespace=name) for name in ("one", "other"))
    for store in (one, other):
        await add(store, job("same", unique_key="u", key="k"), job("2"))
        await store.put([Doc("kind", "name", store.url.encode())])
        await store.record([Event(at=NOW, name="n", subject="s", message="m")])
        assert await store.hold("leader", "me", 1, 10, NOW)
    await one.switch("w", enabled=False, reason="why not", now=NOW)
    assert await claim_ids(one) == []
    [first, second] = await claim(other)
    assert [first.id, second.id] == ["2", "same"]
    await finish(other, succeeded(first))
    assert (await one.stats(NOW)).pools["p"].queued == 2
    assert [record.status for record in await one.find(JobFilter())] == [JobStatus.QUEUED] * 2
    assert [event.seq for event in await one.events()] == [1]
    assert [record.id for record in await one.reap("reaper", 10, NOW + 100)] == []
    assert [record.id for record in await other.reap("reaper", 10, NOW + 100)] == ["same"]
    assert await one.prune(100, NOW + 1e9) == 0
    assert (await one.amend(["2"], Requeue(run_at=NOW), NOW))[0].ok is False
    for store in (one, other):
        await store.close()


async def test_fences_grow_across_namespaces(path: str) -> None:
    one, other = (SqliteStore(path, namespace=name) for name in ("one", "other"))
    fences = []
    for n in range(5):
        for store in (one, other):
            await add(store, job(f"{n}"))
            fences += [claimed.fence for claimed in await claim(store)]
    assert fences == sorted(set(fences))
    for store in (one, other):
        await store.close()


# ── the other driver ─────────────────────────────────────────────────────────────────────────────────────────────────

ON_THE_STANDARD_LIBRARY = """
import asyncio, sys, tempfile, os
sys.modules["pysqlite3"] = None
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file import checkpoint
from shiftwork.store.sqlite.file import driver
from tests.store.conformance.suite import CHECKS, run_check
from tests.store.conformance.checks import claim_cost, racing
from tests.store.conformance.acts import NOW, job

assert driver.driver.__name__ == "sqlite3", driver.driver
folder = sys.argv[1]
names = iter(range(10_000))

def factory():
    path = f"{folder}/{next(names)}.db"
    return lambda: SqliteStore(path)

async def conform():
    for check in CHECKS[::3]:  # the rules are the same; only calls of the driver may differ
        if check.__module__ not in (claim_cost.__name__, racing.__name__):
            await run_check(check, factory)

async def stay_small():
    checkpoint.LOG_BYTES = 1 << 20
    path = f"{folder}/log.db"
    one, other = SqliteStore(path), SqliteStore(path)
    largest = 0
    for n in range(100):
        for store in (one, other):
            await store.add([job(f"{n}", payload=b"x" * 100_000)], NOW)
        largest = max(largest, os.path.getsize(path + "-wal"))
    print((await one.check())["integrity"].text, largest)
    await one.close()
    await other.close()

asyncio.run(conform())
asyncio.run(stay_small())
"""


def test_the_standard_library_s_sqlite_conforms_and_its_log_stays_small(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ON_THE_STANDARD_LIBRARY, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    integrity, largest = ran.stdout.split()
    assert integrity == "ok"
    assert int(largest) < 8 << 20


def test_with_the_bug_a_log_is_not_checkpointed_while_another_connection_writes(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "wal_reset_fixed", lambda: False)
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 1 << 20)
    writer, rival = driver.connect(path), driver.connect(path)
    driver.prepare_writer(writer, "normal")
    writer.execute("CREATE TABLE t (x)")
    checkpointer = checkpoint.Checkpointer(writer, path=path)
    assert not checkpointer.due()
    writer.executemany("INSERT INTO t VALUES (?)", [(bytearray(100_000),) for _ in range(50)])
    assert checkpointer.due()
    rival.execute("BEGIN IMMEDIATE")
    checkpointer.checkpoint()
    assert checkpointer.due()
    rival.execute("ROLLBACK")
    checkpointer.checkpoint()
    assert not checkpointer.due()
    assert not writer.in_transaction
    for each in (writer, rival, checkpointer):
        each.close()


class SteadyReader(threading.Thread):
    """Always has a transaction open that reads: each begins before the last one has ended."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._over = threading.Event()
        self.reads = 0

    def run(self) -> None:
        last, following = driver.connect(self._path), driver.connect(self._path)
        for each in (last, following):
            driver.prepare_reader(each)
        last.execute("BEGIN").execute("SELECT count(*) FROM jobs").fetchone()
        while not self._over.wait(0.003):  # how long it takes to read
            following.execute("BEGIN").execute("SELECT count(*) FROM jobs").fetchone()
            last.execute("COMMIT")
            last, following = following, last
            self.reads += 1
        last.close()
        following.close()

    def end(self) -> None:
        self._over.set()
        self.join()


async def write_beside_readers(path: str, *, logs: int) -> int:
    """Write this many times what the log may hold; return its largest size as a multiple of that."""
    store = SqliteStore(path)
    await store.open()
    readers = [SteadyReader(path) for _ in range(2)]
    for reader in readers:
        reader.start()
    largest = 0
    for n in range(logs * checkpoint.LOG_BYTES // 100_000):
        await store.add([job(f"{n}", payload=b"x" * 100_000)], NOW)
        await store.get([f"{n}"])
        largest = max(largest, await asyncio.to_thread(lambda: Path(f"{path}-wal").stat().st_size))
    for reader in readers:
        reader.end()
        assert reader.reads > 1
    assert (await store.check())["integrity"].text == "ok"
    await store.close()
    return largest // checkpoint.LOG_BYTES


@pytest.mark.parametrize("fixed", [True, False])
async def test_a_steady_reader_does_not_let_the_log_grow(
    path: str, monkeypatch: pytest.MonkeyPatch, *, fixed: bool
) -> None:
    monkeypatch.setattr(checkpoint, "wal_reset_fixed", lambda: fixed and driver.wal_reset_fixed())
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 1 << 20)
    assert await write_beside_readers(path, logs=12) < 2


async def test_tries_become_rare_beside_a_reader_that_never_ends(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them keeps writers out for a while, and none can succeed."""
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 1 << 20)
    monkeypatch.setattr(checkpoint, "LONGEST_PATIENCE_SECONDS", 0.001)
    tries = list[None]()
    real = checkpoint.Checkpointer.checkpoint

    def counted(self: checkpoint.Checkpointer) -> None:
        tries.append(None)
        real(self)

    monkeypatch.setattr(checkpoint.Checkpointer, "checkpoint", counted)
    store = SqliteStore(path)
    await store.open()
    with closing(driver.connect(path)) as reader:
        driver.prepare_reader(reader)
        reader.execute("BEGIN").execute("SELECT count(*) FROM jobs").fetchone()
        for n in range(200):
            await store.add([job(f"{n}", payload=b"x" * 100_000)], NOW)
    await store.close()
    assert 3 < len(tries) < 60


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fixed", [True, False])
async def test_a_steady_reader_does_not_let_a_log_of_the_real_size_grow(
    path: str, monkeypatch: pytest.MonkeyPatch, *, fixed: bool
) -> None:
    monkeypatch.setattr(checkpoint, "wal_reset_fixed", lambda: fixed and driver.wal_reset_fixed())
    assert await write_beside_readers(path, logs=12) < 2


async def test_the_log_stays_small_and_no_caller_waits_for_that(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 1 << 20)
    by: list[str] = []
    checkpoint_once = checkpoint.Checkpointer.checkpoint

    def observed(self: checkpoint.Checkpointer) -> None:
        by.append(threading.current_thread().name)
        checkpoint_once(self)

    monkeypatch.setattr(checkpoint.Checkpointer, "checkpoint", observed)
    store = SqliteStore(path)
    largest = 0
    for n in range(300):
        await add(store, job(f"{n}", payload=b"x" * 50_000))
        largest = max(largest, await asyncio.to_thread(lambda: Path(f"{path}-wal").stat().st_size))
    await store.close()
    assert set(by) == {"shiftwork-writer"}
    assert largest < 6 << 20


# ── served at once ───────────────────────────────────────────────────────────────────────────────────────────────────


async def where(store: SqliteStore, *, quick: bool) -> str:
    """The thread that serves a call."""
    return await store._write(lambda _: threading.current_thread().name, quick=quick)


async def served_here(store: SqliteStore) -> None:
    """Wait until a quick call is served on this event loop: the thread may not be done with the call before it."""
    async with asyncio.timeout(60):
        while await where(store, quick=True) != threading.current_thread().name:
            pass


async def test_a_quick_call_is_served_at_once(store: SqliteStore) -> None:
    await served_here(store)
    assert await where(store, quick=False) == "shiftwork-writer"


async def test_a_quick_call_waits_for_those_before_it(store: SqliteStore) -> None:
    async with Held(store):
        first = asyncio.create_task(add(store, job("1")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = asyncio.create_task(where(store, quick=True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await first
    assert await second == "shiftwork-writer"


async def test_several_quick_calls_are_a_group_behind_the_first(store: SqliteStore) -> None:
    await served_here(store)
    statements = await traced(store)
    await served_here(store)
    statements.clear()
    await asyncio.sleep(0)
    await asyncio.gather(*(add(store, job(f"{n}")) for n in range(10)))
    assert statements.count("COMMIT") == 2
    claims = await store.claim("i", "p", 10, NOW, {"w"})
    assert [one.id for one in claims.jobs] == [f"{n}" for n in range(10)]


async def test_callers_that_come_back_together_stay_a_group(store: SqliteStore) -> None:
    async def call(name: str) -> None:
        for n in range(20):
            await add(store, job(f"{name}{n}"))

    await served_here(store)
    statements = await traced(store)
    await served_here(store)
    statements.clear()
    await asyncio.gather(*(call(name) for name in "abcdefghij"))
    assert statements.count("COMMIT") <= calls.CALLS_AT_ONCE + 20 + 5  # the first caller, then a group for each round


@pytest.mark.parametrize("crowd", [0, 10])
async def test_a_lone_caller_does_not_wait_for_a_turn_of_the_loop(store: SqliteStore, crowd: int) -> None:
    await asyncio.gather(*(add(store, job(f"{n} before")) for n in range(crowd)))
    await served_here(store)
    await asyncio.sleep(0)
    adding = store.add([job("1")], NOW)
    with pytest.raises(StopIteration):  # it has returned
        adding.send(None)


async def test_a_caller_that_adds_without_end_lets_others_have_their_turn(store: SqliteStore) -> None:
    await served_here(store)
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    for n in range(calls.CALLS_AT_ONCE + 1):
        await add(store, job(f"{n}"))
    assert turned.is_set()


async def test_a_call_that_would_wait_for_a_lock_is_not_served_on_the_loop(store: SqliteStore, path: str) -> None:
    rival = driver.connect(path)
    rival.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(where(store, quick=True))
    await store.get(["1"])
    assert not waiting.done()
    rival.execute("ROLLBACK")
    assert await waiting == "shiftwork-writer"
    rival.close()


async def test_where_each_commit_waits_for_the_disk_nothing_is_served_on_the_loop(path: str) -> None:
    store = SqliteStore(path, synchronous="full")
    await store.open()
    assert await where(store, quick=True) == "shiftwork-writer"
    await store.close()


async def test_a_slow_call_spares_the_loop_the_next_ones(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "SLOW_CALL_SECONDS", -1.0)
    await served_here(store)
    assert {await where(store, quick=True) for _ in range(calls.CALLS_SPARED)} == {"shiftwork-writer"}
    await served_here(store)


async def test_quick_calls_do_not_put_off_a_checkpoint(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    may_begin = threading.Event()
    may_begin.set()
    take = calls.CallThread._take

    def take_late(thread: calls.CallThread) -> tuple[list[list[calls.QueuedCall]], bool]:
        taken = take(thread)
        assert may_begin.wait(DEADLINE)
        return taken

    monkeypatch.setattr(calls.CallThread, "_take", take_late)
    store = SqliteStore(path)
    await served_here(store)
    may_begin.clear()
    monkeypatch.setattr(checkpoint, "LOG_BYTES", 0)
    monkeypatch.setattr(calls, "CALLS_PER_CHECK", 1)
    await asyncio.sleep(0)
    here = threading.current_thread().name
    while store._threads._writer is not None and store._threads._writer._calls_to_check > 1:
        await where(store, quick=True)
    assert await where(store, quick=True) == here
    waiting = asyncio.create_task(where(store, quick=True))
    for _ in range(3):
        await asyncio.sleep(0)
    may_begin.set()
    assert await waiting == "shiftwork-writer"
    monkeypatch.undo()
    await served_here(store)
    await store.close()


async def test_a_failing_quick_call_harms_itself_only(store: SqliteStore) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        await store._write(fail, quick=True)
    await add(store, job("1"))


def test_a_broken_service_answers_every_caller() -> None:
    class Broken:
        closed = False

        def serve(self, group: list[calls.QueuedCall]) -> None:
            raise KeyError("a bug")

        def serve_at_once(self, call: calls.QueuedCall) -> bool:
            return False

        def outdated(self) -> Exception | None:
            return None

        def upkeep_due(self) -> bool:
            return False

        def upkeep(self) -> None: ...

        def close(self) -> None:
            self.closed = True

    async def ask(thread: calls.CallThread) -> None:
        answers = await asyncio.gather(*(thread.call(lambda _: 1) for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [KeyError] * 3

    async def ask_at_the_end(thread: calls.CallThread) -> None:
        under_way = thread.call(lambda _: 1)
        thread.end()
        with pytest.raises(LifecycleError, match="the store is closed"):
            await under_way
        with pytest.raises(LifecycleError, match="the store is closed"):
            await thread.call(lambda _: 1)

    broken = Broken()
    thread = calls.CallThread("shiftwork-broken", lambda: broken)
    asyncio.run(ask(thread))
    asyncio.run(ask_at_the_end(thread))
    thread.join()
    assert broken.closed


@pytest.mark.parametrize(
    "id", ["it's", 'a "quote"', "a\\b", "ünï→☃", "🦀", "a\nb\tc", " ", "", "nul\x00inside", "\x7f\x1f"]
)
async def test_an_id_may_be_any_text(store: SqliteStore, id: str) -> None:
    await add(store, job(id, unique_key=id, key=id, trace=id), job("other", unique_key="other"))
    assert [added.created for added in await store.add([job(id), job("again", unique_key=id)], NOW)] == [False, False]
    claimed = next(one for one in await claim(store) if one.id == id)
    assert claimed.trace == id
    await finish(store, succeeded(claimed))
    [record] = await store.find(JobFilter(ids=(id,), key=id))
    assert record.status is JobStatus.COMPLETED
    assert (await store.get([id]))[0] == record
