"""`ahead`: how many jobs are ahead of a place in the queue of a pool, by worker."""

from shiftwork.core.health.position import LANES, Ahead, QueuePlace
from shiftwork.store.protocol import Store
from shiftwork.testing.acts import NOW, add, claim_ids, claim_one, job
from shiftwork.testing.expect import equal, holds
from shiftwork.testing.lab import Lab

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
    holds(found.complete == (len(found.lanes) == MANY + 1), f"complete, or said not to be: {len(found.lanes)} workers")
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
