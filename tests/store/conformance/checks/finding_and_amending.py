"""`get`, `find`, `amend` and `stats`: what people see and change."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import SECONDS_A_DAY, DeadJob, JobStatus, Progress, ProgressNote
from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.observing.run_histograms import runs, timed, waits
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import (
    NOW,
    add,
    claim,
    claim_ids,
    claim_one,
    failed,
    finish,
    get,
    job,
    outcome,
    report,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal
from tests.store.conformance.lab import Lab

LATER = NOW + 60
ENDED = (JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED)
LIVE = (JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.WAITING, JobStatus.PROCESSING, JobStatus.FAILED)


async def one_of_each(store: Store) -> None:
    """A job in every status, named after it. Those that have run have crashed once and have a report."""
    for status in ENDED + LIVE[3:]:
        await add(store, job(f"{status}", unique_key=f"u {status}"))
        claimed = await claim_one(store, f"{status}")
        await store.note([ProgressNote(claimed.id, claimed.fence, Progress(1))])
        if status is not JobStatus.PROCESSING:
            ended = outcome(claimed, status, run_at=LATER, crashes=1, error="e", result=b"r", report=report(claimed))
            await finish(store, ended)
    await add(store, job("scheduled", run_at=LATER), job("queued"), job("waiting", needs=(Need("processing"),)))
    equal(await statuses(store, *JobStatus), [*JobStatus], "one of each")


# ── get and find ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_jobs_are_got_in_the_order_asked_for(lab: Lab) -> None:
    await add(lab.store, job("1"), job("2"), job("3"))
    found = await lab.store.get(["3", "none", "1", "3"])
    equal([record.id if record else None for record in found], ["3", None, "1", "3"], "the ids")


async def check_jobs_are_found_newest_first_without_their_attempts(lab: Lab) -> None:
    store = lab.store
    for seconds, id in ((1, "b"), (2, "a"), (1, "c"), (0, "d")):
        await add(store, job(id), now=NOW + seconds)
    claimed = await claim_one(store, "a", now=NOW + 2)
    await finish(store, outcome(claimed, JobStatus.FAILED, run_at=LATER, report=report(claimed)))
    found = await store.find(JobFilter())
    equal([record.id for record in found], ["a", "c", "b", "d"], "the order")
    equal(found[0], replace(await get(store, "a"), attempts=()), "the job that has an attempt")


async def check_every_filter_filters(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", "w", pool="p", key="k", unique_key="u"), now=NOW + 1)
    await add(store, job("2", "v", pool="p", key="l"), now=NOW + 2)
    await add(store, job("3", "w", pool="q", key="k"), now=NOW + 3)
    await add(store, job("4", "v", pool="q", unique_key="u", run_at=LATER), now=NOW + 4)
    await finish(store, failed(await claim_one(store, "2", workers=["v"], instance="i2"), error="50% _Broken_"))
    await claim_one(store, "1", workers=["w"], instance="i1")
    wanted: list[tuple[str, JobFilter]] = [
        ("4321", JobFilter()),
        ("31", JobFilter(worker="w")),
        ("21", JobFilter(pool="p")),
        ("1", JobFilter(key="k", pool="p")),
        ("41", JobFilter(unique_key="u")),
        ("4", JobFilter(unique_key="u", worker="v")),
        ("42", JobFilter(ids=("2", "4", "none"))),
        ("2", JobFilter(status=(JobStatus.DEAD,))),
        ("41", JobFilter(status=(JobStatus.SCHEDULED, JobStatus.PROCESSING))),
        ("1", JobFilter(instance="i1")),
        ("2", JobFilter(error="0% _Br")),
        ("43", JobFilter(created_after=NOW + 2)),
        ("21", JobFilter(created_before=NOW + 3)),
        ("3", JobFilter(created_after=NOW + 2, created_before=NOW + 4)),
        ("43", JobFilter(limit=2)),
        ("12", JobFilter(limit=2, order="oldest")),
        ("34", JobFilter(created_after=NOW + 2, order="oldest")),
        ("12", JobFilter(created_before=NOW + 3, order="oldest")),
        ("3", JobFilter(created_after=NOW + 2, created_before=NOW + 4, order="oldest")),
        ("", JobFilter(worker="none")),
        ("", JobFilter(worker="w", ids=("2",))),
        ("", JobFilter(error="broken")),
        ("", JobFilter(error="5%")),
        ("", JobFilter(ids=())),
        ("", JobFilter(status=())),
        ("", JobFilter(limit=0)),
    ]
    for ids, filtered in wanted:
        found = await store.find(filtered)
        equal([record.id for record in found], list(ids), f"found by {filtered}")


async def check_pages_follow_each_other(lab: Lab) -> None:
    store = lab.store
    for second in range(5):
        await add(store, *(job(f"{second}{n}", "wv"[n % 2]) for n in range(5)), now=NOW + second)
    everything = [record.id for record in await store.find(JobFilter(limit=1_000))]
    equal(everything, sorted(everything, reverse=True), "everything")
    pages: list[str] = []
    while page := await store.find(JobFilter(limit=4, after=pages[-1] if pages else None)):
        pages += [record.id for record in page]
    equal(pages, everything, "page by page")
    found = await store.find(JobFilter(worker="v", after="33", limit=3))
    equal([record.id for record in found], ["31", "23", "21"], "a page of one worker's")
    equal(await store.find(JobFilter(after="gone")), [], "after one that is gone")


async def check_pages_follow_each_other_in_every_order(lab: Lab) -> None:
    """Whichever index serves a filter, oldest first is the reverse of newest first."""
    store = lab.store
    await one_of_each(store)
    for second in range(4):
        some = (job(f"{second}{n}", "wv"[n % 2], flow="f", tags=("t",), head_start=float(n)) for n in range(5))
        await add(store, *some, now=NOW + second)
        await add(store, *(job(f"k{second}{n}", key="k") for n in range(2)), now=NOW + second)
    filters = [JobFilter(), JobFilter(worker="v"), JobFilter(pool="p"), JobFilter(flow="f"), JobFilter(tag="t")]
    filters += [JobFilter(status=status) for status in ((JobStatus.QUEUED,), (JobStatus.PROCESSING,), ENDED, LIVE)]
    filters += [JobFilter(key="k"), JobFilter(created_after=NOW, created_before=NOW + 3), JobFilter(ids=("31", "k00"))]
    for wanted in filters:
        newest = [record.id for record in await store.find(replace(wanted, limit=1_000))]
        for order, expected in (("newest", newest), ("oldest", newest[::-1])):
            for limit in (3, 1_000):
                paged = replace(wanted, order=order, limit=limit)
                equal(await _paged(store, paged), expected, f"page by page, found by {paged}")
    equal(await store.find(JobFilter(after="gone", order="oldest")), [], "after one that is gone")


async def _paged(store: Store, wanted: JobFilter) -> list[str]:
    found: list[str] = []
    while page := await store.find(replace(wanted, after=found[-1] if found else None)):
        found += [record.id for record in page]
    return found


async def check_dead_jobs_are_read_newest_first_behind_a_place(lab: Lab) -> None:
    store = lab.store
    for second in range(3):
        await add(store, *(job(f"{second}{n}", "wv"[n % 2]) for n in range(3)), now=NOW + second)
    taken = await claim(store, 9, workers=["w", "v"], now=NOW + 2)
    doomed = [one for one in taken if one.id != "11"]
    await finish(store, *(failed(one, now=NOW + 5, error=f"broke {one.id}") for one in doomed), now=NOW + 5)
    dead = await store.dead()
    equal([one.id for one in dead], ["22", "21", "20", "12", "10", "02", "01", "00"], "the order")
    equal(dead[1], DeadJob("21", "v", "broke 21", NOW + 2, NOW + 5), "one of them")
    await store.amend(["20", "12"], Requeue(run_at=LATER), NOW + 6)
    page = await store.dead((NOW + 2, "21"), 2)
    equal([one.id for one in page], ["10", "02"], "the next two")
    equal([one.id for one in await store.dead((NOW + 2, "20"))], ["10", "02", "01", "00"], "behind one that is gone")
    equal([await store.dead((NOW, "00")), await store.dead(None, 0)], [[], []], "behind the last, and none")


# ── amend ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _amended(store: Store, change: Change, allowed: Sequence[JobStatus]) -> None:
    """One of each, and one that does not exist, amended at once; exactly these statuses allow it."""
    await one_of_each(store)
    answer = await store.amend([*JobStatus, "none"], change, NOW + 5)
    wanted = [Amended(f"{status}", status in allowed, status) for status in JobStatus]
    equal(answer, [*wanted, Amended("none", ok=False, status=None)], "the answers")


async def check_cancel(lab: Lab) -> None:
    store = lab.store
    await _amended(store, Cancel("not needed"), LIVE)
    for status in (JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.FAILED):
        record = await get(store, f"{status}")
        found = (record.status, record.ended_at, record.error, record.parked)
        equal(found, (JobStatus.CANCELLED, NOW + 5, "not needed", False), f"the one that was {status}")
    running = await get(store, "processing")
    equal((running.status, running.cancelling), (JobStatus.PROCESSING, True), "the one that is processing")
    equal(await statuses(store, *ENDED), [*ENDED], "those that had ended")
    equal((await state(store)).last_ended, NOW + 5, "when the worker last ended")
    equal(await claim_ids(store), [], "claimed")
    equal((await store.promote(10, LATER)).moved, 0, "promoted")
    equal(
        [one.ok for one in await store.amend(["processing", "queued"], Cancel(), NOW)], [True, False], "cancelled again"
    )
    equal(await store.prune(10, NOW + 5 + SECONDS_A_DAY - 1), 0, "pruned within a day")
    equal(await store.prune(10, NOW + 5 + SECONDS_A_DAY), 4, "pruned after a day")


async def check_requeue(lab: Lab) -> None:
    store = lab.store
    requeuable = (JobStatus.SCHEDULED, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED)
    await one_of_each(store)
    before = {status: await get(store, f"{status}") for status in JobStatus}
    answer = await store.amend([*JobStatus, "none"], Requeue(run_at=NOW + 1), NOW + 5)
    equal([one.ok for one in answer], [*(status in requeuable for status in JobStatus), False], "the answers")
    for status, record in before.items():
        wanted = record
        if status in requeuable:
            cleared = replace(record, status=JobStatus.QUEUED, run_at=NOW + 1, rank=NOW + 1, attempt=0, crashes=0)
            wanted = replace(cleared, ended_at=None, result=None, progress=None)
        equal(await get(store, f"{status}"), wanted, f"the one that was {status}")
    equal(await claim_ids(store), ["queued", "cancelled", "dead", "failed", "scheduled"], "claimed")
    equal(await store.prune(10, NOW + 1e9), 0, "pruned")


async def check_requeue_with_another_payload(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", payload=b"old"), job("2", payload=b"old"))
    for id in ("1", "2"):
        await finish(store, failed(await claim_one(store, id), keep_until=NOW + 9))
    await store.amend(["1"], Requeue(run_at=NOW, payload=b"new"), NOW)
    equal((await claim_one(store, "1")).payload, b"new", "the payload")
    await store.amend(["2"], Requeue(run_at=NOW), NOW)
    equal((await claim_one(store, "2")).payload, b"old", "the payload that was left alone")
    equal(await store.prune(10, NOW + 9), 0, "pruned: it lives again")


async def check_requeue_under_the_key_of_another_payload(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", key="wrong", unique_key="u"), job("2", key="right"))
    await finish(store, failed(await claim_one(store, "1")))
    await claim_one(store, "2")
    before = await get(store, "1")
    await store.amend(["1"], Requeue(run_at=NOW, payload=b"new", key="right"), NOW)
    again = await get(store, "1")
    changed = replace(before, status=again.status, payload=b"new", key="right", parked=True)
    equal(replace(again, error=before.error), replace(changed, attempt=0, ended_at=None, run_at=NOW), "the job")
    equal(await claim_ids(store), [], "claimed while another has its key")
    await add(store, job("3", key="wrong"))
    equal(await claim_ids(store), ["3"], "claimed under the key it had")


async def check_requeue_for_later(lab: Lab) -> None:
    await one_of_each(lab.store)
    await lab.store.amend(["dead"], Requeue(run_at=LATER + 1), NOW)
    equal(await statuses(lab.store, "dead"), ["scheduled"], "the status")
    equal((await lab.store.promote(2, LATER)).next_at, LATER + 1, "when it is due")


async def check_requeue_is_refused_while_another_has_the_unique_key(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", unique_key="u"))
    await finish(store, failed(await claim_one(store, "1")))
    await add(store, job("2", unique_key="u"))
    answer = await store.amend(["1"], Requeue(run_at=NOW), NOW)
    equal(answer, [Amended("1", ok=False, status=JobStatus.DEAD)], "while another is queued")
    await finish(store, succeeded(await claim_one(store, "2")))
    equal([one.ok for one in await store.amend(["1"], Requeue(run_at=NOW), NOW)], [True], "when it has ended")
    equal((await store.add([job("3", unique_key="u")], NOW))[0].id, "1", "the job of the key")


async def check_discard(lab: Lab) -> None:
    store = lab.store
    await _amended(store, Discard(), ENDED)
    left = [status.value if status in LIVE else None for status in JobStatus]
    equal(await statuses(store, *JobStatus), left, "what is left")
    equal((await store.stats(NOW)).pools["p"].dead, 0, "dead jobs counted")
    await add(store, job("dead", unique_key="u dead"))


# ── stats ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_stats_count_what_is_there(lab: Lab) -> None:
    store = lab.store
    await one_of_each(store)
    await add(store, job("k1", "v", key="k"), job("k2", "v", key="k"), job("q", "v", pool="q", run_at=NOW - 7))
    numbers = await (await lab.restart()).stats(NOW)
    wanted = PoolStats(queued=3, waiting=1, scheduled=1, retrying=1, processing=1, dead=1, oldest_run_at=NOW)
    grown = {"added": 10, "completed": 1, "failed": 2}
    equal(numbers.pools["p"], replace(wanted, **grown), "pool p")
    equal(numbers.pools["q"], PoolStats(queued=1, added=1, oldest_run_at=NOW - 7), "pool q")
    now = WorkerStats(queued=1, waiting=1, scheduled=1, retrying=1, processing=1, dead=1)
    here = replace(now, completed=1, failed=2, died=1)
    equal(numbers.workers["w"], here, "worker w")
    equal(numbers.workers["v"], WorkerStats(queued=3), "worker v")


async def check_stats_follow_a_history(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3"), job("4", run_at=LATER))
    await store.add([job("1"), job("2")], NOW)
    one = await claim_one(store, "1", now=NOW)
    two = await claim_one(store, "2", now=NOW + 1)
    three = await claim_one(store, "3", now=NOW + 2)
    await finish(store, succeeded(one, now=NOW + 2.5, waited=0.25, marks="w2 r8"))
    raised: dict[str, Any] = {"run_at": LATER, "keeps_rank": False, "waited": 1.5, "marks": "w2 r7 raised"}
    await finish(store, outcome(two, JobStatus.FAILED, now=NOW + 2, **raised))
    await store.finish([succeeded(stale, waited=9.0, marks="w9") for stale in (one, two)], NOW)
    await finish(store, outcome(three, JobStatus.QUEUED, now=NOW + 9, waited=9.0, marks="drained"))
    marks = {"w2": 2, "r8": 1, "r7": 1, "raised": 1, "drained": 1}
    grown: dict[str, Any] = {"added": 4, "completed": 1, "failed": 1, "run_seconds": 3.5, "wait_seconds": 1.75}
    grown["marks"] = marks
    wanted = PoolStats(queued=1, scheduled=1, retrying=1, **grown)
    equal((await store.stats(NOW)).pools["p"], replace(wanted, oldest_run_at=NOW), "after one success and one failure")
    await store.promote(10, LATER)
    claimed = [await claim_one(store, id, now=LATER) for id in ("3", "2", "4")]
    await finish(store, *(failed(one, now=LATER + 1, waited=0.5, marks="w2 r7") for one in claimed))
    marks |= {"w2": 5, "r7": 4}
    grown |= {"failed": 4, "run_seconds": 6.5, "wait_seconds": 3.25}
    wanted = PoolStats(dead=3, **grown)
    equal((await store.stats(NOW)).pools["p"], wanted, "after all have ended")
    await store.amend(["2", "3"], Discard(), NOW)
    await store.amend(["4"], Requeue(run_at=LATER), LATER)
    wanted = replace(wanted, dead=0, queued=1, oldest_run_at=LATER)
    equal((await store.stats(NOW)).pools["p"], wanted, "after some were discarded, and one requeued")


async def check_marks_are_counted_by_pool_of_what_is_accepted(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3", "v"), job("4", pool="q"))
    one, two, three = await claim(store, workers=["w", "v"])
    [four] = await claim(store, pool="q")
    ended = [
        succeeded(one, waited=1.0, marks="w7 r1"),
        failed(three, waited=0.5, marks="w6 r1 raised"),
        succeeded(four, waited=0.25, marks="w5 r1"),
    ]
    stale = replace(succeeded(two, waited=9.0, marks="w10 r1"), fence=two.fence - 1)
    accepted = (await store.finish([ended[0], stale, *ended[1:], ended[0]], NOW)).accepted
    equal(accepted, [True, False, True, True, False], "accepted")
    pools = (await (await lab.restart()).stats(NOW)).pools
    equal(pools["p"].marks, {"w7": 1, "w6": 1, "r1": 2, "raised": 1}, "the marks of pool p")
    equal(pools["q"].marks, {"w5": 1, "r1": 1}, "the marks of pool q")
    equal((pools["p"].wait_seconds, pools["q"].wait_seconds), (1.5, 0.25), "seconds waited")


async def check_marks_of_workers_are_counted_for_them_and_for_their_pools(lab: Lab) -> None:
    store, spaced = lab.store, "send mail"
    await add(store, job("1"), job("2", spaced), job("3", spaced, pool="q"), job("4"), job("5"))
    one, two, four, five = await claim(store, workers=["w", spaced])
    [three] = await claim(store, workers=[spaced], pool="q")
    await finish(
        store,
        succeeded(one, marks=timed("w", 0.2, 3.0)),
        failed(two, marks=f"{timed(spaced, 0.3, 3.0)} raised"),
        succeeded(three, marks=timed(spaced, 0.2, 3.0)),
    )
    await finish(store, succeeded(four, marks=timed("w", 0.2, 3.0)))
    late = [replace(succeeded(five, marks=timed("w", 0.2, 3.0)), fence=five.fence - 1), succeeded(five, marks="w5 r9")]
    equal(
        (await store.finish(late, NOW)).accepted, [False, True], "accepted: of these, a node of version 0.1 wrote one"
    )
    stats = await (await lab.restart()).stats(NOW)
    of_p = {"w0.2s": 2, "w0.35s": 1, "r3.5s": 3, "raised": 1, "w5": 1, "r9": 1}
    equal(stats.pools["p"].marks, of_p, "the marks of pool p")
    equal(stats.pools["q"].marks, {"w0.2s": 1, "r3.5s": 1}, "the marks of pool q")
    equal({name: of.marks for name, of in stats.workers.items()}, {"w": {"r3.5s": 2}, spaced: {"r3.5s": 2}}, "workers")
    equal((sum(waits(of_p)), sum(runs(of_p))), (4, 4), "both kinds of names together")


async def check_the_head_of_the_queue_is_the_first_by_rank(lab: Lab) -> None:
    store = lab.store
    await add(
        store, job("1", run_at=NOW - 50), job("2", run_at=NOW - 10, head_start=3600), job("3", run_at=NOW - 99, key="k")
    )
    await claim_one(store, "2")
    await claim_one(store, "3")
    await add(store, job("4", run_at=NOW - 98, key="k"), job("5", "v", run_at=NOW - 20, head_start=3600))
    equal((await store.stats(NOW)).pools["p"].oldest_run_at, NOW - 20, "when the head of the queue became due")
