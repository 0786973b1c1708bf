"""Encryption at rest: what jobs carry cannot be read in the store, nor moved between jobs, and no key costs a job."""

import asyncio
import logging
import os
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork import Context, EncryptionKeyError, JobStatus, PayloadDecodingError, WorkerOrchestrator
from shiftwork.cli.entry import main
from shiftwork.core.doc_kinds import ENCRYPTION
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.model.jobs import Claimed, LogLine, Progress, ProgressNote
from shiftwork.core.values.envelopes import CIPHER, KeyInUse, as_text, is_sealed, key_of, sealed_in, why_unreadable
from shiftwork.store.docs import change
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import FILE_VARIABLE, KEYS_VARIABLE, find_keys, key_ring
from shiftwork.store.sealed.store import SealedStore, sealed
from shiftwork.store.urls import open_store
from shiftwork.transfer import rekeying
from shiftwork.transfer.moving import move
from shiftwork.transfer.rekeying import rekey
from tests.polling import eventually
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import NOW, add, claim_one, failed, finish, get, get_whole, job, report, succeeded
from tests.store.conformance.expect import soon
from tests.store.conftest import valkey_program, valkey_server, valkey_url
from tests.store.servers.postgres import names, postgres_servers, server_url
from tests.store.servers.redis import Server

__all__ = ["postgres_servers", "valkey_program", "valkey_server", "valkey_url"]

OLD: Final = urlsafe_b64encode(b"o" * 32).decode()
NEW: Final = urlsafe_b64encode(b"n" * 32).decode()
MARK: Final = "sw-marker-4f1c9b27"
CARRIED: Final = ("payload", "requeued", "result", "progress", "log", "error", "traceback", "reason", "event", "parts")


def marked(what: str) -> str:
    return f"{MARK}-{what}"


def ids(*keys: str) -> tuple[str, ...]:
    return key_ring(keys).ids


def quiet(_step: str, _done: int, _total: int) -> None:
    """Report nothing."""


@pytest.fixture(autouse=True)
def _no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEYS_VARIABLE, raising=False)
    monkeypatch.delenv(FILE_VARIABLE, raising=False)


async def live_through(store: Store) -> None:
    """Have jobs leave in the store all that a job can leave there."""
    lines = (LogLine(NOW, "info", marked("log"), 1),)
    await add(store, job("1", payload=msgpack.encode({"words": marked("payload")})), job("2"))
    first = await claim_one(store, "1")
    await store.note([ProgressNote("1", first.fence, Progress(1.0, 2.0, marked("progress"), NOW, lines))])
    told = replace(report(first), error=marked("error"), traceback=marked("traceback"), log=lines)
    await finish(store, failed(first, error=marked("error"), report=told, disable_after=1))
    await store.switch("v", enabled=False, reason=marked("reason"), now=NOW)
    await store.switch("w", enabled=True, reason=None, now=NOW)
    second = await claim_one(store, "2")
    await store.note([ProgressNote("2", second.fence, Progress(None, None, None, NOW, lines))])
    await finish(store, succeeded(second, result=msgpack.encode(marked("result"))))
    parts = ["{error}", {"error": marked("parts")}]
    event = Event(at=NOW, name="job.dead", subject="1", message=marked("event"), data={"by": "me"}, parts=parts)
    await store.record([event])
    for id in ("3", "4"):
        await add(store, job(id, run_at=NOW + 9.0))
    changed = await store.amend(["3", "4"], Requeue(NOW + 9.0, msgpack.encode(marked("requeued"))), NOW)
    assert [one.ok for one in changed] == [True, True]


class SqlitePlace:
    """A file, and everything in it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{uuid4().hex}.db"
        self.url = f"sqlite:///{self._path}"

    def dump(self) -> bytes:
        return b"".join(path.read_bytes() for path in self._path.parent.glob(f"{self._path.name}*") if path.is_file())


class RedisPlace:
    """An empty server, and everything in it."""

    def __init__(self, server: Server) -> None:
        self._ask = server.ask
        self.url = server.url
        self._ask("FLUSHALL")

    def dump(self) -> bytes:
        reads: dict[bytes, tuple[str | int, ...]] = {
            b"string": ("GET",),
            b"hash": ("HGETALL",),
            b"set": ("SMEMBERS",),
            b"list": ("LRANGE", 0, -1),
            b"zset": ("ZRANGE", 0, -1),
        }
        found = []
        for key in self._ask("KEYS", "*"):
            command, *rest = reads[_bytes(self._ask("TYPE", key))]
            found.append((key, self._ask(command, key, *rest)))
        return _bytes(found)


class PostgresPlace:
    """A schema, and everything in it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._schema = f"s{uuid4().hex[:12]}"
        self.url = f"{server}{'&' if '?' in server else '?'}schema={self._schema}"

    def dump(self) -> bytes:
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        with psycopg.connect(self._server) as conn:
            found = [name for (name,) in conn.execute(tables, [self._schema]).fetchall()]
            return _bytes([conn.execute(f'TABLE "{self._schema}"."{name}"'.encode()).fetchall() for name in found])


def _bytes(value: Any) -> bytes:
    """Every text and every bytes in a value."""
    if isinstance(value, list | tuple):
        return b" ".join(_bytes(part) for part in value)
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


Place = SqlitePlace | RedisPlace | PostgresPlace


@pytest.fixture(params=["sqlite", "valkey", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Place]:
    """Makes empty places of one kind."""
    if request.param == "sqlite":
        return lambda: SqlitePlace(tmp_path)
    if request.param == "postgres":
        return lambda: PostgresPlace(server_url(names()[0]))
    server: Server = request.getfixturevalue("valkey_server")
    return lambda: RedisPlace(server)


# ── what can be read in a store ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [(), (NEW,)], ids=["plain", "encrypted"])
async def test_what_jobs_carry_cannot_be_read_in_the_store(
    new_place: Callable[[], Place], keys: tuple[str, ...]
) -> None:
    place = new_place()
    store = open_store(place.url, keys=keys)
    await store.open()
    await live_through(store)
    dump = place.dump()
    await store.close()
    assert {what for what in CARRIED if marked(what).encode() in dump} == (set() if keys else {*CARRIED})
    assert (MARK.encode() in dump) is not bool(keys)


async def test_a_process_with_the_keys_reads_it_all() -> None:
    inner = MemoryStore()
    await live_through(sealed(inner, key_ring([OLD])))
    store = sealed(inner, key_ring([NEW, OLD]))
    first, second = await get(store, "1"), await get(store, "2")
    assert msgpack.decode(first.payload) == {"words": marked("payload")}
    assert first.error == marked("error")
    assert (first.attempts[0].error, first.attempts[0].traceback) == (marked("error"), marked("traceback"))
    assert first.attempts[0].log[0].message == marked("log")
    assert msgpack.decode(second.result or b"") == marked("result")
    assert second.progress is not None
    assert second.progress.log[0].message == marked("log")
    facts = await store.survey(None, NOW)
    assert facts.lanes["v"].state.reason == marked("reason")
    [event] = await store.events()
    assert (event.message, event.data) == (marked("event"), {"by": "me"})
    assert event.parts == ["{error}", {"error": marked("parts")}]
    assert [one.id for one in await store.find(JobFilter(error="marker-4f1c9b27-err"))] == ["1"]
    assert [one.error for one in await store.dead()] == [marked("error")]
    [stored] = await inner.find(JobFilter(ids=("1",)))
    assert stored.error is not None
    assert stored.error.startswith(f"[encrypted with key {ids(OLD)[0]}: ")


async def test_the_reason_for_which_a_store_disables_a_worker_can_be_read() -> None:
    inner = MemoryStore()
    store = sealed(inner, key_ring([NEW]))
    await add(store, job("1"))
    await finish(store, failed(await claim_one(store, "1"), error=marked("error"), disable_after=1))
    shown = (await store.survey(None, NOW)).lanes["w"].state
    kept = (await inner.survey(None, NOW)).lanes["w"].state
    assert (shown.enabled, shown.reason) == (False, f"1 runs in a row failed, the last one with {marked('error')}")
    assert MARK not in f"{kept.reason}"


# ── values that were moved or changed ────────────────────────────────────────────────────────────────────────────────


async def test_a_value_that_is_moved_to_another_job_or_field_does_not_decrypt() -> None:
    inner = MemoryStore()
    store = sealed(inner, key_ring([NEW]))
    await add(store, job("1", payload=msgpack.encode({"n": 1})), job("2", payload=msgpack.encode({"n": 2})))
    one, two = await inner.get(["1", "2"])
    assert one is not None
    assert two is not None
    await inner.restore([replace(two, payload=one.payload), replace(one, result=one.payload)], NOW)
    swapped, own = await get(store, "2"), await get(store, "1")
    assert swapped.payload == one.payload
    assert own.payload == msgpack.encode({"n": 1})
    assert own.result == one.payload


async def test_a_value_of_one_namespace_does_not_decrypt_in_another() -> None:
    inner, other = MemoryStore(), MemoryStore()
    await add(sealed(inner, key_ring([NEW]), namespace="one"), job("1", payload=msgpack.encode({"n": 1})))
    [record] = await inner.get(["1"])
    assert record is not None
    await other.restore([record], NOW)
    assert (await get(sealed(other, key_ring([NEW]), namespace="one"), "1")).payload == msgpack.encode({"n": 1})
    assert is_sealed((await get(sealed(other, key_ring([NEW]), namespace="two"), "1")).payload)


def swapped(parts: Sequence[Any], one: int, two: int, field: str) -> tuple[Any, ...]:
    """These parts of a job, with this field of two of them in each other's place."""
    changed = list(parts)
    changed[one] = replace(parts[one], **{field: getattr(parts[two], field)})
    changed[two] = replace(parts[two], **{field: getattr(parts[one], field)})
    return tuple(changed)


@pytest.mark.parametrize(("one", "two"), [(0, 1), (1, 2)])
async def test_no_two_steps_signals_or_attempts_can_be_swapped(one: int, two: int) -> None:
    inner = MemoryStore()
    store = sealed(inner, key_ring([NEW]))
    numbered = [(1, "a"), (2, "b"), (3, "b")]
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    plain = replace(
        await get_whole(store, "1"),
        steps=tuple(Step(number, name, msgpack.encode(number), NOW, NOW) for number, name in numbered),
        signals=tuple(Signal(name, msgpack.encode(number), NOW + number) for number, name in numbered),
        attempts=tuple(replace(report(claimed), number=number, error=marked(name)) for number, name in numbered),
    )
    await store.restore([plain], NOW)
    hidden = await get_whole(inner, "1")
    steps, signals = swapped(hidden.steps, one, two, "result"), swapped(hidden.signals, one, two, "value")
    attempts = swapped(hidden.attempts, one, two, "error")
    await inner.restore([replace(hidden, steps=steps, signals=signals, attempts=attempts)], NOW)
    opened = await get_whole(store, "1")
    assert [at for at, step in enumerate(opened.steps) if is_sealed(step.result)] == [one, two]
    assert [at for at, signal in enumerate(opened.signals) if is_sealed(signal.value)] == [one, two]
    assert [at for at, attempt in enumerate(opened.attempts) if sealed_in(attempt.error)] == [one, two]
    await inner.restore([hidden], NOW)
    assert await get_whole(store, "1") == plain


async def test_a_durable_function_says_what_is_wrong_with_a_step_that_was_moved() -> None:
    inner = MemoryStore()
    app = WorkerOrchestrator(inner, encryption_keys=NEW)

    @app.task(max_retries=0)
    async def wait(ctx: Context) -> str:
        return str(await ctx.wait_for("go"))

    sent = await wait.enqueue()
    await app.start()
    try:
        await eventually(lambda: _waits(inner, sent.id))
        hidden = await get_whole(inner, sent.id)
        step = hidden.steps[0]
        broken = replace(step, result=step.result[:-1] + bytes([step.result[-1] ^ 1]))
        await inner.restore([replace(hidden, steps=(broken,))], NOW)
        await app.send(sent.id, "go", 1)
        assert await sent.ended(timeout_seconds=30) is JobStatus.DEAD
        assert "'wait for go', step 1, cannot be read: it is encrypted with key" in str(sent.error)
    finally:
        await app.stop()


async def _waits(store: Store, id: str) -> bool:
    return (await get(store, id)).wait is not None


async def test_a_value_in_a_newer_format_says_so() -> None:
    inner = MemoryStore()
    store = sealed(inner, key_ring([NEW]))
    await add(store, job("1", payload=msgpack.encode({"n": 1})))
    hidden = await get(inner, "1")
    await inner.restore([replace(hidden, payload=hidden.payload[:3] + b"9" + hidden.payload[4:])], NOW)
    assert "format that this version" in str(why_unreadable((await get(store, "1")).payload))
    claimed = await claim_one(store, "1")
    assert "format that this version" in str(why_unreadable(claimed.payload))


async def test_a_payload_that_was_changed_makes_its_job_dead_and_no_other() -> None:
    inner = MemoryStore()
    app = WorkerOrchestrator(inner, encryption_keys=NEW)

    @app.task
    async def shout(words: str) -> str:
        return words.upper()

    bad, good = await shout.enqueue(words="bad"), await shout.enqueue(words="good")
    record = (await inner.get([bad.id]))[0]
    assert record is not None
    await inner.restore([replace(record, payload=record.payload[:-1] + bytes([record.payload[-1] ^ 1]))], NOW)
    await app.start()
    try:
        assert await good.result(timeout_seconds=30) == "GOOD"
        assert await bad.ended(timeout_seconds=30) is JobStatus.DEAD
        assert f"encrypted with key {ids(NEW)[0]}, and was changed" in str(bad.error)
    finally:
        await app.stop()


# ── processes without the key ────────────────────────────────────────────────────────────────────────────────────────


def shop(store: Store | str, keys: str | tuple[str, ...]) -> WorkerOrchestrator:
    app = WorkerOrchestrator(store, encryption_keys=keys)

    @app.task
    async def shout(ctx: Context, words: str) -> str:
        ctx.logger.info(marked("log"))
        return words.upper()

    return app


def shout(app: WorkerOrchestrator) -> Any:
    return worker_of(app, "shout")


async def test_a_process_without_the_key_neither_starts_nor_adds(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with_key = shop(url, NEW)
    await shout(with_key).enqueue(words="a")
    await with_key.close()
    for keys in ((), OLD):
        app = shop(url, keys)
        with pytest.raises(EncryptionKeyError, match=f"encrypted with key {ids(NEW)[0]}, and this process has"):
            await app.start()
        with pytest.raises(EncryptionKeyError, match="Give it the same keys as the other processes"):
            await shout(app).enqueue(words="b")
        [seen] = await app.find_jobs()
        assert seen.payload == {
            "encrypted": f"it is encrypted with key {ids(NEW)[0]}, which this process does not have, or was changed "
            "or moved after it was written"
        }
        await app.close()


async def test_a_running_node_that_lacks_a_new_key_hands_its_jobs_back() -> None:
    inner = MemoryStore()
    blind, seeing = shop(inner, ()), shop(inner, NEW)
    await blind.start()
    await soon(_beaten(inner), "the node has beaten")
    noticed = asyncio.Event()

    class Notice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "which this node does not have" in record.getMessage():
                noticed.set()

    logging.getLogger("shiftwork").addHandler(notice := Notice())
    try:
        with pytest.raises(EncryptionKeyError, match=f"does not have encryption key {ids(NEW)[0]}, and could not run"):
            await shout(seeing).enqueue(words="a")
        await change(inner, ENCRYPTION, ids(NEW)[0], lambda _: KeyInUse(CIPHER))  # as if it had been in use just before
        sent = await shout(seeing).enqueue(words="a")
        await soon(noticed.wait(), "the node says what it lacks")
        await soon(_until(sent, JobStatus.QUEUED), "the job is queued again")
        assert (sent.attempt, sent.record.attempts) == (0, ())
        problems = {problem["code"]: problem for problem in (await blind.get_health())["problems"]}
        assert ids(NEW)[0] in problems["key_missing"]["message"]
        assert "restart it" in problems["key_missing"]["remedy"]
    finally:
        logging.getLogger("shiftwork").removeHandler(notice)
        await blind.stop()
    await seeing.start()
    try:
        assert await sent.result(timeout_seconds=30) == "A"
        assert "key_missing" not in {problem["code"] for problem in (await seeing.get_health())["problems"]}
    finally:
        await seeing.stop()


async def _until(sent: Any, status: JobStatus) -> None:
    async def has_it() -> bool:
        return bool((await sent.refresh()).status is status)

    await eventually(has_it)


async def test_a_result_whose_key_is_missing_is_an_error_that_names_the_key() -> None:
    inner = MemoryStore()
    app = shop(inner, NEW)
    await app.start()
    sent = await shout(app).enqueue(words="a")
    await sent.ended(timeout_seconds=30)
    await app.stop()
    with pytest.raises(PayloadDecodingError, match=f"encrypted with key {ids(NEW)[0]}"):
        await (await shop(inner, ()).get_job(sent.id)).result(timeout_seconds=30)


# ── rotation ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_rekey_rewrites_everything_and_retires_the_old_key(new_place: Callable[[], Place]) -> None:
    place = new_place()
    plain = open_store(place.url)
    await plain.open()
    await add(plain, job("0", run_at=NOW + 9.0, payload=msgpack.encode({"words": marked("payload")})))
    await plain.close()
    before = shop(place.url, OLD)
    store = await before.control.store.open_to_change()
    await live_through(store)
    await add(store, job("running", worker="a"))
    claimed = await claim_one(store, "running", workers=["a"])
    whole = await store.get(["0", "1", "2", "3", "4", "running"])
    await before.close()

    app = shop(place.url, (NEW, OLD))
    old, new = ids(OLD)[0], ids(NEW)[0]
    finding = (await app.check())["encryption"]
    assert finding.text == f"on, with key {new}; of 6 jobs, 1 not encrypted, 5 under key {old}"
    assert finding.severity == "warning"
    done = await app.control.encryption.rekey(quiet)
    assert (done.key, done.rewritten, done.unreadable, done.changing, done.retired) == (new, 6, 0, 0, (old,))
    assert (await app.check())["encryption"].text == f"on: 6 jobs, all under key {new}"
    assert (await app.control.encryption.rekey(quiet)).rewritten == 0
    await app.close()

    after = shop(place.url, NEW)  # without the old key
    store = await after.control.store.open_to_change()
    assert await store.get(["0", "1", "2", "3", "4", "running"]) == whole, "statuses, fences and attempts stay"
    assert (await store.finish([succeeded(claimed)], NOW)).accepted == [True]
    await after.close()


async def test_the_payload_of_a_schedule_is_encrypted_and_rekeyed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    old = shop(url, OLD)
    call = shout(old).call(words=marked("payload"))
    for name in ("a", "b"):
        await old.put_schedule(name, call, interval_seconds=60)
    await old.close()
    plain = open_store(url)
    await plain.open()
    assert all(MARK.encode() not in doc.body for doc in await plain.docs())
    await plain.close()
    both = shop(url, (NEW, OLD))
    assert (await both.control.encryption.rekey(quiet)).retired == ids(OLD)
    await both.close()
    new = shop(url, NEW)
    assert [one.payload for one in await new.get_schedules()] == [{"words": marked("payload")}] * 2
    job = await new.run_schedule("a")
    assert job.payload == {"words": marked("payload")}
    await new.close()


async def test_rekey_leaves_alone_what_has_changed_in_the_meantime_and_comes_back_to_it() -> None:
    inner = MemoryStore()
    old, new = SealedStore(inner, key_ring([OLD])), SealedStore(inner, key_ring([NEW, OLD]))
    await add(old, job("1"))
    genuine, moved = inner.rewrite, list[Claimed]()

    async def meanwhile(rewrites: Any) -> list[bool]:
        if not moved:
            moved.append(await claim_one(old, "1"))
            await finish(old, failed(moved[0], error="e"))
            await old.amend(["1"], Requeue(NOW, b"\x81\xa1a\x01"), NOW)
        return await genuine(rewrites)

    inner.rewrite = meanwhile  # type: ignore[method-assign]
    done = await rekey(new, now=NOW, report=quiet)
    assert (done.rewritten, done.changing) == (1, 0)
    only_new = SealedStore(inner, key_ring([NEW]))
    assert (await get(only_new, "1")).payload == b"\x81\xa1a\x01"


async def test_rekey_rewrites_a_job_of_which_only_a_step_or_a_signal_is_under_the_old_key() -> None:
    inner = MemoryStore()
    old, new = SealedStore(inner, key_ring([OLD])), SealedStore(inner, key_ring([NEW, OLD]))
    await add(new, job("1", payload=msgpack.encode({"n": 1})), job("2", payload=msgpack.encode({"n": 2})))
    claimed = await claim_one(new, "1")
    assert await old.keep_step("1", claimed.fence, Step(1, "a", msgpack.encode("kept"), NOW, NOW))
    await old.send("2", Signal("go", msgpack.encode("sent"), NOW), NOW)
    assert (await rekey(new, now=NOW, report=quiet)).rewritten == 2
    alone = SealedStore(inner, key_ring([NEW]))
    assert (await get_whole(alone, "1")).steps[0].result == msgpack.encode("kept")
    assert (await get_whole(alone, "2")).signals[0].value == msgpack.encode("sent")


async def test_a_key_is_not_retired_while_a_node_encrypts_with_it() -> None:
    inner = MemoryStore()
    node, other = shop(inner, (OLD, NEW)), shop(inner, (NEW, OLD))
    await node.start()
    try:
        await soon(_beaten(inner), "the node has beaten")
        done = await other.control.encryption.rekey(quiet)
        assert done.retired == ()
        assert len(done.lagging) == 1
    finally:
        await node.stop()
    assert (await other.control.encryption.rekey(quiet)).retired == ids(OLD)


async def _beaten(store: Store) -> None:
    async def seen() -> bool:
        return any(known.beat.machine for known in await store.instances())

    await eventually(seen)


async def test_a_lost_key_keeps_no_process_out_forever() -> None:
    inner = MemoryStore()
    before, app = shop(inner, OLD), shop(inner, NEW)
    gone = await shout(before).enqueue(words="gone")
    with pytest.raises(EncryptionKeyError):
        await app.start()
    assert await app.control.encryption.give_up(ids(OLD)[0], quiet) == 1
    assert (await gone.refresh()).status is JobStatus.CANCELLED
    assert gone.error == f"its payload is encrypted with key {ids(OLD)[0]}, which is lost"
    await app.start()
    try:
        assert await (await shout(app).enqueue(words="here")).result(timeout_seconds=30) == "HERE"
    finally:
        await app.stop()


async def test_rekey_continues_when_the_last_job_of_a_page_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rekeying, "REKEYED_AT_A_TIME", 2)
    inner = MemoryStore()
    old, new = SealedStore(inner, key_ring([OLD])), SealedStore(inner, key_ring([NEW, OLD]))
    for n in range(6):
        await (new if n > 2 else old).add([job(f"{n}")], NOW + n)
    genuine = inner.get

    async def meanwhile(ids: Any, **whole: Any) -> Any:
        found = await genuine(ids, **whole)
        if "5" in ids and len(ids) > 1:
            await inner.amend([ids[-1]], Cancel(), NOW)
            await inner.amend([ids[-1]], Discard(), NOW)
        return found

    monkeypatch.setattr(inner, "get", meanwhile)
    done = await rekey(new, now=NOW, report=quiet)
    assert done.rewritten == 3
    assert {key_of(one.payload) for one in await inner.find(JobFilter())} == {ids(NEW)[0]}


# ── the command line, moves, transactions ────────────────────────────────────────────────────────────────────────────


def test_the_commands_use_the_keys_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = CliRunner().invoke(main, ["key"])
    keys = tmp_path / "keys"
    keys.write_text(f"{made.stdout.strip()}\n{OLD}\n")
    keys.chmod(0o600)
    monkeypatch.setenv(FILE_VARIABLE, str(keys))
    source, destination = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"

    async def fill() -> None:
        store = open_store(source, keys=[OLD])
        await store.open()
        await live_through(store)
        await store.close()

    async def fill_plainly() -> None:
        store = open_store(source)
        await store.open()
        await add(store, job("5", payload=msgpack.encode(marked("payload"))))
        await store.close()

    asyncio.run(fill())
    assert marked("payload") in CliRunner().invoke(main, ["job", "1", "--store", source]).stdout
    rekeyed = CliRunner().invoke(main, ["rekey", "--store", source])
    assert "4 jobs rewritten" in rekeyed.stdout
    asyncio.run(fill_plainly())
    moved = CliRunner().invoke(main, ["move", source, destination])
    assert moved.exit_code == 0, moved.output
    assert marked("payload") in CliRunner().invoke(main, ["job", "1", "--store", destination]).stdout
    assert MARK.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("b.db*") if path.is_file())
    monkeypatch.delenv(FILE_VARIABLE)
    shown = CliRunner().invoke(main, ["job", "1", "--store", destination])
    assert f"encrypted with key {ids(made.stdout.strip())[0]}" in shown.stdout
    assert MARK not in shown.stdout


async def test_a_move_has_all_keys_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    app = shop(source, OLD)
    jobs = [await shout(app).enqueue(words=marked("payload"))]
    monkeypatch.setenv(KEYS_VARIABLE, NEW)
    with pytest.raises(EncryptionKeyError, match=f"encrypted with key {ids(OLD)[0]}, and this process has only"):
        await move(source, destination, report=quiet)
    await app.start()  # nothing has begun
    await app.stop()
    jobs.append(await shout(app).enqueue(words=marked("payload")))
    monkeypatch.delenv(KEYS_VARIABLE)
    assert (await move(source, destination, report=quiet)).copied == 2
    assert (await move(source, destination, report=quiet)).late
    moved = shop(destination, OLD)
    assert [(await moved.get_job(one.id)).payload for one in jobs] == [{"words": marked("payload")}] * 2
    for each in (app, moved):
        await each.close()


async def test_a_job_of_a_users_transaction_is_encrypted() -> None:
    place = PostgresPlace(server_url(names()[0]))
    app = WorkerOrchestrator(place.url, encryption_keys=NEW)

    @app.task
    async def keep(ctx: Context, words: str) -> None:
        async with ctx.transaction():
            ctx.logger.info(words)

    async with await psycopg.AsyncConnection.connect(place.url.partition("?")[0]) as conn:
        first = await keep.enqueue_with(conn, words=marked("payload"))
    await app.start()
    try:
        assert await first.ended(timeout_seconds=30) is JobStatus.COMPLETED
        assert MARK.encode() not in place.dump()
    finally:
        await app.stop()


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["short"], "the encryption key is not 32 bytes in base64: `shiftwork key` prints a new key"),
        ([OLD, "?" * 44], "encryption key 2 of 2 is not 32 bytes in base64"),
        ([OLD, NEW, OLD], f"encryption key {ids(OLD)[0]} is given twice"),
    ],
)
def test_a_bad_key_is_rejected_and_not_shown(keys: list[str], message: str) -> None:
    with pytest.raises(EncryptionKeyError) as caught:
        WorkerOrchestrator("memory://", encryption_keys=keys)
    assert message in str(caught.value)
    assert not any(key in str(caught.value) for key in keys)


def test_keys_come_from_the_app_or_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_keys(None) == ()
    assert find_keys(lambda: [OLD, NEW]) == (OLD, NEW)
    monkeypatch.setenv(KEYS_VARIABLE, f"{OLD}, {NEW}")
    assert find_keys(None) == (OLD, NEW)
    assert find_keys(()) == ()
    file = tmp_path / "keys"
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    with pytest.raises(EncryptionKeyError, match="unset one of them"):
        find_keys(None)
    monkeypatch.delenv(KEYS_VARIABLE)
    with pytest.raises(EncryptionKeyError, match="cannot be read: No such file"):
        find_keys(None)
    file.write_text(f"{OLD}\n")
    file.chmod(0o644)
    with pytest.raises(EncryptionKeyError, match=f"every user of this machine can read .* run chmod 600 {file}"):
        find_keys(None)
    file.chmod(0o640)  # a secret that Kubernetes gives to a group
    assert find_keys(None) == (OLD,)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(EncryptionKeyError, match=r"pip install 'shiftwork\[encryption\]'"):
        WorkerOrchestrator("memory://", encryption_keys=NEW)


def test_without_keys_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys, shiftwork; from shiftwork.store.memory import MemoryStore\n"
        "app = shiftwork.WorkerOrchestrator('memory://')\n"
        "assert type(app.control.store.store) is MemoryStore\n"
        "assert 'cryptography' not in sys.modules"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHIFTWORK_")}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)


def test_the_text_of_an_encrypted_value_is_recognized_only_as_a_whole() -> None:
    value = key_ring([NEW]).seal(b"x", "error", "w")
    assert is_sealed(value)
    assert sealed_in(as_text(value)) == value
    for text in (f"{as_text(value)} and more", f"[encrypted with key {ids(NEW)[0]}: nonsense]", "", None):
        assert sealed_in(text) is None


PROGRAM: Final = f"""
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///jobs.db", encryption_keys="{NEW}")
app.register_pool("apart", kind="process", max_workers=1)


@app.task(pool="apart")
def shout(words: str) -> str:
    return words.upper()
"""


async def test_shiftwork_run_has_the_keys_of_its_app(tmp_path: Path) -> None:
    (tmp_path / "vault.py").write_text(PROGRAM)
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/jobs.db", encryption_keys=NEW)
    app.register_pool("apart", kind="process", max_workers=1)

    @app.task(pool="apart")
    def shout(words: str) -> str:
        return words

    command = ("-m", "shiftwork", "run", "vault:app", "--no-web")
    node = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        sent = await shout.enqueue(words="a")
        assert await sent.result(timeout_seconds=60) == "A"
    finally:
        await app.close()
        node.terminate()
        await node.wait()
