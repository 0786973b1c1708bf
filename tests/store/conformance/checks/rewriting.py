"""Rewrites: the same content in other bytes, and nothing else changes, whatever the job is doing."""

from typing import Any

from msgspec.structs import replace

from shiftwork.core.model.jobs import JobRecord, JobStatus, LogLine, Progress, ProgressNote, Rewrite
from shiftwork.core.values.rewriting import is_written, rewritten
from tests.store.conformance.acts import NOW, add, claim_one, finish, get_whole, job, outcome, report, succeeded
from tests.store.conformance.checks.restoring import LARGE, record, run_before
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab


def other_bytes(one: JobRecord) -> JobRecord:
    """The same job with other values wherever it has one: small ones become large and large ones small."""
    line = LogLine(NOW, "info", "☃", 1)
    return replace(
        one,
        payload=b"q" * (3 if len(one.payload) > LARGE - 1 else LARGE),
        result=None if one.result is None else b"s" * 3,
        error=None if one.error is None else "another ☃",
        progress=None if one.progress is None else Progress(1.0, 3.0, "again", NOW, (line,)),
        attempts=tuple(replace(attempt, error=f"{attempt.number} again", log=(line,)) for attempt in one.attempts),
        steps=tuple(replace(step, result=b"t" * 3) for step in one.steps),
        signals=tuple(replace(signal, value=b"w" * 3) for signal in one.signals),
    )


def stale(one: JobRecord) -> dict[str, JobRecord]:
    """The job as it may have been read before one of its values changed."""
    first, second = one.attempts
    changes: dict[str, dict[str, Any]] = {
        "as it is": {},
        "payload": {"payload": b"older"},
        "result": {"result": b"older"},
        "error": {"error": "older"},
        "progress": {"progress": Progress(0.0, 3.0, "older", NOW - 36.0)},
        "first attempt": {"attempts": (replace(first, error="older"), second)},
        "one attempt": {"attempts": (first,)},
        "first step": {"steps": (replace(one.steps[0], result=b"older"), one.steps[1])},
        "one step": {"steps": one.steps[:1]},
        "signal": {"signals": (replace(one.signals[0], value=b"older"),)},
    }
    return {name: replace(one, **change) for name, change in changes.items()}


async def check_rewrites_are_made_as_the_original_says(lab: Lab) -> None:
    store = lab.store
    for name in stale(run_before("any", JobStatus.DEAD)):
        one = run_before(name, JobStatus.DEAD)
        await store.restore([one], NOW)
        before = stale(one)[name]
        rewrite = Rewrite(before, other_bytes(before))
        wanted = rewritten(one, rewrite)
        equal(await store.rewrite([rewrite]), [is_written(wanted, rewrite)], f"{name}: whether all was written")
        equal(await get_whole(store, name), wanted, name)


async def check_jobs_are_rewritten_together_and_in_every_status(lab: Lab) -> None:
    store = lab.store
    jobs = [record(status, status) for status in JobStatus if status is not JobStatus.PROCESSING]
    await store.restore([*jobs, run_before("full", JobStatus.COMPLETED)], NOW)
    numbers = await store.stats(NOW)
    before = [await get_whole(store, id) for id in [*(one.id for one in jobs), "full"]]
    rewrites = [Rewrite(one, other_bytes(one)) for one in before]
    unknown = Rewrite(record("unknown"), other_bytes(record("unknown")))
    equal(await store.rewrite([unknown, *rewrites]), [False, *[True] * len(rewrites)], "whether all was written")
    store = await lab.restart()
    for rewrite in rewrites:
        equal(await get_whole(store, rewrite.after.id), rewrite.after, f"job {rewrite.after.id}")
    equal(await store.stats(NOW), numbers, "the numbers")
    equal(await store.rewrite(rewrites), [True] * len(rewrites), "whether all was written, the second time")
    back = [Rewrite(one.after, one.before) for one in rewrites]
    equal(await store.rewrite(back), [True] * len(rewrites), "whether what it was before was written")
    store = await lab.restart()
    for one in back:
        equal(await get_whole(store, one.after.id), one.after, f"job {one.after.id}, as it was before")


async def check_a_running_job_is_rewritten_under_its_fence(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    first = await claim_one(store, "1")
    await finish(store, outcome(first, JobStatus.QUEUED, error="e", report=report(first)))
    claimed = await claim_one(store, "1")
    await store.note([ProgressNote("1", claimed.fence, Progress(1.0, 2.0, "half", NOW))])
    before = await get_whole(store, "1")
    holds(all(await store.rewrite([Rewrite(before, other_bytes(before))])), "all was written")
    equal(await get_whole(store, "1"), other_bytes(before), "the running job")
    equal((await store.finish([succeeded(claimed)], NOW)).accepted, [True], "its run is still its own")
