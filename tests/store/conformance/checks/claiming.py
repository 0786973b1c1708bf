"""`claim`: order, limits, fences, what it writes, and very many workers.

What holds jobs back is in `gates` and `concurrency_keys`.
"""

import tracemalloc
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from shiftwork.core.doc_kinds import EDITION_NAME
from shiftwork.core.model.jobs import Claimed, JobPriority, JobStatus, Progress, ProgressNote
from shiftwork.core.workers.edition import Edition
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    claims,
    finish,
    gate,
    get,
    job,
    outcome,
    put,
    state,
    statuses,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab

LARGE: Final = 1_000_000
"""Bytes of a payload whose copies can be told from everything else."""


async def check_jobs_come_by_rank_and_then_by_id(lab: Lab) -> None:
    await add(lab.store, job("d", run_at=NOW - 1), job("c"), job("a", run_at=NOW - 1), job("b", run_at=NOW - 2))
    equal(await claim_ids(lab.store), ["b", "a", "d", "c"], "the order")


async def check_rank_holds_across_workers_and_calls(lab: Lab) -> None:
    await add(lab.store, *(job(f"{n}", "wvab"[n % 4], run_at=NOW - 50 + (n * 7) % 10) for n in range(10)))
    in_order = sorted(range(10), key=lambda n: (n * 7) % 10)
    taken = [await claim_ids(lab.store, 3) for _ in range(4)]
    equal(sum(taken, []), [f"{n}" for n in in_order], "the order")  # noqa: RUF017 - four short lists


async def check_rank_holds_across_many_workers_with_unequal_queues(lab: Lab) -> None:
    """One queue is deep and comes first, one is deep and comes last, the short ones are in between."""
    deep, workers = {0: 0, 1: 90}, [f"w{number}" for number in range(12)]
    jobs = [
        job(f"{number:03}-{worker}", workers[worker], run_at=NOW - 100 + deep.get(worker, number * 7 % 89))
        for worker in range(12)
        for number in range(40 if worker in deep else 9)
    ]
    await add(lab.store, *jobs)
    taken = [one.id for n in (1, 5, 30, 7, 60, 2, 100) for one in await claim(lab.store, n, workers=workers)]
    equal(taken, [one.id for one in sorted(jobs, key=lambda one: (one.run_at, one.id))], "the order")


async def check_ids_of_equal_rank_are_ordered_by_their_bytes_across_workers(lab: Lab) -> None:
    """They may differ early or late, be of any length, and begin with each other."""
    alike = "0123456789abcdef" * 2
    short = ["0", "01", "z", "é", "01234", "012345", "012345 ", "012345é", "0123456789az"]
    ids = [*short, alike, f"{alike}0", *(f"{alike[:n]}{last}" for n in range(3, 32) for last in "!~")]
    mixed = sorted(ids, key=lambda id: id[::-1])
    await add(lab.store, *(job(id, f"w{n % 7}") for n, id in enumerate(mixed)))
    workers = [f"w{n}" for n in range(7)]
    taken = [await claim_ids(lab.store, 12, workers=workers) for _ in range(len(ids) // 12 + 1)]
    equal(sum(taken, []), sorted(ids, key=str.encode), "the order")  # noqa: RUF017 - a few short lists


async def check_priority_is_a_head_start(lab: Lab) -> None:
    """Old work of low priority overtakes new work of high priority."""
    high, aging = JobPriority.HIGH, 3600.0
    await add(
        lab.store,
        job("low, new"),
        job("high, new", priority=high, head_start=high * aging),
        job("low, old", run_at=NOW - high * aging - 1),
        job("normal, new", priority=JobPriority.NORMAL, head_start=aging),
    )
    equal(await claim_ids(lab.store), ["low, old", "high, new", "normal, new", "low, new"], "the order")


async def check_a_large_payload_is_copied_once(lab: Lab) -> None:
    await add(lab.store, job("1"), job("2", payload=bytes(LARGE)))
    await claim_one(lab.store, "1")  # what is loaded once is loaded
    tracemalloc.start()
    claimed = await claim_one(lab.store, "2")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    equal(len(claimed.payload), LARGE, "the payload")
    holds(peak < 2.5 * LARGE, f"a claim of {LARGE} bytes needs {peak} bytes of memory at most at a time")


async def check_never_more_than_asked_for(lab: Lab) -> None:
    await add(lab.store, *(job(f"{n}") for n in range(5)))
    equal(await claim_ids(lab.store, 0), [], "none")
    equal(await claim_ids(lab.store, 1), ["0"], "one")
    equal(await claim_ids(lab.store, 2), ["1", "2"], "two")
    equal(await claim_ids(lab.store, 100), ["3", "4"], "the rest")
    equal(await claim_ids(lab.store, 100), [], "nothing")


async def check_only_jobs_of_the_pool_and_of_known_workers(lab: Lab) -> None:
    await add(lab.store, job("1", "unknown"), job("2", "w", pool="q"), job("3", "w"), job("4", "v", pool="q"))
    equal(await claim_ids(lab.store, workers=["w", "v"]), ["3"], "from pool p")
    equal(await claim_ids(lab.store, workers=["w"], pool="q"), ["2"], "from pool q")
    equal(await claim_ids(lab.store, workers=[]), [], "for no worker")
    equal(await statuses(lab.store, "1", "4"), ["queued", "queued"], "the others")


async def check_only_queued_jobs(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{status}") for status in ("completed", "dead", "cancelled", "failed", "processing")))
    for claimed in await claim(store):
        if claimed.id != "processing":
            await finish(store, outcome(claimed, JobStatus(claimed.id), run_at=NOW + 1))
    await add(store, job("scheduled", run_at=NOW + 1))
    equal(await claim(store), [], "claimed")


async def check_a_claimed_job_is_whole_and_its_record_says_who_runs_it(lab: Lab) -> None:
    await add(lab.store, job("1", run_at=NOW - 1, payload=b"\x00\xff", cause="scheduled", trace="t", head_start=5.0))
    before = await get(lab.store, "1")
    claimed = await claim_one(lab.store, "1", instance="me", now=NOW + 2)
    wanted = Claimed("1", "w", "p", b"\x00\xff", claimed.fence, 1, 0, NOW - 1, "scheduled", "t")
    equal(claimed, wanted, "what was claimed")
    changes = {"status": JobStatus.PROCESSING, "attempt": 1, "fence": claimed.fence, "instance": "me"}
    equal(await get(lab.store, "1"), replace(before, **changes, started_at=NOW + 2), "its record")


async def check_each_attempt_is_counted_and_begins_anew(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    for attempt in (1, 2, 3):
        claimed = await claim_one(store, "1", now=NOW + attempt)
        equal(claimed.attempt, attempt, "the attempt")
        record = await get(store, "1")
        equal((record.attempt, record.started_at), (attempt, NOW + attempt), "attempt and start")
        equal((record.ended_at, record.progress), (None, None), "what is left of the attempt before")
        await store.note([ProgressNote("1", claimed.fence, Progress(1, 2, "half", NOW))])
        await finish(store, outcome(claimed, JobStatus.FAILED, crashes=attempt, error="e"), now=NOW + attempt)
    equal((await claim_one(store, "1")).crashes, 3, "crashes")


async def check_fences_only_grow(lab: Lab) -> None:
    """Over calls, jobs, pools, handles, reaping and restarts."""
    other = await lab.another()
    await beat(lab.store, "r", ttl=1000)
    await add(lab.store, *(job(f"{n}", "wv"[n % 2], pool="pq"[n // 10]) for n in range(20)))
    fences: list[int] = []
    for store, pool, instance in ((lab.store, "p", "i"), (other, "q", "j"), (other, "p", "j"), (lab.store, "q", "i")):
        fences += [claimed.fence for claimed in await claim(store, 3, pool=pool, instance=instance)]
    fences += sorted(record.fence for record in await other.reap("r", 5, NOW))
    await lab.restart()
    fences += [claimed.fence for claimed in await claim(lab.store, 10, instance="k")]
    fences += [claimed.fence for claimed in await claim(lab.store, 10, instance="k", pool="q")]
    equal(len(fences), 25, "fences handed out")
    holds(all(one < next_ for one, next_ in pairwise(fences)), f"fences only grow: {fences}")


async def check_the_fence_of_an_ended_job_is_not_used_again(lab: Lab) -> None:
    """Not even when the job is gone and the store was closed."""
    await add(lab.store, job("1"))
    first = await claim_one(lab.store, "1")
    await finish(lab.store, outcome(first, keep_until=NOW))
    equal(await lab.store.prune(10, NOW), 1, "pruned")
    await lab.restart()
    await add(lab.store, job("1"))
    second = await claim_one(lab.store, "1")
    holds(second.fence > first.fence, f"{second.fence} is higher than {first.fence}")


async def check_starts_are_remembered(lab: Lab) -> None:
    await add(lab.store, job("1"), job("2", "v"))
    equal((await state(lab.store)).last_started, None, "before the first start")
    await claim(lab.store, now=NOW + 5, workers=["w"])
    equal((await state(lab.store)).last_started, NOW + 5, "of the worker that started")
    equal((await state(lab.store, "v")).last_started, None, "of the other one")


async def check_an_instance_that_is_lost_gets_nothing(lab: Lab) -> None:
    await beat(lab.store, "r")
    await add(lab.store, job("1"))
    await claim_one(lab.store, "1", instance="gone")
    equal(len(await lab.store.reap("r", 10, NOW)), 1, "reaped")
    await add(lab.store, job("2"))
    equal(await claim_ids(lab.store, instance="gone"), [], "claimed by the one that is lost")
    equal(await claim_ids(lab.store, instance="here"), ["2"], "claimed by another")


# ── the definitions that a claim relies on ───────────────────────────────────────────────────────────────────────────


async def check_a_claim_gets_nothing_where_its_edition_is_not(lab: Lab) -> None:
    """A store that was emptied has no rules: it must not hand out jobs to a node that relies on them."""
    await add(lab.store, job("1"), job("2"), job("3"))
    empty = await claims(lab.store, edition="one")
    equal((empty.jobs, empty.stale), ([], True), "a claim where there is no edition")
    await put(lab.store, "edition", EDITION_NAME, Edition("one"))
    holds(not (await claims(lab.store, 1, edition="one")).stale, "a claim with the right edition is not stale")
    other = await claims(lab.store, edition="two")
    equal((other.jobs, other.stale), ([], True), "a claim with another edition")
    records = [await get(lab.store, id) for id in ("1", "2")]
    equal([record.attempt for record in records], [1, 0], "attempts")
    equal(await claim_ids(lab.store, 1), ["2"], "a claim that names no edition")
    equal(await claim_ids(lab.store, edition="one"), ["3"], "a claim with the right edition")


async def check_an_edition_counts_for_workers_with_gates_too(lab: Lab) -> None:
    await gate(lab.store, "w", conflicts=("v",))
    await gate(lab.store, "v", conflicts=("w",))
    await put(lab.store, "edition", EDITION_NAME, Edition("one"))
    await add(lab.store, job("1"), job("2", "v"))
    first = await claim_one(lab.store, "1", edition="one")
    await finish(lab.store, outcome(first))
    holds((await claims(lab.store, edition="two")).stale, "a claim with another edition is stale")
    equal(await claim_ids(lab.store, edition="one"), ["2"], "claimed then")


async def check_a_new_edition_counts_at_once_and_a_damaged_one_is_none(lab: Lab) -> None:
    await put(lab.store, "edition", EDITION_NAME, Edition("one"))
    await add(lab.store, job("1"))
    other = await lab.another()
    holds(not (await claims(other, 0, edition="one")).stale, "a claim with the right edition is not stale")
    await put(lab.store, "edition", EDITION_NAME, Edition("two"))
    holds((await claims(other, edition="one")).stale, "a claim with the old edition is stale")
    await put(lab.store, "edition", EDITION_NAME, b"\xc1")
    holds((await claims(other, edition="two")).stale, "a claim is stale where the record is damaged")
    await put(lab.store, "edition", EDITION_NAME, Edition("two"))
    equal(await claim_ids(other, edition="two"), ["1"], "claimed")


MANY = 300
NAMES = tuple(f"w{number:03}" for number in range(MANY))


async def check_rank_and_id_hold_across_very_many_workers(lab: Lab) -> None:
    mixed = [job(f"{n * 7 % MANY:03}", NAMES[n]) for n in range(MANY)]
    await add(
        lab.store,
        *mixed,
        job("first", NAMES[-1], run_at=NOW - 1),
        job("last", NAMES[0], run_at=NOW - 0.5),
    )
    taken = [await claim_ids(lab.store, 120, workers=NAMES) for _ in range(4)]
    in_order = ["first", "last", *(f"{n:03}" for n in range(MANY))]
    equal(sum(taken, []), in_order, "the order")  # noqa: RUF017 - four short lists


async def check_very_many_workers_get_only_their_jobs(lab: Lab) -> None:
    await add(lab.store, job("1", "stranger"), job("2", NAMES[7]), job("3", NAMES[8]), job("4", "stranger"))
    equal(await claim_ids(lab.store, 1, workers=NAMES), ["2"], "of the first claim")
    other = await lab.another()
    equal(await claim_ids(other, workers=NAMES), ["3"], "of another process")
    equal(await claim_ids(lab.store, 1, workers=(*NAMES, "stranger")), ["1"], "with one worker more")
    equal(await claim_ids(lab.store, workers=NAMES), [], "without it")


async def check_jobs_behind_very_many_of_others(lab: Lab) -> None:
    """Jobs that this instance does not serve, or whose worker is disabled, are passed over, however many they are."""
    store = lab.store
    await add(store, *(job(f"other {n:04}", "stranger", run_at=NOW - 2) for n in range(1_500)))
    for n in range(6):
        await add(store, job(f"off {n}", NAMES[n], run_at=NOW - 1))
        await store.switch(NAMES[n], enabled=False, reason=None, now=NOW)
    await add(store, *(job(f"{n}", NAMES[6 + n % 3]) for n in range(9)))
    equal(await claim_ids(store, 4, workers=NAMES), ["0", "1", "2", "3"], "the first")
    equal(await claim_ids(store, workers=NAMES), ["4", "5", "6", "7", "8"], "the rest")


async def check_gates_hold_among_very_many_workers(lab: Lab) -> None:
    store = lab.store
    await gate(store, NAMES[3], max_running=1)
    await add(
        store,
        *(job(f"a{n}", NAMES[3], run_at=NOW - 1) for n in range(3)),
        *(job(f"b{n}", NAMES[n]) for n in (1, 2)),
    )
    found = await claims(store, workers=NAMES)
    equal([one.id for one in found.jobs], ["a0", "b1", "b2"], "claimed")
    equal(await claim_ids(store, workers=NAMES), [], "while it runs")
    await finish(store, outcome(found.jobs[0]))
    crew = (*NAMES, "newcomer")  # a store that has not heard of these workers, in a pool with gates
    equal(await claim_ids(store, workers=crew), ["a1"], "when it has ended")


async def check_a_lane_that_was_emptied_is_found_again(lab: Lab) -> None:
    store = lab.store
    for round_ in range(3):
        await add(store, *(job(f"{round_} {n:03}", NAMES[n]) for n in range(60)))
        equal(len(await claim_ids(store, 100, workers=NAMES)), 60, "claimed")
    stats = await store.stats(NOW)
    holds(stats.pools["p"].oldest_run_at is None, "no job is ready")
    await add(store, job("late", NAMES[5], run_at=NOW - 7), job("early", NAMES[4], run_at=NOW - 9))
    equal((await store.stats(NOW)).pools["p"].oldest_run_at, NOW - 9, "the head of the queue")
