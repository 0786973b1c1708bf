"""What stands beside the jobs must not matter: the same rates without a crowd and with it, on one store.

Figures are named by measure, rate and "plain" or "beside": `deep/drain/beside`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.draining import Rate
from benchmarks.plan import OURS, Sizes
from benchmarks.serving import Crew, crew
from benchmarks.subjects import subject as make
from benchmarks.subjects.subject import Subject

if TYPE_CHECKING:
    from benchmarks.subjects.shiftwork import Shiftwork

Figures = dict[str, float]
Crowd = Callable[[Subject, Sizes], Awaitable[None]]
PARTS: Final = 3
"""A drain is measured in so many parts; their median counts."""
JOBS_TABLES: Final = {OURS: "shiftwork.jobs", "bare": "job", "pgqueuer": "pgqueuer"}


async def depth(what: str, name: str, url: str, sizes: Sizes) -> Figures:
    """Measure the rates of a subject alone, then beside a crowd."""
    workers = {"registered": sizes.many_workers, "lanes": sizes.several_workers}.get(what, 1)
    plain = await _rates(name, url, sizes)
    subject = make(name, url, workers=workers)
    await subject.open()
    if name == OURS:
        await _ours(subject).tidy()
    await CROWDS[what](subject, sizes)
    await subject.close()
    beside = await _rates(name, url, sizes, workers=workers, spread=what == "lanes")
    found = {"plain": plain, "beside": beside}
    return {f"{what}/{rate}/{when}": value for when, rates in found.items() for rate, value in rates.items()}


async def _rates(name: str, url: str, sizes: Sizes, *, workers: int = 1, spread: bool = False) -> Figures:
    """Add jobs in bulk and one at a time, and drain as many. They are of one worker, or spread over all."""
    subject = make(name, url, workers=workers, spread=spread)
    await subject.open()
    await subject.add()  # what is done once is done
    bulk = await _per_second(PARTS * sizes.drain, subject.add_many(PARTS * sizes.drain))

    async def one_at_a_time() -> None:
        for _ in range(sizes.single):
            await subject.add()

    enqueue = await _per_second(sizes.single, one_at_a_time())
    await subject.close()
    with crew(name, url, workers=workers) as running:
        drain = median(_parts(running, sizes.drain))
    return {"drain": drain, "enqueue": enqueue, "bulk": bulk}


def _parts(running: Crew, n: int) -> Iterator[float]:
    """The rates of several parts of a drain. Each begins late: a node with very many workers takes long to start."""
    for part in range(PARTS):
        yield Rate.begin(running, part * n + n // 4).until((part + 1) * n)


async def _per_second(n: int, work: Awaitable[None]) -> float:
    begun = time.perf_counter()
    await work
    return n / (time.perf_counter() - begun)


# ── crowds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _queued(subject: Subject, sizes: Sizes) -> None:
    """PostgreSQL vacuums so many new rows of its own accord: let it be over before the drain."""
    await subject.add_many(sizes.deep)
    if subject.url.startswith("postgresql"):
        await asyncio.to_thread(_vacuum, subject)


def _vacuum(subject: Subject) -> None:
    import psycopg  # noqa: PLC0415 - a peer's environment need not have it

    with psycopg.connect(subject.url, autocommit=True) as db:
        db.execute("VACUUM ANALYZE")


async def _stale(subject: Subject, sizes: Sizes) -> None:
    """The statistics are those of an empty table, and stay so."""
    await asyncio.to_thread(_forget_statistics, subject)
    await subject.add_many(sizes.deep)


def _forget_statistics(subject: Subject) -> None:
    import psycopg  # noqa: PLC0415 - a peer's environment need not have it

    with psycopg.connect(subject.url, autocommit=True) as db:
        tables = db.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        for table in JOBS_TABLES.values():
            if (table if "." in table else f"public.{table}",) in tables:
                db.execute(f"TRUNCATE {table}".encode())
        db.execute("VACUUM ANALYZE")


async def _dead(subject: Subject, sizes: Sizes) -> None:
    await _ours(subject).add_past(sizes.crowd, "dead")


async def _scheduled(subject: Subject, sizes: Sizes) -> None:
    await _ours(subject).add_past(sizes.crowd, "scheduled")


async def _nothing(_subject: Subject, _sizes: Sizes) -> None:
    """The workers are the crowd."""


def _ours(subject: Subject) -> "Shiftwork":
    from benchmarks.subjects.shiftwork import Shiftwork  # noqa: PLC0415 - a peer's environment lacks what it needs

    assert isinstance(subject, Shiftwork)
    return subject


CROWDS: Final[dict[str, Crowd]] = {
    "deep": _queued,
    "stale": _stale,
    "dead": _dead,
    "scheduled": _scheduled,
    "registered": _nothing,
    "lanes": _nothing,
}
