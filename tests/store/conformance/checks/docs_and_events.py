"""Docs, the switch, and events: the small records."""

import asyncio

from msgspec import msgpack

from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, add, claim, claim_one, failed, finish, job, state
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab


async def check_docs_are_written_by_compare_and_set(lab: Lab) -> None:
    store, other = lab.store, await lab.another()

    async def put(by: Store, body: bytes, version: int) -> bool:
        [written] = await by.put([Doc("kind", "name", body, version)])
        return written

    holds(not await put(store, b"x", 1), "a doc that does not exist has no version 1")
    holds(await put(store, b"one", 0), "it is made")
    holds(not await put(other, b"two", 0), "it cannot be made twice")
    holds(await put(other, b"two", 1), "the version that is there is replaced")
    holds(not await put(store, b"three", 1), "the version that was there is not")
    holds(not await put(store, b"three", 3), "nor is one that is not there yet")
    equal(await store.docs("kind"), [Doc("kind", "name", b"two", 2)], "the docs")


async def check_many_docs_are_written_each_by_itself(lab: Lab) -> None:
    store, other = lab.store, await lab.another()
    equal(await store.put([]), [], "nothing is written")
    await store.put([Doc("kind", "old", b"1"), Doc("gates", "w", msgpack.encode(Gates(worker="w", pool="p")))])
    limited = Doc("gates", "w", msgpack.encode(Gates(worker="w", pool="p", max_running=1)), 1)
    given = [
        *(limited, Doc("kind", "old", b"2", 1), Doc("kind", "missed", b"2", 1)),
        *(Doc("pool", "p", msgpack.encode(PoolDoc(paused=True))), Doc("kind", 'new "{,', b"")),
    ]
    equal(await other.put(given), [True, True, False, True, True], "which docs were written")
    equal(await other.put(given), [False] * 5, "which docs were written a second time")
    found = [(doc.kind, doc.name, doc.body, doc.version) for doc in await store.docs("kind", "gates", "none")]
    wanted = [("gates", "w", limited.body, 2), ("kind", 'new "{,', b"", 1), ("kind", "old", b"2", 2)]
    equal(found, wanted, "the docs of several kinds, by kind and name")
    await add(store, job("1"), job("2"))
    equal(await claim(store, 5), [], "what is claimed from a pool that was paused together with others")
    await store.put([Doc("pool", "p", msgpack.encode(PoolDoc()), 1), Doc("kind", "x", b"")])
    equal(len(await claim(store, 5)), 1, "jobs claimed under a limit that was written together with others")


async def check_docs_are_erased_by_compare_and_set(lab: Lab) -> None:
    store, other = lab.store, await lab.another()
    equal(await store.erase([]), [], "nothing is erased")
    await store.put([Doc("kind", "a", b"1"), Doc("kind", "b", b"1")])
    await store.put([Doc("kind", "b", b"2", 1)])
    given = [Doc("kind", "b", b"", 1), Doc("kind", "none", b"", 0), Doc("kind", "a", b"", 1)]
    equal(await other.erase(given), [False, False, True], "which docs were erased")
    equal(await other.erase(given), [False] * 3, "which docs were erased a second time")
    equal(await store.docs("kind"), [Doc("kind", "b", b"2", 2)], "the docs that are left")
    equal(await store.put([Doc("kind", "a", b"3")]), [True], "an erased doc is made again")
    equal(await (await lab.restart()).docs("kind"), [Doc("kind", "a", b"3", 1), Doc("kind", "b", b"2", 2)], "the docs")


async def check_claims_forget_an_erased_doc(lab: Lab) -> None:
    store, other = lab.store, await lab.another()
    gates = Gates(worker="w", pool="p", max_running=1, breaker="b")
    await store.put([Doc("gates", "w", msgpack.encode(gates)), Doc("pool", "p", msgpack.encode(PoolDoc(paused=True)))])
    await store.put([Doc("breaker", "b", msgpack.encode(BreakerState(open=True, until=NOW + 1_000)))])
    await add(store, job("1"), job("2"))
    equal(await claim(store, 5), [], "what is claimed while gates, a pause and a breaker hold")
    bell = store.listen({"pool:p"})
    equal(await other.erase([Doc("pool", "p", b"", 1), Doc("breaker", "b", b"", 1)]), [True, True], "what is erased")
    async with asyncio.timeout(30):
        await bell.wait()
    bell.close()
    equal(len(await claim(store, 5)), 1, "jobs claimed when only the limit holds")
    equal(await other.erase([Doc("gates", "w", b"", 1)]), [True], "what is erased")
    equal(len(await claim(store, 5)), 1, "jobs claimed when nothing holds")
    equal((await store.survey(None, NOW)).gates, {}, "the gates that are left")


async def check_docs_come_by_kind_and_in_order_of_name(lab: Lab) -> None:
    store = lab.store
    for name in ("b", "a", "Z", "é", "a b"):
        await store.put([Doc("kind", name, name.encode()), Doc("other", name, b"")])
    equal([doc.name for doc in await store.docs("kind")], ["Z", "a", "a b", "b", "é"], "the names")
    equal({doc.kind for doc in await store.docs("kind")}, {"kind"}, "the kinds")
    equal(await store.docs("none"), [], "docs of a kind that has none")


async def check_docs_hold_any_bytes(lab: Lab) -> None:
    body = bytes(range(256)) * 100
    await lab.store.put([Doc("kind", "name", body), Doc("kind", "nothing", b"")])
    equal([doc.body for doc in await (await lab.restart()).docs("kind")], [body, b""], "the bodies")


async def check_a_worker_is_switched_off_and_on(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    await finish(store, failed(await claim_one(store, "1"), error="e"))
    off = await store.switch("w", enabled=False, reason="maintenance ☃", now=NOW + 1)
    equal((off.enabled, off.reason, off.changed_at, off.failures), (False, "maintenance ☃", NOW + 1, 1), "when off")
    equal(await state(store), off, "what is remembered")
    on = await store.switch("w", enabled=True, reason=None, now=NOW + 2)
    equal((on.enabled, on.reason, on.changed_at, on.failures), (True, None, NOW + 2, 0), "when on")
    equal((on.last_started, on.last_ended, on.last_error), (NOW, NOW, "e"), "what else is remembered")
    equal(await state(await lab.restart()), on, "what is remembered after a restart")


async def check_a_worker_nobody_heard_of_can_be_switched(lab: Lab) -> None:
    wanted = WorkerState(worker="new", enabled=False, reason=None, changed_at=NOW)
    equal(await lab.store.switch("new", enabled=False, reason=None, now=NOW), wanted, "its state")


async def check_events_are_numbered_upwards(lab: Lab) -> None:
    store = lab.store
    data = {"n": 1, "list": [1.5, "two", None], "map": {"a": True}}
    first = Event(at=NOW, name="scaled", subject="p", message="up ☃", data=data, seq=99)
    await store.record([first, Event(at=NOW + 1, name="dead", subject="1", message="")])
    store = await lab.restart()
    await store.record([Event(at=NOW - 1, name="late", subject="2", message="")])
    events = await store.events()
    holds(0 < events[0].seq < events[1].seq < events[2].seq, f"the numbers grow: {[event.seq for event in events]}")
    equal([event.name for event in events], ["scaled", "dead", "late"], "the order")
    equal((events[0].data, events[0].message, events[0].at), (data, "up ☃", NOW), "the first event")


async def check_the_newest_events_are_read_oldest_first(lab: Lab) -> None:
    store = lab.store
    await store.record([Event(at=NOW, name="n", subject=f"{n}", message="") for n in range(1, 201)])
    numbers = [event.seq for event in await store.events(0, 1_000)]
    equal(numbers, sorted(set(numbers)), "the numbers")
    equal([event.seq for event in await store.events()], numbers[-100:], "by default")
    equal([event.seq for event in await store.events(0, 3)], numbers[-3:], "the newest three")
    equal([event.seq for event in await store.events(numbers[-5], 3)], numbers[-3:], "the newest three of four")
    equal([event.seq for event in await store.events(numbers[-3])], numbers[-2:], "all of two")
    equal(await store.events(numbers[-1]), [], "after the last")
    equal(await store.events(0, 0), [], "none")
    older = await store.events(0, 3, before=numbers[-3])
    equal([event.seq for event in older], numbers[-6:-3], "the newest three of the older ones")
    between = await store.events(numbers[1], before=numbers[4])
    equal([event.seq for event in between], numbers[2:4], "all between two")
    equal(await store.events(before=numbers[0]), [], "before the first")
