"""`add`: idempotent by id, unique by key, queued or scheduled."""

import asyncio
from typing import Final

from shiftwork.core.model.job_changes import Cancel, Discard
from shiftwork.core.model.jobs import Added, JobPriority, JobRecord, JobStatus
from shiftwork.store.abilities import add_blocking
from tests.store.conformance.acts import NOW, add, claim_ids, claim_one, finish, get, job, outcome, statuses
from tests.store.conformance.expect import equal, holds, soon
from tests.store.conformance.lab import Lab

LATER: Final = NOW + 3600


async def check_added_jobs_are_kept_whole(lab: Lab) -> None:
    payload = bytes(range(256)) * 40
    new = job(
        "é-☃-1",
        "worker ü",
        pool="pool '1'",
        payload=payload,
        run_at=NOW - 0.125,
        priority=JobPriority.CRITICAL,
        head_start=10800.5,
        unique_key='u"\\%_',
        key="k;--",
        key_limit=3,
        cause="triggered",
        trace="00-abc-01",
    )
    equal(await lab.store.add([new], NOW), [Added("é-☃-1", created=True)], "the answer")
    wanted = JobRecord(
        id="é-☃-1",
        worker="worker ü",
        pool="pool '1'",
        status=JobStatus.QUEUED,
        payload=payload,
        priority=JobPriority.CRITICAL,
        head_start=10800.5,
        run_at=NOW - 0.125,
        rank=NOW - 10800.625,
        created_at=NOW,
        cause="triggered",
        unique_key='u"\\%_',
        key="k;--",
        key_limit=3,
        trace="00-abc-01",
    )
    equal(await get(await lab.another(), "é-☃-1"), wanted, "the job")


async def check_a_thread_without_an_event_loop_adds_jobs(lab: Lab) -> None:
    """A store may have this ability. What it adds so is what `add` adds; what it cannot, it leaves to `add`."""
    given = [job(f"{n}", payload=b"p", head_start=float(n % 3), trace="00-abc-01" if n else None) for n in range(6)]
    bell = lab.store.listen({"pool:p"})
    answers = await asyncio.to_thread(lambda: [add_blocking(lab.store, [one], NOW) for one in given])
    left = [one for one, answer in zip(given, answers, strict=True) if answer is None]
    equal([a for a in answers if a], [[Added(j.id, created=True)] for j in given if j not in left], "the answers")
    if left:
        await lab.store.add(left, NOW)
    await soon(bell.wait(), "a ring")
    bell.close()
    again = await asyncio.to_thread(add_blocking, lab.store, [job("5")], NOW)
    holds(again in (None, [Added("5", created=False)]), "a job whose id exists is not new")
    for one in given:
        equal(await get(lab.store, one.id), JobRecord.of(one, NOW), "the job")
    equal((await lab.store.stats(NOW)).pools["p"].queued, len(given), "the queued jobs")
    equal(await claim_ids(lab.store), ["2", "5", "1", "4", "0", "3"], "the order of the jobs")


async def check_a_plain_job_is_kept_whole(lab: Lab) -> None:
    await add(lab.store, job("1", payload=b""))
    wanted = JobRecord(
        id="1",
        worker="w",
        pool="p",
        status=JobStatus.QUEUED,
        payload=b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=NOW,
        rank=NOW,
        created_at=NOW,
    )
    equal(await get(lab.store, "1"), wanted, "the job")


async def check_answers_come_in_order(lab: Lab) -> None:
    await add(lab.store, job("2"))
    answer = await lab.store.add([job("3"), job("2"), job("1"), job("3")], NOW)
    wanted = [Added("3", created=True), Added("2", created=False), Added("1", created=True), Added("3", created=False)]
    equal(answer, wanted, "the answers")
    answer = await lab.store.add([job("4"), job("4")], NOW)
    equal(answer, [Added("4", created=True), Added("4", created=False)], "the answers to new jobs only")


async def check_the_same_id_is_one_job(lab: Lab) -> None:
    await add(lab.store, job("1", payload=b"first"))
    before = await get(lab.store, "1")
    again = job("1", "v", pool="q", payload=b"second", run_at=LATER, unique_key="u", key="k")
    equal(await lab.store.add([again], NOW + 1), [Added("1", created=False)], "the answer")
    equal(await get(lab.store, "1"), before, "the job")
    equal((await lab.store.stats(NOW)).pools["p"].added, 1, "jobs counted")
    equal((await lab.store.add([job("2", "v", unique_key="u")], NOW))[0].created, wanted=True, about="the key is free")


async def check_an_id_stays_taken_while_its_ended_job_is_kept(lab: Lab) -> None:
    await add(lab.store, job("1"))
    await finish(lab.store, outcome(await claim_one(lab.store, "1")))
    equal(await lab.store.add([job("1")], NOW), [Added("1", created=False)], "the answer")
    equal(await statuses(lab.store, "1"), ["completed"], "the job")


async def check_due_now_is_queued_and_later_is_scheduled(lab: Lab) -> None:
    await add(lab.store, job("1", run_at=NOW - 1), job("2", run_at=NOW), job("3", run_at=NOW + 0.001))
    equal(await statuses(lab.store, "1", "2", "3"), ["queued", "queued", "scheduled"], "statuses")


async def check_a_unique_key_is_taken_by_every_live_status(lab: Lab) -> None:
    store = lab.store
    await add(store, job("queued", unique_key="q"), job("scheduled", unique_key="s", run_at=LATER))
    await add(store, job("processing", "v", unique_key="p"), job("failed", "v", unique_key="f"))
    await finish(store, outcome(await claim_one(store, "failed", workers=["v"]), JobStatus.FAILED, run_at=LATER))
    await claim_one(store, "processing", workers=["v"])
    await _is_taken(lab, "w", "q", by="queued")
    await _is_taken(lab, "w", "s", by="scheduled")
    await _is_taken(lab, "v", "p", by="processing")
    await _is_taken(lab, "v", "f", by="failed")


async def check_a_unique_key_is_the_workers_own(lab: Lab) -> None:
    await add(lab.store, job("1", "w", unique_key="u"), job("2", "v", unique_key="u"), job("3", "w", unique_key="U"))


async def check_a_unique_key_holds_within_a_batch(lab: Lab) -> None:
    answer = await lab.store.add([job("1", unique_key="u"), job("2", unique_key="u")], NOW)
    equal(answer, [Added("1", created=True), Added("1", created=False)], "the answers")
    equal(await statuses(lab.store, "2"), [None], "the second job")


async def check_an_id_that_was_not_needed_is_free(lab: Lab) -> None:
    """The same call may use it for another job."""
    answer = await lab.store.add(
        [job("1", unique_key="u"), job("2", unique_key="u"), job("2", "v"), job("2", "a")], NOW
    )
    wanted = [Added("1", created=True), Added("1", created=False), Added("2", created=True), Added("2", created=False)]
    equal(answer, wanted, "the answers")
    equal((await get(lab.store, "2")).worker, "v", "whose job it is")


async def check_a_unique_key_is_freed_by_every_end(lab: Lab) -> None:
    store = lab.store
    for status in (JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED):
        await add(store, job(f"{status}", unique_key="u"))
        await finish(store, outcome(await claim_one(store, f"{status}"), status))
    for run_at in (NOW, LATER):
        await add(store, job(f"amended {run_at}", unique_key="u", run_at=run_at))
        equal([one.ok for one in await store.amend([f"amended {run_at}"], Cancel(), NOW)], [True], "cancelled")
    await add(store, job("last", unique_key="u"))


async def check_discarding_an_older_job_frees_no_key(lab: Lab) -> None:
    store = lab.store
    await add(store, job("old", unique_key="u"))
    await finish(store, outcome(await claim_one(store, "old")))
    await add(store, job("new", unique_key="u"))
    await store.amend(["old"], Discard(), NOW)
    await _is_taken(lab, "w", "u", by="new")


async def _is_taken(lab: Lab, worker: str, key: str, *, by: str) -> None:
    answer = await lab.store.add([job(f"another {by}", worker, unique_key=key)], NOW)
    equal(answer, [Added(by, created=False)], f"the answer while one is {by}")
