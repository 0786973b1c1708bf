"""Opening, closing, the clock, and what holds for every call."""

import asyncio
from contextlib import suppress

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Cancel, JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.errors import ShiftworkError
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_one,
    finish,
    gate,
    get,
    job,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab


async def check_opening_and_closing_twice_is_once(lab: Lab) -> None:
    store = lab.connect()
    await store.close()
    await store.open()
    await store.open()
    await add(store, job("1"))
    await store.close()
    await store.close()
    equal(await statuses(lab.store, "1"), ["queued"], "a job, seen by another handle")


async def check_a_handle_opens_again_after_it_was_closed(lab: Lab) -> None:
    store = await lab.another()
    await add(store, job("1"))
    await store.close()
    await store.open()
    equal(await statuses(store, "1"), ["queued"], "a job from before")


async def check_callers_at_the_same_time_get_their_own_answers(lab: Lab) -> None:
    store = lab.store
    await add(store, job("there"))
    calls = [[job(str(n))] if n % 3 else [job("there"), job(f"{n} a"), job(f"{n} b")] for n in range(40)]
    answers = await asyncio.gather(*(store.add(jobs, NOW) for jobs in calls))
    for jobs, added in zip(calls, answers, strict=True):
        equal([(one.id, one.created) for one in added], [(one.id, one.id != "there") for one in jobs], "added")


async def check_what_is_reported_as_added_while_the_store_closes_exists(lab: Lab) -> None:
    store = await lab.another()
    added: list[str] = []

    async def add_one(id: str) -> None:
        with suppress(ShiftworkError):  # a call that the store has closed before may fail
            await add(store, job(id))
            added.append(id)

    adding = [asyncio.create_task(add_one(str(n))) for n in range(40)]
    await asyncio.sleep(0)  # now they are in progress
    await store.close()
    await asyncio.gather(*adding)
    holds(None not in await lab.store.get(added), "every job exists that was reported as added")


async def check_url_names_the_store(lab: Lab) -> None:
    holds("://" in lab.store.url, f"{lab.store.url!r} is a URL")


async def check_server_time_moves_on(lab: Lab) -> None:
    before = await lab.store.server_time()
    holds(await lab.store.server_time() >= before > 0, "the store's clock goes forward")


async def check_a_restart_keeps_everything(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", max_running=1)
    await add(store, job("1", "a"), job("2", "a"), job("3", run_at=NOW + 9), job("4", unique_key="u"))
    held = await claim_one(store, "1", workers=["a"])
    await beat(store, "i")
    await store.switch("v", enabled=False, reason="tired", now=NOW)
    await store.record([Event(at=NOW, name="n", subject="s", message="m")])
    holds(await store.hold("place", "me", 1, 60, NOW), "the place is free")
    store = await lab.restart()
    equal(await statuses(store, "1", "2", "3", "4"), ["processing", "queued", "scheduled", "queued"], "jobs")
    equal([record.beat.instance for record in await store.instances()], ["i"], "instances")
    equal(await claim(store, workers=["a"]), [], "claimed beside the one that runs")
    equal((await state(store, "v")).reason, "tired", "the reason of a disabled worker")
    equal([event.name for event in await store.events()], ["n"], "events")
    holds(not await store.hold("place", "you", 1, 60, NOW), "the place is still taken")
    equal((await store.add([job("5", unique_key="u")], NOW))[0].id, "4", "the job of a unique key")
    await finish(store, succeeded(held))


async def check_now_is_the_callers(lab: Lab) -> None:
    """The long past and the far future are as good as today."""
    for past_or_future in (1_000.0, 9_000_000_000.0):
        at = past_or_future
        one = f"{at:.0f}"
        await add(lab.store, job(one, run_at=at + 10), now=at)
        await beat(lab.store, f"i{one}", now=at, ttl=5)
        equal(await claim(lab.store, now=at + 9), [], "claimed before it is due")
        equal((await lab.store.promote(10, at + 10)).moved, 1, "promoted when it is due")
        claimed = await claim_one(lab.store, one, now=at + 10, instance=f"i{one}")
        record = await get(lab.store, one)
        equal((record.created_at, record.started_at), (at, at + 10), "its instants")
        equal(len(await lab.store.reap("r", 10, at + 4.9)), 0, "jobs taken while the lease lasts")
        await finish(lab.store, succeeded(claimed, now=at + 11, keep_until=at + 20), now=at + 11)
        equal(await lab.store.prune(10, at + 19), 0, "jobs pruned too soon")
        equal(await lab.store.prune(10, at + 20), 1, "jobs pruned in time")


async def check_calls_take_effect_in_the_order_they_are_made(lab: Lab) -> None:
    store = lab.store
    for turn in range(20):
        added, claims, amended, found = await asyncio.gather(
            store.add([job(f"{turn}")], NOW),
            store.claim("i", "p", 1, NOW, ["w"]),
            store.amend([f"{turn}"], Cancel(), NOW),
            store.find(JobFilter(ids=(f"{turn}",))),
        )
        equal(added[0].created, wanted=True, about="added")
        equal([claimed.id for claimed in claims.jobs], [f"{turn}"], "claimed right after")
        equal(amended[0].status, JobStatus.PROCESSING, "its status when it was cancelled")
        equal([record.cancelling for record in found], [True], "found to be cancelling")


async def check_what_one_handle_writes_another_reads(lab: Lab) -> None:
    other = await lab.another()
    await add(lab.store, job("1"))
    claimed = await claim_one(other, "1", instance="other")
    equal((await get(lab.store, "1")).instance, "other", "its holder")
    await finish(lab.store, succeeded(claimed))
    equal(await statuses(other, "1"), ["completed"], "its status")
    equal(await lab.store.put([Doc("k", "n", b"1")]), [True], "a doc is written")
    equal(await other.put([Doc("k", "n", b"2")]), [False], "the version is known to all")


async def check_empty_batches_do_nothing(lab: Lab) -> None:
    store = lab.store
    equal(await store.add([], NOW), [], "add")
    equal((await store.claim("i", "p", 10, NOW, [])).jobs, [], "claim without workers")
    equal((await store.finish([], NOW)).accepted, [], "finish")
    equal((await store.beat([], 15, NOW)).lost, [], "beat")
    await store.note([])
    await store.leave([], NOW)
    await store.record([])
    equal(await store.get([]), [], "get")
    equal(await store.amend([], Cancel(), NOW), [], "amend")
    equal((await store.promote(10, NOW)).next_at, None, "promote")
    equal(await store.reap("r", 10, NOW), [], "reap")
    equal(await store.prune(10, NOW), 0, "prune")
    equal((await store.stats(NOW)).pools, {}, "stats")


async def check_the_doctor_is_told_something(lab: Lab) -> None:
    findings = await lab.store.check()
    holds({"durability", "integrity"} <= findings.keys(), f"durability and integrity are in {findings}")
    equal(findings["integrity"].text, "ok", "the integrity of an empty store")
