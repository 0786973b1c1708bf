"""Stranded jobs: what cannot run because a job before it is dead or cancelled, and what runs in spite of that."""

import asyncio
from itertools import permutations

from shiftwork.core.model.job_changes import Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobStatus, NewJob
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.protocol import Store
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
    outcome,
    statuses,
    succeeded,
)
from tests.store.conformance.checks.flows import after
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab

LONG = 300
ROUNDS = 40


def chain(*ids: str) -> list[NewJob]:
    """Jobs each of which needs the one before it, the last one whatever becomes of that."""
    first, *middle, last = ids
    before = (first, *middle)
    ordinary = [after(id, needed) for needed, id in zip(before, middle, strict=False)]
    return [job(first, flow="f"), *ordinary, after(last, before[-1], whatever=True)]


async def broken_of(store: Store, id: str) -> list[str]:
    """The jobs that a job waits for although they cannot complete."""
    return [need.id for need in (await get(store, id)).unmet if need.broken]


# ── what the end of a job does ───────────────────────────────────────────────────────────────────────────────────────


async def check_any_end_is_seen_through_jobs_that_cannot_run(lab: Lab) -> None:
    """A job that needs any end starts when the needed job cannot run because of a dead one, over any number of jobs."""
    store = lab.store
    await add(store, *chain("bad", "1", "2", "3", "clean-up"))
    claimed = await claim_one(store, "bad")
    equal(await statuses(store, "clean-up"), ["waiting"], "while it runs")
    await finish(store, failed(claimed, now=NOW + 5), now=NOW + 5)
    equal(await statuses(store, *"123", "clean-up"), ["waiting"] * 3 + ["queued"], "when it is dead")
    store = await lab.restart()
    equal([await broken_of(store, id) for id in "123"], [["bad"], ["1"], ["2"]], "what each waits for in vain")
    equal(sorted(one.id for one in await store.members("f") if one.stranded), [*"123"], "the stranded jobs of the flow")
    released = await get(store, "clean-up")
    equal((released.unmet, released.run_at), ((), NOW + 5), "the released job")
    numbers = (await store.stats(NOW)).pools["p"]
    equal((numbers.waiting, numbers.queued, numbers.dead), (3, 1, 1), "what the pool counts")
    await claim_one(store, "clean-up", now=NOW + 5)


async def check_a_retry_runs_what_was_stranded_and_nothing_twice(lab: Lab) -> None:
    store = lab.store
    await add(store, *chain("bad", "total", "clean-up"))
    await finish(store, failed(await claim_one(store, "bad")))
    await store.amend(["bad"], Requeue(run_at=NOW), NOW)
    equal(await broken_of(store, "total"), [], "what waits in vain after the retry")
    equal(
        await statuses(store, "bad", "total", "clean-up"), ["queued", "waiting", "queued"], "what was released stays so"
    )
    for id in ("bad", "clean-up", "total"):
        await finish(store, succeeded(await claim_one(store, id)))
    equal(await statuses(store, "bad", "total", "clean-up"), ["completed"] * 3, "at the end")
    equal(await claim_ids(store), [], "what is left")


async def check_a_cancelled_job_strands_what_needs_it(lab: Lab) -> None:
    """Whether it was queued, waited, ran or had expired."""
    store = lab.store
    for n, ended in enumerate(("queued", "waiting", "processing", "expired")):
        a, b, c, d = (f"{n}{letter}" for letter in "abcd")
        expires_at = NOW + 10 if ended == "expired" else None
        await add(store, job(a, flow="f", expires_at=expires_at), after(b, a), after(c, b), after(d, c, whatever=True))
        if ended == "processing":
            claimed = await claim_one(store, a)
            await store.amend([a], Cancel(), NOW)
            equal(await statuses(store, d), ["waiting"], "while it runs")
            await finish(store, outcome(claimed, JobStatus.CANCELLED))
        elif ended == "expired":
            await store.promote(10, NOW + 10)
        else:
            await store.amend([b if ended == "waiting" else a], Cancel(), NOW)
        equal(await statuses(store, c, d), ["waiting", "queued"], f"behind one that was {ended}")
        equal(await broken_of(store, c), [b], f"what waits in vain behind one that was {ended}")
        await store.amend([a, d], Cancel(), NOW)


async def check_a_job_is_stranded_until_all_that_holds_it_is_retried(lab: Lab) -> None:
    """Two dead jobs, a diamond, and cancelled jobs in the middle, one of them stranded itself when it is retried."""
    store = lab.store
    diamond = after("l", "a"), after("r", "a", "b"), after("end", "l", "r"), after("clean-up", "end", whatever=True)
    await add(store, job("a", flow="f"), job("b", flow="f"), *diamond)
    await finish(store, *(failed(one) for one in await claim(store)))
    equal(await broken_of(store, "r"), ["a", "b"], "what the right side waits for in vain")
    await finish(store, succeeded(await claim_one(store, "clean-up")))
    await store.amend(["l", "r"], Cancel(), NOW)
    await store.amend(["a"], Requeue(run_at=NOW), NOW)
    equal([await broken_of(store, id) for id in ("l", "r", "end")], [[], ["b"], ["l", "r"]], "after one retry")
    await store.amend(["l", "r"], Requeue(run_at=NOW), NOW)
    equal([await broken_of(store, id) for id in ("r", "end")], [["b"], ["r"]], "when the middle is retried")
    await store.amend(["b"], Requeue(run_at=NOW), NOW)
    equal([await broken_of(store, id) for id in ("l", "r", "end")], [[], [], []], "after all retries")
    for _ in range(3):
        await finish(store, *(succeeded(one) for one in await claim(store)))
    equal(await statuses(store, "end", "clean-up"), ["completed", "completed"], "at the end")


async def check_a_job_that_any_end_releases_goes_on_as_usual(lab: Lab) -> None:
    """What needs it completed waits for it, and is stranded only if it fails, too."""
    store = lab.store
    await add(store, *chain("bad", "total", "clean-up"), after("mail", "clean-up"), after("log", "mail", whatever=True))
    await finish(store, failed(await claim_one(store, "bad")))
    equal(await statuses(store, "mail", "log"), ["waiting", "waiting"], "behind the clean-up")
    equal(await broken_of(store, "mail"), [], "what it waits for in vain")
    await finish(store, failed(await claim_one(store, "clean-up")))
    equal(await statuses(store, "mail", "log"), ["waiting", "queued"], "when the clean-up is dead")
    await store.amend(["clean-up"], Requeue(run_at=NOW - 1), NOW)
    await finish(store, succeeded(await claim_one(store, "clean-up")))
    equal(sorted(await claim_ids(store)), ["log", "mail"], "when it has completed")


async def check_a_job_that_needs_both_is_released_once(lab: Lab) -> None:
    store = lab.store
    await add(store, *chain("bad", "total", "clean-up"), after("both", "bad", "total", whatever=True))
    await finish(store, failed(await claim_one(store, "bad")))
    equal(sorted(await claim_ids(store)), ["both", "clean-up"], "released")


# ── what is added later ──────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_job_that_is_added_behind_a_stranded_one_starts_if_any_end_will_do(lab: Lab) -> None:
    """Also behind one of the same call, in any order."""
    store = lab.store
    await add(store, job("bad", flow="f"), after("total", "bad"))
    await finish(store, failed(await claim_one(store, "bad")))
    for n, order in enumerate(permutations(range(3))):
        more = [after(f"m{n}", "total"), after(f"n{n}", f"m{n}"), after(f"c{n}", f"n{n}", "total", whatever=True)]
        await add(store, *(more[place] for place in order), now=NOW + 1)
        equal(await claim_ids(store, now=NOW + 1), [f"c{n}"], f"released, added as {order}")
        equal([await broken_of(store, f"m{n}"), await broken_of(store, f"n{n}")], [["total"], [f"m{n}"]], "in vain")


async def check_what_a_running_job_adds_may_be_stranded_at_once(lab: Lab) -> None:
    """What needs the running job to complete cannot run; what needs any end does not wait for it."""
    store = lab.store
    await add(store, job("dead", "v", flow="f"))
    await finish(store, failed(await claim_one(store, "dead", workers=["v"])))
    await add(store, job("a", flow="f"), after("end", "a"), after("clean-up", "a", whatever=True))
    claimed = await claim_one(store, "a")
    await store.extend("a", claimed.fence, [after("child", "dead", parent="a")], NOW)
    equal(await broken_of(store, "end"), ["child"], "what the end waits for in vain")
    equal((await get(store, "clean-up")).unmet, (Need("a", whatever=True),), "what the clean-up waits for")
    await finish(store, succeeded(claimed))
    equal(await statuses(store, "end", "clean-up"), ["waiting", "queued"], "when it has completed")
    await store.amend(["dead"], Requeue(run_at=NOW), NOW)
    equal([await broken_of(store, id) for id in ("child", "end")], [[], []], "after the retry")


# ── keeping, moving, dying ───────────────────────────────────────────────────────────────────────────────────────────


async def check_what_strands_a_job_can_neither_be_discarded_nor_pruned(lab: Lab) -> None:
    store = lab.store
    await add(store, *chain("bad", "total", "clean-up"))
    await finish(store, outcome(await claim_one(store, "bad"), JobStatus.CANCELLED, keep_until=NOW + 1))
    holds(not (await store.amend(["bad"], Discard(), NOW))[0].ok, "it cannot be discarded")
    await store.prune(10, NOW + 2)
    equal(await statuses(store, "bad"), ["cancelled"], "it is kept")
    await store.amend(["total", "clean-up"], Cancel(), NOW)
    await store.prune(10, NOW + 100)
    await store.amend(["total"], Requeue(run_at=NOW), NOW + 100)
    equal(await statuses(store, "bad", "total"), [None, "queued"], "when it is gone")


async def check_a_moved_job_stays_stranded(lab: Lab) -> None:
    store = lab.store
    await add(store, *chain("bad", "total", "clean-up"))
    await finish(store, failed(await claim_one(store, "bad")))
    records = [await get(store, id) for id in ("clean-up", "total", "bad")]
    for record in records:
        await store.restore([record], NOW)
    equal([await get(store, one.id) for one in records], records, "the restored jobs")
    await store.amend(["bad"], Requeue(run_at=NOW), NOW)
    equal(await broken_of(store, "total"), [], "after a retry")


async def check_a_lost_holder_strands_nothing_until_its_job_is_ended(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, *chain("bad", "total", "clean-up"))
    stale = await claim_one(store, "bad", instance="gone")
    [taken] = await store.reap("r", 10, NOW)
    holds(not (await store.finish([failed(stale)], NOW)).accepted[0], "a stale outcome is rejected")
    equal(await statuses(store, "clean-up"), ["waiting"], "a stale outcome strands nothing")
    await finish(store, failed(taken.claimed()))
    equal(await statuses(store, "total", "clean-up"), ["waiting", "queued"], "when the reaper ends it")


async def check_lists_have_the_broken_needs_alone(lab: Lab) -> None:
    """They show which jobs are stranded, and read neither whole payloads nor all needs for that."""
    store = lab.store
    payload = b"x" * (2 * BEGINNING)
    both, hopeful = after("both", "bad", "fine", payload=payload), after("hopeful", "fine", payload=payload)
    await add(store, job("bad", flow="f"), both, hopeful, job("fine", flow="f"))
    await finish(store, failed(await claim_one(store, "bad")))
    store = await lab.restart()
    for wanted in (
        JobFilter(status=(JobStatus.WAITING,)),
        JobFilter(ids=("both", "hopeful")),
        JobFilter(flow="f", status=(JobStatus.WAITING,)),
        JobFilter(worker="w", status=(JobStatus.WAITING,)),
    ):
        found = {one.id: (one.unmet, len(one.payload)) for one in await store.find(wanted)}
        broken = (Need("bad", broken=True),)
        equal(found, {"both": (broken, BEGINNING), "hopeful": ((), BEGINNING)}, f"the jobs of {wanted}")
    await store.amend(["both"], Cancel(), NOW)
    [cancelled] = await store.find(JobFilter(status=(JobStatus.CANCELLED,)))
    equal([need.id for need in cancelled.unmet], await broken_of(store, "both"), "what the cancelled job waited for")


# ── many, and at once ────────────────────────────────────────────────────────────────────────────────────────────────


async def check_ends_at_the_same_moment_release_what_they_meet_at(lab: Lab) -> None:
    """One end is seen through a chain, the other one directly, by two processes: the job starts, and does so once."""
    store, other = lab.store, await lab.another()
    for n in range(ROUNDS):
        a, b, mid, end = (f"{n}{name}" for name in ("a", "b", "mid", "end"))
        needs = (Need(mid, whatever=True), Need(b, whatever=True))
        await add(store, job(a), job(b), after(mid, a, b), job(end, needs=needs, flow="f"))
        one, two = await claim(store, 2)
        await asyncio.gather(finish(store, failed(one)), finish(other, failed(two)))
        equal(await claim_ids(store), [end], "released")
        equal(await broken_of(store, mid), [a, b], "what waits in vain")


async def check_a_job_is_added_while_what_it_needs_is_stranded(lab: Lab) -> None:
    """Each sees the other, in whatever order they get their turn."""
    store, other = lab.store, await lab.another()
    for n in range(ROUNDS):
        a, mid, total, end = (f"{n}{name}" for name in ("a", "mid", "total", "end"))
        await add(store, job(a), after(mid, a), after(total, mid))
        claimed = await claim_one(store, a)
        await asyncio.gather(finish(store, failed(claimed)), add(other, after(end, total, whatever=True)))
        equal(await claim_ids(store), [end], "released")


async def check_retries_and_ends_at_the_same_moment_agree(lab: Lab) -> None:
    """Whether a job is stranded follows from what is dead at last."""
    store, other = lab.store, await lab.another()
    for n in range(ROUNDS):
        a, b, mid, end = (f"{n}{name}" for name in ("a", "b", "mid", "end"))
        await add(store, job(a, "v"), job(b), after(mid, a, b), after(end, mid))
        await finish(store, failed(await claim_one(store, a, workers=["v"])))
        claimed = await claim_one(store, b)
        await asyncio.gather(finish(store, failed(claimed)), other.amend([a], Requeue(run_at=NOW), NOW))
        equal([await broken_of(store, mid), await broken_of(store, end)], [[b], [mid]], "what waits in vain")
        await store.amend([a, b, mid, end], Cancel(), NOW)


async def check_a_long_chain_is_stranded_and_regained(lab: Lab) -> None:
    """And cancelled, job by job."""
    store = lab.store
    ids = [f"{n:03}" for n in range(LONG)]
    await add(store, *chain(*ids, "clean-up"))
    await finish(store, failed(await claim_one(store, "000")))
    equal(await claim_ids(store), ["clean-up"], "released")
    await store.amend(["000"], Requeue(run_at=NOW), NOW)
    equal([await broken_of(store, id) for id in (ids[1], ids[-1])], [[], []], "after the retry")
    await store.amend(ids, Cancel(), NOW)
    cancelled = await store.find(JobFilter(status=(JobStatus.CANCELLED,), limit=2 * LONG))
    equal(len(cancelled), LONG, "cancelled jobs")
    equal([await broken_of(store, id) for id in (ids[1], ids[-1])], [[ids[0]], [ids[-2]]], "when all are cancelled")
