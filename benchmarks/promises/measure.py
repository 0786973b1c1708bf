"""The server's time for a job, and the rate of a drain, of a store that lacks something."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from benchmarks.places import Place
from benchmarks.promises.omissions import Omission, left_out, prepare
from benchmarks.subjects.shiftwork import Shiftwork
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus, NewJob
from shiftwork.store.protocol import Store
from shiftwork.store.urls import open_store

BATCH = 300
BATCHES = 100
DRAINED = 45_000
REPORTED_SECONDS = 30.0
"""How long sessions may take to end, which is when they report what they did."""


class ServerTime(NamedTuple):
    """What a job costs the server: microseconds of each step, and bytes in the log."""

    claim: float
    finish: float
    add: float
    log: float


async def server_time(place: Place, omissions: Sequence[Omission]) -> ServerTime:
    """Add, claim and finish jobs in batches, one after the other."""
    with place.fresh() as url, left_out(omissions):
        store = await _without(url, omissions)
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CHECKPOINT")
            before = _logged(db)
            await _live(store)
            logged = _logged(db) - before
            await store.close()
            await _sessions_ended(db)
            spent: dict[str, float] = dict(
                db.execute("SELECT funcname, total_time FROM pg_stat_user_functions").fetchall()
            )
    by_name = {name.rpartition("_")[0]: milliseconds * 1000 for name, milliseconds in spent.items()}
    jobs = BATCH * BATCHES
    return ServerTime(by_name["claim"] / jobs, by_name["finish"] / jobs, by_name["add"] / jobs, logged / jobs)


async def drained(place: Place, omissions: Sequence[Omission]) -> float:
    """Jobs per second that a whole process drains."""
    with place.fresh() as url, left_out(omissions):
        await (await _without(url, omissions)).close()
        subject, times, over = Shiftwork(url), list[float](), asyncio.Event()

        def ran() -> None:
            times.append(time.perf_counter())
            if len(times) == DRAINED:
                over.set()

        await subject.open()
        await subject.add_many(DRAINED)
        await subject.start(ran)
        await over.wait()
        await subject.app.stop()
        return DRAINED / (times[-1] - times[0])


async def _without(url: str, omissions: Sequence[Omission]) -> Store:
    """An open store that lacks these things."""
    store = open_store(url)
    await store.open()
    await store.close()
    prepare(url, omissions)
    await store.open()
    return store


async def _live(store: Store) -> None:
    now = time.time()
    for batch in range(BATCHES):
        ids = [f"{int(now * 1000):012x}{batch * BATCH + n:06x}{'b' * 14}" for n in range(BATCH)]
        jobs = [NewJob(id=id, worker="job", pool="bench", payload=b"\x80", run_at=now) for id in ids]
        await store.add(jobs, now)
    for _ in range(BATCHES):
        claims = await store.claim("i", "bench", BATCH, time.time(), frozenset({"job"}))
        await store.finish([_completed(job, time.time()) for job in claims.jobs], time.time())


def _completed(job: Claimed, now: float) -> Outcome:
    return Outcome(
        id=job.id, fence=job.fence, worker=job.worker, pool=job.pool, status=JobStatus.COMPLETED, ended_at=now,
        run_at=now, attempt=1, crashes=0, keep_until=now, verdict="success",
    )  # fmt: skip


def _logged(db: "psycopg.Connection[tuple[object, ...]]") -> float:
    found = db.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8").fetchone()
    return float(str(found[0])) if found else 0.0


async def _sessions_ended(db: "psycopg.Connection[tuple[object, ...]]") -> None:
    async with asyncio.timeout(REPORTED_SECONDS):
        others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while db.execute(others).fetchone():  # noqa: ASYNC110 - nothing reports it
            await asyncio.sleep(0.01)
