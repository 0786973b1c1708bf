"""Where a job is in the queue after a run that did not end it (`core.jobs.retry`, `core.jobs.transitions`)."""

from collections.abc import Sequence
from typing import Any, Final

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.model.job_changes import Outcome, Requeue
from shiftwork.core.model.job_parts import Need, Signal, Wait
from shiftwork.core.model.jobs import Claimed, JobPriority, NewJob
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    finish,
    gate,
    get,
    job,
    outcome,
    run,
    succeeded,
)
from tests.store.conformance.expect import equal, there
from tests.store.conformance.lab import Lab

LATER: Final = NOW + 100
"""When every pause is over."""
INTERRUPTED: Final = (EndKind.CRASHED, EndKind.LOST, EndKind.DRAINED)
FAILED: Final = (EndKind.RAISED, EndKind.TIMED_OUT, EndKind.SNOOZED)


def _ended(claimed: Claimed, kind: EndKind, *, now: float = NOW + 30, **more: Any) -> Outcome:
    """The outcome of a run that began ten seconds ago and has ended now."""
    return settle(claimed, End(kind, **more), None, started_at=now - 10, now=now, rand=0.5)


async def _run_and_end(store: Store, kinds: Sequence[EndKind], id: str = "1") -> None:
    """Claim the first job again and again: each run ends like this, ten seconds after the one before."""
    for n, kind in enumerate(kinds):
        now = NOW + 30 + 10 * n
        await finish(store, _ended(await claim_one(store, id, now=now), kind, now=now), now=now)
        await store.promote(10, now + 9)


async def check_an_interrupted_job_keeps_its_rank(lab: Lab) -> None:
    """It goes before everything that came after it, also what came before it was due again, once its pause is over."""
    for kind in INTERRUPTED:
        before, here, behind, new = (f"{n} {kind}" for n in range(4))
        await add(lab.store, job(here, run_at=NOW - 8), job(behind, run_at=NOW - 7))
        await _run_and_end(lab.store, [kind], here)
        await add(lab.store, job(before, run_at=NOW - 9), job(new, run_at=NOW + 20), now=NOW + 30)
        await lab.store.promote(10, LATER)
        equal(await claim_ids(lab.store, now=LATER), [before, here, behind, new], f"claimed when one is {kind}")


async def check_a_crashed_job_waits_out_its_pause(lab: Lab) -> None:
    await add(lab.store, job("1"), job("2"))
    crashed = _ended(await claim_one(lab.store, "1"), EndKind.CRASHED)
    await finish(lab.store, crashed, now=NOW + 30)
    record = await get(lab.store, "1")
    equal((record.run_at, record.rank), (crashed.run_at, NOW), "when it is due, and its rank")
    equal(await claim_ids(lab.store, now=NOW + 30), ["2"], "claimed during its pause")
    await lab.store.promote(10, crashed.run_at)
    again = await claim_one(lab.store, "1", now=crashed.run_at)
    equal((again.run_at, again.crashes), (crashed.run_at, 1), "since when it has been due, and its crashes")


async def check_a_failed_attempt_ranks_behind(lab: Lab) -> None:
    """Also if the job was interrupted before: it has no advantage from that."""
    for kind in FAILED:
        failed, behind, new = (f"{n} {kind}" for n in range(3))
        await add(lab.store, job(failed, run_at=NOW - 8, head_start=4.0), job(behind, run_at=NOW - 7))
        await _run_and_end(lab.store, [EndKind.CRASHED, EndKind.DRAINED, kind], failed)
        await add(lab.store, job(new, run_at=NOW + 40), now=NOW + 50)
        await lab.store.promote(10, LATER)
        record = await get(lab.store, failed)
        equal(record.rank, record.run_at - 4.0, f"the rank when it has {kind}")
        equal(await claim_ids(lab.store, now=LATER), [behind, new, failed], f"claimed when one has {kind}")


async def check_interrupted_jobs_keep_their_ranks_among_priorities(lab: Lab) -> None:
    """Each keeps the head start that it had, and gets no other."""
    high, low = JobPriority.HIGH, JobPriority.LOW
    first = [_ranked("high", high), _ranked("normal", JobPriority.NORMAL), _ranked("low", low)]
    await add(lab.store, *first, _ranked("high, next", high, 1), _ranked("low, next", low, 1))
    running = await claim(lab.store, 10)
    equal([one.id for one in running], ["high", "high, next", "normal", "low", "low, next"], "claimed at first")
    ended = [one for one in running if not one.id.endswith("next")]
    await finish(lab.store, *(_ended(one, EndKind.CRASHED) for one in ended), now=NOW + 30)
    handed_back = [_ended(one, EndKind.DRAINED) for one in running if one.id.endswith("next")]
    await finish(lab.store, *handed_back, now=NOW + 30)
    await add(lab.store, _ranked("high, new", high, 20), _ranked("low, new", low, 20), now=NOW + 30)
    await lab.store.promote(10, LATER)
    wanted = ["high", "high, next", "high, new", "normal", "low", "low, next", "low, new"]
    equal(await claim_ids(lab.store, now=LATER), wanted, "claimed again")


def _ranked(id: str, priority: JobPriority, after: float = 0.0) -> NewJob:
    return job(id, run_at=NOW - 60 + after, priority=priority, head_start=priority * 3600.0)


async def check_interrupted_jobs_keep_their_places_behind_a_key(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}", run_at=NOW - 9 + n, key="k") for n in range(4)))
    crashed = await claim_one(store, "0")
    await finish(store, _ended(crashed, EndKind.CRASHED), now=NOW + 30)
    running = await claim_one(store, "1", now=NOW + 30)
    await store.promote(10, LATER)
    await finish(store, _ended(running, EndKind.DRAINED, now=LATER), now=LATER)
    for n in range(4):
        await finish(store, outcome(await claim_one(store, f"{n}", now=LATER)), now=LATER)


async def check_a_job_of_a_dead_instance_keeps_its_rank(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r", now=NOW + 30)
    await add(store, job("1", run_at=NOW - 9), job("2", run_at=NOW - 8), job("3", run_at=NOW - 7))
    await claim_one(store, "1", instance="crashed")
    await claim_one(store, "2", instance="lost")
    taken = {one.id: one for one in await store.reap("r", 10, NOW + 30)}
    equal([taken[id].rank for id in "12"], [NOW - 9, NOW - 8], "the ranks of the jobs that were taken over")
    ends = {"1": EndKind.CRASHED, "2": EndKind.LOST}
    await finish(store, *(_ended(taken[id].claimed(), kind) for id, kind in ends.items()), now=NOW + 30)
    await store.promote(10, LATER)
    equal(await claim_ids(store, now=LATER), ["1", "2", "3"], "claimed")


async def check_an_interrupted_job_keeps_its_turn(lab: Lab) -> None:
    """What it depends on has ended since it was first due, so it goes before the next run of that."""
    store = lab.store
    await gate(store, "a", before=("b",))
    await gate(store, "b", after={"a": "done"})
    for n, kind in enumerate(INTERRUPTED):
        at = NOW + 1000 * n
        await beat(store, "i", now=at, ttl=900)
        await add(store, job(f"b {kind}", "b", run_at=at - 10, head_start=4.0), now=at - 10)
        await run(store, f"a {kind}", "a", now=at - 5)
        interrupted = _ended(await claim_one(store, f"b {kind}", now=at), kind, now=at + 30)
        await add(store, job(f"a, next {kind}", "a", run_at=at + 30), now=at + 30)
        await finish(store, interrupted, now=at + 30)
        await store.promote(10, at + 100)
        again = await claim_one(store, f"b {kind}", now=at + 100)
        await finish(store, succeeded(again, now=at + 101), now=at + 101)
        await finish(store, succeeded(await claim_one(store, f"a, next {kind}", now=at + 110)), now=at + 111)


async def check_a_requeued_job_has_a_new_rank(lab: Lab) -> None:
    """A person has it run again: it is in line like a new job, whatever happened to it before."""
    store = lab.store
    await add(store, job("1", run_at=NOW - 9, head_start=5.0), job("2", run_at=NOW - 8))
    await finish(store, _ended(await claim_one(store, "1"), EndKind.CRASHED), now=NOW + 30)
    await store.amend(["1"], Requeue(run_at=NOW + 40), NOW + 40)
    record = await get(store, "1")
    equal((record.run_at, record.rank), (NOW + 40, NOW + 35), "when it is due, and its rank")
    equal(await claim_ids(store, now=NOW + 40), ["2", "1"], "claimed")


async def check_a_signal_gives_a_new_rank(lab: Lab) -> None:
    """A job that slept stands behind those that came while it slept, also if it was interrupted before."""
    store = lab.store
    await add(store, job("1", run_at=NOW - 9, head_start=5.0))
    await _run_and_end(store, [EndKind.DRAINED])
    asleep = _ended(await claim_one(store, "1", now=NOW + 40), EndKind.SNOOZED, again_in=900.0, wait=Wait("go", 1))
    await finish(store, asleep, now=NOW + 40)
    await store.send("1", Signal("go", b"", NOW + 50), NOW + 50)
    record = await get(store, "1")
    equal((record.run_at, record.rank), (NOW + 50, NOW + 45), "when it is due, and its rank")


async def check_a_released_job_is_in_line_from_its_release_on(lab: Lab) -> None:
    """While it waited for another job, it had no place in the queue."""
    store = lab.store
    await add(store, job("1", run_at=NOW - 9), job("2", run_at=NOW - 8, head_start=5.0, needs=(Need("1"),), flow="f"))
    await finish(store, succeeded(await claim_one(store, "1"), now=NOW + 30), now=NOW + 30)
    record = await get(store, "2")
    equal((record.run_at, record.rank), (NOW + 30, NOW + 25), "when it is due, and its rank")
    await add(store, job("3", run_at=NOW + 20), now=NOW + 31)
    equal(await claim_ids(store, now=NOW + 31), ["3", "2"], "claimed")


async def check_a_restored_job_has_the_rank_that_it_had(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}", run_at=NOW - 9 + n, head_start=float(n % 2)) for n in range(4)))
    running = await claim(store, 2)
    await finish(store, *(_ended(one, EndKind.CRASHED) for one in running), now=NOW + 30)
    moved = [there(one, "a job") for one in await store.get([*"0123"])]
    await store.restore(moved, NOW + 40)
    equal(await store.get([*"0123"]), moved, "the jobs")
    await store.promote(10, LATER)
    equal(await claim_ids(store, now=LATER), [*"0123"], "claimed")
