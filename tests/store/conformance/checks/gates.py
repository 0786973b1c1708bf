"""What holds a worker's jobs back: pause, disable, conflicts, dependencies, limits, breakers.

The rules are `shiftwork.core.workers.admission`; these checks hold a store to them, whatever language it keeps them in.
"""

from msgspec import msgpack

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.workers.admission import Gates, RateLimit
from shiftwork.core.workers.breaker import BreakerState, closed, held_open
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import (
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    claims,
    failed,
    finish,
    gate,
    job,
    outcome,
    put,
    run,
    state,
    succeeded,
)
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab


async def conflicting(store: Store) -> None:
    """Workers "a" in pool "p" and "b" in pool "q", which must not overlap; both pools are served."""
    await gate(store, "a", pool="p", conflicts=("b",))
    await gate(store, "b", pool="q", conflicts=("a",))
    await beat(store, "ip", pool="p")
    await beat(store, "iq", pool="q")


# ── pause and disable ────────────────────────────────────────────────────────────────────────────────────────────────


async def check_a_paused_pool_hands_out_nothing(lab: Lab) -> None:
    await put(lab.store, "pool", "p", PoolDoc(paused=True, reason="lunch"))
    await add(lab.store, job("1"), job("2", pool="q"))
    equal((await claims(lab.store)).jobs, [], "claimed from the paused pool")
    equal(await claim_ids(lab.store, pool="q"), ["2"], "claimed from another pool")
    await put(lab.store, "pool", "p", PoolDoc(paused=False))
    equal(await claim_ids(lab.store), ["1"], "claimed when it goes on")


async def check_a_disabled_worker_gets_nothing(lab: Lab) -> None:
    await add(lab.store, job("1"), job("2", "v"))
    await lab.store.switch("w", enabled=False, reason="off", now=NOW)
    equal(await claim_ids(lab.store), ["2"], "claimed while one is disabled")
    await lab.store.switch("w", enabled=True, reason=None, now=NOW)
    equal(await claim_ids(lab.store), ["1"], "claimed when it is enabled")


# ── conflicts ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_conflicts_hold_across_pools_in_both_directions(lab: Lab) -> None:
    store = lab.store
    await conflicting(store)
    for first, second in (("a", "b"), ("b", "a")):
        pools = {"a": "p", "b": "q"}
        await add(store, job(f"1{first}", first, pool=pools[first]))
        running = await claim_one(store, f"1{first}", pool=pools[first], workers=[first])
        await add(store, job(f"2{second}", second, pool=pools[second]))
        equal(await claim_ids(store, pool=pools[second], workers=[second]), [], f"{second} beside {first}")
        await finish(store, succeeded(running))
        waited = await claim_one(store, f"2{second}", pool=pools[second], workers=[second])
        await finish(store, succeeded(waited))


async def check_one_claim_takes_no_two_that_conflict(lab: Lab) -> None:
    await gate(lab.store, "a", conflicts=("b",))
    await gate(lab.store, "b", conflicts=("a",))
    await beat(lab.store, "i")
    await add(lab.store, job("1", "a"), job("2", "b", run_at=NOW - 1), job("3", "c", run_at=NOW + 0), job("4", "a"))
    equal(await claim_ids(lab.store), ["2", "3"], "claimed")


async def check_a_worker_does_not_conflict_with_itself_unless_it_says_so(lab: Lab) -> None:
    await gate(lab.store, "a", conflicts=("b",))
    await gate(lab.store, "c", conflicts=("c",))
    await beat(lab.store, "i")
    await add(lab.store, job("1", "a"), job("2", "a"), job("3", "c"), job("4", "c"))
    equal(await claim_ids(lab.store), ["1", "2", "3"], "claimed")


async def check_a_job_that_waits_on_a_conflict_is_not_passed(lab: Lab) -> None:
    """Otherwise a stream of one side would starve the other."""
    store = lab.store
    await conflicting(store)
    await add(store, job("1", "a", run_at=NOW - 9))
    running = await claim_one(store, "1", pool="p", workers=["a"])
    await add(store, job("2", "b", pool="q", run_at=NOW - 5), job("3", "a", run_at=NOW - 1))
    equal(await claim_ids(store, pool="p"), [], "claimed ahead of the one that waits")
    await finish(store, succeeded(running))
    equal(await claim_ids(store, pool="p"), [], "claimed ahead of the one whose turn it is")
    waited = await claim_one(store, "2", pool="q")
    await finish(store, succeeded(waited))
    equal(await claim_ids(store, pool="p"), ["3"], "claimed afterwards")


async def check_nobody_gives_way_to_a_job_that_ranks_behind(lab: Lab) -> None:
    await conflicting(lab.store)
    await add(lab.store, job("2", "b", pool="q", run_at=NOW - 1), job("1", "a", run_at=NOW - 1))
    equal(await claim_ids(lab.store, pool="p"), ["1"], "of equal rank the lower id goes first")


async def check_nobody_gives_way_to_a_job_that_nobody_would_run(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", pool="p", conflicts=("b",))
    await gate(store, "b", pool="q", conflicts=("a",))
    await beat(store, "ip", pool="p", ttl=1000)
    await beat(store, "iq", pool="q", ttl=10)
    await add(store, job("1", "b", pool="q", run_at=NOW - 5), job("2", "a"))
    equal(await claim_ids(store, now=NOW + 9.9), [], "claimed while an instance of the other pool lives")
    equal(await claim_ids(store, now=NOW + 10), ["2"], "claimed when it has no live instance left")


async def check_nobody_gives_way_to_a_job_that_is_held_back(lab: Lab) -> None:
    await conflicting(lab.store)
    await lab.store.switch("b", enabled=False, reason=None, now=NOW)
    await add(lab.store, job("1", "b", pool="q", run_at=NOW - 5), job("2", "a"))
    equal(await claim_ids(lab.store), ["2"], "claimed")


async def check_nobody_gives_way_to_a_cancelled_job(lab: Lab) -> None:
    await conflicting(lab.store)
    await add(lab.store, job("1", "b", pool="q", run_at=NOW - 5), job("2", "a"))
    equal(await claim_ids(lab.store), [], "claimed")
    await lab.store.amend(["1"], Cancel(), NOW)
    equal(await claim_ids(lab.store), ["2"], "claimed when it is cancelled")


async def check_a_lost_job_conflicts_until_it_is_settled(lab: Lab) -> None:
    store = lab.store
    await conflicting(store)
    await beat(store, "r", ttl=1000)
    await add(store, job("1", "a"))
    await claim_one(store, "1", instance="ip")
    await beat(store, "iq", pool="q", now=NOW + 20)
    await add(store, job("2", "b", pool="q"))
    equal(await claim_ids(store, pool="q", now=NOW + 20), [], "claimed when the lease has ended")
    [taken] = await store.reap("r", 10, NOW + 20)
    equal(await claim_ids(store, pool="q", now=NOW + 20), [], "claimed when it is being settled")
    await finish(store, outcome(taken.claimed(), JobStatus.DEAD), now=NOW + 20)
    equal(await claim_ids(store, pool="q", now=NOW + 20), ["2"], "claimed when it is settled")


async def check_conflicts_of_three(lab: Lab) -> None:
    """Worker c blocks a and b, which do not mind each other."""
    store = lab.store
    await gate(store, "a", conflicts=("c",))
    await gate(store, "b", conflicts=("c",))
    await gate(store, "c", conflicts=("a", "b"))
    await beat(store, "i")
    await add(store, job("1", "a"), job("2", "b"), job("3", "c"), job("4", "a"))
    first, second = await claim(store)
    equal((first.id, second.id), ("1", "2"), "claimed")
    await finish(store, succeeded(first))
    equal(await claim_ids(store), [], "claimed while b runs: c waits for it, and a for c")
    await finish(store, succeeded(second))
    equal(await claim_ids(store), ["3"], "claimed when neither runs")


# ── dependencies ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def depending(store: Store, demand: str = "done") -> None:
    """Worker "b" in pool "q" depends on worker "a" in pool "p"; both pools are served."""
    await gate(store, "a", pool="p", before=("b",))
    await gate(store, "b", pool="q", after={"a": demand})
    await beat(store, "ip", pool="p", ttl=10_000)
    await beat(store, "iq", pool="q", ttl=10_000)


async def check_a_dependency_must_have_succeeded(lab: Lab) -> None:
    store = lab.store
    await depending(store)
    await add(store, job("b1", "b", pool="q"))
    equal(await claim_ids(store, pool="q"), [], "claimed before it has ever run")
    await add(store, job("a1", "a"))
    equal(await claim_ids(store, pool="q"), [], "claimed while it is queued")
    running = await claim_one(store, "a1")
    equal(await claim_ids(store, pool="q"), [], "claimed while it is running")
    await finish(store, failed(running))
    equal(await claim_ids(store, pool="q"), [], "claimed when it has failed")
    await run(store, "a2", "a", now=NOW + 1)
    equal(await claim_ids(store, pool="q", now=NOW + 1), ["b1"], "claimed when it has succeeded")


async def check_a_dependency_that_is_due_goes_first(lab: Lab) -> None:
    store = lab.store
    await depending(store)
    await run(store, "a0", "a", now=NOW - 100)
    await add(store, job("b1", "b", pool="q"), job("a1", "a"))
    equal(await claim_ids(store, pool="q"), [], "claimed while it is queued")
    running = await claim_one(store, "a1")
    equal(await claim_ids(store, pool="q"), [], "claimed while it runs")
    await finish(store, outcome(running, JobStatus.FAILED, run_at=NOW + 60))
    equal(await claim_ids(store, pool="q"), [], "claimed while it is to be retried")
    await store.promote(10, NOW + 60)
    again = await claim_one(store, "a1", now=NOW + 60)
    await finish(store, succeeded(again, now=NOW + 61), now=NOW + 61)
    equal(await claim_ids(store, pool="q", now=NOW + 61), ["b1"], "claimed when it has succeeded")


async def check_a_fresh_dependency_must_have_succeeded_since(lab: Lab) -> None:
    store = lab.store
    await depending(store, "fresh")
    await run(store, "a1", "a", now=NOW)
    await run(store, "b1", "b", pool="q", now=NOW + 1)
    await add(store, job("b2", "b", pool="q"), now=NOW + 2)
    equal(await claim_ids(store, pool="q", now=NOW + 2), [], "claimed without a new success")
    await run(store, "a2", "a", now=NOW + 3)
    equal(await claim_ids(store, pool="q", now=NOW + 3), ["b2"], "claimed with one")


async def check_whoever_waited_for_a_dependency_goes_before_its_next_run(lab: Lab) -> None:
    """Otherwise a dependency that runs all the time would starve its dependents."""
    store = lab.store
    await depending(store)
    await add(store, job("a1", "a", run_at=NOW - 2), job("b1", "b", pool="q", run_at=NOW - 1), job("a2", "a"))
    running = await claim_one(store, "a1")
    await finish(store, succeeded(running, now=NOW + 1), now=NOW + 1)
    equal(await claim_ids(store, now=NOW + 1), [], "its next run")
    await claim_one(store, "b1", pool="q", now=NOW + 1)
    equal(await claim_ids(store, now=NOW + 1), [], "its next run, when the other has only just started")
    equal(await claim_ids(store, now=NOW + 2), ["a2"], "its next run, once the other has had time to begin")


async def check_a_dependency_goes_on_at_once_when_the_one_that_went_first_has_ended(lab: Lab) -> None:
    store = lab.store
    await depending(store)
    await run(store, "a1", "a", now=NOW)
    await run(store, "b1", "b", pool="q", now=NOW + 1)
    await add(store, job("a2", "a", run_at=NOW + 1), now=NOW + 1)
    equal(await claim_ids(store, now=NOW + 1), ["a2"], "its next run")


async def check_a_cancelled_dependency_has_ended(lab: Lab) -> None:
    store = lab.store
    await depending(store)
    await run(store, "a0", "a", now=NOW - 100)
    await add(store, job("a1", "a"), job("b1", "b", pool="q"))
    equal(await claim_ids(store, pool="q"), [], "claimed while it is queued")
    await store.amend(["a1"], Cancel(), NOW)
    equal(await claim_ids(store, pool="q"), ["b1"], "claimed when it is cancelled")


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def check_max_running_holds_for_all_instances_together(lab: Lab) -> None:
    other = await lab.another()
    await gate(lab.store, "w", max_running=3)
    await add(lab.store, *(job(f"{n}") for n in range(6)), job("q", pool="q"))
    first = await claim_one(lab.store, "0", instance="i")
    equal(await claim_ids(other, instance="j"), ["1", "2"], "claimed by another")
    equal(await claim_ids(other, instance="j", pool="q"), [], "claimed from another pool")
    await finish(other, outcome(first, JobStatus.FAILED, run_at=NOW + 9))
    equal(await claim_ids(lab.store), ["3"], "claimed when one has ended")


async def check_a_rate_limit_lets_a_burst_through_and_then_spaces(lab: Lab) -> None:
    limit = RateLimit(count=20, seconds=19.0)  # a burst of 2, then one a second
    await gate(lab.store, "w", rate=limit)
    await add(lab.store, *(job(f"{n}") for n in range(9)), job("v", "v"))
    answer = await claims(lab.store)
    equal([claimed.id for claimed in answer.jobs], ["0", "1", "v"], "claimed at once")
    equal(answer.next_at, NOW + limit.spacing, "when to ask again")
    equal((await claims(lab.store)).next_at, NOW + limit.spacing, "when to ask again, asked again")
    await lab.restart()
    equal(await claim_ids(lab.store, now=NOW + limit.spacing - 0.01), [], "claimed too soon, after a restart")
    equal(await claim_ids(lab.store, now=NOW + limit.spacing), ["2"], "claimed then")
    equal((await state(lab.store)).rate_at, NOW + 3 * limit.spacing, "the limit's position")
    equal(await claim_ids(lab.store, now=NOW + 1000), ["3", "4"], "claimed after a quiet time")


async def check_next_at_is_the_soonest_of_all(lab: Lab) -> None:
    await gate(lab.store, "a", rate=RateLimit(1, 60.0))
    await gate(lab.store, "b", rate=RateLimit(1, 30.0))
    await add(lab.store, job("a1", "a"), job("a2", "a"), job("b1", "b"), job("b2", "b"))
    answer = await claims(lab.store)
    equal([claimed.id for claimed in answer.jobs], ["a1", "b1"], "claimed")
    equal(answer.next_at, NOW + 30.0, "when to ask again")
    equal((await claims(lab.store, workers=["a"])).next_at, NOW + 60.0, "when to ask again for one of them")
    equal((await claims(lab.store, workers=["c"])).next_at, None, "when to ask again for neither")


# ── breakers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def guarded(store: Store, breaker: BreakerState) -> None:
    """Workers "a" and "b" share a breaker; each has two jobs."""
    await gate(store, "a", breaker="x")
    await gate(store, "b", breaker="x", pool="q")
    await put(store, "breaker", "x", breaker)
    await add(store, job("a1", "a"), job("a2", "a"), job("b1", "b", pool="q"), job("b2", "b", pool="q"))


async def check_a_closed_breaker_lets_all_through(lab: Lab) -> None:
    await guarded(lab.store, BreakerState(failed_at=(NOW,)))
    equal(await claim_ids(lab.store), ["a1", "a2"], "claimed")


async def check_an_open_breaker_holds_all_back(lab: Lab) -> None:
    await guarded(lab.store, BreakerState(open=True, until=NOW + 30, opened_at=NOW))
    for pool in ("p", "q"):
        answer = await claims(lab.store, pool=pool, now=NOW + 29.9)
        equal(answer.jobs, [], "claimed while it is open")
        equal(answer.next_at, NOW + 30, "when to ask again")


async def check_a_half_open_breaker_lets_one_probe_through(lab: Lab) -> None:
    store = lab.store
    await guarded(store, BreakerState(open=True, until=NOW + 30, opened_at=NOW))
    probe = await claim_one(store, "b1", pool="q", now=NOW + 30)
    equal(await claim_ids(store, now=NOW + 31), [], "another worker's, beside the probe")
    equal(await claim_ids(store, pool="q", now=NOW + 31), [], "the same worker's, beside the probe")
    await finish(store, succeeded(probe, now=NOW + 32), now=NOW + 32)
    await put(store, "breaker", "x", BreakerState())
    equal(await claim_ids(store, now=NOW + 33), ["a1", "a2"], "claimed when the probe has closed it")


async def check_one_claim_takes_only_one_probe(lab: Lab) -> None:
    await guarded(lab.store, BreakerState(open=True, until=NOW, opened_at=NOW - 30))
    equal(await claim_ids(lab.store, 10), ["a1"], "claimed")


async def check_a_straggler_is_no_probe(lab: Lab) -> None:
    """A job that has been running since before the cool-down ended does not prevent a probe."""
    store = lab.store
    await guarded(store, BreakerState())
    await claim_one(store, "a1", now=NOW)
    await put(store, "breaker", "x", BreakerState(open=True, until=NOW + 30, opened_at=NOW + 1))
    equal(await claim_ids(store, 10, now=NOW + 30), ["a2"], "claimed as the probe")


async def check_a_probe_that_ends_undecided_makes_room_for_another(lab: Lab) -> None:
    store = lab.store
    await guarded(store, BreakerState(open=True, until=NOW, opened_at=NOW - 30))
    probe = await claim_one(store, "a1")
    await finish(store, outcome(probe, JobStatus.FAILED, run_at=NOW + 60))
    equal(await claim_ids(store), ["a2"], "claimed as the next probe")


async def check_a_breaker_that_a_person_holds_open_names_no_time_to_ask_again(lab: Lab) -> None:
    """Neither do runs that end meanwhile: it is closed by hand, and that rings."""
    store, other = lab.store, await lab.another()
    await guarded(store, BreakerState())
    straggler = await claim_one(store, "a1")
    held = held_open(BreakerState(), by="ada", reason="maintenance", until=None, now=NOW)
    await put(other, "breaker", "x", held)
    for pool in ("p", "q"):
        answer = await claims(store, pool=pool, now=NOW + 1e9)
        equal((answer.jobs, answer.next_at), ([], None), "claimed while a person holds it open, and when to ask again")
    await finish(store, succeeded(straggler, now=NOW + 1), now=NOW + 1)
    equal(await claim_ids(other, now=NOW + 2), [], "claimed after the end of a run that started before")
    equal((await store.survey(None, NOW)).breakers["x"], held, "the breaker as it is read")
    await put(other, "breaker", "x", closed(NOW + 3))
    equal(await claim_ids(store, now=NOW + 3), ["a2"], "claimed when a person has closed it")


async def check_a_breaker_that_is_held_open_for_a_time_is_probed_then(lab: Lab) -> None:
    store = lab.store
    await guarded(store, BreakerState())
    await put(store, "breaker", "x", held_open(BreakerState(), by="ada", reason=None, until=NOW + 9, now=NOW))
    equal((await claims(store)).next_at, NOW + 9, "when to ask again")
    equal(await claim_ids(store, 10, now=NOW + 9), ["a1"], "claimed as the probe")


# ── the docs themselves ──────────────────────────────────────────────────────────────────────────────────────────────


async def check_gates_can_be_changed(lab: Lab) -> None:
    other = await lab.another()
    await add(lab.store, *(job(f"{n}") for n in range(4)))
    await gate(lab.store, "w", max_running=1)
    equal(await claim_ids(other), ["0"], "claimed with a limit")
    await gate(lab.store, "w", max_running=2)
    equal(await claim_ids(other), ["1"], "claimed with a higher one")
    await gate(other, "w")
    equal(await claim_ids(lab.store), ["2", "3"], "claimed without one")


async def check_docs_that_cannot_be_read_count_as_absent(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", max_running=1)
    await gate(store, "b", breaker="x")
    broken = (
        b"",
        b"\xc1",
        b"\xff" * 40,
        msgpack.encode(["no", "gates"]),
        msgpack.encode({"worker": 7}),
        b"\xa3\xff\xfe",
    )
    for number, body in enumerate(broken):
        for kind, name in (("gates", "a"), ("pool", "other"), ("breaker", "x"), ("whatever", "p")):
            await put(store, kind, name, body)
        ids = [f"{number}a", f"{number}b"]
        await add(store, job(ids[0], "a"), job(ids[1], "b"))
        equal(await claim_ids(store), ids, f"claimed beside docs of {body!r}")
        await store.survey(None, NOW)
        findings = await store.check()
        holds(findings["integrity"].severity == "critical", f"{body!r} is noticed in {findings}")
    await put(store, "gates", "a", Gates(worker="a", pool="p", max_running=1))
    await put(store, "pool", "other", PoolDoc())
    await put(store, "breaker", "x", BreakerState())
    await add(store, job("last", "a"))
    equal(await claim_ids(store), [], "claimed when the doc is whole again")
    equal((await store.check())["integrity"].text, "ok", "the finding when all are whole again")


async def check_a_pool_whose_doc_cannot_be_read_counts_as_paused(lab: Lab) -> None:
    """Nothing that a person has stopped may start. Other pools continue."""
    store = lab.store
    for body in (b"", b"\xc1", msgpack.encode({"paused": "maybe"})):
        await put(store, "pool", "p", body)
        await add(store, job(f"here {body!r}", "w", pool="p"), job(f"there {body!r}", "w", pool="q"))
        equal(await claim_ids(store, pool="p"), [], f"claimed beside {body!r}")
        equal(await claim_ids(store, pool="q"), [f"there {body!r}"], f"claimed from another pool beside {body!r}")
        known = (await store.survey(None, NOW)).pools["p"]
        holds(known.paused and known.reason is not None, f"it is shown as paused, with a reason: {known}")
        text = (await store.check())["integrity"].text
        holds("the pool record p cannot be read" in text and "resume it" in text, f"the doctor names it: {text}")
        await put(store, "pool", "p", PoolDoc())
        equal(await claim_ids(store, pool="p"), [f"here {body!r}"], "claimed when the doc is whole again")
