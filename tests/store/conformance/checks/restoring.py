"""Moving in from another store: what is restored is there as it was, and behaves as it did."""

from typing import Any, Final

from msgspec.structs import replace

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter, Requeue
from shiftwork.core.model.job_parts import Need, Signal, Step, Wait
from shiftwork.core.model.jobs import Attempt, JobPriority, JobRecord, JobStatus, Progress
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.workers.breaker import BreakerState
from tests.store.conformance.acts import (
    NOW,
    add,
    claim_ids,
    claim_one,
    failed,
    finish,
    get,
    job,
    outcome,
    put,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal, holds, soon
from tests.store.conformance.lab import Lab

LARGE: Final = 10_000
FAR: Final = 1 << 51
"""A fence of a store whose fences follow a clock."""


def record(id: str, status: JobStatus = JobStatus.QUEUED, worker: str = "w", **more: Any) -> JobRecord:
    """A job as another store had it."""
    plain = JobRecord(
        id=id,
        worker=worker,
        pool="p",
        status=status,
        payload=b"\x80",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=NOW - 60.0,
        rank=0.0,
        created_at=NOW - 90.0,
        unmet=(Need("needed"),) if status is JobStatus.WAITING else (),
    )
    given = replace(plain, **more)
    return given if "rank" in more else replace(given, rank=given.run_at - given.head_start)


def run_before(id: str, status: JobStatus, **more: Any) -> JobRecord:
    """One that has run, with all that a run leaves behind."""
    attempt = Attempt(
        number=1, started_at=NOW - 50.25, ended_at=NOW - 49.5, kind="raised", error="E\n☃", instance="i/1"
    )
    left: dict[str, Any] = {
        "payload": b"p" * LARGE,
        "priority": JobPriority.HIGH,
        "head_start": 7200.125,
        "cause": "scheduled",
        "attempt": 3,
        "crashes": 2,
        "fence": 77,
        "instance": "node/1",
        "started_at": NOW - 40.0625,
        "ended_at": NOW - 30.1,
        "result": b"r" * LARGE,
        "error": "it broke ☃",
        "progress": Progress(1.0, 3.0, "a third", NOW - 35.0),
        "attempts": (attempt, replace(attempt, number=2, traceback="x" * LARGE)),
        "trace": "00-1-2-01",
        "unique_key": f"unique {id}",
        "key_limit": 4,
        "tags": ("customer 7", "☃"),
        "flow": f"flow of {id}",
        "steps": (
            Step(1, "charge", b"s" * LARGE, NOW - 39.5, NOW - 39.0),
            Step(2, "mail ☃", b"", NOW - 38.0, NOW - 37.5),
        ),
        "signals": (Signal("approval", b"v" * LARGE, NOW - 36.5),),
        "options": b"o" * 30,
    }
    return record(id, status, **(left | more))


def one_of_each() -> list[JobRecord]:
    """Every status but processing, bare and with everything."""
    later = {JobStatus.SCHEDULED: NOW + 60.5, JobStatus.FAILED: NOW + 30.25}
    kept = {JobStatus.COMPLETED: NOW + 9.5, JobStatus.CANCELLED: NOW + 10.5}
    waiting = [status for status in JobStatus if status is not JobStatus.PROCESSING]
    bare = [record(f"bare {status}", status, run_at=later.get(status, NOW)) for status in waiting]
    full = [
        run_before(status, status, run_at=later.get(status, NOW), keep_until=kept.get(status)) for status in waiting
    ]
    slept = run_before("slept", JobStatus.SCHEDULED, run_at=NOW + 99.5, wait=Wait("approval", 2))
    fresh = record("fresh", JobStatus.SCHEDULED, run_at=NOW + 98.5, expires_at=NOW + 97.5)
    held = run_before("held", JobStatus.CANCELLED, unmet=(Need("a", alone=True), Need("b", whatever=True)))
    return [*bare, *full, slept, fresh, held]


async def check_restored_jobs_are_as_they_were(lab: Lab) -> None:
    wanted = one_of_each()
    await lab.store.restore(wanted, NOW)
    ids = [one.id for one in wanted]
    store = await lab.restart()
    for got, one in zip(await store.get(ids, whole=True), wanted, strict=True):
        equal(got, one, f"job {one.id}")
    await store.restore(wanted, NOW)
    equal(await store.get(ids, whole=True), wanted, "the jobs, restored twice")


async def check_restored_jobs_are_counted_once_and_not_as_added(lab: Lab) -> None:
    await lab.store.restore(one_of_each(), NOW)
    await lab.store.restore(one_of_each(), NOW)
    numbers = await lab.store.stats(NOW)
    wanted = PoolStats(queued=2, waiting=2, scheduled=4, retrying=2, dead=2, oldest_run_at=NOW)
    equal(numbers.pools, {"p": wanted}, "the pools")
    equal((numbers.workers["w"].queued, numbers.workers["w"].dead), (2, 2), "the worker's queued and dead jobs")


async def check_a_restored_job_takes_the_place_of_what_was_there(lab: Lab) -> None:
    store = lab.store
    await store.restore([record("1", key="k"), record("2", key="k", run_at=NOW), record("3", unique_key="u")], NOW)
    equal([(await get(store, id)).parked for id in "12"], [False, True], "parked")
    ended = record("1", JobStatus.COMPLETED, key="k", ended_at=NOW - 5, keep_until=NOW + 5)
    await store.restore([ended, record("3", JobStatus.DEAD)], NOW)
    equal(await statuses(store, *"123"), ["completed", "queued", "dead"], "statuses")
    equal(await claim_ids(store), ["2"], "claimed: the first of the key has ended")
    await add(store, job("4", unique_key="u"))
    equal((await store.stats(NOW)).pools["p"].dead, 1, "dead jobs counted")
    equal(await store.prune(10, NOW + 5), 1, "pruned")
    equal(await statuses(store, *"13"), [None, "dead"], "what is left")


async def check_restored_jobs_run_by_rank(lab: Lab) -> None:
    first, second = record("b", run_at=NOW, head_start=3600.0), record("a", run_at=NOW - 60)
    await lab.store.restore([second, first, record("c", JobStatus.SCHEDULED, run_at=NOW + 5)], NOW)
    claimed = await claim_one(lab.store, "b")
    equal((claimed.attempt, claimed.payload), (1, b"\x80"), "the claim")
    await claim_one(lab.store, "a")
    equal((await lab.store.promote(10, NOW + 5)).moved, 1, "promoted")
    await claim_one(lab.store, "c", now=NOW + 5)


async def check_a_restored_attempt_is_counted_on(lab: Lab) -> None:
    await lab.store.restore([run_before("1", JobStatus.FAILED, run_at=NOW + 5.0)], NOW)
    await lab.store.promote(10, NOW + 5)
    claimed = await claim_one(lab.store, "1", now=NOW + 5)
    equal((claimed.attempt, claimed.crashes), (4, 2), "attempt and crashes")
    report = Attempt(number=4, started_at=NOW, ended_at=NOW, kind="raised", error="again")
    await finish(lab.store, failed(claimed, report=report))
    equal([one.number for one in (await get(lab.store, "1")).attempts], [1, 2, 4], "the attempts")


async def check_a_restored_unique_key_is_taken(lab: Lab) -> None:
    store = lab.store
    await store.restore([record("1", unique_key="u"), record("2", JobStatus.DEAD, unique_key="v")], NOW)
    equal((await store.add([job("3", unique_key="u")], NOW))[0].id, "1", "the job that stands for a second one")
    equal((await store.add([job("4", unique_key="v")], NOW))[0].id, "4", "one that died has no key")
    equal([one.ok for one in await store.amend(["2"], Requeue(run_at=NOW), NOW)], [False], "requeued beside it")
    await store.restore([record("5", unique_key="u"), record("6")], NOW)
    equal(await statuses(store, "1", "5", "6"), ["queued", None, "queued"], "a second live one is left out")
    await finish(store, succeeded(await claim_one(store, "1")))
    await store.restore([record("5", unique_key="u")], NOW)
    equal((await store.add([job("7", unique_key="u")], NOW))[0].id, "5", "once the first has ended")


async def check_restored_jobs_wait_for_their_key(lab: Lab) -> None:
    store = lab.store
    jobs = [record(f"{n}", key="k", run_at=NOW + n - 9) for n in range(4)]
    await store.restore([replace(jobs[3], parked=False), *jobs[:3]], NOW)
    equal([(await get(store, id)).parked for id in "0123"], [False, True, True, True], "parked")
    claimed = await claim_one(store, "0")
    equal(await claim_ids(store), [], "claimed while the first runs")
    await store.restore([record("0 before", key="k", run_at=NOW - 99)], NOW)
    equal(await claim_ids(store), [], "claimed when one that ranks ahead has come")
    await finish(store, outcome(claimed))
    equal(await claim_ids(store), ["0 before"], "claimed afterwards")


async def check_restored_jobs_are_found_by_age(lab: Lab) -> None:
    await lab.store.restore([record(f"{n}", worker="wv"[n % 2], created_at=NOW - n) for n in range(4)], NOW)
    equal([one.id for one in await lab.store.find(JobFilter())], ["0", "1", "2", "3"], "newest first")
    equal([one.id for one in await lab.store.find(JobFilter(worker="v"))], ["1", "3"], "of one worker")


async def check_restoring_rings(lab: Lab) -> None:
    bell = lab.store.listen(["pool:p"])
    await lab.store.restore([record("1", key="k")], NOW)
    await soon(bell.wait(), "the pool rings when a queued job is restored")
    bell.close()
    bell = lab.store.listen(["leader"])
    await lab.store.restore([record("2", JobStatus.SCHEDULED, run_at=NOW + 5)], NOW)
    await soon(bell.wait(), "the leader hears of what is due")
    await lab.store.restore([record("3", JobStatus.FAILED, run_at=NOW + 2)], NOW)
    await soon(bell.wait(), "the leader hears of the next attempt of what has failed")
    bell.close()


# ── states, totals, fences, docs ─────────────────────────────────────────────────────────────────────────────────────


async def check_states_are_taken_over(lab: Lab) -> None:
    store = lab.store
    off = WorkerState(
        worker="w",
        enabled=False,
        reason="too loud",
        changed_at=NOW - 5.5,
        failures=3,
        last_started=NOW - 9.25,
        last_ended=NOW - 8.5,
        last_success=NOW - 70.125,
        last_error="it broke ☃",
        last_error_at=NOW - 8.75,
        rate_at=NOW + 7.5,
    )
    plain = WorkerState(worker="v", last_started=NOW - 3.5)
    await store.restore([record("1"), record("2", worker="v")], NOW)
    await store.take_over([off, plain], {}, 0)
    equal(await state(store), off, "the state")
    equal(await claim_ids(store), ["2"], "claimed, while w is disabled")
    await store.take_over([replace(off, enabled=True, reason=None, failures=0, last_error=None)], {}, 0)
    store = await lab.restart()
    equal(await state(store), replace(off, enabled=True, reason=None, failures=0, last_error=None), "another state")
    await finish(store, succeeded(await claim_one(store, "1", now=NOW + 8), now=NOW + 9), now=NOW + 9)
    after = await state(store)
    equal((after.last_started, after.last_ended, after.last_success), (NOW + 8, NOW + 9, NOW + 9), "after a run")
    lanes = (await store.survey(None, NOW)).lanes
    equal(sorted(lanes), ["v", "w"], "the workers")


async def check_totals_are_taken_over(lab: Lab) -> None:
    store = lab.store
    totals = {
        "p": PoolStats(
            added=90, completed=70, failed=8, run_seconds=120.5, wait_seconds=9.5, marks={"w3": 70, "raised": 8}
        ),
        "gone": PoolStats(added=5, completed=4, failed=3, run_seconds=2.25, marks={"r1": 7}),
    }
    await add(store, job("0"))
    await finish(store, succeeded(await claim_one(store, "0"), waited=2.0, marks="w2s r5s@w"))
    await store.restore([record("1")], NOW)
    for _ in range(2):
        await store.take_over([], totals, 0)
    numbers = await store.stats(NOW)
    wanted = replace(totals["p"], queued=1, oldest_run_at=NOW - 60.0)
    equal(numbers.pools, {"p": wanted, "gone": totals["gone"]}, "the pools")
    equal(list(numbers.workers), ["w"], "the workers")
    equal(list((await store.survey(None, NOW)).lanes), ["w"], "the workers that are known")
    await add(store, job("2"))
    equal((await store.stats(NOW)).pools["p"].added, 91, "added, after one more")


async def check_fences_go_on_above_those_of_another_store(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"))
    before = (await claim_one(store, "1")).fence
    own = await store.take_over([], {}, 0)
    holds(own > before, f"a fence of its own, {own}, is higher than {before}")
    above = await store.take_over([], {}, FAR)
    holds(above > FAR, f"{above} is higher than the other store's {FAR}")
    store = await lab.restart()
    claimed = await claim_one(store, "2")
    holds(claimed.fence > above, f"{claimed.fence} is higher than {above}")
    holds(await store.take_over([], {}, 1) > claimed.fence, "and it never goes back")


async def check_docs_of_every_kind_are_listed(lab: Lab) -> None:
    store = lab.store
    equal(await store.docs(), [], "docs of an empty store")
    await put(store, "zoo", "b", b"1")
    await put(store, "breaker", "x", BreakerState())
    await put(store, "zoo", "a", b"2")
    await put(store, "zoo", "a", b"3")
    names = [(doc.kind, doc.name, doc.version) for doc in await (await lab.another()).docs()]
    equal(names, [("breaker", "x", 1), ("zoo", "a", 2), ("zoo", "b", 1)], "the docs")
    equal(await store.docs("zoo"), [Doc("zoo", "a", b"3", 2), Doc("zoo", "b", b"1", 1)], "the docs of one kind")


async def check_when_a_job_may_be_pruned_is_told(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3"))
    await finish(store, outcome(await claim_one(store, "1"), keep_until=NOW + 9.5))
    await finish(store, failed(await claim_one(store, "2")))
    equal([(await get(store, id)).keep_until for id in "123"], [NOW + 9.5, None, None], "keep_until")
    await finish(store, outcome(await claim_one(store, "3"), JobStatus.CANCELLED, keep_until=NOW + 5))
    await store.amend(["3"], Requeue(run_at=NOW), NOW)
    equal((await get(store, "3")).keep_until, None, "keep_until of one that is queued again")
