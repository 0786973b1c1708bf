"""Moving everything from one store to another, between every two kinds of store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.doc_kinds import MOVE_NAME
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Cancel, Discard, JobFilter
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobRecord, JobStatus, Progress, ProgressNote
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.schedules.fire_times import Cursor
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.errors import MoveError
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from shiftwork.transfer import late, moving
from shiftwork.transfer.carried_records import carry
from shiftwork.transfer.late import left_behind
from shiftwork.transfer.move_record import STAYING, refuse_to_add, refuse_to_change, reset_damaged
from shiftwork.transfer.moving import Move, Moved, _opened, abandon
from tests.store.conformance.acts import (
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    failed,
    finish,
    gate,
    get,
    job,
    outcome,
    put,
    report,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.lab import StoreFactory
from tests.store.conftest import Maker, postgres, sqlite, valkey
from tests.store.servers.postgres import names

NOW = 1_000_000.0
numbers = count()


def memory(_: pytest.FixtureRequest) -> StoreFactory:
    def place() -> Callable[[], Store]:
        store = MemoryStore(f"memory://{next(numbers)}")
        return lambda: store

    return place


KINDS: tuple[Maker, ...] = (memory, sqlite, valkey, postgres(names()[0]))
RING = list(zip(KINDS, (*KINDS[1:], KINDS[0]), strict=True))
"""Each kind of store once as source and once as destination: what `make test` runs of all pairs."""
PAIRS = [
    pytest.param((one, other), marks=[] if (one, other) in RING else pytest.mark.soak)
    for one in KINDS
    for other in KINDS
]


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[Callable[[], Store]], Any]]:
    """Opens stores, and closes them in the end."""
    async with AsyncExitStack() as stack:

        async def open_(make: Callable[[], Store]) -> Store:
            store = make()
            await store.open()
            stack.push_async_callback(store.close)
            return store

        yield open_


@pytest.fixture
async def pair(request: pytest.FixtureRequest, opened: Any) -> tuple[Store, Store]:
    """Two empty stores, of kinds that a test names, or of two that cost little."""
    one, other = getattr(request, "param", (memory, sqlite))
    places = {maker: maker(request) for maker in (one, other)}
    return await opened(places[one]()), await opened(places[other]())


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pages, of few jobs."""
    monkeypatch.setattr(moving, "MOVED_AT_A_TIME", 7)
    monkeypatch.setattr(late, "LATE_BATCH", 3)


every_pair = pytest.mark.parametrize(
    "pair", PAIRS, ids=lambda pair: f"{pair[0].__name__}-{pair[1].__name__}", indirect=True
)


async def move(source: Store, destination: Store) -> Moved:
    return await Move(source, destination, lambda *_: None).run()


async def numbers_of(store: Store) -> tuple[dict[str, PoolStats], dict[str, WorkerStats]]:
    """The numbers, without the totals of workers, which start from zero in another store."""
    stats = await store.stats(NOW)
    anew = {"completed": 0, "failed": 0, "died": 0, "run_seconds": 0.0}
    present = {name: replace(one, **anew) for name, one in stats.workers.items()}
    return stats.pools, {name: one for name, one in present.items() if one != WorkerStats()}


async def everything(store: Store) -> dict[str, JobRecord]:
    found = await store.find(JobFilter(limit=10_000))
    return {one.id: one for one in await store.get([one.id for one in found], whole=True) if one is not None}


async def fill(store: Store) -> None:
    """A bit of everything that a store can hold."""
    await gate(store, "w")
    await put(store, "pool", "paused", PoolDoc(paused=True, reason="migration"))
    await put(store, "breaker", "x", BreakerState(open=True, until=NOW + 99))
    await put(store, "gates", "guarded", Gates(worker="guarded", pool="p", breaker="x"))
    await put(store, "schedule", "nightly", Cursor(NOW - 5, "0 3 * * *", "UTC"))
    await put(store, "a kind of its own", "é", b"\x00\xff")
    await store.record(
        [Event(at=NOW + n, name="scaled", subject="p", message=f"{n} ☃", data={"n": n}) for n in range(9)]
    )
    await add(store, *(job(f"done {n}", run_at=NOW - 9, payload=b"p" * n * 700) for n in range(4)), now=NOW - 9)
    for n, one in enumerate(await claim(store, now=NOW - 8)):
        await finish(store, succeeded(one, now=NOW - 7, result=b"r" * n * 700, keep_until=NOW + n), now=NOW - 7)
    await add(store, job("dead"), job("again", unique_key="u again"))
    for one in await claim(store, 2):
        ended = failed(one, report=report(one), disable_after=None)
        if one.id == "again":
            ended = replace(ended, status=JobStatus.FAILED, run_at=NOW + 40, keeps_rank=False)
        await finish(store, ended)
    await add(store, job("cancelled"))
    await store.amend(["cancelled"], Cancel("no need"), NOW)
    await add(store, job("later", run_at=NOW + 60, unique_key="u later"), job("off", "off"))
    await store.switch("off", enabled=False, reason="too loud", now=NOW)
    await add(store, job("k1", "v", key="k", head_start=9.0), job("k2", "v", key="k"), job("k3", "v", key="k"))
    await add(store, job("lost", "v", head_start=50.0), job("stopped", "v", head_start=40.0))
    lost, stopped = await claim(store, 2, instance="gone", workers=["v"])
    await store.note([ProgressNote(lost.id, lost.fence, Progress(1.0, 2.0, "half", NOW))])
    await store.amend([stopped.id], Cancel(), NOW)
    await add(store, *(job(f"plain {n:03}", run_at=NOW + n) for n in range(20)), job("in the pause", pool="paused"))


# ── everything arrives ───────────────────────────────────────────────────────────────────────────────────────────────


@every_pair
async def test_everything_arrives_as_it_was(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await fill(source)
    moved = await move(source, destination)
    there, here = await everything(source), await everything(destination)
    assert here == there
    assert len(there) == 35 == moved.copied == moved.counted.jobs
    assert moved.counted == moved.arrived
    assert moved.handed_back == 2
    docs = [(doc.kind, doc.name, doc.body) for doc in await source.docs() if doc.kind not in STAYING]
    assert [(doc.kind, doc.name, doc.body) for doc in await destination.docs() if doc.kind not in STAYING] == docs
    events = [replace(event, seq=0) for event in await source.events()]
    assert [replace(event, seq=0) for event in await destination.events()] == events
    before, after = await source.survey(None, NOW), await destination.survey(None, NOW)
    changed = {name: lane.state for name, lane in before.lanes.items() if lane.state != WorkerState(worker=name)}
    assert {name: after.lanes[name].state for name in changed} == changed
    assert set(changed) == {"w", "v", "off"}
    assert after.lanes["v"].head == before.lanes["v"].head
    assert await numbers_of(destination) == await numbers_of(source)


@every_pair
async def test_what_arrived_behaves_as_it_did(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await fill(source)
    fences = [one.fence for one in (await everything(source)).values()]
    await move(source, destination)
    assert [one.id for one in await destination.add([job("x", unique_key="u again")], NOW)] == ["again"]
    assert await claim_ids(destination, workers=["off"]) == []
    assert (await state(destination, "off")).reason == "too loud"
    assert await claim_ids(destination, pool="paused") == []
    lost = await claim_one(destination, "lost", workers=["v"])
    assert (lost.attempt, lost.fence > max(fences)) == (1, True)
    first = await claim_one(destination, "k1", workers=["v"])
    assert await claim_ids(destination, workers=["v"]) == []
    await finish(destination, outcome(first))
    await claim_one(destination, "k2", workers=["v"])
    assert await statuses(destination, "stopped") == ["cancelled"]
    assert await claim_ids(destination, 30, workers=["w"]) == ["plain 000"]
    promoted = await destination.promote(100, NOW + 60)
    assert promoted.moved == 21
    assert (await claim_one(destination, "plain 001", now=NOW + 60, workers=["w"])).attempt == 1
    assert await destination.prune(100, NOW + 1.5) == 2
    assert await statuses(destination, *(f"done {n}" for n in range(4))) == [None, None, "completed", "completed"]
    [cursor] = await destination.docs("schedule")
    assert msgpack.decode(cursor.body, type=Cursor).at == NOW - 5


async def test_a_job_whose_process_vanished_is_queued_and_not_counted(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await add(source, job("1", "v", key="k"), job("2", "v", key="k"))
    ran = await claim_one(source, "1", instance="gone")
    await finish(source, outcome(ran, JobStatus.FAILED, run_at=NOW, crashes=1))
    await claim_one(source, "1", instance="gone")
    assert (await move(source, destination)).handed_back == 1
    record = await get(destination, "1")
    assert (record.status, record.attempt, record.crashes, record.parked) == (JobStatus.QUEUED, 1, 1, False)
    assert (await claim_one(destination, "1")).attempt == 2
    assert await claim_ids(destination) == []


# ── who may do what meanwhile ────────────────────────────────────────────────────────────────────────────────────────


async def test_refused_while_nodes_run_and_they_are_named(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await add(source, job("1"))
    for store in (destination, source):
        now = await store.server_time()
        await beat(store, "node-7/images", now=now)
        with pytest.raises(MoveError, match=f"nodes run on {store.url}: node-7/images on n. Stop them"):
            await move(source, destination)
        await store.leave(["node-7/images"], now)
        await refuse_to_change(source)
    assert await everything(destination) == {}
    assert (await move(source, destination)).copied == 1


async def test_a_node_that_comes_up_meanwhile_ends_it(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(30)))
    genuine = destination.restore

    async def restore(jobs: Sequence[JobRecord], now: float) -> None:
        await genuine(jobs, now)
        await beat(source, "late", now=await source.server_time())

    monkeypatch.setattr(destination, "restore", restore)
    with pytest.raises(MoveError, match="nodes run on"):
        await move(source, destination)
    monkeypatch.undo()
    await source.leave(["late"], NOW)
    await move(source, destination)
    assert await everything(destination) == await everything(source)


@pytest.mark.parametrize("what", ["a job", "a doc", "an event", "a state", "a total"])
async def test_refused_if_the_destination_holds_something_else(what: str, pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await add(source, job("1"))
    if what == "a job":
        await add(destination, job("2"))
    elif what == "a doc":
        await put(destination, "zoo", "a", b"")
    elif what == "an event":
        await destination.record([Event(at=NOW, name="n", subject="s", message="m")])
    elif what == "a state":
        await destination.switch("w", enabled=False, reason=None, now=NOW)
    else:
        await add(destination, job("2"))
        await finish(destination, failed(await claim_one(destination, "2")))
        await destination.amend(["2"], Discard(), NOW)
    with pytest.raises(MoveError, match="is not empty: it holds"):
        await move(source, destination)
    await refuse_to_change(source)
    assert await statuses(destination, "1") == [None]


async def test_a_store_cannot_move_to_itself(opened: Any, request: pytest.FixtureRequest) -> None:
    make = sqlite(request)()
    one, other = await opened(make), await opened(make)
    await add(one, job("1"))
    with pytest.raises(MoveError, match="cannot move to itself"):
        await move(one, other)


async def test_what_has_moved_is_neither_run_nor_added_to_nor_moved_again(
    pair: tuple[Store, Store], opened: Any, request: pytest.FixtureRequest
) -> None:
    source, destination = pair
    await add(source, job("1"))
    await refuse_to_change(source)
    await move(source, destination)
    await refuse_to_change(destination)
    for refuse in (refuse_to_add, refuse_to_change):
        with pytest.raises(MoveError, match=f"{source.url} has moved to {destination.url}: use that one"):
            await refuse(source)
    with pytest.raises(MoveError, match=f"has already moved to {destination.url}"):
        await move(source, await opened(memory(request)()))
    with pytest.raises(MoveError, match="is not empty"):
        await move(destination, source)


DAMAGED = [b"\xc1", b"", b"\x82\xa5token\xa1\xff\xa2to\xa1x"]


@pytest.mark.parametrize("body", DAMAGED)
async def test_a_damaged_record_of_a_move_stops_only_moves(pair: tuple[Store, Store], body: bytes) -> None:
    source, destination = pair
    await add(source, job("1"))
    await put(source, "departure", MOVE_NAME, body)
    await put(destination, "arrival", MOVE_NAME, body)
    await refuse_to_change(source)
    await refuse_to_change(destination)
    with pytest.raises(MoveError, match=r"departure record .* cannot be read: .*`shiftwork move --abandon`"):
        await move(source, destination)
    assert await reset_damaged(source) is not None
    assert await reset_damaged(source) is None
    with pytest.raises(MoveError, match=r"arrival record .* cannot be read: .* Choose another database"):
        await move(source, destination)


async def test_a_damaged_departure_can_be_abandoned(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    for _ in range(2):
        async with _opened(url, "default") as source:
            await put(source, "departure", MOVE_NAME, b"\xa1\xff")
        assert await abandon(url) == "a store that cannot be read"
        assert await abandon(url) is None
    async with _opened(url, "default") as source, _opened(f"sqlite:///{tmp_path}/new.db", "default") as destination:
        await add(source, job("1"))
        assert (await move(source, destination)).copied == 1


async def test_while_it_moves_nodes_stay_away_and_jobs_may_still_be_added(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(20)))
    genuine, extra = destination.restore, count()

    async def restore(jobs: Sequence[JobRecord], now: float) -> None:
        with pytest.raises(MoveError, match=r"is moving to .* `shiftwork move --abandon`"):
            await refuse_to_change(source)
        await refuse_to_add(source)
        with pytest.raises(MoveError, match="is moving to"):
            await refuse_to_add(destination)
        if (n := next(extra)) < 6:
            await add(source, job(f"extra {n}"), now=NOW + n)
        await genuine(jobs, now)

    monkeypatch.setattr(destination, "restore", restore)
    moved = await move(source, destination)
    assert await everything(destination) == await everything(source)
    assert moved.arrived.jobs == moved.counted.jobs == 26
    assert (await destination.stats(NOW)).pools == (await source.stats(NOW)).pools


async def test_jobs_that_come_too_late_are_reported_and_carried_by_the_next_run(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(20)))
    await move(source, destination)
    left = await left_behind(source)
    assert left is not None
    assert (left.to, left.late) == (destination.url, 0)
    while ran := await claim(destination):
        await finish(destination, *(outcome(one, keep_until=NOW) for one in ran))
    assert await destination.prune(100, NOW) == 20
    await beat(destination, "node", now=await destination.server_time())
    await add(source, *(job(f"late {n}", key="k") for n in range(7)), now=NOW - 5)
    await add(
        source, replace(job("late 7"), flow="f", needs=(Need("late 8"),)), replace(job("late 8"), flow="f"), now=NOW - 5
    )
    left = await left_behind(source)
    assert left is not None
    assert left.late == 9
    moved = await move(source, destination)
    assert (moved.late, moved.copied) == (True, 9)
    carried = await everything(destination)
    assert sorted(carried) == [f"late {n}" for n in range(9)]
    assert carried["late 7"].unmet == (Need("late 8"),)
    assert (await move(source, destination)).copied == 0
    assert len(await everything(destination)) == 9


async def test_a_job_that_came_at_the_last_moment_is_carried_once(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(20)))
    genuine = source.put

    async def put_and_add(docs: Sequence[Doc]) -> list[bool]:
        if any(b"moved" in doc.body for doc in docs):
            await source.add([job("edge")], NOW + 1)
        return await genuine(docs)

    monkeypatch.setattr(source, "put", put_and_add)
    assert (await move(source, destination)).arrived.jobs == 21
    monkeypatch.undo()
    while ran := await claim(destination, now=NOW + 1):
        await finish(destination, *(outcome(one, keep_until=NOW) for one in ran))
    await destination.prune(100, NOW + 1)
    assert (await move(source, destination)).copied == 0
    assert await everything(destination) == {}


async def test_two_at_a_time_do_not_meet(pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    source, destination = pair
    monkeypatch.setattr(moving, "LEASE_SECONDS", 0.3)
    await add(source, *(job(f"{n}") for n in range(20)))
    reached, go_on = asyncio.Event(), asyncio.Event()
    genuine = destination.get

    async def get_late(ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        reached.set()
        found = await genuine(ids, whole=whole)
        await go_on.wait()
        return found

    monkeypatch.setattr(destination, "get", get_late)
    first = asyncio.create_task(move(source, destination))
    await reached.wait()
    monkeypatch.setattr(destination, "get", genuine)
    await move(source, destination)
    ran = await claim(destination, 20)
    go_on.set()
    with pytest.raises(MoveError, match="has taken over from this one"):
        await first
    assert await statuses(destination, *(one.id for one in ran)) == ["processing"] * 20


# ── interrupted ──────────────────────────────────────────────────────────────────────────────────────────────────────

STEPS = ("restore", "put", "record", "take_over")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_interrupted_anywhere_it_continues(
    step: str, at: int, *, done: bool, pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is written to the destination when it ends, written or not: run again, all is there once."""
    source, destination = pair
    await fill(source)
    monkeypatch.setattr("shiftwork.transfer.carried_records.RECORDS_BATCH", 4)
    genuine, calls = getattr(destination, step), count(1)

    async def interrupted(*args: Any) -> Any:
        if next(calls) != at:
            return await genuine(*args)
        if done:
            await genuine(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(destination, step, interrupted)
    try:
        await move(source, destination)
    except KeyboardInterrupt:
        monkeypatch.setattr(destination, step, genuine)
        moved = await move(source, destination)
        assert moved.arrived == moved.counted or moved.late
    assert await everything(destination) == await everything(source)
    events = [replace(event, seq=0) for event in await source.events()]
    assert [replace(event, seq=0) for event in await destination.events()] == events
    assert await numbers_of(destination) == await numbers_of(source)
    await refuse_to_change(destination)


async def test_events_that_were_pruned_in_between_do_not_arrive_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What people did is pruned apart: what is left of the source is not the end of what was copied."""
    monkeypatch.setattr("shiftwork.store.memory.events.EVENTS_KEPT", 3)
    monkeypatch.setattr("shiftwork.transfer.carried_records.RECORDS_PAGE", 2)
    source, destination = MemoryStore("memory://pruned"), MemoryStore("memory://copied")
    deed = Event(at=NOW, name="paused", subject="p", message="", data={"by": "ann"})
    dead = [Event(at=NOW, name="dead", subject=f"{n}", message="") for n in range(5)]
    await source.record([deed, *dead[:3]])
    await carry(source, destination)
    await source.record(dead[3:])
    assert await source.prune(10, NOW) == 2
    await carry(source, destination)
    assert [replace(event, seq=0) for event in await destination.events()] == [deed, *dead]


async def test_a_part_that_was_changed_since_is_copied_again(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n:02}", unique_key=f"{n}") for n in range(20)))
    await _interrupt(source, destination, monkeypatch, after=2)
    assert len(await everything(destination)) == 14
    await source.amend(["19", "15"], Cancel(), NOW)
    await add(source, job("new", unique_key="19"))
    await move(source, destination)
    assert await everything(destination) == await everything(source)


async def test_another_part_than_its_own_is_refused(
    pair: tuple[Store, Store], opened: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n:02}") for n in range(20)))
    await _interrupt(source, destination, monkeypatch, after=2)
    other = await opened(memory(request)())
    await add(other, job("other"))
    with pytest.raises(MoveError, match=f"holds part of another move, from {source.url}"):
        await move(other, destination)
    await add(destination, job("stray"))
    with pytest.raises(MoveError, match=f"{destination.url} holds job stray, which {source.url} does not"):
        await move(source, destination)
    assert await statuses(destination, "stray") == ["queued"]
    await destination.amend(["stray"], Cancel(), NOW)
    await destination.amend(["stray"], Discard(), NOW)
    await move(source, destination)
    assert await everything(destination) == await everything(source)


async def _interrupt(source: Store, destination: Store, monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """Begin a move that ends after this many pages."""
    genuine, calls = destination.restore, count()

    async def restore(jobs: Sequence[JobRecord], now: float) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt
        await genuine(jobs, now)

    with monkeypatch.context() as patch:
        patch.setattr(destination, "restore", restore)
        with pytest.raises(KeyboardInterrupt):
            await move(source, destination)


# ── verified ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("harm", ["lost", "changed"])
async def test_a_destination_that_does_not_keep_what_it_is_given_is_noticed(
    harm: str, pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(20)))
    genuine = destination.restore

    async def restore(jobs: Sequence[JobRecord], now: float) -> None:
        kept = [one for one in jobs if one.id != "7" or harm != "lost"]
        await genuine([replace(one, attempt=5) if one.id == "7" else one for one in kept], now)

    monkeypatch.setattr(destination, "restore", restore)
    with pytest.raises(MoveError, match=r"differ after 5 passes: .* with checksum"):
        await move(source, destination)
    with pytest.raises(MoveError, match="is moving"):
        await refuse_to_change(source)


async def test_progress_is_reported(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    await add(source, *(job(f"{n}") for n in range(20)))
    told: list[tuple[str, int, int]] = []
    await Move(source, destination, lambda *step: told.append(step)).run()
    assert [step for step in told if step[0] == "copying"] == [("copying", n, 20) for n in (7, 14, 20)]
    assert told[-1] == ("checking the destination", 20, 20)


async def test_an_empty_store_moves(pair: tuple[Store, Store]) -> None:
    source, destination = pair
    assert (await move(source, destination)).counted.jobs == 0
    await add(source, job("1"))
    assert (await move(source, destination)).copied == 1
