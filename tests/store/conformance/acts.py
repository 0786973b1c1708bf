"""Short ways to act on a store, so that a check reads as what it is about.

By default the time is `NOW`, the worker is "w", the pool is "p" and the instance is "i".
"""

from collections.abc import Collection
from typing import Any, Final

from msgspec import msgpack
from msgspec.structs import asdict

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Attempt, Claimed, JobRecord, JobStatus, LogLine, NewJob
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat
from shiftwork.core.workers.admission import Gates
from shiftwork.store.protocol import Claims, Store
from tests.store.conformance.expect import equal, holds, there

NOW: Final = 1_000_000.0
"""When the checks begin. Any instant would do, because a store has no clock of its own."""
UNSAID: Final = ("payload", "trace", "expires_at", "options", "failures", "secrets")
"""What an outcome does not say of its job."""
ALL_WORKERS: Final = ("w", "v", "a", "b", "c")
"""The workers that an instance knows by default."""


def job(id: str, worker: str = "w", *, pool: str = "p", run_at: float = NOW, **more: Any) -> NewJob:
    """A job to be added."""
    return NewJob(id=id, worker=worker, pool=pool, run_at=run_at, payload=more.pop("payload", b"\x80"), **more)


async def add(store: Store, *jobs: NewJob, now: float = NOW) -> None:
    """Add jobs that are all new."""
    equal([added.created for added in await store.add(jobs, now)], [True] * len(jobs), "added jobs are new")


async def claims(
    store: Store,
    n: int = 10,
    *,
    now: float = NOW,
    instance: str = "i",
    pool: str = "p",
    workers: Collection[str] = ALL_WORKERS,
    edition: str | None = None,
) -> Claims:
    """Claim, and return everything that `claim` returns."""
    return await store.claim(instance, pool, n, now, workers, edition=edition)


async def claim(store: Store, n: int = 10, **more: Any) -> list[Claimed]:
    """Claim jobs, and return them."""
    return (await claims(store, n, **more)).jobs


async def claim_ids(store: Store, n: int = 10, **more: Any) -> list[str]:
    """Claim jobs, and return their ids."""
    return [claimed.id for claimed in await claim(store, n, **more)]


async def claim_one(store: Store, id: str, **more: Any) -> Claimed:
    """Claim one job, which must be this one."""
    claimed = await claim(store, 1, **more)
    equal([one.id for one in claimed], [id], "claimed")
    return claimed[0]


def outcome(claimed: Claimed, status: JobStatus = JobStatus.COMPLETED, *, now: float = NOW, **changes: Any) -> Outcome:
    """An outcome for a claimed job; what is not given stays as it was."""
    kept = {name: value for name, value in asdict(claimed).items() if name not in UNSAID}
    return Outcome(**{**kept, "status": status, "ended_at": now, **changes})


def succeeded(claimed: Claimed, *, now: float = NOW, **changes: Any) -> Outcome:
    """A success, which counts for the worker."""
    return outcome(claimed, now=now, **{"verdict": "success", **changes})


def failed(claimed: Claimed, *, now: float = NOW, **changes: Any) -> Outcome:
    """A final failure, which counts against the worker."""
    return outcome(claimed, JobStatus.DEAD, now=now, **{"verdict": "failure", "error": "it broke", **changes})


def report(claimed: Claimed, *, now: float = NOW, error: str = "it broke") -> Attempt:
    """The report of an attempt that failed."""
    return Attempt(
        number=claimed.attempt,
        started_at=now,
        ended_at=now,
        kind="raised",
        error=error,
        traceback="a\nb",
        log=(LogLine(now, "info", "said", claimed.attempt),),
    )


async def finish(store: Store, *outcomes: Outcome, now: float = NOW) -> list[str]:
    """Finish under fences that are all current, and return the workers that were disabled."""
    finished = await store.finish(outcomes, now)
    equal(finished.accepted, [True] * len(outcomes), "outcomes accepted")
    return finished.disabled


async def run(store: Store, id: str, worker: str = "w", *, now: float = NOW, **more: Any) -> None:
    """Add one job, run it, and let it succeed."""
    await add(store, job(id, worker, run_at=now, **more), now=now)
    claimed = await claim_one(store, id, now=now, workers=[worker], pool=more.get("pool", "p"))
    await finish(store, succeeded(claimed, now=now), now=now)


async def get(store: Store, id: str) -> JobRecord:
    """The record of a job that exists."""
    return there((await store.get([id]))[0], f"job {id}")


async def get_whole(store: Store, id: str) -> JobRecord:
    """The record of a job that exists, with its steps and signals."""
    return there((await store.get([id], whole=True))[0], f"job {id}")


async def statuses(store: Store, *ids: str) -> list[str | None]:
    """The statuses of jobs; None where there is no job."""
    return [record.status.value if record else None for record in await store.get(ids)]


async def state(store: Store, worker: str = "w", now: float = NOW) -> WorkerState:
    """The state of a worker."""
    return (await store.survey([worker], now)).lanes[worker].state


async def put(store: Store, kind: str, name: str, body: object) -> None:
    """Write a doc over any that exists."""
    there_is = {doc.name: doc.version for doc in await store.docs(kind)}
    encoded = body if isinstance(body, bytes) else msgpack.encode(body)
    [written] = await store.put([Doc(kind, name, encoded, there_is.get(name, 0))])
    holds(written, f"doc {kind} {name} is written")


async def gate(store: Store, worker: str, *, pool: str = "p", **more: Any) -> None:
    """Write the gates of a worker."""
    await put(store, "gates", worker, Gates(worker=worker, pool=pool, **more))


async def beat(store: Store, *instances: str, now: float = NOW, ttl: float = 15.0, pool: str = "p") -> None:
    """Let instances beat."""
    await store.beat([signs(name, pool) for name in instances], ttl, now)


def signs(instance: str, pool: str = "p") -> Beat:
    """The beat of an instance."""
    return Beat(
        instance=instance, node="n", pool=pool, slots=4, busy=1, started_at=NOW - 60, completed=7, memory=1 << 33
    )
