"""The concurrency key: which jobs are parked, which is next, and that every end gives the place back."""

from typing import TYPE_CHECKING

from shiftwork.core.model.job_changes import Cancel, Requeue
from shiftwork.core.model.jobs import JobStatus, NewJob
from shiftwork.store.protocol import Store
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
    statuses,
)
from tests.store.conformance.expect import equal
from tests.store.conformance.lab import Lab

if TYPE_CHECKING:
    from shiftwork.core.model.job_changes import Outcome


def keyed(id: str, after: float = 0.0, *, limit: int = 1, key: str = "k", worker: str = "w") -> NewJob:
    """A job with a key, which is due some seconds after `NOW` minus a minute."""
    return job(id, worker, run_at=NOW - 60 + after, key=key, key_limit=limit)


async def parked(store: Store, *ids: str) -> list[str]:
    """Which of these jobs are parked."""
    return [id for id in ids if (await get(store, id)).parked]


async def check_jobs_behind_a_taken_key_are_parked(lab: Lab) -> None:
    await add(lab.store, keyed("1"), keyed("2", 1), keyed("3", 2))
    equal(await parked(lab.store, "1", "2", "3"), ["2", "3"], "parked")
    equal(await statuses(lab.store, "1", "2", "3"), ["queued"] * 3, "statuses")
    equal(await claim_ids(lab.store), ["1"], "claimed")
    equal(await parked(lab.store, "1", "2", "3"), ["2", "3"], "parked while the first runs")
    equal(await claim_ids(lab.store), [], "claimed while the first runs")


async def check_a_key_is_the_workers_own(lab: Lab) -> None:
    await add(lab.store, keyed("1"), keyed("2", worker="v"), keyed("3", key="K"), job("4"))
    equal(await parked(lab.store, "1", "2", "3", "4"), [], "parked")
    equal(len(await claim(lab.store)), 4, "claimed")


async def check_a_key_may_have_more_than_one_place(lab: Lab) -> None:
    await add(lab.store, *(keyed(f"{n}", n, limit=2) for n in range(5)))
    first, second = await claim(lab.store)
    equal((first.id, second.id), ("0", "1"), "claimed")
    equal(await parked(lab.store, *"01234"), ["2", "3", "4"], "parked")
    await finish(lab.store, outcome(second))
    equal(await claim_ids(lab.store), ["2"], "claimed when one has ended")
    equal(await claim_ids(lab.store), [], "claimed while two run")


async def check_a_key_is_released_by_every_outcome(lab: Lab) -> None:
    for status in ("completed", "dead", "cancelled"):
        await _is_released_by(lab, status, {"status": JobStatus(status)})
    await _is_released_by(lab, "failed", {"status": JobStatus.FAILED, "run_at": NOW + 60})
    await _is_released_by(lab, "failed, due at once", {"status": JobStatus.FAILED, "run_at": NOW, "keeps_rank": False})
    await _is_released_by(lab, "handed back, for later", {"status": JobStatus.QUEUED, "run_at": NOW + 60})
    await _is_released_by(lab, "handed back, behind", {"status": JobStatus.QUEUED, "run_at": NOW, "keeps_rank": False})


async def _is_released_by(lab: Lab, name: str, changes: dict[str, object]) -> None:
    store = lab.store
    await add(store, keyed(f"{name} 1", key=name), keyed(f"{name} 2", 2, key=name), keyed(f"{name} 3", 1, key=name))
    claimed = await claim_one(store, f"{name} 1")
    result: Outcome = outcome(claimed, **changes)  # type: ignore[arg-type]
    await finish(store, result)
    equal(await claim_ids(store), [f"{name} 3"], f"the next one, once the first is {name}")


async def check_a_job_handed_back_takes_its_place_again(lab: Lab) -> None:
    await add(lab.store, keyed("1"), keyed("2", 1))
    await finish(lab.store, outcome(await claim_one(lab.store, "1"), JobStatus.QUEUED))
    equal(await parked(lab.store, "1", "2"), ["2"], "parked")
    equal(await claim_ids(lab.store), ["1"], "claimed")


async def check_cancelling_the_next_one_unparks_the_one_behind_it(lab: Lab) -> None:
    await add(lab.store, keyed("1"), keyed("2", 1), keyed("3", 2))
    await lab.store.amend(["2"], Cancel(), NOW)
    equal(await parked(lab.store, "1", "3"), ["3"], "parked when a parked one is cancelled")
    await lab.store.amend(["1"], Cancel(), NOW)
    equal(await parked(lab.store, "3"), [], "parked when the next one is cancelled")
    equal(await claim_ids(lab.store), ["3"], "claimed")


async def check_a_later_job_that_ranks_ahead_takes_the_place(lab: Lab) -> None:
    await add(lab.store, keyed("1", 9))
    await add(lab.store, keyed("2", 5))
    equal(await parked(lab.store, "1", "2"), ["1"], "parked")
    await add(lab.store, keyed("0", 5))
    equal(await parked(lab.store, "0", "1", "2"), ["1", "2"], "parked when ranks are equal, by id")
    for id in ("0", "2", "1"):
        await finish(lab.store, outcome(await claim_one(lab.store, id)))


async def check_a_running_job_keeps_its_place(lab: Lab) -> None:
    await add(lab.store, keyed("1", 9))
    claimed = await claim_one(lab.store, "1")
    await add(lab.store, keyed("2"))
    equal(await claim_ids(lab.store), [], "claimed beside it")
    await finish(lab.store, outcome(claimed))
    equal(await claim_ids(lab.store), ["2"], "claimed after it")


async def check_overtaking_with_more_than_one_place(lab: Lab) -> None:
    await add(lab.store, *(keyed(f"{n}", 10 + n, limit=3) for n in range(5)))
    await claim_one(lab.store, "0")
    await add(lab.store, keyed("first", 1, limit=3))
    equal(await parked(lab.store, *"1234", "first"), ["2", "3", "4"], "parked")
    equal(await claim_ids(lab.store), ["first", "1"], "claimed")


async def check_scheduled_jobs_hold_no_place(lab: Lab) -> None:
    store = lab.store
    late = NOW + 30
    await add(store, job("1", run_at=late, key="k", head_start=1000), job("2", run_at=late, key="k"), job("3", key="k"))
    equal(await parked(store, "1", "2", "3"), [], "parked while two are scheduled")
    await store.promote(10, late)
    equal(await parked(store, "1", "2", "3"), ["2", "3"], "parked when they have become due, by rank")
    equal(await claim_ids(store, now=late), ["1"], "claimed")


async def check_jobs_to_be_retried_hold_no_place(lab: Lab) -> None:
    store = lab.store
    await add(store, keyed("1"), keyed("2", 1), keyed("3", 2))
    await finish(store, outcome(await claim_one(store, "1"), JobStatus.FAILED, run_at=NOW + 5, keeps_rank=False))
    running = await claim_one(store, "2")
    await store.promote(10, NOW + 5)
    equal(await parked(store, "1", "3"), ["1", "3"], "parked while the second runs")
    await finish(store, outcome(running))
    equal(await claim_ids(store, now=NOW + 5), ["3"], "claimed: the retry ranks behind")


async def check_a_requeued_job_stands_in_line(lab: Lab) -> None:
    store = lab.store
    await add(store, keyed("1"))
    await finish(store, outcome(await claim_one(store, "1"), JobStatus.DEAD))
    await add(store, keyed("2"))
    await store.amend(["1"], Requeue(run_at=NOW), NOW)
    equal(await parked(store, "1", "2"), ["1"], "parked")
    await finish(store, outcome(await claim_one(store, "2")))
    equal(await claim_ids(store), ["1"], "claimed")


async def check_a_reaped_job_keeps_its_place(lab: Lab) -> None:
    await beat(lab.store, "r")
    await add(lab.store, keyed("1"), keyed("2", 1))
    await claim_one(lab.store, "1", instance="gone")
    [taken] = await lab.store.reap("r", 10, NOW)
    equal(await claim_ids(lab.store), [], "claimed while it is being settled")
    await finish(lab.store, outcome(taken.claimed()))
    equal(await claim_ids(lab.store), ["2"], "claimed afterwards")


async def check_a_lower_limit_waits_until_there_is_room(lab: Lab) -> None:
    """Each job obeys its own limit, as after a deployment that lowers it."""
    await add(lab.store, keyed("1", limit=2), keyed("2", 1, limit=2))
    first, second = await claim(lab.store)
    await add(lab.store, keyed("3", 2, limit=1), keyed("4", 3, limit=2))
    await finish(lab.store, outcome(first))
    equal(await claim_ids(lab.store), [], "claimed while one runs: no job passes the one with the lower limit")
    await finish(lab.store, outcome(second))
    equal(await claim_ids(lab.store), ["3", "4"], "claimed when none runs")


async def check_keys_hold_across_pools(lab: Lab) -> None:
    """A worker that moved to another pool is still the same worker."""
    await add(lab.store, job("1", key="k"), job("2", key="k", pool="q"))
    claimed = await claim_one(lab.store, "1")
    equal(await claim_ids(lab.store, pool="q"), [], "claimed in the other pool")
    await finish(lab.store, outcome(claimed))
    equal(await claim_ids(lab.store, pool="q"), ["2"], "claimed in the other pool afterwards")
