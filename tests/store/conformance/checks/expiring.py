"""What a job may have of its own: a time at which it expires, tags, and options that only its run reads."""

from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.job_changes import Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobStatus
from tests.store.conformance.acts import (
    NOW,
    add,
    claim,
    claim_one,
    finish,
    get,
    job,
    outcome,
    state,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal
from tests.store.conformance.lab import Lab

SOON = NOW + 10
LATER = NOW + 60


async def check_a_job_that_is_not_started_in_time_is_cancelled(lab: Lab) -> None:
    store = lab.store
    await add(store, job("needed", "v", run_at=LATER), job("ok"))
    later = job("scheduled", run_at=LATER, expires_at=SOON), job("parked", key="k", expires_at=SOON)
    first = job("free", key="k", run_at=NOW - 1, expires_at=SOON)
    await add(store, *later, first, job("waiting", needs=(Need("needed"),), expires_at=SOON + 1))
    equal((await store.promote(10, NOW)).next_at, SOON, "when the first one expires")
    equal((await store.promote(10, SOON - 0.01)).moved, 0, "jobs moved too early")
    promoted = await store.promote(10, SOON)
    equal((promoted.moved, promoted.next_at), (3, SOON + 1), "jobs moved, and when the next one expires")
    equal(promoted.expired, {"w": 3}, "how many jobs of which worker had expired")
    equal((await store.promote(10, SOON + 1)).expired, {"w": 1}, "the last one")
    ids = ["scheduled", "parked", "free", "waiting", "ok"]
    equal(await statuses(store, *ids), ["cancelled"] * 4 + ["queued"], "the statuses")
    expired = await get(store, "free")
    wanted = (EXPIRED, SOON, SOON + SECONDS_A_DAY)
    equal((expired.error, expired.ended_at, expired.keep_until), wanted, "error, end and how long it is kept")
    equal((await state(store)).last_ended, SOON + 1, "the end that counts for the worker")


async def check_expiry_releases_what_needs_any_end(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a", expires_at=SOON), job("b", needs=(Need("a", whatever=True),)))
    await store.promote(10, SOON)
    equal(await statuses(store, "a", "b"), ["cancelled", "queued"], "the statuses")


async def check_a_job_that_has_started_does_not_expire(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", expires_at=SOON, options=b"own"))
    claimed = await claim_one(store, "1", now=SOON + 1)
    equal((claimed.expires_at, claimed.options), (SOON, b"own"), "what the instance is given")
    equal((await store.promote(10, LATER)).moved, 0, "jobs moved while it runs")
    await finish(store, outcome(claimed, JobStatus.QUEUED, attempt=0))
    equal((await store.promote(10, LATER)).moved, 0, "jobs moved when it was handed back")
    again = await claim_one(store, "1", now=LATER)
    equal((again.expires_at, again.options), (None, b"own"), "what the next instance is given")


async def check_a_requeued_job_does_not_expire(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", expires_at=SOON))
    await store.promote(10, SOON)
    await store.amend(["1"], Requeue(run_at=SOON), SOON)
    equal(((await get(store, "1")).expires_at, (await store.promote(10, LATER)).moved), (None, 0), "after a requeue")


async def check_an_early_expiry_rings_the_leader(lab: Lab) -> None:
    store = lab.store
    bell = store.listen({"leader"})
    await add(store, job("1", expires_at=SOON))
    await bell.wait()
    bell.close()


async def check_jobs_are_found_by_tag(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", tags=("red", "☃")), job("2", "v", tags=("red",)), job("3"), job("4", tags=("redder",)))
    equal((await get(await lab.restart(), "1")).tags, ("red", "☃"), "the tags of a job")
    store = lab.store
    equal([one.id for one in await store.find(JobFilter(tag="red"))], ["2", "1"], "jobs with a tag")
    equal([one.id for one in await store.find(JobFilter(tag="red", limit=1, after="2"))], ["1"], "the next page")
    equal([one.id for one in await store.find(JobFilter(tag="red", worker="v"))], ["2"], "of one worker")
    equal([one.id for one in await store.find(JobFilter(tag="blue"))], [], "with a tag that no job has")
    for claimed in await claim(store):
        await finish(store, succeeded(claimed))
    both = JobFilter(tag="red", status=(JobStatus.COMPLETED,))
    equal([(one.id, one.tags) for one in await store.find(both)], [("2", ("red",)), ("1", ("red", "☃"))], "ended ones")
    await store.amend(["1"], Discard(), NOW)
    equal([one.id for one in await store.find(JobFilter(tag="red"))], ["2"], "without the deleted one")
    equal([one.ok for one in await store.amend(["3"], Cancel(), NOW)], [False], "an ended job is cancelled")
