"""Durable functions: steps that are kept under the fence, and signals that a job waits for."""

from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.model.job_parts import Signal, Step, Wait
from shiftwork.core.model.jobs import JobStatus
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim_ids,
    claim_one,
    failed,
    finish,
    get,
    get_whole,
    job,
    outcome,
    statuses,
)
from tests.store.conformance.expect import equal, holds, soon
from tests.store.conformance.lab import Lab

LATER = NOW + 60
LARGE = 100_000


def step(number: int, result: bytes = b"r") -> Step:
    """A step that took half a second."""
    return Step(number, f"step {number} ☃", result, NOW + number, NOW + number + 0.5)


async def check_steps_are_kept_in_order(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    steps = (step(1), step(2, b"r" * LARGE), step(3, b""))
    for one in steps:
        holds(await store.keep_step("1", claimed.fence, one), f"{one.name} is kept")
    holds(await store.keep_step("1", claimed.fence, step(2, b"again")), "a repeated call is harmless")
    equal((await get_whole(store, "1")).steps, steps, "the steps of the running job")
    await finish(store, failed(claimed))
    equal((await get_whole(await lab.restart(), "1")).steps, steps, "the steps of the dead job")


async def check_a_stale_step_is_refused(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, job("1"))
    stale = await claim_one(store, "1", instance="gone")
    [taken] = await store.reap("r", 10, NOW)
    holds(not await store.keep_step("1", stale.fence, step(1)), "a step under an old fence is refused")
    holds(await store.keep_step("1", taken.fence, step(1)), "a step under the new fence is kept")
    await finish(store, outcome(taken.claimed()))
    holds(not await store.keep_step("1", taken.fence, step(2)), "a step of an ended job is refused")
    holds(not await store.keep_step("none", 1, step(1)), "a step of an unknown job is refused")
    equal((await get_whole(store, "1")).steps, (step(1),), "the steps")


async def check_a_signal_wakes_the_job_that_waits_for_it(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", head_start=5))
    claimed = await claim_one(store, "1")
    waiting = outcome(claimed, JobStatus.QUEUED, run_at=LATER, attempt=0, wait=Wait("approval", 1))
    await finish(store, waiting)
    slept = await get(store, "1")
    equal((slept.status, slept.wait, slept.run_at), (JobStatus.SCHEDULED, Wait("approval", 1), LATER), "the job")
    equal(await store.send("1", Signal("other", b"", NOW), NOW), JobStatus.SCHEDULED, "another signal")
    equal(await statuses(store, "1"), ["scheduled"], "after another signal")
    bell = store.listen({"pool:p"})
    equal(await store.send("1", Signal("approval", b"v" * LARGE, NOW + 1), NOW + 2), JobStatus.SCHEDULED, "its signal")
    await soon(bell.wait(), "the bell of its pool")
    bell.close()
    woken = await get_whole(await lab.restart(), "1")
    equal((woken.status, woken.run_at), (JobStatus.QUEUED, NOW + 2), "the woken job")
    signals = (Signal("other", b"", NOW), Signal("approval", b"v" * LARGE, NOW + 1))
    equal(woken.signals, signals, "the signals")
    await claim_one(lab.store, "1", now=NOW + 2)
    equal((await get(lab.store, "1")).wait, None, "what it waits for while it runs")


async def check_a_signal_wakes_a_job_behind_its_key(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", key="k"))
    claimed = await claim_one(store, "1")
    await finish(store, outcome(claimed, JobStatus.QUEUED, run_at=LATER, attempt=0, wait=Wait("go", 1)))
    await add(store, job("2", key="k"))
    other = await claim_one(store, "2")
    await store.send("1", Signal("go", b"", NOW), NOW)
    equal((await statuses(store, "1"), await claim_ids(store)), (["queued"], []), "while another has its key")
    bell = store.listen({"pool:p"})
    await finish(store, outcome(other))
    await soon(bell.wait(), "the bell of its pool")
    bell.close()
    again = await claim_one(store, "1")
    await finish(store, outcome(again, JobStatus.QUEUED, run_at=LATER, attempt=0, wait=Wait("go", 2)))
    bell = store.listen({"pool:p"})
    await store.send("1", Signal("go", b"", NOW), NOW)
    await soon(bell.wait(), "the bell when nothing has its key")
    bell.close()
    await claim_one(store, "1")


async def check_a_signal_that_comes_early_is_not_missed(lab: Lab) -> None:
    """It was sent while the job ran, or waits for the second of its kind."""
    store = lab.store
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    equal(await store.send("1", Signal("go", b"1", NOW), NOW), JobStatus.PROCESSING, "the status")
    await finish(store, outcome(claimed, JobStatus.QUEUED, run_at=LATER, wait=Wait("go", 1)), now=NOW + 3)
    woken = await get(store, "1")
    equal((woken.status, woken.run_at), (JobStatus.QUEUED, NOW + 3), "the job that was handed back")
    again = await claim_one(store, "1", now=NOW + 3)
    await finish(store, outcome(again, JobStatus.QUEUED, run_at=LATER, wait=Wait("go", 2)), now=NOW + 4)
    equal(await statuses(store, "1"), ["scheduled"], "the first signal is not the second")
    await store.send("1", Signal("go", b"2", NOW), NOW + 5)
    equal(await claim_ids(store, now=NOW + 5), ["1"], "claimed")


async def check_patience_ends(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    await finish(store, outcome(claimed, JobStatus.QUEUED, run_at=LATER, wait=Wait("go", 1)))
    equal((await store.promote(10, NOW)).next_at, LATER, "when it is due")
    equal((await store.promote(10, LATER)).moved, 1, "jobs that are due")
    await claim_one(store, "1", now=LATER)


async def check_an_ended_job_takes_no_signal(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"))
    await store.amend(["1"], Cancel(), NOW)
    equal(await store.send("1", Signal("go", b"", NOW), NOW), JobStatus.CANCELLED, "the status")
    equal(await store.send("none", Signal("go", b"", NOW), NOW), None, "of an unknown job")
    equal((await get_whole(store, "1")).signals, (), "its signals")
