"""`survey` and `ahead`: why a job waits, as claims decide it, and how many jobs are ahead of it, by worker."""

from shiftwork.core.health.position import LANES, Ahead, QueuePlace
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.workers.admission import Facts, Gates, Obstacle, RateLimit, Running, explain, may_start
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import (
    ALL_WORKERS,
    NOW,
    add,
    beat,
    claim,
    claim_ids,
    claim_one,
    finish,
    gate,
    job,
    outcome,
    put,
    run,
    succeeded,
)
from tests.store.conformance.expect import equal, holds, there
from tests.store.conformance.lab import Lab


async def check_a_lane_says_what_there_is_of_a_worker(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1"), job("2"), job("3", head_start=9), job("4", key="k", head_start=8), job("5", key="k"))
    await claim_one(store, "3", now=NOW + 1)
    await claim_one(store, "4", now=NOW + 2, instance="j")
    await finish(store, outcome(await claim_one(store, "1", now=NOW + 3), JobStatus.FAILED, run_at=NOW + 60))
    lane = (await store.survey(["w"], NOW)).lanes["w"]
    equal((lane.running, lane.newest_started_at), (2, NOW + 2), "what runs")
    equal(lane.eldest, Running("3", "i", NOW + 1), "what has run for longest")
    head = there(lane.head, "the head")
    equal((head.id, head.rank, head.since), ("2", NOW, NOW), "the head, which is not parked")
    equal((lane.retrying, lane.live), (True, True), "whether one is to be retried, and whether one is live")
    equal(lane.ready, 1, "how many are ready: the one with the key of a running job is parked")
    equal(lane.state.last_started, NOW + 3, "the state")


async def check_a_lane_without_live_jobs_says_so(lab: Lab) -> None:
    store = lab.store
    await run(store, "1")
    lane = (await store.survey(["w"], NOW)).lanes["w"]
    found = (lane.running, lane.eldest, lane.newest_started_at, lane.head, lane.retrying, lane.live)
    equal(found, (0, None, None, None, False, False), "a lane whose jobs have ended")
    await add(store, job("2", run_at=NOW + 9))
    holds((await store.survey(["w"], NOW)).lanes["w"].live, "one with a scheduled job is live")


async def check_a_survey_covers_the_neighbours(lab: Lab) -> None:
    store = lab.store
    await gate(store, "a", conflicts=("b",))
    await gate(store, "b", conflicts=("a",), after={"c": "done"}, breaker="x")
    await gate(store, "c", before=("b",))
    await gate(store, "d", breaker="x", pool="q")
    await gate(store, "e")
    await put(store, "breaker", "x", BreakerState(open=True, until=NOW + 9))
    await put(store, "pool", "q", PoolDoc(paused=True, reason="r"))
    await beat(store, "i", ttl=5)
    await beat(store, "j", pool="q", ttl=50)
    facts = await store.survey(["a"], NOW + 5)
    holds({"a", "b", "c", "d"} <= facts.lanes.keys(), f"the lanes of all that are tied together: {[*facts.lanes]}")
    equal(facts.gates["b"], Gates(worker="b", pool="p", conflicts=("a",), after={"c": "done"}, breaker="x"), "gates")
    equal(facts.breakers["x"], BreakerState(open=True, until=NOW + 9), "the breaker")
    equal(facts.pools["q"], PoolDoc(paused=True, reason="r"), "the pool")
    equal(facts.served, {"q"}, "the pools that a live instance serves")


async def check_a_survey_of_all_covers_all(lab: Lab) -> None:
    store = lab.store
    await add(store, job("1", "with a job"))
    await run(store, "2", "with a state")
    await store.switch("switched off", enabled=False, reason=None, now=NOW)
    await gate(store, "with gates")
    facts = await store.survey(None, NOW)
    names = {"with a job", "with a state", "switched off", "with gates"}
    holds(names <= facts.lanes.keys(), f"all of {names} are in {[*facts.lanes]}")
    holds("unknown" in (await store.survey(["unknown"], NOW)).lanes, "a worker that is unknown is included, too")


async def check_a_survey_is_a_copy(lab: Lab) -> None:
    await add(lab.store, job("1"))
    facts = await lab.store.survey(["w"], NOW)
    facts.lanes["w"].state.enabled = False
    facts.lanes["w"].running = 7
    equal(await claim_ids(lab.store), ["1"], "claimed after a caller changed the facts it got")


async def check_claims_do_what_a_survey_explains(lab: Lab) -> None:
    """One job of each worker, each held back by something else, and let go one by one."""
    store = lab.store
    await gate(store, "a", conflicts=("b",))
    await gate(store, "b", conflicts=("a",))
    await gate(store, "c", after={"a": "fresh"})
    await gate(store, "v", rate=RateLimit(1, 60.0), breaker="x")
    await gate(store, "w", max_running=1)
    await beat(store, "i")
    await add(store, *(job(f"{name}{n}", name, run_at=NOW - 9 + n) for n in range(2) for name in ALL_WORKERS))
    seen: set[str] = set()
    for turn in range(12):
        now = NOW + 20 * turn
        await beat(store, "i", now=now)
        await _changes(store, turn, now)
        facts = await store.survey(ALL_WORKERS, now)
        seen |= {wait.code for name in ALL_WORKERS for wait in _waits(facts, name, now)}
        wanted = [name for name in ALL_WORKERS if _may(facts, name, now)]
        for name in ALL_WORKERS:
            again = await store.survey([name], now)
            one = await claim(store, 1, now=now, workers=[name])
            equal([claimed.worker for claimed in one], [name] if _may(again, name, now) else [], f"claimed of {wanted}")
            if one and turn % 2:
                await finish(store, succeeded(one[0], now=now), now=now)
    wanted_codes = {"disabled", "breaker", "dependency", "max_running", "blocked", "rate_limit"}
    holds(wanted_codes <= seen, f"every reason to wait was met, of {sorted(wanted_codes)}: {sorted(seen)}")


async def _changes(store: Store, turn: int, now: float) -> None:
    await store.switch("w", enabled=turn % 4 != 1, reason="odd", now=now)
    await put(store, "breaker", "x", BreakerState(open=turn % 3 == 0, until=now + 1))
    await add(store, *(job(f"{name} {turn}", name, run_at=now) for name in ALL_WORKERS), now=now)


def _may(facts: Facts, worker: str, now: float) -> bool:
    head = facts.lanes[worker].head
    return head is not None and may_start(worker, head, facts, now) is None


def _waits(facts: Facts, worker: str, now: float) -> list[Obstacle]:
    head = facts.lanes[worker].head
    return explain(worker, head, facts, now) if head is not None else []


MANY = 2 * LANES


async def check_jobs_ahead_are_counted_by_worker(lab: Lab) -> None:
    store = lab.store
    await add(store, *(job(f"w{n}", run_at=NOW - 9 + n) for n in range(5)))
    await add(store, *(job(f"v{n}", "v", run_at=NOW - 9 + n) for n in range(3)))
    await add(store, job("early", "a", head_start=60.0), job("late", "b", run_at=NOW + 0.5), now=NOW + 1)
    await add(store, job("elsewhere", pool="q", run_at=NOW - 99))
    equal(
        await _ahead(store, QueuePlace(NOW - 6, "w3", "w")), Ahead({"w": 3, "v": 3, "a": 1}), "ahead of the fourth of w"
    )
    equal(
        await _ahead(store, QueuePlace(NOW - 8, "v1", "v")), Ahead({"w": 1, "v": 1, "a": 1}), "ahead of the second of v"
    )
    equal(await _ahead(store, QueuePlace(NOW - 60, "early", "a")), Ahead({}), "ahead of the first")
    equal(await _ahead(store, QueuePlace(NOW, "x", "w"), "nowhere"), Ahead({}), "in a pool that has no jobs")


async def check_jobs_of_one_rank_are_in_the_order_of_their_ids(lab: Lab) -> None:
    ids = [f"{n:03}" for n in range(40)]
    await add(lab.store, *(job(id, "wv"[n % 2]) for n, id in enumerate(ids)))
    for place in (0, 1, 7, 20, 39):
        expected = {"w": (place + 1) // 2, "v": place // 2}
        found = await _ahead(lab.store, QueuePlace(NOW, ids[place], "wv"[place % 2]))
        equal(found, Ahead({name: n for name, n in expected.items() if n}), f"ahead of {ids[place]}")


async def check_positions_are_the_order_of_claims(lab: Lab) -> None:
    store = lab.store
    jobs = [job(f"{n * 7 % 20:02}", "wvab"[n % 4], run_at=NOW - n % 3, head_start=float(n % 2)) for n in range(20)]
    await add(store, *jobs)
    places = {one.id: await _position(store, one.worker, one.run_at - one.head_start, one.id) for one in jobs}
    taken = await claim_ids(store, 20)
    equal(
        [places[id] for id in taken], [*range(20)], "the positions of the jobs in the order in which they are claimed"
    )


async def check_only_jobs_that_could_start_are_ahead(lab: Lab) -> None:
    store = lab.store
    await add(store, job("running", run_at=NOW - 9), job("holder", key="k", run_at=NOW - 8))
    await claim_one(store, "running")
    await add(store, *(job(f"parked {n}", key="k", run_at=NOW - 7) for n in range(3)))
    await add(store, job("later", run_at=NOW + 60))
    ahead = await _ahead(store, QueuePlace(NOW, "x", "w"))
    equal(ahead, Ahead({"w": 1}), "one that is free; not what runs, is parked, is later")
    equal(
        await _ahead(store, QueuePlace(NOW + 99, "x", "w")), Ahead({"w": 1}), "ahead of a place that is later than all"
    )


async def check_positions_among_very_many_workers(lab: Lab) -> None:
    store = lab.store
    names = [f"w{n:03}" for n in range(MANY)]
    await add(store, *(job(f"{n:03} {i}", name, run_at=NOW - 1) for n, name in enumerate(names) for i in range(3)))
    await add(store, job("mine 1", "mine", run_at=NOW - 1), job("mine 2", "mine"))
    found = await _ahead(store, QueuePlace(NOW, "mine 2", "mine"))
    equal(found.lanes.get("mine"), 1, "ahead of the own worker's second job")
    holds(
        found.complete == (len(found.lanes) == MANY + 1),
        f"complete, or said not to be: {len(found.lanes)} workers",
    )
    holds(len(found.lanes) >= LANES, f"so many workers at least are looked at: {len(found.lanes)}")


async def check_places_asked_for_together_are_as_if_each_were_asked_for_alone(lab: Lab) -> None:
    """A page of a list is in no order of the queue, and a worker may be among those that few jobs are ahead of."""
    store = lab.store
    names = [f"w{n:03}" for n in range(MANY)]
    await add(store, *(job(f"{name} {n}", name, run_at=NOW - n) for name in names for n in range(2)))
    await add(store, *(job(f"mine {n}", "mine", run_at=NOW - n % 3) for n in range(9)))
    places = [QueuePlace(NOW - n % 3, f"mine {n}", "mine") for n in range(9)]
    places += [
        QueuePlace(NOW - 1, "w007 1", "w007"),
        QueuePlace(NOW, "w059 0", "w059"),
        QueuePlace(NOW, "gone", "gone"),
        places[0],
    ]
    together = await store.ahead("p", places)
    equal(together, [await _ahead(store, place) for place in places], "the jobs ahead of each")
    equal(await store.ahead("p", []), [], "ahead of no places")


async def _ahead(store: Store, place: QueuePlace, pool: str = "p") -> Ahead:
    [ahead] = await store.ahead(pool, [place])
    return ahead


async def _position(store: Store, worker: str, rank: float, id: str) -> int:
    return sum((await _ahead(store, QueuePlace(rank, id, worker))).lanes.values())
