"""`claim` where very many workers have jobs, or an instance serves very many: the same jobs in the same order."""

from shiftwork.testing.acts import NOW, add, claim_ids, claims, finish, gate, job, outcome
from shiftwork.testing.expect import equal, holds
from shiftwork.testing.lab import Lab

MANY = 300
NAMES = tuple(f"w{number:03}" for number in range(MANY))


async def check_rank_and_id_hold_across_very_many_workers(lab: Lab) -> None:
    mixed = [job(f"{n * 7 % MANY:03}", NAMES[n]) for n in range(MANY)]
    await add(lab.store, *mixed, job("first", NAMES[-1], run_at=NOW - 1), job("last", NAMES[0], run_at=NOW - 0.5))
    taken = [await claim_ids(lab.store, 120, workers=NAMES) for _ in range(4)]
    in_order = ["first", "last", *(f"{n:03}" for n in range(MANY))]
    equal(sum(taken, []), in_order, "the order")  # noqa: RUF017 - four short lists


async def check_very_many_workers_get_only_their_jobs(lab: Lab) -> None:
    await add(lab.store, job("1", "stranger"), job("2", NAMES[7]), job("3", NAMES[8]), job("4", "stranger"))
    equal(await claim_ids(lab.store, 1, workers=NAMES), ["2"], "of the first claim")
    other = await lab.another()
    equal(await claim_ids(other, workers=NAMES), ["3"], "of another process")
    equal(await claim_ids(lab.store, 1, workers=(*NAMES, "stranger")), ["1"], "with one worker more")
    equal(await claim_ids(lab.store, workers=NAMES), [], "without it")


async def check_jobs_behind_very_many_of_others(lab: Lab) -> None:
    """Jobs that this instance does not serve, or whose worker is disabled, are passed over, however many they are."""
    store = lab.store
    await add(store, *(job(f"other {n:04}", "stranger", run_at=NOW - 2) for n in range(1_500)))
    for n in range(6):
        await add(store, job(f"off {n}", NAMES[n], run_at=NOW - 1))
        await store.switch(NAMES[n], enabled=False, reason=None, now=NOW)
    await add(store, *(job(f"{n}", NAMES[6 + n % 3]) for n in range(9)))
    equal(await claim_ids(store, 4, workers=NAMES), ["0", "1", "2", "3"], "the first")
    equal(await claim_ids(store, workers=NAMES), ["4", "5", "6", "7", "8"], "the rest")


async def check_gates_hold_among_very_many_workers(lab: Lab) -> None:
    store = lab.store
    await gate(store, NAMES[3], max_running=1)
    await add(
        store, *(job(f"a{n}", NAMES[3], run_at=NOW - 1) for n in range(3)), *(job(f"b{n}", NAMES[n]) for n in (1, 2))
    )
    found = await claims(store, workers=NAMES)
    equal([one.id for one in found.jobs], ["a0", "b1", "b2"], "claimed")
    equal(await claim_ids(store, workers=NAMES), [], "while it runs")
    await finish(store, outcome(found.jobs[0]))
    crew = (*NAMES, "newcomer")  # a store that has not heard of these workers, in a pool with gates
    equal(await claim_ids(store, workers=crew), ["a1"], "when it has ended")


async def check_a_lane_that_was_emptied_is_found_again(lab: Lab) -> None:
    store = lab.store
    for round_ in range(3):
        await add(store, *(job(f"{round_} {n:03}", NAMES[n]) for n in range(60)))
        equal(len(await claim_ids(store, 100, workers=NAMES)), 60, "claimed")
    stats = await store.stats(NOW)
    holds(stats.pools["p"].oldest_run_at is None, "no job is ready")
    await add(store, job("late", NAMES[5], run_at=NOW - 7), job("early", NAMES[4], run_at=NOW - 9))
    equal((await store.stats(NOW)).pools["p"].oldest_run_at, NOW - 9, "the head of the queue")
