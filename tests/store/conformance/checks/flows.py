"""Flows: jobs that wait for other jobs, and what releases them."""

import asyncio

from msgspec.structs import replace

from shiftwork.core.jobs.needs import POSTPONED
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Cancel, Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import Added, JobStatus, NewJob
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
    statuses,
    succeeded,
)
from tests.store.conformance.expect import equal, holds, soon
from tests.store.conformance.lab import Lab

LATER = NOW + 60
MANY = 300


def after(id: str, *needed: str, whatever: bool = False, **more: object) -> NewJob:
    """A job of the flow "f" that needs others."""
    return job(id, needs=tuple(Need(one, whatever) for one in needed), flow="f", **more)  # type: ignore[arg-type]


# ── waiting and release ──────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_job_waits_for_all_that_it_needs(lab: Lab) -> None:
    """Whatever the order in which they are added."""
    store = lab.store
    await add(store, after("c", "a", "b", key="k", unique_key="u"), job("a", flow="f"), job("b", flow="f"))
    equal(await statuses(store, "a", "b", "c"), ["queued", "queued", "waiting"], "at first")
    equal((await get(store, "c")).unmet, (Need("a"), Need("b")), "what it waits for")
    first, second = await claim(store, now=NOW + 1)
    await finish(store, succeeded(first, now=NOW + 2), now=NOW + 2)
    equal((await get(store, "c")).unmet, (Need(second.id),), "what it waits for then")
    equal(await claim_ids(store), [], "claimed while it waits")
    await finish(store, succeeded(second, now=NOW + 3), now=NOW + 3)
    released = await get(await lab.restart(), "c")
    equal((released.status, released.unmet, released.run_at), (JobStatus.QUEUED, (), NOW + 3), "the released job")
    await claim_one(lab.store, "c", now=NOW + 3)


async def check_one_batch_of_outcomes_releases_once(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), job("b"), after("c", "a", "b"), after("d", "b"))
    await finish(store, *(succeeded(one) for one in await claim(store)))
    numbers = (await store.stats(NOW)).pools["p"]
    equal((numbers.waiting, numbers.queued, numbers.processing), (0, 2, 0), "what the pool counts")
    equal(sorted(await claim_ids(store)), ["c", "d"], "released")


async def check_a_released_job_may_still_have_to_wait_for_its_time(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), after("b", "a", run_at=LATER))
    await finish(store, succeeded(await claim_one(store, "a")))
    equal(await statuses(store, "b"), ["scheduled"], "the status")
    equal((await store.promote(10, LATER)).moved, 1, "jobs that are due")
    await claim_one(store, "b", now=LATER)


async def check_a_failure_does_not_release(lab: Lab) -> None:
    """A dead job holds what needs it, unless any end will do, until it is retried and completes."""
    store = lab.store
    await add(store, job("a"), after("b", "a"), after("c", "a", whatever=True))
    claimed = await claim_one(store, "a")
    await finish(store, outcome(claimed, JobStatus.FAILED, run_at=LATER, error="e"))
    equal(await statuses(store, "b", "c"), ["waiting", "waiting"], "after a failure that is retried")
    await store.promote(10, LATER)
    await finish(store, failed(await claim_one(store, "a", now=LATER)))
    equal(await statuses(store, "b", "c"), ["waiting", "queued"], "when it is dead")
    await store.amend(["a"], Requeue(run_at=NOW - 1), NOW)
    await finish(store, succeeded(await claim_one(store, "a")))
    equal(sorted(await claim_ids(store)), ["b", "c"], "when it has completed")


async def check_a_cancelled_job_releases_what_needs_any_end(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), after("b", "a"), after("c", "a", whatever=True))
    await store.amend(["a"], Cancel(), NOW)
    equal(await statuses(store, "b", "c"), ["waiting", "queued"], "the statuses")


async def check_ended_jobs_meet_needs_when_they_are_added(lab: Lab) -> None:
    store = lab.store
    await add(store, job("done"), job("dead", "v"))
    await finish(store, succeeded(await claim_one(store, "done", workers=["w"])))
    await finish(store, failed(await claim_one(store, "dead", workers=["v"])))
    jobs = after("1", "done"), after("2", "dead"), after("3", "dead", whatever=True), after("4", "pruned")
    await add(store, *jobs, after("5", "done", run_at=LATER))
    wanted = ["queued", "waiting", "queued", "queued", "scheduled"]
    equal(await statuses(store, *"12345"), wanted, "the statuses")


async def check_adding_twice_changes_no_need(lab: Lab) -> None:
    store = lab.store
    jobs = [job("a"), after("b", "a")]
    await add(store, *jobs)
    await finish(store, succeeded(await claim_one(store, "a")))
    equal([one.created for one in await store.add(jobs, NOW)], [False, False], "created again")
    equal(await statuses(store, "b"), ["queued"], "the status")


async def check_release_rings(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), after("b", "a", pool="q"), after("c", "a", run_at=LATER))
    claimed = await claim_one(store, "a")
    bells = {topic: store.listen({topic}) for topic in ("pool:q", "leader")}
    await finish(store, succeeded(claimed))
    for topic, bell in bells.items():
        await soon(bell.wait(), f"the bell {topic}")
        bell.close()


async def check_a_released_job_keeps_its_head_start(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a", head_start=9.0), job("b"), after("c", "a", head_start=5.0))
    await finish(store, succeeded(await claim_one(store, "a")))
    equal(await claim_ids(store), ["c", "b"], "the order")


async def check_finishers_in_parallel_release_exactly_once(lab: Lab) -> None:
    """The last two needs may be met at the same moment, from two processes."""
    store, other = lab.store, await lab.another()
    await add(store, *(job(f"{n:03}") for n in range(MANY)))
    await add(store, *(after(f"j{n:03}", f"{n:03}", f"{n + 1:03}") for n in range(MANY - 1)))
    running = sorted(await claim(store, MANY), key=lambda one: one.id)
    halves = (running[::2], running[1::2])

    async def finish_all(handle: Store, half: int) -> None:
        for n in range(0, len(halves[half]), 10):
            await finish(handle, *(succeeded(one) for one in halves[half][n : n + 10]))

    await asyncio.gather(finish_all(store, 0), finish_all(other, 1))
    equal(len(await store.find(JobFilter(status=(JobStatus.WAITING,), limit=MANY))), 0, "jobs that still wait")
    equal(len(await claim(store, MANY + 1)), MANY - 1, "released jobs")


# ── changes by people ────────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_cancelled_waiting_job_waits_again_when_it_is_requeued(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), job("b"), after("c", "a", "b"))
    holds(not (await store.amend(["c"], Requeue(run_at=NOW), NOW))[0].ok, "a waiting job cannot be requeued")
    await store.amend(["c"], Cancel(), NOW)
    first = await claim_one(store, "a")
    await finish(store, succeeded(first))
    equal(await statuses(store, "c"), ["cancelled"], "a met need leaves it cancelled")
    await store.amend(["c"], Requeue(run_at=NOW), NOW)
    again = await get(store, "c")
    equal((again.status, again.unmet), (JobStatus.WAITING, (Need("b"),)), "what it waits for")
    await finish(store, succeeded(await claim_one(store, "b")))
    await claim_one(store, "c")


async def check_a_job_that_another_waits_for_is_not_discarded(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a"), after("b", "a"))
    await finish(store, failed(await claim_one(store, "a")))
    equal(await store.amend(["a"], Discard(), NOW), [Amended("a", ok=False, status=JobStatus.DEAD)], "the answer")
    await store.amend(["b"], Cancel(), NOW)
    equal([one.ok for one in await store.amend(["b", "a"], Discard(), NOW)], [True, True], "without the other")
    await add(store, job("a"), after("c", "a"))
    await finish(store, succeeded(await claim_one(store, "a")))
    await claim_one(store, "c")


# ── jobs that a running job adds ─────────────────────────────────────────────────────────────────────────────────────


async def check_what_waits_for_a_parent_waits_for_its_children(lab: Lab) -> None:
    store = lab.store
    await add(store, job("parent", flow="f"), after("end", "parent"), after("any", "parent", whatever=True))
    parent = await claim_one(store, "parent")
    await add(store, job("x", flow="f", parent="parent"), job("y", flow="f", parent="parent"))
    await finish(store, succeeded(parent))
    equal((await get(store, "end")).unmet, (Need("x"), Need("y")), "what the end waits for")
    x, y = await claim(store)
    await add(store, job("z", flow="f", parent=x.id))
    await finish(store, succeeded(x), failed(y))
    equal((await get(store, "any")).unmet, (Need("z", whatever=True),), "what any end would do for")
    await finish(store, succeeded(await claim_one(store, "z")))
    equal(await statuses(store, "end", "any"), ["waiting", "queued"], "when one child is dead")


async def check_a_job_that_runs_after_its_own_parent_waits_for_it_alone(lab: Lab) -> None:
    """It does not wait for itself, nor for other jobs that the parent adds, some of which may wait for it."""
    store = lab.store
    await add(store, job("parent", flow="f"), after("end", "parent"))
    parent = await claim_one(store, "parent")
    await add(store, after("a", "parent", parent="parent"), after("b", "a", parent="parent"))
    await add(store, job("c", flow="f", parent="parent"), after("d", "a", "c", parent="parent"))
    equal((await get(store, "a")).unmet, (Need("parent", alone=True),), "what waits for its own parent")
    await finish(store, succeeded(parent))
    equal(await statuses(store, *"abcd"), ["queued", "waiting", "queued", "waiting"], "when the parent has ended")
    await finish(store, *(succeeded(one) for one in await claim(store)))
    equal(sorted(await claim_ids(store)), ["b", "d"], "then released")
    equal((await get(store, "end")).unmet, (Need("b"), Need("d")), "what the end still waits for")


# ── results and keeping ──────────────────────────────────────────────────────────────────────────────────────────────


async def check_results_are_read(lab: Lab) -> None:
    store = lab.store
    await add(store, job("small"), job("large", "v"), job("none", "a"))
    for id, worker, result in (("small", "w", b"r"), ("large", "v", b"r" * 100_000)):
        await finish(store, succeeded(await claim_one(store, id, workers=[worker]), result=result))
    wanted = [None, b"r" * 100_000, b"r", None, b"r"]
    equal(await store.results(["none", "large", "small", "unknown", "small"]), wanted, "the results")


async def check_results_are_kept_while_the_flow_needs_them(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a", flow="f"), after("b", "a"), job("c"))
    for claimed in await claim(store):
        await finish(store, succeeded(claimed, result=b"r", keep_until=NOW + 1))
    equal(await store.prune(10, NOW + 2), 2, "jobs pruned or put off")
    equal(await statuses(store, "a", "c"), ["completed", None], "what is left")
    equal((await get(store, "a")).keep_until, NOW + 2 + POSTPONED, "when it is looked at again")
    await finish(store, failed(await claim_one(store, "b"), now=NOW + 3), now=NOW + 3)
    equal(await store.prune(10, NOW + 70), 1, "put off while a job of the flow is dead")
    await store.amend(["b"], Discard(), NOW + 80)
    equal(await store.prune(10, NOW + 200), 1, "pruned")
    equal(await statuses(store, "a"), [None], "at the end")


async def check_a_job_that_another_waits_for_is_not_pruned(lab: Lab) -> None:
    """Even if it belongs to no flow. What only cancelled jobs wait for is pruned, and no longer holds them."""
    store = lab.store
    await add(store, job("a"), after("b", "a"), after("c", "a"))
    await finish(store, outcome(await claim_one(store, "a"), JobStatus.CANCELLED, keep_until=NOW + 1))
    await store.amend(["c"], Cancel(), NOW)
    equal(await store.prune(10, NOW + 2), 1, "put off")
    equal((await get(store, "a")).keep_until, NOW + 2 + POSTPONED, "when it is looked at again")
    await store.amend(["b"], Cancel(), NOW)
    equal(await store.prune(10, NOW + 70), 1, "pruned")
    equal(await statuses(store, *"abc"), [None, "cancelled", "cancelled"], "what is left")
    await store.amend(["b", "c"], Requeue(run_at=NOW), NOW + 70)
    await add(store, job("a", "v"), now=NOW + 70)
    equal(sorted(await claim_ids(await lab.restart(), workers=["w"])), ["b", "c"], "what can run")


async def check_a_flow_is_kept_while_the_job_that_added_it_may_run_again(lab: Lab) -> None:
    """That job belongs to no flow itself: the flow is named after it."""
    store = lab.store
    await add(store, job("founder"))
    founder = await claim_one(store, "founder")
    await add(store, job("a", flow="founder", parent="founder"))
    await finish(store, succeeded(await claim_one(store, "a"), keep_until=NOW + 1))
    equal(await store.prune(10, NOW + 2), 1, "put off while it runs")
    await finish(store, failed(founder))
    equal(await store.prune(10, NOW + 2 + POSTPONED), 1, "put off while it is dead")
    equal(await statuses(store, "a"), ["completed"], "what is kept")
    await store.amend(["founder"], Discard(), NOW)
    await store.prune(10, NOW + 2 + 2 * POSTPONED)
    equal(await statuses(store, "a"), [None], "when it is gone")


async def check_results_are_kept_while_a_job_of_the_flow_may_be_retried(lab: Lab) -> None:
    store = lab.store
    await add(store, job("a", flow="f"), after("b", "a"), job("c", flow="f"))
    for claimed in await claim(store):
        await finish(store, succeeded(claimed, result=b"r", keep_until=NOW + 1))
    await store.amend(["b"], Cancel(), NOW)
    equal(await store.prune(10, NOW + 2), 2, "put off")
    equal(await store.results(["a"]), [b"r"], "the result")
    a_day = NOW + 24 * 60 * 60
    equal(await store.prune(10, a_day), 3, "pruned or put off, after a day")
    equal(await statuses(store, *"abc"), ["completed", None, "completed"], "the cancelled job goes first")
    await store.prune(10, a_day + POSTPONED)
    equal(await statuses(store, *"ac"), [None, None], "then the others")


# ── flows as people see them ─────────────────────────────────────────────────────────────────────────────────────────


async def check_flows_are_listed_newest_first(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", flow="old"), now=NOW)
    await add(store, job("2", flow="young"), job("3", flow="young", needs=(Need("2"),)), job("4"), now=NOW + 1)
    old = FlowRecord("old", NOW, {"queued": 1}, "w")
    young = FlowRecord("young", NOW + 1, {"waiting": 1, "queued": 1}, "w")
    await store.add([job("1", flow="empty")], NOW + 2)
    equal(await store.flows(), [young, old], "the flows")
    equal(await store.flows(limit=1), [young], "one flow")
    equal(await store.flows((NOW + 1, "young")), [old], "the flows behind it")
    equal([one.id for one in await store.find(JobFilter(flow="young"))], ["3", "2"], "the jobs of a flow")
    await store.amend(["1"], Cancel(), NOW)
    equal((await store.flows((NOW + 1, "young")))[0].counts, {"cancelled": 1}, "the counts")
    await store.amend(["1"], Discard(), NOW)
    equal([one.id for one in await (await lab.restart()).flows()], ["young"], "when all of its jobs are deleted")


async def check_a_flow_says_what_it_is_for(lab: Lab) -> None:
    """By the last job of the call that began it, whatever is added or deleted later."""
    store = lab.store
    first, last = job("2", "v", flow="f", tags=("no",)), job("1", "w", flow="f", tags=("red", "blue"))
    await add(store, first, last, job("3", "v", flow="g"))
    await add(store, job("4", "v", flow="f", tags=("no",)), now=NOW + 1)
    claimed = await claim_one(store, "1", workers=["w"])
    wanted = [("g", {"queued": 1}, "v", ()), ("f", {"queued": 2, "processing": 1}, "w", ("red", "blue"))]
    found = await (await lab.restart()).flows()
    equal([(one.id, one.counts, one.worker, one.tags) for one in found], wanted, "what the flows are for")
    store = lab.store
    await finish(store, outcome(claimed, JobStatus.CANCELLED))
    await store.amend(["1"], Discard(), NOW)
    [_, flow] = await store.flows()
    equal((flow.counts, flow.worker, flow.tags), ({"queued": 2}, "w", ("red", "blue")), "when that job is gone")
    await store.amend(["2", "4"], Cancel(), NOW)
    await store.amend(["2", "4"], Discard(), NOW)
    await add(store, job("5", "v", flow="f"), now=NOW + 2)
    [flow, _] = await store.flows()
    equal((flow.created_at, flow.worker, flow.tags), (NOW + 2, "v", ()), "when it begins anew")
    await add(store, job("7", "w", flow="h"), now=NOW + 3)
    record = await get(store, "7")
    earlier = [
        replace(record, id="9", worker="v", created_at=NOW, tags=("a",)),
        replace(record, id="8", created_at=NOW),
    ]
    await store.restore(earlier, NOW + 3)
    [flow] = [one for one in await store.flows() if one.id == "h"]
    equal((flow.created_at, flow.worker, flow.tags), (NOW, "v", ("a",)), "when earlier jobs are restored")


async def check_a_flow_says_what_it_is_for_though_an_id_is_given_twice(lab: Lab) -> None:
    """By the last job that was created of the whole call; the second job of an id is not."""
    first, last = job("2", "v", flow="f"), job("1", "w", flow="f", tags=("red",))
    await lab.store.add([job("0"), first, job("0"), last, job("2", "v", flow="f", tags=("no",))], NOW)
    await lab.store.add([job("3"), job("4", "v", flow="f"), job("3"), job("5", "v", flow="f")], NOW)
    [flow] = await lab.store.flows()
    equal((flow.counts, flow.worker, flow.tags), ({"queued": 4}, "w", ("red",)), "what the flow is for")


async def check_the_members_of_a_flow_are_read_newest_first(lab: Lab) -> None:
    """With what drawing the flow needs, and nothing else."""
    store = lab.store
    await add(store, job("1", flow="f", options=b"own \xff"), job("2", flow="g"), now=NOW)
    await add(store, after("3", "1"), job("4", "v", flow="f"), now=NOW + 1)
    await finish(store, succeeded(await claim_one(store, "1", workers=["w"]), now=NOW + 2), now=NOW + 2)
    first = FlowMember("1", "w", JobStatus.COMPLETED, NOW, NOW, NOW + 2, b"own \xff")
    third = FlowMember("3", "w", JobStatus.QUEUED, NOW + 1, None, None, None)
    fourth = FlowMember("4", "v", JobStatus.QUEUED, NOW + 1, None, None, None)
    equal(await store.members("f"), [fourth, third, first], "the members")
    equal(await store.members("f", limit=1), [fourth], "the newest one")
    equal(await store.members("f", (NOW + 1, "4"), 1), [third], "the one behind it")
    equal(await store.members("f", (NOW, "1")), [], "behind the last one")
    equal(await store.members("none"), [], "the members of an unknown flow")


async def check_a_running_job_adds_to_its_flow(lab: Lab) -> None:
    """The look at its fence and the addition are one step."""
    store = lab.store
    await beat(store, "r")
    await add(store, job("a"), after("b", "a"))
    stale = await claim_one(store, "a", instance="gone")
    children = [job("c", flow="f", parent="a"), after("d", "c", parent="a")]
    await store.extend("a", stale.fence, children[:1], NOW)
    [taken] = await store.reap("r", 10, NOW)
    equal(await store.extend("a", stale.fence, children, NOW), None, "an addition under an old fence")
    equal(await statuses(store, "d"), [None], "what it added")
    added = await store.extend("a", taken.fence, children, NOW)
    equal(added, [Added("c", created=False), Added("d", created=True)], "an addition under the new fence")
    equal((await get(await lab.restart(), "b")).unmet, (Need("a"), Need("c"), Need("d")), "what waits for all of it")
    store = lab.store
    await store.amend(["a"], Cancel(), NOW)
    equal(await store.extend("a", taken.fence, [job("e", flow="f", parent="a")], NOW), None, "while it is cancelled")
    await finish(store, outcome(taken.claimed(), JobStatus.CANCELLED))
    equal(await store.extend("a", taken.fence, [job("e", flow="f", parent="a")], NOW), None, "when it has ended")
    equal(await store.extend("none", 1, [job("e", flow="f", parent="none")], NOW), None, "of an unknown job")
    equal(await statuses(store, "e"), [None], "what that added")


async def check_a_flow_survives_the_death_of_a_holder(lab: Lab) -> None:
    store = lab.store
    await beat(store, "r")
    await add(store, job("a"), after("b", "a"))
    stale = await claim_one(store, "a", instance="gone")
    [taken] = await store.reap("r", 10, NOW)
    holds(not (await store.finish([succeeded(stale)], NOW)).accepted[0], "a stale outcome is rejected")
    equal(await statuses(store, "b"), ["waiting"], "a stale outcome releases nothing")
    await finish(store, succeeded(taken.claimed()))
    await claim_one(store, "b")
