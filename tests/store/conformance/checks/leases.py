"""`beat`, `leave` and `reap`: a live job is never taken, a lost one always, and its old holder cannot write."""

from msgspec.structs import replace

from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.observing.beats import InstanceRecord
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    finish,
    get,
    job,
    outcome,
    signs,
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab

TTL = 15.0


async def check_instances_are_kept_as_they_beat(lab: Lab) -> None:
    store = lab.store
    orders = await store.beat([signs("i"), signs("j", "q")], TTL, NOW)
    equal((orders.cancel, orders.lost), ([], []), "the orders")
    none = await store.beat([], TTL, NOW)
    equal((none.cancel, none.lost), ([], []), "the orders of none")
    now = await store.server_time()
    holds(now - 60 < orders.server_time <= now, "the orders carry the store's own clock")
    busy = replace(signs("i"), busy=3, status="busy", completed=9, failed=2)
    await store.beat([busy], TTL, NOW + 5)
    found = sorted(await store.instances(), key=lambda record: record.beat.instance)
    wanted = [InstanceRecord(busy, NOW + 5 + TTL, NOW + 5), InstanceRecord(signs("j", "q"), NOW + TTL, NOW)]
    equal(found, wanted, "the instances")


async def check_nothing_is_taken_from_the_living(lab: Lab) -> None:
    store = lab.store
    await beat(store, "i", "r")
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    equal(await store.reap("r", 10, NOW + TTL - 0.01), [], "taken before the lease ends")
    await beat(store, "i", now=NOW + TTL - 0.01)
    equal(await store.reap("r", 10, NOW + TTL + 10), [], "taken after it was renewed")
    await finish(store, succeeded(claimed, now=NOW + 1000), now=NOW + 1000)


async def check_what_the_dead_held_is_taken_under_a_new_fence(lab: Lab) -> None:
    store = lab.store
    await beat(store, "i")
    await add(store, job("1"), job("2"))
    first, second = await claim(store)
    before = {id: await get(store, id) for id in ("1", "2")}
    await beat(store, "r", now=NOW + 10)
    taken = sorted(await store.reap("r", 10, NOW + TTL), key=lambda record: record.id)
    equal([record.id for record in taken], ["1", "2"], "taken when the lease ends")
    for record, claimed in zip(taken, (first, second), strict=True):
        holds(record.fence > second.fence, "the fence is new")
        equal(record, replace(before[record.id], fence=record.fence), "what is handed over names who lost it")
        equal(await get(store, record.id), replace(record, instance="r"), "what is kept names who holds it")
        refused = await store.finish([succeeded(claimed)], NOW + TTL)
        equal(refused.accepted, [False], "whether the old holder can write")
        await finish(store, outcome(record.claimed(), JobStatus.FAILED, run_at=NOW + TTL), now=NOW + TTL)
    equal(await claim_ids(store, instance="j"), ["1", "2"], "claimed again")


async def check_what_was_taken_is_not_taken_again(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r", "s")
    await add(store, job("1"))
    await claim_one(store, "1", instance="gone")
    equal(len(await store.reap("r", 10, NOW)), 1, "taken at first")
    equal(await store.reap("r", 10, NOW), [], "taken again by the same")
    equal(await store.reap("s", 10, NOW), [], "taken again by another")


async def check_a_holder_that_dies_is_reaped_in_its_turn(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, job("1"))
    await claim_one(store, "1", instance="gone")
    [first] = await store.reap("r", 10, NOW)
    await beat(store, "s", now=NOW + TTL)
    [second] = await store.reap("s", 10, NOW + TTL)
    equal(second, replace(first, instance="r", fence=second.fence), "what is handed over")
    refused = await store.finish([succeeded(first.claimed())], NOW + TTL)
    equal(refused.accepted, [False], "whether the first holder can write")
    equal((await store.beat([signs("r")], TTL, NOW + TTL)).lost, ["r"], "lost")
    await finish(store, succeeded(second.claimed()), now=NOW + TTL)


async def check_no_more_is_taken_than_asked_for(lab: Lab) -> None:
    store = lab.store
    await beat(store, "i")
    await beat(store, "r", ttl=1000)
    await add(store, *(job(f"{n}") for n in range(5)))
    await claim(store)
    taken = [record.id for record in await store.reap("r", 2, NOW + TTL)]
    equal(len(taken), 2, "taken at first")
    equal([record.beat.instance for record in await store.instances()], ["r"], "the instances")
    equal((await store.beat([signs("i")], TTL, NOW + TTL)).lost, ["i"], "lost as soon as something is taken")
    taken += [record.id for record in await store.reap("r", 2, NOW + TTL)]
    taken += [record.id for record in await store.reap("r", 2, NOW + TTL)]
    equal(sorted(taken), ["0", "1", "2", "3", "4"], "taken in all")


async def check_the_lost_are_told_for_ever(lab: Lab) -> None:
    store = lab.store
    await beat(store, "i", "j")
    await add(store, job("1"))
    await claim_one(store, "1")
    await beat(store, "r", "j", now=NOW + TTL)
    [taken] = await store.reap("r", 10, NOW + TTL)
    await finish(store, succeeded(taken.claimed()))
    for after in (0.0, 1.0, 100_000.0):
        orders = await store.beat([signs("i"), signs("j")], TTL, NOW + TTL + after)
        equal(orders.lost, ["i"], "lost")
        names = sorted(record.beat.instance for record in await store.instances())
        equal(names, ["j", "r"], "the instances")
        store = await lab.restart()


async def check_a_late_renewal_keeps_the_jobs(lab: Lab) -> None:
    """They were not taken, so no other instance runs them."""
    store = lab.store
    await beat(store, "i", "r")
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    orders = await store.beat([signs("i"), signs("r")], TTL, NOW + 1000)
    equal(orders.lost, [], "lost")
    equal(await store.reap("r", 10, NOW + 1000), [], "taken")
    await finish(store, succeeded(claimed), now=NOW + 1000)


async def check_who_leaves_is_gone_at_once(lab: Lab) -> None:
    store = lab.store
    await beat(store, "i", "j", "r")
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    await store.leave(["i", "never heard of"], NOW + 1)
    equal(sorted(record.beat.instance for record in await store.instances()), ["j", "r"], "the instances")
    equal(await statuses(store, "1"), ["processing"], "its job")
    [taken] = await store.reap("r", 10, NOW + 1)
    equal(taken.instance, "i", "who lost it")
    equal((await store.finish([succeeded(claimed)], NOW + 1)).accepted, [False], "whether it can write")


async def check_the_idle_dead_are_forgotten_and_may_come_back(lab: Lab) -> None:
    store = lab.store
    await beat(store, "idle", "busy")
    await beat(store, "r", ttl=1000)
    await add(store, job("1"))
    claimed = await claim_one(store, "1", instance="busy")
    await finish(store, succeeded(claimed))
    equal(await store.reap("r", 10, NOW + TTL), [], "taken")
    equal([record.beat.instance for record in await store.instances()], ["r"], "the instances")
    equal((await store.beat([signs("idle"), signs("busy")], TTL, NOW + TTL)).lost, [], "lost")
    equal(len(await store.instances()), 3, "instances that are there again")


async def check_orders_name_the_jobs_to_cancel_until_they_have_ended(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3"))
    one, two = await claim(store, 2)
    three = await claim_one(store, "3", instance="j")
    amended = await store.amend(["1", "3"], Cancel(), NOW)
    equal([(one_.ok, one_.status) for one_ in amended], [(True, JobStatus.PROCESSING)] * 2, "the answers")
    equal(await statuses(store, "1", "3"), ["processing", "processing"], "the jobs, which still run")
    holds((await get(store, "1")).cancelling, "the job says so")
    for _ in range(2):
        orders = await store.beat([signs("i")], TTL, NOW)
        equal((orders.cancel, orders.lost), ([("1", one.fence)], []), "the orders of one")
    both = await store.beat([signs("i"), signs("j")], TTL, NOW)
    equal(sorted(both.cancel), [("1", one.fence), ("3", three.fence)], "the orders of two")
    await finish(store, outcome(one, JobStatus.CANCELLED), outcome(two))
    equal((await store.beat([signs("i")], TTL, NOW)).cancel, [], "the orders when it has ended")


async def check_orders_follow_a_job_to_its_new_holder(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, job("1"))
    await claim_one(store, "1", instance="gone")
    await store.amend(["1"], Cancel(), NOW)
    [taken] = await store.reap("r", 10, NOW)
    holds(taken.cancelling, "what is handed over says that it was cancelled")
    equal((await store.beat([signs("r")], TTL, NOW)).cancel, [("1", taken.fence)], "the orders of the new holder")
    await finish(store, outcome(taken.claimed(), JobStatus.FAILED, run_at=NOW + 9))
    equal(await statuses(store, "1"), ["cancelled"], "the job")
