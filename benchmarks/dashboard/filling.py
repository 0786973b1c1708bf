"""Fills a store with a history: a week of jobs in every status, nodes and instances, events."""

import random
import time
from typing import Final

import psycopg
from msgspec import msgpack

from benchmarks.dashboard.company import DAY, POOLS, SERVED, WORKERS, company
from shiftwork import JobPriority, JobStatus, WorkerConfig
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import Attempt, JobRecord, NewJob
from shiftwork.core.observing.beats import Beat, NodeBeat
from shiftwork.core.workers.admission import Gates
from shiftwork.store.protocol import Store

BATCH: Final = 5_000
RUNNING: Final = 24
NODES: Final = 4
EVENTS: Final = 10_000
"""The number of events that a store keeps."""
MIX: Final = (
    [JobStatus.COMPLETED] * 70
    + [JobStatus.DEAD] * 10
    + [JobStatus.QUEUED] * 8
    + [JobStatus.SCHEDULED] * 5
    + [JobStatus.CANCELLED] * 5
    + [JobStatus.FAILED] * 2
)
ERRORS: Final = (
    "ConnectionRefusedError: [Errno 111] connect to 10.0.0.{n} refused",
    "TimeoutError: no answer from customer {n} within 30 s",
    "ValueError: document {n} has no pages",
    "KeyError: 'invoice_{n}'",
    "PermissionError: customer {n} may not do this",
)
LATER: Final = (JobStatus.SCHEDULED, JobStatus.FAILED)
AT_ONCE: Final = 500
"""Records per write."""


async def fill(url: str, jobs: int) -> None:
    """Register the company, and give it a history of this many jobs."""
    app = company(url)
    await app.start()  # its definitions are known from now on
    await app.stop()
    store, now, chance = await company(url).control.store.open(), time.time(), random.Random(5)
    await _nodes(store, now)
    await _running(store, now)
    for pool in POOLS:
        if pool != SERVED:
            await app.pause_pool(pool, "its provider is being moved")
    for start in range(0, jobs, BATCH):
        past = [_job(number, jobs, now, chance) for number in range(start, min(start + BATCH, jobs))]
        await store.restore(past, now)
    for start in range(0, EVENTS, BATCH):
        await store.record([_event(number, now) for number in range(start, start + BATCH)])
    await app.close()
    await store.close()


def _job(number: int, jobs: int, now: float, chance: random.Random) -> JobRecord:
    status = chance.choice(MIX)
    worker = chance.choice(list(WORKERS))
    if status is JobStatus.QUEUED and WORKERS[worker] == SERVED:
        worker = chance.choice([name for name, pool in WORKERS.items() if pool != SERVED])
    created = now - 7 * DAY * (jobs - number) / jobs
    began = created + chance.random() * 20
    ran = status in {JobStatus.COMPLETED, JobStatus.DEAD, JobStatus.FAILED}
    failed = ran and status is not JobStatus.COMPLETED
    error = chance.choice(ERRORS).format(n=number) if failed else None
    run_at = now + DAY * (1 + chance.random()) if status in LATER else created
    return JobRecord(
        id=f"job-{number:07}",
        worker=worker,
        pool=WORKERS[worker],
        status=status,
        payload=payload(number),
        priority=JobPriority.NORMAL,
        head_start=3_600.0,
        run_at=run_at,
        rank=run_at - 3_600.0,
        created_at=created,
        attempt=4 if status is JobStatus.DEAD else int(ran),
        instance=f"node-{number % NODES}/{WORKERS[worker]}" if ran else None,
        started_at=began if ran else None,
        ended_at=None if status.live else began + 1.0,
        keep_until=now + 30 * DAY if status in {JobStatus.COMPLETED, JobStatus.CANCELLED} else None,
        key=f"customer-{number % 500}" if number % 7 == 0 else None,
        key_limit=1_000,
        error=error,
        attempts=tuple(_attempt(n, began, error) for n in range(1, 5)) if error and status is JobStatus.DEAD else (),
    )


def _attempt(number: int, began: float, error: str) -> Attempt:
    lines = [f'  File "/app/company/steps.py", line {line}, in step_{line}\n    return go(on)' for line in range(12)]
    trace = "\n".join(["Traceback (most recent call last):", *lines, error])
    return Attempt(number=number, started_at=began, ended_at=began + 1, kind="raised", error=error, traceback=trace)


def payload(number: int) -> bytes:
    """A payload of about two hundred bytes."""
    return msgpack.encode({"customer": f"customer-{number % 500}", "document": f"doc-{number}", "note": "x" * 140})


async def _nodes(store: Store, now: float) -> None:
    """Nodes with an instance of every pool each, whose leases outlast the measurement."""
    beats: list[Beat] = []
    for number in range(NODES):
        node = f"node-{number}"
        machine = NodeBeat(host=f"{node}.example", cores=8.0, memory=2**34, pools=POOLS)
        beats.append(Beat(instance=node, node=node, pool="", slots=0, started_at=now - DAY, machine=machine))
        for pool in POOLS:
            mine = tuple(name for name, of in WORKERS.items() if of == pool)
            beats.append(Beat(instance=f"{node}/{pool}", node=node, pool=pool, slots=5, busy=1, workers=mine))
    await store.beat(beats, DAY, now)


async def _running(store: Store, now: float) -> None:
    """Add a few running jobs on these instances."""
    names = [name for name in WORKERS if not name.endswith("-report")]
    waiting = [
        NewJob(
            id=f"running-{number}",
            worker=(worker := names[number % len(names)]),
            pool=WORKERS[worker],
            payload=payload(number),
            run_at=now,
        )
        for number in range(RUNNING)
    ]
    await store.add(waiting, now)
    for pool in POOLS:
        await store.claim(f"node-0/{pool}", pool, RUNNING, now, [name for name, of in WORKERS.items() if of == pool])


def _event(number: int, now: float) -> Event:
    pool, worker = POOLS[number % len(POOLS)], list(WORKERS)[number % len(WORKERS)]
    name, subject = (("pool.scaled", pool), ("worker.disabled", worker), ("jobs.amended", "retried"))[number % 3]
    return Event(
        at=now - EVENTS + number, name=name, subject=subject, message=f"{subject} changed, for a reason: {number}"
    )


def settle(url: str) -> None:
    """Make a PostgreSQL server vacuum now instead of during later measurements."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("VACUUM ANALYZE")


async def add_workers(url: str, n: int) -> None:
    """Register this many more workers, as an app would."""
    store = await company(url).control.store.open()
    named = [WorkerConfig(name=f"tenant-{number:05}-sync", pool=POOLS[number % len(POOLS)]) for number in range(n)]
    docs = [Doc("worker", config.name, msgpack.encode(config)) for config in named]
    docs += [Doc("gates", one.name, msgpack.encode(Gates(worker=one.name, pool=one.pool))) for one in named]
    for start in range(0, len(docs), AT_ONCE):
        await store.put(docs[start : start + AT_ONCE])
    await store.close()
