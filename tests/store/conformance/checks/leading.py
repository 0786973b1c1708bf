"""`promote`, `prune`, `hold` and `drop`: what a leader does, and how there is one."""

from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.protocol import Promoted
from tests.store.conformance.acts import (
    NOW,
    add,
    claim_ids,
    claim_one,
    failed,
    finish,
    job,
    outcome,
    state,
    statuses,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab


async def check_due_jobs_are_promoted_earliest_first(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}", run_at=NOW + 10 - n) for n in range(5)), job("5", run_at=NOW + 99))
    equal(await store.promote(10, NOW), Promoted(0, NOW + 6), "before anything is due")
    equal(await store.promote(2, NOW + 9), Promoted(2, NOW + 8), "two of four that are due")
    equal(await statuses(store, *"01234"), ["scheduled"] * 3 + ["queued"] * 2, "the statuses then")
    equal(await store.promote(10, NOW + 10), Promoted(3, NOW + 99), "the rest that is due")
    equal(await claim_ids(store, now=NOW + 10), ["4", "3", "2", "1", "0"], "claimed, by rank")
    equal(await store.promote(10, NOW + 99), Promoted(1, None), "the last one")


async def check_failed_jobs_are_promoted_as_scheduled_ones_are(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2", run_at=NOW + 7))
    await finish(store, outcome(await claim_one(store, "1"), JobStatus.FAILED, run_at=NOW + 5))
    equal(await store.promote(10, NOW + 4), Promoted(0, NOW + 5), "before it is due")
    equal(await store.promote(10, NOW + 5), Promoted(1, NOW + 7), "when it is due")
    equal((await claim_one(store, "1", now=NOW + 5)).attempt, 2, "the attempt")


async def check_jobs_due_at_once_are_promoted_by_id(lab: Lab) -> None:
    await add(lab.store, *(job(f"{n}", run_at=NOW + 1) for n in (3, 1, 2)))
    await lab.store.promote(2, NOW + 1)
    equal(await statuses(lab.store, *"123"), ["queued", "queued", "scheduled"], "the statuses")


async def check_only_what_may_go_is_pruned(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}") for n in range(4)), job("live"))
    for number in range(3):
        await finish(store, outcome(await claim_one(store, f"{number}"), keep_until=NOW + 10 * number))
    await finish(store, outcome(await claim_one(store, "3"), JobStatus.DEAD, keep_until=None))
    equal(await store.prune(10, NOW - 1), 0, "pruned too soon")
    equal(await store.prune(10, NOW + 10), 2, "pruned when two may go")
    equal(await statuses(store, *"0123", "live"), [None, None, "completed", "dead", "queued"], "the statuses")
    equal(await store.prune(10, NOW + 1e9), 1, "pruned a lifetime later")
    equal(await statuses(store, "3", "live"), ["dead", "queued"], "what has no end")


async def check_no_more_is_pruned_than_asked_for(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"{n}") for n in range(5)))
    for number in range(5):
        await finish(store, outcome(await claim_one(store, f"{number}"), keep_until=NOW))
    pruned = [await store.prune(2, NOW) for _ in range(4)]
    equal(pruned, [2, 2, 1, 0], "pruned")


async def check_a_retried_job_is_not_pruned(lab: Lab) -> None:
    """A live job has no end, whatever an outcome says."""
    store = lab.store
    await add(store, job("1"), job("2"))
    await finish(store, outcome(await claim_one(store, "1"), JobStatus.FAILED, run_at=NOW + 5, keep_until=NOW))
    await finish(store, outcome(await claim_one(store, "2"), JobStatus.QUEUED, keep_until=NOW))
    equal(await store.prune(10, NOW + 1), 0, "pruned")
    await finish(store, outcome(await claim_one(store, "2"), JobStatus.DEAD))
    equal(await store.prune(10, NOW + 1), 0, "pruned once it has ended without a `keep_until`")


async def check_pruning_leaves_nothing(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", key="k", unique_key="u", payload=b"secret"))
    claimed = await claim_one(store, "1")
    await finish(store, failed(claimed, keep_until=NOW))
    equal(await store.prune(10, NOW), 1, "pruned")
    equal(await store.get(["1"]), [None], "got")
    equal(await store.find(JobFilter()), [], "found")
    numbers = await store.stats(NOW)
    equal(numbers.pools["p"].dead, 0, "dead jobs counted")
    equal((numbers.pools["p"].added, numbers.pools["p"].failed), (1, 1), "what only grows")
    equal((await state(store)).failures, 1, "what is remembered of the worker")
    await add(store, job("1", key="k", unique_key="u"))
    equal((await claim_one(store, "1")).attempt, 1, "the attempt of a new job of that name")


async def check_old_events_are_pruned_and_what_people_did_apart(lab: Lab) -> None:
    """Otherwise a person could hide a deed by letting jobs die until its event is pruned."""
    store = lab.store
    deed = Event(at=NOW, name="paused", subject="p", message="", data={"by": "☃"})
    dead = [Event(at=NOW + n, name="dead", subject=f"{n}", message="") for n in range(10_003)]
    await store.record([deed, dead[0], deed, *dead[1:]])
    equal([await store.prune(2, NOW) for _ in range(3)], [2, 1, 0], "events pruned, two at a time")
    events = await store.events(0, 20_000)
    equal([event.at for event in events], [NOW, NOW, *(event.at for event in dead[3:])], "when what is kept happened")
    numbers = [event.seq for event in events]
    equal(numbers, sorted(set(numbers)), "the numbers, of both kinds")
    await store.record([dead[0], *[deed] * 10_000])
    equal(await store.prune(10, NOW), 3, "events pruned of both kinds")
    newest = await store.events(numbers[-2], 20_000)
    equal([event.by_person for event in newest], [False, False, *[True] * 10_000], "who caused the newest")
    equal(len(await store.events(0, 30_000)), 20_000, "events kept")


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_place_is_held_by_one_until_its_time_is_over(lab: Lab) -> None:
    store, other = lab.store, await lab.another()
    holds(await store.hold("leader", "me", 1, 10, NOW), "the place is free")
    holds(not await other.hold("leader", "you", 1, 10, NOW + 9.9), "the place is taken")
    holds(await store.hold("leader", "me", 1, 10, NOW + 9.9), "its holder renews it")
    holds(not await other.hold("leader", "you", 1, 10, NOW + 19.8), "renewing extends it")
    holds(await other.hold("leader", "you", 1, 10, NOW + 19.9), "it is free when its time is over")
    holds(not await store.hold("leader", "me", 1, 10, NOW + 20), "its old holder has lost it")
    holds(await store.hold("another", "me", 1, 10, NOW), "another name is another place")


async def check_a_place_can_be_given_back(lab: Lab) -> None:
    store = lab.store
    await store.hold("leader", "me", 1, 10, NOW)
    await store.drop("leader", "you")
    holds(not await store.hold("leader", "you", 1, 10, NOW), "only its holder can give it back")
    await store.drop("leader", "me")
    await store.drop("leader", "me")
    await store.drop("nothing", "me")
    holds(await store.hold("leader", "you", 1, 10, NOW), "it is free")


async def check_a_name_may_have_more_than_one_place(lab: Lab) -> None:
    store = lab.store
    equal([await store.hold("s", who, 3, 10, NOW) for who in "abcd"], [True, True, True, False], "held")
    holds(await store.hold("s", "a", 3, 50, NOW), "one of them goes on")
    equal([await store.hold("s", who, 3, 10, NOW + 10) for who in "defg"], [True, True, False, False], "held later")
    holds(await store.hold("s", "a", 1, 50, NOW + 11), "a holder renews its place, even if there are fewer places now")
    holds(not await store.hold("s", "h", 1, 50, NOW + 11), "but no other holder gets one")
