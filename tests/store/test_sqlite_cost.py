"""What a call costs, counted in SQLite's own steps: a claim beside a crowd takes as many as a claim on its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shiftwork.core.model.job_changes import Discard, JobFilter
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.workers.admission import Gates
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from tests.store.conformance.acts import NOW, add, claim, claim_ids, claim_one, finish, gate, job, outcome, succeeded

if TYPE_CHECKING:
    from shiftwork.core.model.job_changes import Outcome

CROWD = 4_000
"""Enough to notice a look at every row: that would take many times as many steps as the round itself."""
WORKERS = ("probe", "crowd", "rival")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "shiftwork.db"))
    await opened.open()
    yield opened
    await opened.close()


class Steps:
    """Counts what a connection does, in tens of its machine's instructions."""

    def __init__(self) -> None:
        self.counted = 0

    def watch(self, session: SqliteSession) -> None:
        session.db.set_progress_handler(self._count, 10)

    def _count(self) -> int:
        self.counted += 1
        return 0

    def take(self) -> int:
        counted, self.counted = self.counted, 0
        return counted


async def cost_of_a_round(store: SqliteStore, steps: Steps) -> int:
    """Add ten jobs, claim them and finish them."""
    await store.prune(1_000, NOW + 1e6)
    await add(store, *(job(f"probe {n}", "probe", run_at=NOW - 1) for n in range(10)))
    steps.take()
    claimed = await claim(store, 10, workers=WORKERS)
    assert [one.worker for one in claimed] == ["probe"] * 10
    outcomes: list[Outcome] = [succeeded(one, keep_until=NOW) for one in claimed]
    assert all((await store.finish(outcomes, NOW)).accepted)
    return steps.take()


CROWDS = {
    "nobody": "",
    "scheduled": "UPDATE jobs SET status = 0 WHERE worker <> 1",
    "failed": "UPDATE jobs SET status = 1 WHERE worker <> 1",
    "parked": "UPDATE jobs SET parked = 1, key = 'k' WHERE worker <> 1",
    "waiting": "UPDATE jobs SET status = 2 WHERE worker <> 1",
    "completed": "UPDATE jobs SET status = 5 WHERE worker <> 1",
    "dead": "UPDATE jobs SET status = 6 WHERE worker <> 1",
    "disabled": "UPDATE workers SET enabled = 0 WHERE no <> 1",
}


@pytest.mark.parametrize("crowd", [name for name in CROWDS if name != "nobody"])
@pytest.mark.parametrize("gated", [False, True], ids=["open", "gated"])
async def test_a_crowd_costs_nothing(store: SqliteStore, crowd: str, *, gated: bool) -> None:
    steps = Steps()
    await store._write(steps.watch)
    if gated:
        await gate(store, "probe", max_running=100, conflicts=("rival",))
    await cost_of_a_round(store, steps)
    alone = await cost_of_a_round(store, steps)
    await add(store, *(job(f"{n:06}", "crowd") for n in range(CROWD)))
    await store._write(lambda session: session.db.execute(CROWDS[crowd]))
    beside = await cost_of_a_round(store, steps)
    assert beside < alone * 1.3 + 30, f"{beside} steps beside the crowd, {alone} without"


async def test_people_s_searches_do_not_look_at_everything(store: SqliteStore) -> None:
    steps = Steps()
    await add(store, *(job(f"{n:06}", "crowd") for n in range(CROWD)))
    await store._write(lambda session: session.db.execute("UPDATE jobs SET status = 5"))
    await store._write(lambda session: session.db.execute("UPDATE lanes SET completed = queued, queued = 0"))
    await add(store, job("queued"), job("scheduled", run_at=NOW + 1))
    await store._read(steps.watch)
    for wanted in (
        JobFilter(limit=50),
        JobFilter(limit=50, worker="crowd"),
        JobFilter(limit=50, pool="p"),
        JobFilter(limit=50, worker="w"),
        *(JobFilter(limit=50, status=(status,)) for status in JobStatus),
        JobFilter(limit=50, ids=("queued",)),
        JobFilter(limit=50, created_after=NOW + 1),
        JobFilter(limit=50, after="000500"),
    ):
        await store.find(wanted)
        assert steps.take() < 2_000, wanted
    await store.stats(NOW)
    await store.survey(None, NOW)
    assert steps.take() < 1_000


async def test_the_jobs_of_a_key_are_found_without_a_look_at_the_other_queued_jobs(store: SqliteStore) -> None:
    """An explanation of a job asks for them."""
    steps = Steps()
    await add(store, *(job(f"{n:06}", key=f"{n % 1_000}") for n in range(3 * CROWD)))
    await claim(store, 1)
    await store._read(steps.watch)
    wanted = JobFilter(worker="w", key="0", status=(JobStatus.PROCESSING, JobStatus.QUEUED))
    assert [one.id for one in await store.find(wanted)] == [f"{n:06}" for n in range(3 * CROWD - 1_000, -1, -1_000)]
    assert steps.take() < 1_000


async def test_gates_of_many_workers_are_read_once(store: SqliteStore) -> None:
    for n in range(50):
        await gate(store, f"w{n}", max_running=3)
    statements: list[str] = []
    await claim(store, workers=["w1"])
    await store._write(lambda session: session.db.set_trace_callback(statements.append))
    await add(store, job("1", "w1"))
    assert len(await claim(store, workers=["w1"])) == 1
    assert not [statement for statement in statements if "FROM docs" in statement]
    await gate(store, "w1", max_running=1)
    await claim(store, workers=["w1"])
    assert [statement for statement in statements if "FROM docs" in statement]
    assert isinstance((await store.survey(["w1"], NOW)).gates["w1"], Gates)


# ── what is written ──────────────────────────────────────────────────────────────────────────────────────────────────


def logged(store: SqliteStore) -> int:
    return Path(f"{store._path}-wal").stat().st_size


async def test_one_enqueue_is_five_statements_and_few_pages(store: SqliteStore) -> None:
    await add(store, job("before"))
    statements: list[str] = []
    await store._write(lambda session: session.db.set_trace_callback(statements.append))
    statements.clear()
    before = await asyncio.to_thread(logged, store)
    for n in range(50):
        await add(store, job(f"{n:032}"))
    taken = [statement.split()[:3] for statement in statements[-5:]]
    assert [words[0] for words in taken] == ["BEGIN", "PRAGMA", "INSERT", "INSERT", "COMMIT"]
    assert len(statements) == 5 * 50
    assert await asyncio.to_thread(logged, store) - before < 50 * 16_000


async def test_a_drained_job_costs_few_bytes_of_the_log(store: SqliteStore) -> None:
    await add(store, *(job(f"{n:032}") for n in range(1_000)))
    before = await asyncio.to_thread(logged, store)
    while claimed := await claim(store, 100):
        await store.finish([succeeded(one, keep_until=NOW) for one in claimed], NOW)
    assert await asyncio.to_thread(logged, store) - before < 1_000 * 900


# ── flows ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PARTS = ("needs", "tags", "steps", "signals", "flows")


async def test_a_plain_job_costs_nothing_for_what_it_has_not(store: SqliteStore) -> None:
    await add(store, job("before"))
    await store.finish([succeeded(one) for one in await claim(store)], NOW)
    statements: list[str] = []
    await store._write(lambda session: session.db.set_trace_callback(statements.append))
    await add(store, *(job(f"{n}") for n in range(10)))
    await store.finish([succeeded(one) for one in await claim(store, 10)], NOW)
    asked = [statement for statement in statements if any(f" {part}" in statement for part in PARTS)]
    assert asked == []


async def cost_of_an_end(store: SqliteStore, steps: Steps, name: str, needed: int) -> int:
    """Finish one of the jobs that another one waits for."""
    ids = [f"{name} {n}" for n in range(needed)]
    waiter = job(f"{name} waits", "w", needs=tuple(Need(id) for id in ids), flow=name)
    await add(store, waiter, *(job(id, "probe", flow=name, run_at=NOW - needed) for id in ids))
    [claimed] = await claim(store, 1, workers=["probe"])
    assert claimed.id in ids
    steps.take()
    await store.finish([succeeded(claimed)], NOW)
    return steps.take()


async def test_an_end_costs_the_same_however_many_others_are_waited_for(store: SqliteStore) -> None:
    steps = Steps()
    await store._write(steps.watch)
    await cost_of_an_end(store, steps, "first", 2)
    few = await cost_of_an_end(store, steps, "few", 10)
    many = await cost_of_an_end(store, steps, "many", 1_000)
    assert many < few * 1.3 + 30, f"{many} steps with 1,000 needs, {few} with 10"


async def test_an_end_releases_many_without_looking_at_all_of_them_for_each(store: SqliteStore) -> None:
    steps = Steps()
    await store._write(steps.watch)
    costs = []
    for waiters in (100, 1_000):
        ids = [f"{waiters} {n}" for n in range(waiters)]
        await add(store, job("needed", "probe"), *(job(id, needs=(Need("needed"),)) for id in ids))
        [claimed] = await claim(store, 1, workers=["probe"])
        steps.take()
        await store.finish([succeeded(claimed)], NOW)
        costs.append(steps.take())
        assert sorted(await claim_ids(store, waiters + 1)) == sorted(ids)
        await store.amend(["needed"], Discard(), NOW)
    few, many = costs
    assert many < few * 11, f"{many} steps for 1,000 jobs, {few} for 100"


async def test_large_payloads_and_results_lie_apart(store: SqliteStore) -> None:
    payload, result = bytes(range(256)) * 40, bytes(range(255)) * 40
    await add(store, job("1", payload=payload))
    claimed = await claim_one(store, "1")
    assert claimed.payload == payload
    await finish(store, outcome(claimed, JobStatus.COMPLETED, result=result))
    [record] = await store.find(JobFilter(whole=True))
    assert (record.payload, record.result) == (payload, result)
    sizes = await store._read(
        lambda session: session.db.execute("SELECT payload IS NULL, result IS NULL FROM jobs").fetchall()
    )
    assert sizes == [(1, 1)]
