"""Cost: a claim is as quick beside a hundred thousand jobs that cannot run, or for ten thousand workers, as without.

It is measured as a ratio within one run, never as an absolute time: the same claims in the same store, before the crowd
and beside it.
"""

import time
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from shiftwork.core.health.position import QueuePlace
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob
from shiftwork.core.workers.admission import RateLimit
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, add, claim, claim_one, finish, gate, job, outcome
from tests.store.conformance.expect import holds
from tests.store.conformance.lab import Lab

CROWD = 100_000
BATCH = 5_000
TENANTS = 10_000
CLAIMS = 40
TRIES = 3
WORKERS = ("probe", "crowd")
RATIO, NOISE = 5.0, 0.0005
"""How much longer a claim may take: this factor, plus these seconds."""


async def check_claims_and_positions_beside_parked_jobs(lab: Lab) -> None:
    alone, place_alone = await _usual_claim(lab.store), await _usual_position(lab.store)
    await add(lab.store, job("holder", "crowd", key="k", run_at=NOW - 1))
    await claim_one(lab.store, "holder", workers=WORKERS)
    await _crowd(lab.store, (job(f"{n:06}", "crowd", key="k") for n in range(CROWD)))
    await _is_as_quick(lab.store, alone)
    beside = await _usual_position(lab.store)
    measured = f"a position takes {beside * 1000:.2f} ms beside the crowd, and {place_alone * 1000:.2f} ms without"
    holds(beside <= place_alone * RATIO + NOISE, measured)


async def check_claims_beside_jobs_of_a_disabled_worker(lab: Lab) -> None:
    alone = await _usual_claim(lab.store)
    await lab.store.switch("crowd", enabled=False, reason=None, now=NOW)
    await _crowd(lab.store, (job(f"{n:06}", "crowd", run_at=NOW - 1) for n in range(CROWD)))
    await _is_as_quick(lab.store, alone)


async def check_claims_beside_jobs_behind_a_limit(lab: Lab) -> None:
    await gate(lab.store, "crowd", rate=RateLimit(1, 3600), max_running=1)
    await add(lab.store, *(job(name, "crowd", run_at=NOW - 1) for name in ("running", "waiting")))
    await claim(lab.store, 1, workers=["crowd"])
    alone = await _usual_claim(lab.store)  # a limit has its price; how many wait behind it must not matter
    await _crowd(lab.store, (job(f"{n:06}", "crowd", run_at=NOW - 1) for n in range(CROWD)))
    await _is_as_quick(lab.store, alone)


async def check_claims_beside_scheduled_jobs(lab: Lab) -> None:
    alone = await _usual_claim(lab.store)
    await _crowd(lab.store, (job(f"{n:06}", "crowd", run_at=NOW + 3600 + n) for n in range(CROWD)))
    await _is_as_quick(lab.store, alone)


async def check_claims_beside_jobs_to_be_retried(lab: Lab) -> None:
    await _check_beside(lab, JobStatus.FAILED)


async def check_claims_beside_dead_jobs(lab: Lab) -> None:
    await _check_beside(lab, JobStatus.DEAD)


async def check_claims_beside_completed_jobs(lab: Lab) -> None:
    await _check_beside(lab, JobStatus.COMPLETED)


async def check_claims_for_very_many_workers(lab: Lab) -> None:
    """An instance may serve ten thousand workers: a claim must not cost more for those that have no job."""
    alone = await _usual_claim(lab.store)
    await _is_as_quick(lab.store, alone, frozenset({*WORKERS, *(f"tenant {n}" for n in range(TENANTS))}))


async def _check_beside(lab: Lab, status: JobStatus) -> None:
    alone = await _usual_claim(lab.store)
    for first in range(0, CROWD, BATCH):
        jobs = (job(f"{n:06}", "crowd", run_at=NOW + 3600) for n in range(first, first + BATCH))
        ended = None if status is JobStatus.FAILED else NOW
        crowd = [replace(JobRecord.of(one, NOW), status=status, attempt=1, ended_at=ended) for one in jobs]
        await lab.store.restore(crowd, NOW)
    await _is_as_quick(lab.store, alone)


async def _crowd(store: Store, jobs: Iterable[NewJob]) -> None:
    batch: list[NewJob] = []
    for one in jobs:
        batch.append(one)
        if len(batch) == BATCH:
            await store.add(batch, NOW)
            batch = []


async def _usual_claim(store: Store, workers: Collection[str] = WORKERS) -> float:
    """How many seconds a claim of one job takes, for an instance that would also take jobs of the crowd.

    It is the quickest of many: other work on the machine makes some claims longer, but none shorter.
    """
    seconds = []
    for number in range(CLAIMS):
        await store.add([job(f"probe {number}", "probe")], NOW)
        start = time.perf_counter()
        [claimed] = await claim(store, 1, workers=workers)
        seconds.append(time.perf_counter() - start)
        await finish(store, outcome(claimed, JobStatus.COMPLETED, keep_until=NOW))
    await store.prune(CLAIMS, NOW)
    return min(seconds)


async def _usual_position(store: Store) -> float:
    """How many seconds it takes to count the jobs ahead of a place: the quickest of many."""
    seconds = []
    for _ in range(CLAIMS):
        start = time.perf_counter()
        await store.ahead("p", [QueuePlace(NOW + 1, "", "crowd")])
        seconds.append(time.perf_counter() - start)
    return min(seconds)


async def _is_as_quick(store: Store, alone: float, workers: Collection[str] = WORKERS) -> None:
    """Retry a slow claim: the machine may have become busy, but a claim that looks at the crowd stays slow."""
    beside = await _usual_claim(store, workers)
    for _ in range(TRIES - 1):
        if beside > alone * RATIO + NOISE:
            beside = await _usual_claim(store, workers)
    measured = f"a claim takes {beside * 1000:.2f} ms beside the crowd, and {alone * 1000:.2f} ms without"
    holds(beside <= alone * RATIO + NOISE, measured)
