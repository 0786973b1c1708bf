"""Promises of the Redis store alone: lost replies, restarts, leftover keys, namespaces, damaged records."""

import asyncio
import re
import struct
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec.structs import replace

from shiftwork import Secret, WorkerOrchestrator
from shiftwork.core.doc_kinds import KINDS, POOL, SCHEMA
from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.job_changes import Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need, Signal, Step
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus
from shiftwork.errors import FlowError, LifecycleError, StoreUnavailableError, UnknownStoreError
from shiftwork.handles.flow import MOST_FLOW_JOBS
from shiftwork.handles.worker import new_id
from shiftwork.store.abilities import add_blocking
from shiftwork.store.docs import change, read
from shiftwork.store.protocol import Store
from shiftwork.store.redis import add as redis_add
from shiftwork.store.redis import lua
from shiftwork.store.redis.lua import STATE
from shiftwork.store.redis.server.client import RedisClient
from shiftwork.store.urls import open_store
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    failed,
    finish,
    get,
    job,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import soon
from tests.store.proxy import Proxy
from tests.store.servers.redis import KILLED, Server, namespace


@pytest.fixture
def place() -> str:
    return namespace()


@pytest.fixture
async def store(valkey_url: str, place: str) -> Store:
    opened = open_store(valkey_url, namespace=place)
    await opened.open()
    return opened


def key_of(place: str, rest: str) -> str:
    return f"{{shiftwork:{place.replace(' ', '%20')}}}:{rest}"


# ── lost answers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_lost_answer_did_is_not_done_twice(valkey_server: Server, valkey_url: str, place: str) -> None:
    async with Proxy(valkey_server.port) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", namespace=place)
        await store.open()
        jobs = [job("1"), job("2", unique_key="u"), job("3", key="k")]

        proxy.lose_the_next_answer()
        with pytest.raises(StoreUnavailableError, match="may have taken effect"):
            await store.add(jobs, NOW)
        assert [added.created for added in await store.add(jobs, NOW)] == [False] * 3
        assert (await store.stats(NOW)).pools["p"].added == 3

        proxy.lose_the_next_answer()
        with pytest.raises(StoreUnavailableError):
            await store.claim("i", "p", 10, NOW, ["w"])
        assert await claim(store) == []
        held = await store.find(JobFilter(instance="i", status=(JobStatus.PROCESSING,)))
        assert sorted(record.id for record in held) == ["1", "2", "3"]

        told = [succeeded(record.claimed()) for record in held]
        proxy.lose_the_next_answer()
        with pytest.raises(StoreUnavailableError):
            await store.finish(told, NOW)
        assert (await store.finish(told, NOW)).accepted == [False] * 3
        assert {(record.status, record.fence) for record in await records(store, "1", "2", "3")} == {
            (JobStatus.COMPLETED, outcome.fence) for outcome in told
        }
        assert (await store.stats(NOW)).pools["p"].completed == 3
        await store.close()


async def records(store: Store, *ids: str) -> list[JobRecord]:
    return [await get(store, id) for id in ids]


async def test_a_lost_connection_rings_everything(valkey_server: Server, place: str) -> None:
    async with Proxy(valkey_server.port) as proxy:
        store = open_store(f"redis://127.0.0.1:{proxy.port}/0", namespace=place)
        await store.open()
        bell = store.listen({"pool:nobody writes to it"})
        proxy.lose_the_next_answer()
        with pytest.raises(StoreUnavailableError):
            await store.add([job("1")], NOW)
        await soon(bell.wait(), "a ring after an answer was lost")
        bell.close()
        await store.close()


# ── restarts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_killed_server_loses_nothing_and_is_found_again(valkey_program: Path, place: str) -> None:
    with Server(valkey_program, *KILLED) as server:
        store = open_store(server.url, namespace=place)
        await store.open()
        await beat(store, "i", ttl=1_000)
        await add(store, *(job(f"{n}", unique_key=f"{n}", key=f"{n % 3}") for n in range(20)))
        before = await claim(store, 2)
        bell = store.listen({"pool:p"})
        await asyncio.to_thread(server.kill)
        with pytest.raises(StoreUnavailableError):
            await claim(store)
        await asyncio.to_thread(server.start)
        await soon(bell.wait(), "a ring after the server came back")
        assert [added.created for added in await store.add([job(f"{n}") for n in range(20)], NOW)] == [False] * 20
        await finish(store, *(succeeded(claimed) for claimed in before))
        while claimed := await claim(store):
            assert min(one.fence for one in claimed) > max(one.fence for one in before)
            await finish(store, *(succeeded(one) for one in claimed))
        assert (await store.stats(NOW)).pools["p"].completed == 20
        bell.close()
        await store.close()


async def test_scripts_that_the_server_forgot_are_sent_again(store: Store, valkey_server: Server) -> None:
    valkey_server.ask("SCRIPT", "FLUSH")
    await add(store, job("1"))
    await finish(store, succeeded(await claim_one(store, "1")))
    await store.close()


async def test_calls_after_closing_are_refused(store: Store) -> None:
    await store.close()
    with pytest.raises(LifecycleError, match="is closed"):
        await store.add([job("1")], NOW)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_pruned_leaves_no_key(store: Store, valkey_server: Server) -> None:
    def keys() -> set[bytes]:
        return set(valkey_server.ask("KEYS", "*"))

    async def run(*names: str) -> None:
        await add(store, *(job(name, key=f"k{name}", unique_key=f"u{name}") for name in names))
        for claimed in await claim(store, len(names)):
            told = failed if claimed.id.endswith("1") else succeeded
            await finish(store, told(claimed, keep_until=NOW, result=b"r"))
        assert await store.prune(1_000, NOW) == len(names)

    await run("1")
    before = keys()
    await run(*(f"many {n}" for n in range(200)))
    assert keys() == before
    sizes = [valkey_server.ask("HLEN", key) for key in before if valkey_server.ask("TYPE", key) == b"hash"]
    assert max(sizes) < 20, "no field is left behind, either"
    await store.close()


async def test_a_flow_that_is_pruned_leaves_no_key(store: Store, valkey_server: Server) -> None:
    def keys() -> set[bytes]:
        return set(valkey_server.ask("KEYS", "*"))

    async def run(flow: str, *, many: int) -> None:
        first, last = f"{flow} first", f"{flow} last"
        tagged: dict[str, Any] = {"flow": flow, "tags": (f"t{flow}",), "options": b"own", "expires_at": NOW + 9}
        middle = [job(f"{flow} {n}", needs=(Need(first),), **tagged) for n in range(many)]
        end = job(last, needs=tuple(Need(one.id) for one in middle), **tagged)
        given_up = job(f"{flow} cancelled", needs=(Need(first),), **tagged)
        await add(store, end, *middle, given_up, job(first, **tagged))
        await store.amend([given_up.id], Cancel(), NOW)
        while claimed := await claim(store, 50):
            for one in claimed:
                await store.keep_step(one.id, one.fence, Step(1, "step", b"r", NOW, NOW))
                await store.send(one.id, Signal("go", b"", NOW), NOW)
            await finish(store, *(succeeded(one, keep_until=NOW, result=b"r") for one in claimed))
        assert await store.prune(1_000, NOW + SECONDS_A_DAY) == many + 3  # the cancelled job goes first
        assert await store.prune(1_000, NOW + SECONDS_A_DAY + POSTPONED) == many + 2

    await run("one", many=1)
    before = keys()
    await run("many", many=100)
    assert keys() == before
    assert [key for key in before if b":flow" in key] == []
    assert await store.flows() == []
    sizes = [valkey_server.ask("HLEN", key) for key in before if valkey_server.ask("TYPE", key) == b"hash"]
    assert max(sizes) < 20, "no field is left behind, either"
    await store.close()


async def test_the_newest_completed_jobs_are_kept_and_the_others_leave_no_key(
    valkey_url: str, valkey_server: Server, place: str
) -> None:
    store = open_store(f"{valkey_url}?keep=3", namespace=place)
    await store.open()

    async def run(*names: str, ended_at: float = NOW, **more: Any) -> None:
        await add(store, *(job(name, **more) for name in names))
        claimed = await claim(store, len(names))
        told = [succeeded(one, ended_at=ended_at + n, keep_until=NOW + 1_000) for n, one in enumerate(claimed)]
        await finish(store, *told)

    await run("before")
    keys = len(valkey_server.ask("KEYS", "*"))
    await run(*(f"{n}" for n in range(5)), ended_at=NOW + 10)
    await run("keyed", key="k", unique_key="u", ended_at=NOW + 5)
    await add(store, job("dead"))
    await finish(store, failed(await claim_one(store, "dead")))
    assert [await store.prune(2, NOW) for _ in range(4)] == [2, 2, 0, 0], "no more than asked for at a time"
    left = await store.find(JobFilter())
    assert {record.id for record in left} == {"2", "3", "4", "dead"}
    assert await store.prune(10, NOW + 1_000) == 3, "age goes on counting"
    await store.amend(["dead"], Discard(), NOW)
    assert len(valkey_server.ask("KEYS", "*")) <= keys
    await store.close()


@pytest.mark.parametrize("wrong", ["-1", "many", "1.5", ""])
def test_a_number_to_keep_is_a_number(wrong: str) -> None:
    with pytest.raises(UnknownStoreError, match="'keep' must be a number of completed jobs"):
        open_store(f"redis://localhost/0?keep={wrong}")


async def test_namespaces_do_not_meet(valkey_url: str) -> None:
    stores = [open_store(valkey_url, namespace=name) for name in ("a", "a:", "a}", "{a}", "%61", "é")]
    for store in stores:
        await store.open()
    for number, store in enumerate(stores):
        await add(store, job(f"{number}"))
        bell = store.listen({"pool:p"})
        bell.close()
    assert [await claim_ids(store) for store in stores] == [[f"{number}"] for number in range(len(stores))]
    for store in stores:
        await store.close()


async def test_more_than_fits_into_one_script_is_added_in_several(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_add, "MAX_SCRIPT_JOBS", 10)
    assert [added.created for added in await store.add([job(f"{n % 30}") for n in range(35)], NOW)] == (
        [True] * 30 + [False] * 5
    )
    await store.close()


@pytest.mark.soak
async def test_the_largest_flow_is_added_by_one_script(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = RedisClient.send

    def counted(self: RedisClient, name: str, *arguments: Any, **more: Any) -> Any:
        sent.append(name)
        return send(self, name, *arguments, **more)

    monkeypatch.setattr(RedisClient, "send", counted)
    flow = [job("0", flow="f"), *(job(f"{n}", flow="f", needs=(Need("0"),)) for n in range(1, MOST_FLOW_JOBS))]
    assert all(one.created for one in await store.add(flow, NOW))
    assert sent.count("add") == 1
    assert (await store.flows())[0].counts == {"waiting": MOST_FLOW_JOBS - 1, "queued": 1}
    await finish(store, succeeded(await claim_one(store, "0")))
    assert (await store.flows())[0].counts == {"completed": 1, "queued": MOST_FLOW_JOBS - 1}
    await store.close()


@pytest.mark.parametrize(("limit", "most"), [("MAX_SCRIPT_JOBS", 2), ("MAX_SCRIPT_BYTES", 20)])
async def test_a_flow_that_does_not_fit_into_one_script_is_refused_as_a_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(redis_add, limit, most)
    flow = [job(f"{n}", flow="f", payload=b"12345678") for n in range(3)]
    with pytest.raises(FlowError, match=r"3 jobs with 24 bytes of payload cannot be added to Redis in one step"):
        await store.add(flow, NOW)
    await add(store, job("parent"))
    parent = await claim_one(store, "parent")
    with pytest.raises(FlowError, match="let a job of the flow add the rest while it runs"):
        await store.extend("parent", parent.fence, [replace(one, parent="parent") for one in flow], NOW)
    assert await statuses(store, "0", "1", "2") == [None, None, None]
    assert all(one.created for one in await store.add(flow[:2], NOW))
    await store.close()


async def test_what_is_large_is_added_in_several_scripts_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_add, "MAX_SCRIPT_BYTES", 100)
    sizes = [60, 60, 30, 30, 30, 30, 500, 1]
    jobs = [job(f"{n}", payload=b"x" * size) for n, size in enumerate(sizes)]
    assert [[one.id for one in part] for part in redis_add.in_parts(jobs)] == [
        ["0"],
        ["1", "2"],
        ["3", "4", "5"],
        ["6"],
        ["7"],
    ]
    assert all(added.created for added in await store.add(jobs, NOW))
    assert [len((await get(store, f"{n}")).payload) for n in range(len(sizes))] == sizes
    await store.close()


# ── damaged records ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("damage", ["s", "i", "short", "gone"])
async def test_a_damaged_record_is_buried_and_stops_nothing_else(
    store: Store, valkey_server: Server, place: str, damage: str
) -> None:
    await add(store, job("1"), job("2", run_at=NOW + 1), job("3", run_at=NOW + 2))
    for id in ("1", "2"):
        spoil(valkey_server, place, id, damage)
    await store.promote(10, NOW + 2)
    claimed = await claim_ids(store, now=NOW + 2) + await claim_ids(store, now=NOW + 2)
    assert "3" in claimed
    buried = await records(store, "1", "2")
    assert [(record.status, "unreadable" in (record.error or "")) for record in buried] == [(JobStatus.DEAD, True)] * 2
    assert [record.worker for record in buried] == ["w", "w"]
    assert sorted(record.id for record in await store.find(JobFilter(status=(JobStatus.DEAD,)))) == ["1", "2"]
    numbers = (await store.stats(NOW)).workers["w"]
    assert (numbers.dead, numbers.queued, numbers.scheduled, numbers.processing) == (2, 0, 0, 1)
    await store.survey(None, NOW)
    await store.amend(["1", "2"], Requeue(run_at=NOW), NOW)
    await store.amend(["1", "2"], Discard(), NOW)
    await store.close()


@pytest.mark.parametrize("damage", ["s", "i", "gone"])
@pytest.mark.parametrize("seen_by", ["finish", "find", "reap"])
async def test_a_damaged_record_does_not_keep_its_concurrency_key(
    store: Store, valkey_server: Server, place: str, damage: str, seen_by: str
) -> None:
    await beat(store, "i", ttl=5)
    await add(store, job("1", key="k"), job("2", key="k"))
    claimed = await claim_one(store, "1")
    spoil(valkey_server, place, "1", damage)
    if seen_by == "find":
        await store.find(JobFilter())
    if seen_by == "reap":
        await store.reap("r", 10, NOW + 5)
    await store.finish([succeeded(claimed)], NOW)
    assert await claim_ids(store, instance="other") == ["2"]
    await finish(store, succeeded((await get(store, "2")).claimed()))
    assert valkey_server.ask("HLEN", key_of(place, "groups")) == 0
    assert valkey_server.ask("HLEN", key_of(place, "keyed")) == 0
    await beat(store, "i", "other", ttl=5)
    await store.reap("r", 10, NOW + 5)
    assert await store.instances() == [], "nobody holds what is gone"
    await store.close()


@pytest.mark.parametrize("damage", ["s", "i", "gone"])
async def test_a_damaged_record_in_the_queue_lets_the_next_of_its_key_pass(
    store: Store, valkey_server: Server, place: str, damage: str
) -> None:
    await add(store, job("1", key="k"), job("2", key="k"))
    spoil(valkey_server, place, "1", damage)
    assert "2" in await claim_ids(store) + await claim_ids(store)
    await store.close()


@pytest.mark.parametrize("damage", ["s", "i", "gone"])
async def test_a_damaged_record_is_counted_once_wherever_it_stood(
    valkey_url: str, valkey_server: Server, place: str, damage: str
) -> None:
    store = open_store(f"{valkey_url}?keep=100", namespace=place)
    await store.open()
    await add(store, job("done"))
    await finish(store, succeeded(await claim_one(store, "done"), keep_until=NOW + 9))
    await add(store, job("running", key="k"), job("waits", key="k"), job("later", run_at=NOW + 9))
    await claim_one(store, "running")
    for id in ("done", "running", "waits", "later"):
        spoil(valkey_server, place, id, damage)
    assert {record.status for record in await store.find(JobFilter())} == {JobStatus.DEAD}
    numbers = (await store.stats(NOW)).workers["w"]
    assert (numbers.dead, numbers.queued, numbers.processing, numbers.scheduled) == (4, 0, 0, 0)
    await store.amend(["done", "running", "waits", "later"], Discard(), NOW)
    left = {key.partition(b"}:")[2] for key in valkey_server.ask("KEYS", "*")}
    assert not left & {b"keyed", b"groups", b"end", b"due", b"done", b"all:w", b"run:w", b"k:1:w:k", b"st:6"}
    await store.close()


@pytest.mark.parametrize("damage", ["s", "i", "gone"])
async def test_a_damaged_record_meets_the_needs_that_any_end_meets(
    store: Store, valkey_server: Server, place: str, damage: str
) -> None:
    await add(store, job("1", flow="f", tags=("t",)), job("2", flow="f", needs=(Need("1"),)))
    await add(store, job("3", flow="f", needs=(Need("1", whatever=True),)))
    spoil(valkey_server, place, "1", damage)
    await store.get(["1"])
    await store.promote(10, NOW)
    assert await statuses(store, "1", "2", "3") == ["dead", "waiting", "queued"]
    [flow] = await store.flows()
    assert flow.counts == {"dead": 1, "waiting": 1, "queued": 1}
    assert [one.id for one in await store.find(JobFilter(tag="t"))] == ["1"]
    assert not (await store.amend(["1"], Discard(), NOW))[0].ok, "another job waits for it"
    await store.close()


@pytest.mark.parametrize("damage", ["s", "i", "gone"])
async def test_a_damaged_record_that_waits_is_buried_when_it_is_released(
    store: Store, valkey_server: Server, place: str, damage: str
) -> None:
    await add(store, job("1", flow="f"), job("2", flow="f", needs=(Need("1"),), expires_at=NOW + 9), job("3"))
    spoil(valkey_server, place, "2", damage)
    await finish(store, *(succeeded(one, keep_until=NOW) for one in await claim(store)))
    assert await statuses(store, "1", "2", "3") == ["completed", "dead", "completed"]
    assert (await store.promote(10, NOW + 9)).moved == 0
    assert [added.ok for added in await store.amend(["2"], Discard(), NOW)] == [True]
    assert await store.prune(10, NOW) == 2
    left = {key.partition(b"}:")[2] for key in valkey_server.ask("KEYS", "*")}
    assert not left & {b"flows", b"flow:f", b"flow", b"expiring", b"st:2", b"unmet:2", b"need:1", b"state", b"info"}
    await store.close()


@pytest.mark.parametrize("told", [True, False], ids=["claimed", "looked at"])
async def test_the_end_of_a_damaged_job_is_an_end_of_its_worker(
    store: Store, valkey_server: Server, place: str, *, told: bool
) -> None:
    await add(store, job("1"))
    spoil(valkey_server, place, "1", "s")
    await (claim(store) if told else store.get(["1"]))
    ended = (await store.survey(["w"], NOW)).lanes["w"].state.last_ended
    assert ended == (NOW if told else 1.0), "a schedule waits for its job to end, and starts the next one then"
    [record] = await store.find(JobFilter())
    assert (record.status, record.created_at) == (JobStatus.DEAD, NOW)
    await store.close()


def spoil(server: Server, place: str, id: str, damage: str) -> None:
    state, info = key_of(place, "state"), key_of(place, "info")
    match damage:
        case "s":
            server.ask("HSET", state, id, b"\xff" * 60)
        case "short":
            server.ask("HSET", state, id, b"\x02")
        case "i":
            server.ask("HSET", info, id, b"\xff" * 60)
        case _:
            server.ask("HDEL", state, id)


async def test_a_record_without_payload_is_found_dead(store: Store, valkey_server: Server, place: str) -> None:
    await add(store, job("1"))
    valkey_server.ask("HDEL", key_of(place, "payload"), "1")
    [record] = await store.find(JobFilter())
    assert (record.status, record.error) == (JobStatus.DEAD, "unreadable: b'p'")
    assert await statuses(store, "1") == ["dead"]
    assert await claim_ids(store) == []
    await store.close()


@pytest.mark.parametrize("name", lua.names())
def test_no_part_of_a_script_hides_a_name_of_another(name: str) -> None:
    text = lua.script(name).text.decode()
    declared = re.findall(r"^local (?:function (\w+)|([\w, ]+))", text, re.MULTILINE)
    locals_ = [one.strip() for function, several in declared for one in (function or several).split(",")]
    assert sorted({one for one in locals_ if locals_.count(one) > 1} - {"_"}) == []


def test_lua_files_that_are_named_exist() -> None:
    sources = Path(lua.__file__).parents[2]
    files = {path.name for path in sources.rglob("*.lua")}
    texts = [path.read_text(encoding="utf-8") for path in sources.rglob("*") if path.suffix in {".py", ".lua"}]
    named = {name for text in texts for name in re.findall(r"(?<![\w.])\w+\.lua\b", text)}
    assert named - files == set()
    assert len(named) > 10


def test_the_layout_is_what_the_scripts_say() -> None:
    assert struct.calcsize("<BHHIIddddd") == 53


async def test_opening_twice_at_once_is_opening_once(valkey_url: str, place: str) -> None:
    store = open_store(valkey_url, namespace=place)
    before = threading.active_count()
    await asyncio.gather(store.open(), store.open(), store.open())
    assert threading.active_count() == before + 1
    await store.close()
    await store.close()


# ── shards ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def made_by(process: str, count: int) -> str:
    """An id as `shiftwork.handles.worker` makes them; 4096 of one process in a row are in one shard."""
    return f"01a1e39cf7fc{count:06x}{process * 14}"


async def test_no_hash_becomes_large(store: Store, valkey_server: Server, place: str) -> None:
    """A large one would be slow for as long as the server moves its fields, one by one, to a larger table."""
    await store.add([job(new_id(1_800_000_000.0)) for _ in range(5_000)], NOW)
    keys = valkey_server.ask("KEYS", key_of(place, "*"))
    hashes = [key for key in keys if valkey_server.ask("TYPE", key) == b"hash"]
    assert max(valkey_server.ask("HLEN", key) for key in hashes) <= 4_096
    assert len(keys) < 30, "nor is a job a key of its own"
    await store.close()


async def test_a_call_gets_along_with_jobs_of_several_shards(store: Store, valkey_server: Server, place: str) -> None:
    ids = [id for n in range(40) for id in (made_by("a", n * 1_000), made_by("b", n * 5_000), f"own {n:02}")]
    await add(store, *(job(id, run_at=NOW - 500 + n, payload=id.encode()) for n, id in enumerate(ids)))
    assert [added.created for added in await store.add([job(id) for id in ids], NOW)] == [False] * len(ids)
    claimed = await claim(store, len(ids))
    assert [(one.id, one.payload) for one in claimed] == [(id, id.encode()) for id in ids]
    told = [succeeded(one, result=one.id.encode(), keep_until=NOW) for one in claimed]
    assert (await store.finish(told, NOW)).accepted == [True] * len(ids)
    assert await store.results(ids[::-1]) == [id.encode() for id in ids[::-1]]
    assert {record and record.result for record in await store.get(ids)} == {id.encode() for id in ids}
    assert await store.prune(1_000, NOW) == len(ids)
    assert await store.get(ids) == [None] * len(ids)
    assert not valkey_server.ask("KEYS", key_of(place, "*01a1e39*"))
    await store.close()


# ── the fast path of plain jobs ─────────────────────────────────────────────────────────────────────────────────────


async def a_day(url: str, place: str) -> None:
    """Add, claim and finish jobs, most of them plain: one and many at a time, with results or without."""
    store = open_store(f"{url}?keep=100", namespace=place)
    await store.open()
    await beat(store, "i", "i2")
    for n in range(3):
        more: dict[str, Any] = {"flow": "f", "tags": ("t",)} if n == 1 else {}
        new = [job(f"{n} {k}", pool="pq"[n % 2], head_start=float(n), **more) for k in range(1 + 6 * n)]
        await store.add(new, NOW + n)
    for n, ahead in enumerate([0.0, 50.0, 20.0, 60.0]):  # alone: behind the head of the queue, or before it
        await store.add([job(f"alone {n}", head_start=ahead, options=b"o" if n else None)], NOW + 5)
        await store.add([job(f"alone {n}")], NOW + 6)
    await store.add([job("of another worker", "v", pool="r")], NOW + 7)
    await store.add([job(f"01{0:030}")], NOW + 8)  # in a shard of its own
    lanes = [job(f"lane {n}", "wv"[n % 2], pool="pqr"[n % 3]) for n in range(12)]
    await store.add(lanes, NOW + 9)
    odd = [job("unique", "v", unique_key="u"), job("twin", unique_key="u"), job("later", run_at=NOW + 900)]
    mixed = [job("first"), *odd, job("last", "v", pool="r"), job("first", "v"), job("lane 3", "v")]
    assert [one.created for one in await store.add(mixed, NOW + 9)] == [True] * 5 + [False] * 2
    for n, (instance, pool, many) in enumerate([("i", "p", 3), ("i2", "q", 2), ("i", "p", 20), ("i", "q", 20)]):
        claimed = await claim(store, many, instance=instance, pool=pool, now=NOW + 10 + n)
        ended = [
            succeeded(
                one,
                now=NOW + 20 + n,
                run_at=one.run_at,
                result=b"r" if k % 3 == 0 else None,
                keep_until=NOW + 30 + k if k % 2 else None,
                cause="scheduled" if n == 2 else "enqueued",
                verdict="neutral" if n == 1 else "success",
                waited=0.5 * k,
                marks="w1 r2" if k % 2 else "w2 r2",
            )
            for k, one in enumerate(claimed)
        ]
        assert all((await store.finish(ended[: 4 * (n + 1)], NOW + 20 + n)).accepted)
    await _finish_plain_jobs_beside_others(store)
    await store.close()


async def _finish_plain_jobs_beside_others(store: Store) -> None:
    """Some fail, and whether that disables a worker depends on their order; one has a stale fence, one ends twice."""
    await add(store, *(job(f"mixed {n}", "wvu"[n % 3], pool="m", flow="f" if n % 2 else None) for n in range(18)))
    await add(store, *(job(f"needs {n}", needs=(Need(f"mixed {n}"),), pool="m") for n in range(3)))
    await add(store, job("keyed", "u", pool="m", key="k", needs=(Need("mixed 0"),)))
    await add(store, *(job(f"keyed {n}", "w", pool="m", key="k", head_start=float(n)) for n in range(3)))
    await add(store, job("expires", "v", pool="m", head_start=2.0, expires_at=NOW + 900))
    crew = ["w", "v", "u"]
    taken = [one for n in (3, 4, 5, 20) for one in await claim(store, n, pool="m", now=NOW + 41, workers=crew)]
    claimed = {one.id: one for one in taken}
    assert list(claimed) == ["expires", "keyed 2", *sorted(f"mixed {n}" for n in range(18))]
    ended = []
    for n in range(18):
        one, wrong = claimed[f"mixed {n}"], (n % 3 == 0 and n % 2 == 1) or n in {4, 7}
        end, more = (failed, {"disable_after": 2}) if wrong else (succeeded, {"verdict": ["success", "neutral"][n % 2]})
        ended.append(end(one, now=NOW + 50 - n, waited=0.25, marks="w1", **more))
    ended += [replace(ended[1], fence=1), ended[0]]
    finished = await store.finish(ended, NOW + 60)
    assert finished.accepted == [True] * 18 + [False] * 2
    assert finished.disabled == ["v"]


def everything(server: Server, place: str) -> dict[bytes, Any]:
    """Return all keys of a namespace with their values; fences, which depend on the clock, are left out."""
    kept: dict[bytes, Any] = {}
    for key in server.ask("KEYS", key_of(place, "*")):
        name = key.partition(b"}:")[2]
        match server.ask("TYPE", key):
            case b"hash":
                flat = server.ask("HGETALL", key)
                kept[name] = dict(zip(flat[::2], flat[1::2], strict=True))
            case b"zset":
                kept[name] = server.ask("ZRANGE", key, "0", "-1", "WITHSCORES")
            case b"set":
                kept[name] = sorted(server.ask("SMEMBERS", key))
    for states in [value for name, value in kept.items() if name.startswith(b"state")]:
        for id, state in states.items():
            status, flags, reports, attempt, crashes, _, *times = STATE.unpack_from(state)
            states[id] = (status, flags, reports, attempt, crashes, repr(times), state[STATE.size :])
    return kept


FULL_ONLY = {
    "add_fast": "local rest, woken = {}, {} for n = 1, many do rest[n] = n end",
    "claim_fast": """
        local ids, worker, head, was
        local function start_fast(ids)
          local rest = {} for n = 1, #ids do rest[n] = n end
          return {}, rest, next_fences(#ids), read_all(STATE, ids), read_all(INFO, ids), read_all(PAYLOAD, ids)
        end""",
    "finish_fast": (
        "local accepted, rest, ends, left, gated, woken = {}, {}, {}, {}, {}, {} for n = 1, many do rest[n] = n end"
    ),
}
"""Parts without which a script treats all jobs as it treats those that are not plain."""


async def test_plain_jobs_end_as_they_would_without_their_fast_path(
    valkey_server: Server, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, full = namespace(), namespace()
    await a_day(valkey_url, fast)
    genuine = lua.source
    assert all(map(genuine, FULL_ONLY))
    monkeypatch.setattr(lua, "source", lambda name: FULL_ONLY[name] if name in FULL_ONLY else genuine(name))
    monkeypatch.setattr(redis_add, "one_plain", lambda *_: None)
    lua.script.cache_clear()
    try:
        await a_day(valkey_url, full)
    finally:
        lua.script.cache_clear()
    assert everything(valkey_server, fast) == everything(valkey_server, full)


async def test_a_lone_job_is_claimed_right_behind_the_call_that_adds_it(valkey_server: Server, valkey_url: str) -> None:
    store = open_store(valkey_url, namespace=namespace())
    await store.open()
    bell = store.listen({"pool:p"})
    for flush in (False, True):  # a script that the server has forgotten is sent again, and then rings again
        if flush:
            valkey_server.ask("SCRIPT", "FLUSH")
        adding = asyncio.ensure_future(store.add([job(f"{flush}")], NOW))
        while not (found := await claim_ids(store)):
            await soon(bell.wait(), "a ring")
            assert flush or not adding.done()
        assert found == [f"{flush}"]
        await adding
    bell.close()
    await store.close()


async def test_a_thread_without_an_event_loop_notices_that_its_connection_is_gone(
    valkey_server: Server, valkey_url: str
) -> None:
    store = open_store(valkey_url, namespace=namespace())
    await store.open()

    def add_soon(id: str) -> list[str]:
        """Try until the store adds it so; the ways that it takes are none of ours."""
        for n in range(5):
            if add_blocking(store, [job(f"{id} {n}")], NOW):
                return [f"{id} {n}"]
        return []

    wanted = await asyncio.to_thread(add_soon, "1")
    valkey_server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wanted += await asyncio.to_thread(add_soon, "2")
    valkey_server.ask("SCRIPT", "FLUSH")
    assert await asyncio.to_thread(add_blocking, store, [job("3 0")], NOW) is None, "nothing has happened"
    await store.add([job("3 0")], NOW)
    wanted += await asyncio.to_thread(add_soon, "4")
    assert len(wanted) == 3
    assert sorted(await claim_ids(store)) == sorted([*wanted, "3 0"])
    await store.close()


# ── damaged docs, states and fences ──────────────────────────────────────────────────────────────────────────────────


async def test_a_damaged_doc_harms_only_what_it_is_about(store: Store, valkey_server: Server, place: str) -> None:
    app = WorkerOrchestrator(valkey_server.url, namespace=place)

    @app.task
    async def mail(to: Annotated[str, Secret]) -> None: ...

    await app.start()
    values = (b"garbage", b"", b":", b"x:\x80", b"-1:\x80", b"9" * 30 + b":\x80")
    for kind in (*KINDS, SCHEMA):
        for number, value in enumerate(values):
            valkey_server.ask("HSET", key_of(place, f"d:{kind}"), f"damaged {number}", value)
        valkey_server.ask("HSET", key_of(place, f"d:{kind}"), b"\xff", b"1:\x80")
        valkey_server.ask("SADD", key_of(place, "kinds"), kind)
    other = WorkerOrchestrator(valkey_server.url, namespace=place)
    other.task(name="mail")(mail.function)
    assert await (await worker_of(other, "mail").enqueue(to="ann")).ended(30) == "completed"
    await other.control.system.overview()
    for look in (other.get_health, other.workers, other.pools, other.get_schedules, other.find_jobs):
        await look()
    text = (await store.check())["integrity"].text
    assert all(f"the {kind} record damaged 0 cannot be read" in text for kind in KINDS)
    assert "the pool record \\xff cannot be read" in text
    await other.close()
    await app.stop()
    await app.close()


@pytest.mark.parametrize("value", [b"garbage", b"x:\x80", b"9" * 30 + b":\x80"])
async def test_a_damaged_doc_is_replaced_by_the_next_change(
    store: Store, valkey_server: Server, place: str, value: bytes
) -> None:
    valkey_server.ask("HSET", key_of(place, "d:pool"), "p", value)
    assert (await store.survey(None, NOW)).pools["p"].paused
    _, after = await change(store, POOL, "p", lambda found: replace(found or PoolDoc(), paused=False, reason=None))
    assert await read(store, POOL, "p") == after == PoolDoc()
    assert (await store.check())["integrity"].text == "ok"
    await store.close()


async def test_a_damaged_state_of_a_worker_starts_nothing_and_harms_no_other(
    store: Store, valkey_server: Server, place: str
) -> None:
    await store.switch("w", enabled=False, reason="by a person", now=NOW)
    fields = ("on", "maybe", "at", "x", "failures", "x", "started", "nan", "ended", "", "error", b"\xff", "rate", "x")
    valkey_server.ask("HSET", key_of(place, "w:w"), *fields)
    await add(store, job("1"), job("2", "other"))
    assert await claim_ids(store, workers=["w"]) == []
    assert await claim_ids(store, workers=["w", "other"]) == ["2"]
    facts = await store.survey(None, NOW)
    assert [facts.lanes[name].state.enabled for name in ("w", "other")] == [False, True]
    await store.switch("w", enabled=True, reason=None, now=NOW)
    assert await claim_ids(store, workers=["w"]) == ["1"]
    await store.close()


GARBLED: list[tuple[str, ...]] = [
    ("SET", "garbage"),
    ("SET", ""),
    ("SET", "nan"),
    ("SET", "1e400"),
    ("SET", "-7"),
    ("SET", "9" * 30),
    ("DEL",),
    ("RPUSH", "a list"),
]


@pytest.mark.parametrize(("ahead", "running"), [(0, True), (10**14, True), (10**9, False)])
async def test_a_damaged_fence_is_replaced_by_a_higher_one(
    store: Store, valkey_server: Server, place: str, ahead: int, *, running: bool
) -> None:
    """Also if fences were ahead of the clock, because a clock was set back or the jobs came from another store."""
    key = key_of(place, "fence")
    await add(store, *(job(f"{n}") for n in range(3 * len(GARBLED))))
    if ahead:
        await store.take_over([], {}, int(valkey_server.ask("TIME")[0]) * 1_000_000 + ahead)
    [first] = await claim(store, 1)
    fences = [first.fence]
    if not running:
        await store.finish([succeeded(first)], NOW)
    for command, *rest in GARBLED:
        valkey_server.ask("DEL", key)
        valkey_server.ask(command, key, *rest)
        claimed = [one for _ in range(2) for one in await claim(store, 1)]
        fences += [one.fence for one in claimed]
        if not running:
            await store.finish([succeeded(one) for one in claimed], NOW)
    assert fences == sorted({*fences})
    assert len(fences) == 1 + 2 * len(GARBLED)
    assert fences[-1] < 2**52
    valkey_server.ask("SET", key, "garbage")
    assert await store.take_over([], {}, fences[-1] + 10) > fences[-1] + 10
    await store.close()
