"""Bells: a ring is never lost, and every write rings its topics in every handle, loop and thread that listens."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.job_changes import Cancel, Requeue
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.workers.breaker import BreakerState
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_one,
    failed,
    finish,
    gate,
    job,
    outcome,
    put,
    run,
    succeeded,
)
from tests.store.conformance.expect import equal, holds, soon
from tests.store.conformance.lab import Lab

PROMPT = 0.02
"""Seconds within which a ring arrives."""


# ── the bell itself ──────────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_ring_between_two_waits_is_not_lost(lab: Lab) -> None:
    bell = lab.store.listen({"pool:p"})
    for _ in range(3):
        bell.ring()
        bell.ring()
        await soon(bell.wait(), "the wait after a ring")
    bell.close()


async def check_a_wait_lasts_until_the_next_ring(lab: Lab) -> None:
    bell = lab.store.listen({"pool:p"})
    bell.ring()
    await soon(bell.wait(), "the first wait")
    waiting = asyncio.ensure_future(bell.wait())
    for _ in range(20):
        await asyncio.sleep(0)
    holds(not waiting.done(), "a wait does not return before a ring")
    bell.ring()
    await soon(waiting, "the second wait")
    bell.close()


async def check_a_wait_that_is_cancelled_loses_no_ring(lab: Lab) -> None:
    bell = lab.store.listen({"pool:p"})
    waiting = asyncio.ensure_future(bell.wait())
    await asyncio.sleep(0)
    bell.ring()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    if not waiting.cancelled():
        bell.ring()
    await soon(bell.wait(), "the next wait")
    bell.close()


async def check_closing_ends_a_wait(lab: Lab) -> None:
    bell = lab.store.listen({"pool:p"})
    waiting = asyncio.ensure_future(bell.wait())
    await asyncio.sleep(0)
    bell.close()
    bell.close()
    await soon(waiting, "the wait in progress")
    bell.ring()
    await add(lab.store, job("1"))


async def check_a_bell_rings_from_another_thread(lab: Lab) -> None:
    bell = lab.store.listen({"nothing"})
    waiting = asyncio.ensure_future(bell.wait())
    await asyncio.to_thread(bell.ring)
    await soon(waiting, "a wait, rung from another thread")
    bell.close()


async def check_a_listener_whose_loop_has_ended_harms_nobody(lab: Lab) -> None:
    async def listen() -> None:
        lab.store.listen({"pool:p", "ended"})

    await asyncio.to_thread(asyncio.run, listen())
    await run(lab.store, "1")
    await run(lab.store, "2")


async def check_a_write_rings_in_another_thread(lab: Lab) -> None:
    other = await lab.another()
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        bell = other.listen({"pool:p"})
        ready.get_loop().call_soon_threadsafe(ready.set_result, None)
        await soon(bell.wait(), "a wait in another thread")
        bell.close()

    waiting = asyncio.ensure_future(asyncio.to_thread(asyncio.run, wait()))
    await soon(ready, "the other thread listens")
    await add(lab.store, job("1"))
    await waiting


async def check_rings_are_prompt(lab: Lab) -> None:
    """The quickest of many, because a busy machine may be slow at any time."""
    other = await lab.another()
    quickest = 60.0
    for number in range(30):
        bell = other.listen({"pool:p"})
        await add(lab.store, job(f"{number}"))
        start = time.monotonic()
        await soon(bell.wait(), "a ring from another handle")
        quickest = min(quickest, time.monotonic() - start)
        bell.close()
    holds(quickest < PROMPT, f"the quickest ring took {quickest:.3f} s")


# ── who rings what ───────────────────────────────────────────────────────────────────────────────────────────────────


async def _rings(lab: Lab, topic: str, deed: Coroutine[Any, Any, Any], about: str) -> None:
    """The deed, done through one handle, rings the topic in another."""
    with closing(deed):
        other = await lab.another()
        # When this has rung, so has everything before it, and the next bell hears only the deed.
        before = other.listen({"pool:before"})
        await add(lab.store, job(about, "before", pool="before"))
        await soon(before.wait(), "a ring from before")
        before.close()
        bell = other.listen({topic, "never"})
        await deed
        await soon(bell.wait(), f"{topic} rings when {about}")
        bell.close()


async def check_a_pool_rings_when_a_job_becomes_ready(lab: Lab) -> None:
    store, topic = lab.store, "pool:p"
    await _rings(lab, topic, add(store, job("1")), "a job is added")
    claimed = await claim_one(store, "1")
    await _rings(lab, topic, finish(store, outcome(claimed, JobStatus.QUEUED)), "one is handed back")
    claimed = await claim_one(store, "1")
    await _rings(lab, topic, finish(store, outcome(claimed, JobStatus.FAILED)), "one has failed and is due")
    claimed = await claim_one(store, "1")
    await finish(store, outcome(claimed, JobStatus.FAILED, run_at=NOW + 9))
    await _rings(lab, topic, store.promote(10, NOW + 9), "a retry is promoted")
    await finish(store, failed(await claim_one(store, "1", now=NOW + 9)))
    await _rings(lab, topic, store.amend(["1"], Requeue(run_at=NOW), NOW), "a dead one is requeued")
    await add(store, job("2", run_at=NOW + 99))
    await _rings(lab, topic, store.amend(["2"], Requeue(run_at=NOW), NOW), "a scheduled one is requeued")
    await add(store, job("3", run_at=NOW + 99))
    await _rings(lab, topic, store.promote(10, NOW + 99), "a scheduled one is promoted")


async def check_a_pool_rings_when_a_job_is_unparked(lab: Lab) -> None:
    store, topic = lab.store, "pool:q"
    await add(store, *(job(f"{n}", key="k", run_at=NOW - 9 + n, pool="pq"[n % 2]) for n in range(6)))
    await _rings(lab, topic, finish(store, succeeded(await claim_one(store, "0"))), "the one before it has completed")
    await finish(store, succeeded(await claim_one(store, "1", pool="q")))
    await _rings(lab, topic, store.amend(["2"], Cancel(), NOW), "the one before it is cancelled")
    await finish(store, succeeded(await claim_one(store, "3", pool="q")))
    claimed = await claim_one(store, "4")
    again = outcome(claimed, JobStatus.FAILED, run_at=NOW + 9)
    await _rings(lab, topic, finish(store, again), "the one before it has failed")


async def check_a_pool_rings_when_a_gate_opens(lab: Lab) -> None:
    store, topic = lab.store, "pool:p"
    await add(store, *(job(f"{n}") for n in range(9)), job("v", "v"))
    await store.switch("w", enabled=False, reason=None, now=NOW)
    await _rings(lab, topic, store.switch("w", enabled=True, reason=None, now=NOW), "its worker is enabled")
    await put(store, "pool", "p", PoolDoc(paused=True))
    await _rings(lab, topic, put(store, "pool", "p", PoolDoc()), "it goes on")
    await gate(store, "w", max_running=1)
    claimed = await claim_one(store, "0")
    await _rings(lab, topic, finish(store, succeeded(claimed)), "fewer are running")
    await _rings(lab, topic, gate(store, "w", breaker="x"), "its gates have changed")
    await put(store, "breaker", "x", BreakerState(open=True, until=NOW))
    await _rings(lab, topic, put(store, "breaker", "x", BreakerState()), "its breaker is closed")


async def check_a_pool_rings_when_a_probe_has_ended(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", breaker="x")
    await gate(store, "b", breaker="x", pool="q")
    await put(store, "breaker", "x", BreakerState(open=True, until=NOW))
    await add(store, job("1", "a"), job("2", "b", pool="q"))
    probe = await claim_one(store, "1")
    undecided = outcome(probe, JobStatus.CANCELLED)
    await _rings(lab, "pool:q", finish(store, undecided), "the probe of another pool has ended")


async def check_a_pool_rings_when_a_conflict_is_over(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", conflicts=("b",))
    await gate(store, "b", conflicts=("a",), pool="q")
    await beat(store, "i", ttl=1_000)
    await beat(store, "j", ttl=1_000, pool="q")
    await add(store, job("1", "a"), job("2", "b", pool="q"), job("3", "a"))
    claimed = await claim_one(store, "1")
    await _rings(lab, "pool:q", finish(store, succeeded(claimed)), "the job it conflicts with has ended")
    await _rings(lab, "pool:p", store.amend(["2"], Cancel(), NOW), "the job it gave way to is cancelled")
    await add(store, job("0", "b", pool="q"))
    await _rings(lab, "pool:p", store.leave(["j"], NOW), "no instance would run the job it gave way to")


async def check_a_pool_rings_when_a_dependency_is_met(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", before=("b",))
    await gate(store, "b", after={"a": "done"}, pool="q")
    await beat(store, "i", ttl=1_000)
    await beat(store, "j", ttl=1_000, pool="q")
    await add(store, job("1", "a", run_at=NOW - 2), job("2", "b", pool="q", run_at=NOW - 1), job("3", "a"))
    claimed = await claim_one(store, "1")
    await _rings(lab, "pool:q", finish(store, succeeded(claimed)), "its dependency has succeeded")
    equal(await claim(store), [], "the next run of the dependency, which waits for its turn")
    await _rings(lab, "pool:p", claim_one(store, "2", pool="q"), "the one that goes first has started")
    then = NOW + 1
    await finish(store, outcome(await claim_one(store, "3", now=then), JobStatus.FAILED, run_at=NOW + 9), now=then)
    await add(store, job("4", "b", pool="q", run_at=then), now=then)
    equal(await claim(store, pool="q", now=then), [], "claimed while its dependency is to be retried")
    later = store.amend(["3"], Requeue(run_at=NOW + 99), then)
    await _rings(lab, "pool:q", later, "its dependency is put off")
    await claim_one(store, "4", pool="q", now=then)


async def check_the_leader_rings(lab: Lab) -> None:
    store, topic = lab.store, "leader"
    await _rings(lab, topic, add(store, job("1", run_at=NOW + 99)), "a job is due sooner than before")
    await _rings(lab, topic, add(store, job("2", run_at=NOW + 98)), "another is due sooner")
    await add(store, job("3"), job("4", cause="scheduled"), job("5", cause="scheduled"))
    again = outcome(await claim_one(store, "3"), JobStatus.FAILED, run_at=NOW + 9)
    await _rings(lab, topic, finish(store, again), "a retry is due sooner")
    claimed = await claim_one(store, "4")
    await _rings(lab, topic, finish(store, succeeded(claimed)), "a schedule's job has ended")
    await _rings(lab, topic, store.amend(["5"], Cancel(), NOW), "a schedule's job is cancelled")
    await _rings(lab, topic, store.put([Doc("kind", "name", b"")]), "a doc is written")
    await _rings(lab, topic, store.switch("v", enabled=True, reason=None, now=NOW), "a worker is enabled")
    await add(store, job("6"))
    last = failed(await claim_one(store, "6"), disable_after=1)
    await _rings(lab, topic, finish(store, last), "failures disable a worker")
    await beat(store, "i")
    await _rings(lab, topic, store.leave(["i"], NOW), "an instance leaves")


async def check_ended_rings(lab: Lab) -> None:
    store, topic = lab.store, "ended"
    for status in (JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED):
        await add(store, job(f"{status}"))
        claimed = await claim_one(store, f"{status}")
        await _rings(lab, topic, finish(store, outcome(claimed, status)), f"a job is {status}")
    await add(store, job("1"))
    await _rings(lab, topic, store.amend(["1"], Cancel(), NOW), "a queued one is cancelled")


async def check_orders_ring(lab: Lab) -> None:
    store, topic = lab.store, "orders"
    await beat(store, "r")
    await add(store, job("1"))
    await claim_one(store, "1")
    await _rings(lab, topic, store.amend(["1"], Cancel(), NOW), "a running job is cancelled")
    await _rings(lab, topic, store.reap("r", 10, NOW), "jobs are taken")


async def check_state_rings(lab: Lab) -> None:
    store, topic = lab.store, "state"
    await _rings(lab, topic, store.switch("w", enabled=False, reason=None, now=NOW), "a worker is disabled")
    await _rings(lab, topic, store.switch("w", enabled=True, reason=None, now=NOW), "a worker is enabled")
    await _rings(lab, topic, store.put([Doc("kind", "name", b"")]), "a doc is written")
    await add(store, job("1"))
    last = failed(await claim_one(store, "1"), disable_after=1)
    await _rings(lab, topic, finish(store, last), "failures disable a worker")


async def check_a_bell_hears_each_of_its_topics(lab: Lab) -> None:
    bell = lab.store.listen({"pool:p", "pool:q", "state"})
    await add(lab.store, job("1"))
    await soon(bell.wait(), "the first topic")
    await add(lab.store, job("2", pool="q"))
    await soon(bell.wait(), "the second topic")
    await lab.store.switch("w", enabled=False, reason=None, now=NOW)
    await soon(bell.wait(), "the third topic")
    bell.close()
