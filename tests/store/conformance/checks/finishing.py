"""`finish`: what each outcome writes, the fence, the cancel that was asked for, and what counts against a worker."""

from msgspec.structs import replace

from shiftwork.core.model.job_changes import Cancel, Outcome
from shiftwork.core.model.jobs import SECONDS_A_DAY, Claimed, JobRecord, JobStatus, LogLine, Progress, ProgressNote
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
    report,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab

LATER = NOW + 60


async def check_completed_is_written_whole(lab: Lab) -> None:
    changes = {"result": b"\x00\x01", "attempt": 1, "crashes": 2, "run_at": NOW - 1}
    await _is_written(lab, JobStatus.COMPLETED, JobStatus.COMPLETED, changes)


async def check_dead_is_written_whole(lab: Lab) -> None:
    await _is_written(lab, JobStatus.DEAD, JobStatus.DEAD, {"error": "e", "attempt": 9, "crashes": 3})


async def check_cancelled_is_written_whole(lab: Lab) -> None:
    await _is_written(lab, JobStatus.CANCELLED, JobStatus.CANCELLED, {"error": "cancelled"})


async def check_failed_is_written_whole(lab: Lab) -> None:
    await _is_written(lab, JobStatus.FAILED, JobStatus.FAILED, {"error": "e", "run_at": LATER, "attempt": 1})


async def check_failed_and_due_is_queued_at_once(lab: Lab) -> None:
    await _is_written(lab, JobStatus.FAILED, JobStatus.QUEUED, {"error": "e", "run_at": NOW + 3})


async def check_handed_back_is_queued_at_once(lab: Lab) -> None:
    await _is_written(lab, JobStatus.QUEUED, JobStatus.QUEUED, {"attempt": 0})


async def check_handed_back_for_later_is_scheduled(lab: Lab) -> None:
    await _is_written(lab, JobStatus.QUEUED, JobStatus.SCHEDULED, {"attempt": 0, "run_at": LATER})


async def _is_written(lab: Lab, said: JobStatus, becomes: JobStatus, changes: dict[str, object]) -> None:
    """Finish three seconds from `NOW` what ended two seconds from it."""
    store = lab.store
    await add(store, job("1", run_at=NOW - 9, head_start=5, unique_key="u", key="k", trace="t"))
    claimed = await claim_one(store, "1")
    await store.note([ProgressNote("1", claimed.fence, Progress(1))])
    before = await get(store, "1")
    ended = outcome(claimed, said, now=NOW + 2, report=report(claimed), **changes)
    await finish(store, ended, now=NOW + 3)
    at = None if becomes.live else NOW + 2
    wanted = replace(before, status=becomes, ended_at=at, attempts=(report(claimed),), **changes)
    equal(await get(store, "1"), wanted, f"the job, once it is {said}")


async def check_a_job_handed_back_keeps_its_place(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", run_at=NOW - 9), job("2", run_at=NOW - 8))
    claimed = await claim_one(store, "1")
    await finish(store, outcome(claimed, JobStatus.QUEUED, attempt=0), now=NOW + 100)
    again = await claim_one(store, "1")
    equal((again.attempt, again.fence > claimed.fence), (1, True), "attempt, and whether the fence is higher")


async def check_reports_add_up(lab: Lab) -> None:
    await add(lab.store, job("1"))
    reports = []
    for number in range(4):
        claimed = await claim_one(lab.store, "1")
        reports.append(report(claimed, error=f"error {number}"))
        await finish(lab.store, outcome(claimed, JobStatus.FAILED, report=reports[-1]))
    await finish(lab.store, succeeded(await claim_one(lab.store, "1")))
    equal((await get(await lab.restart(), "1")).attempts, tuple(reports), "the attempts")


# ── the fence ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_stale_outcome_is_refused_and_changes_nothing(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, job("3"))
    plain = await claim_one(store, "3", instance="gone at first")
    [taken] = await store.reap("r", 10, NOW)
    await _changes_nothing(store, succeeded(plain))
    await finish(store, succeeded(taken.claimed()))
    await add(store, job("1", key="k", unique_key="u"), job("2", key="k", run_at=NOW + 0))
    stale = await claim_one(store, "1", instance="gone")
    [taken] = await store.reap("r", 10, NOW)
    await _changes_nothing(store, failed(stale, disable_after=1, report=report(stale), keep_until=NOW))
    await _changes_nothing(store, replace(succeeded(stale), fence=taken.fence + 1))
    await _changes_nothing(store, replace(succeeded(stale), fence=0))
    await finish(store, succeeded(taken.claimed()))


async def check_an_outcome_of_a_job_that_is_not_processing_is_refused(lab: Lab) -> None:
    store = lab.store
    reached: list[JobStatus] = [status for status in JobStatus if status is not JobStatus.WAITING]
    for status in reached:
        await add(store, job(f"{status}", "v"))
    for claimed in await claim(store, workers=["v"]):
        if claimed.id == "processing":
            continue
        status = JobStatus.QUEUED if claimed.id == "scheduled" else JobStatus(claimed.id)
        run_at = NOW if claimed.id == "queued" else LATER
        await finish(store, outcome(claimed, status, run_at=run_at))
        await _changes_nothing(store, failed(claimed, disable_after=1))
    equal(await statuses(store, *reached), reached, "the statuses")


async def check_an_outcome_of_no_job_is_refused(lab: Lab) -> None:
    await _changes_nothing(lab.store, succeeded(Claimed("none", "w", "p", b"", 1, 1, 0, NOW)))


async def check_the_second_of_two_outcomes_is_refused(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3"))
    one, two, three = await claim(store)
    refused = replace(succeeded(two), fence=two.fence - 1)
    finished = await store.finish([failed(one), refused, succeeded(one), succeeded(three)], NOW)
    equal(finished.accepted, [True, False, False, True], "accepted")
    equal(await statuses(store, "1", "2", "3"), ["dead", "processing", "completed"], "the statuses")
    await _changes_nothing(store, failed(one, disable_after=1))


async def check_an_outcome_that_is_given_twice_counts_once(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    finished = await store.finish([succeeded(claimed), succeeded(claimed)], NOW)
    equal(finished.accepted, [True, False], "accepted")
    pool = (await store.stats(NOW)).pools["p"]
    equal((pool.processing, pool.completed), (0, 1), "processing and completed")


async def _changes_nothing(store: Store, refused: Outcome) -> None:
    before = await _everything(store)
    equal((await store.finish([refused], NOW + 1)).accepted, [False], f"whether {refused.id} is accepted")
    equal(await _everything(store), before, "the store, after a refusal")


async def _everything(store: Store) -> tuple[object, ...]:
    ids = ["1", "2", "3", "none", *JobStatus]
    states = [await state(store, worker) for worker in ("w", "v")]
    return (await store.get(ids), states, await store.stats(NOW), await store.prune(0, NOW))


# ── the cancel that was asked for ────────────────────────────────────────────────────────────────────────────────────


async def check_a_job_that_was_cancelled_does_not_run_again(lab: Lab) -> None:
    store = lab.store
    await add(store, job("failed"), job("queued"), job("failed, due"))
    outcomes = {
        "failed": (JobStatus.FAILED, LATER),
        "queued": (JobStatus.QUEUED, NOW),
        "failed, due": (JobStatus.FAILED, NOW),
    }
    for claimed in await claim(store):
        await store.amend([claimed.id], Cancel(), NOW)
        status, run_at = outcomes[claimed.id]
        await finish(store, outcome(claimed, status, run_at=run_at, now=NOW + 1, error="e"), now=NOW + 2)
        record = await get(store, claimed.id)
        equal((record.status, record.cancelling), (JobStatus.CANCELLED, False), f"{claimed.id}: status, and cancelling")
    equal((await state(store)).last_ended, NOW + 1, "when the worker last ended")
    equal(await store.prune(10, NOW + 2 + SECONDS_A_DAY - 1), 0, "pruned within a day")
    equal(await store.prune(10, NOW + 2 + SECONDS_A_DAY), 3, "pruned after a day")


async def check_a_job_that_ended_in_spite_of_a_cancel_has_ended_so(lab: Lab) -> None:
    store = lab.store
    for status in (JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.CANCELLED):
        await add(store, job(f"{status}"))
        claimed = await claim_one(store, f"{status}")
        await store.amend([claimed.id], Cancel(), NOW)
        await finish(store, outcome(claimed, status))
        record = await get(store, claimed.id)
        equal((record.status, record.cancelling), (status, False), "status, and cancelling")


# ── what counts against a worker ─────────────────────────────────────────────────────────────────────────────────────


async def ran(store: Store, id: str, now: float) -> Claimed:
    """A job that runs."""
    await add(store, job(id, run_at=now), now=now)
    return await claim_one(store, id, now=now, workers=["w"])


async def check_failures_are_counted_and_a_success_resets_them(lab: Lab) -> None:
    store = lab.store
    await finish(store, failed(await ran(store, "1", NOW), error="first"))
    await finish(store, failed(await ran(store, "2", NOW), error="second"))
    found = await state(store)
    equal((found.failures, found.last_error, found.last_success), (2, "second", None), "after two failures")
    await finish(store, outcome(await ran(store, "3", NOW), JobStatus.DEAD, error="neutral"))
    equal((await state(store)).failures, 2, "after an end that says nothing about the worker")
    await finish(store, succeeded(await ran(store, "4", NOW), now=NOW + 7), now=NOW + 8)
    found = await state(store)
    equal((found.failures, found.last_error, found.last_success), (0, "second", NOW + 7), "after a success")
    holds(found.enabled, "it is enabled")


async def check_an_attempt_that_is_retried_leaves_its_error(lab: Lab) -> None:
    store = lab.store
    first = outcome(await ran(store, "1", NOW), JobStatus.FAILED, run_at=NOW + 60, error="late", now=NOW + 5)
    await finish(store, first, now=NOW + 5)
    found = await state(store)
    equal((found.failures, found.last_error, found.last_error_at), (0, "late", NOW + 5), "between two attempts")
    second = outcome(await ran(store, "2", NOW), JobStatus.FAILED, run_at=NOW + 60, error="early", now=NOW + 4)
    await finish(store, second, now=NOW + 6)
    equal((await state(store)).last_error, "late", "the error, after an earlier one that was written later")
    await finish(store, succeeded(await ran(store, "3", NOW), now=NOW + 7), now=NOW + 8)
    after = await state(await lab.restart())
    equal((after.last_error, after.last_error_at), ("late", NOW + 5), "the error, which a success does not clear")


async def check_last_ended_is_set_by_ends_for_good(lab: Lab) -> None:
    store = lab.store
    for after, status in ((10, JobStatus.FAILED), (20, JobStatus.QUEUED)):
        claimed = await ran(store, f"{status}", NOW + after)
        await finish(store, outcome(claimed, status, run_at=NOW + 500, now=NOW + after), now=NOW + after)
        equal((await state(store)).last_ended, None, f"when it last ended, after {status}")
    for after, status in ((30, JobStatus.COMPLETED), (40, JobStatus.DEAD), (50, JobStatus.CANCELLED)):
        claimed = await ran(store, f"{status}", NOW + after)
        await finish(store, outcome(claimed, status, now=NOW + after + 1), now=NOW + after + 2)
        equal((await state(store)).last_ended, NOW + after + 1, f"when it last ended, after {status}")
    equal((await state(store)).last_success, None, "its last success: no verdict was given")


async def check_a_worker_is_disabled_in_the_same_step(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}") for n in range(4)))
    first, second, third = await claim(store, 3)
    equal(await finish(store, failed(first, disable_after=3)), [], "disabled by the first failure")
    outcomes = [failed(second, disable_after=3), failed(third, disable_after=3, error="the last straw", now=NOW + 1)]
    equal(await finish(store, *outcomes, now=NOW + 2), ["w"], "disabled by the third failure")
    found = await state(store)
    equal((found.enabled, found.failures, found.changed_at), (False, 3, NOW + 1), "enabled, failures and changed_at")
    reason = found.reason or ""
    holds("3" in reason and "the last straw" in reason, f"the reason names count and error: {reason!r}")
    equal(await claim_ids(store), [], "claimed")
    equal(await statuses(store, "3"), ["queued"], "its queued job waits")


async def check_a_disabled_worker_is_not_disabled_again(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"))
    first, second = await claim(store)
    await store.switch("w", enabled=False, reason="by hand", now=NOW)
    equal(await finish(store, failed(first, disable_after=1), failed(second, disable_after=1)), [], "disabled")
    equal((await state(store)).reason, "by hand", "the reason")


async def check_without_a_limit_nobody_is_disabled(lab: Lab) -> None:
    for number in range(20):
        equal(await finish(lab.store, failed(await ran(lab.store, f"{number}", NOW))), [], "disabled")
    equal((await state(lab.store)).failures, 20, "failures")


async def check_outcomes_of_a_batch_count_in_their_order(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}") for n in range(5)))
    one, two, three, four, five = await claim(store)
    first = [failed(one, disable_after=3), failed(two, disable_after=3), succeeded(three)]
    then = [failed(four, disable_after=3), failed(five, disable_after=3)]
    equal(await finish(store, *first, *then), [], "disabled: the success came in between")
    equal((await state(store)).failures, 2, "failures since")


async def check_a_failure_after_the_last_attempt_is_named_once(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3", "v"))
    outcomes = [failed(claimed, disable_after=1) for claimed in await claim(store)]
    equal(await finish(store, *outcomes), ["w", "v"], "disabled")


async def check_progress_is_kept_under_the_current_fence_only(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    old = await claim_one(store, "1")
    await finish(store, outcome(old, JobStatus.QUEUED))
    await store.note([ProgressNote("1", old.fence, Progress(1))])
    equal((await get(store, "1")).progress, None, "progress of a job that does not run")
    new = await claim_one(store, "1")
    half = Progress(1.5, 3.0, "half ☃", NOW, log=(LogLine(NOW, "info", "said ☃", 1),))
    await store.note([ProgressNote("1", new.fence, half), ProgressNote("none", 1, half)])
    await store.note([ProgressNote("1", old.fence, Progress(9))])
    equal((await get(store, "1")).progress, half, "progress")
    record: JobRecord = await get(store, "1")
    equal(record.status, JobStatus.PROCESSING, "status")
