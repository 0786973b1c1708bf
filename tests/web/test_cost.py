"""What a page costs the store does not depend on how much it holds: a bounded number of questions, bounded answers."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.core.model.jobs import JobPriority, JobRecord
from shiftwork.store.sqlite.file import driver
from shiftwork.store.urls import open_store
from shiftwork.web.routing import ROUTES
from tests.web.conftest import Web

JOBS: Final = 50_000
BATCH: Final = 5_000
MOST_CALLS: Final = 20
MOST_RECORDS: Final = 5_000
"""Where no index helps: dead letters, a part of the payload."""
A_PAGE: Final = 200
EVERY: Final = 1_000
MOST_STEPS: Final = 250_000
"""Of SQLite's machine, for a page: to look at every job takes half a million and more. A list counts the jobs ahead of
its queued ones, each once."""
STATUSES: Final = [JobStatus.QUEUED] * 4 + [JobStatus.COMPLETED] * 5 + [JobStatus.DEAD]


class Counting:
    """A store that counts what it is asked, and how many jobs and events it hands out."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.url = store.url
        self.calls: Counter[str] = Counter()
        self.records = 0
        self.vm_steps = 0

    def watch(self, db: Any) -> None:
        """Count the steps of SQLite's machine on this connection."""

        def stepped() -> None:
            self.vm_steps += EVERY

        db.set_progress_handler(stepped, EVERY)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "listen":
            return method

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            answer = await method(*args, **kwargs)
            if name in {"find", "dead", "get", "events"}:
                self.records += len(answer)
            return answer

        return counted

    def reset(self) -> None:
        self.calls.clear()
        self.records = self.vm_steps = 0


def _job(number: int) -> JobRecord:
    status = STATUSES[number % len(STATUSES)]
    return JobRecord(
        id=f"job-{number:06}",
        worker=f"worker-{number % 10}",
        pool=f"pool-{number % 3}",
        status=status,
        payload=b"\x81\xa4path\xa5a.png",
        priority=JobPriority.NORMAL,
        head_start=3_600.0,
        run_at=1_700_000_000.0 + number,
        rank=1_700_000_000.0 + number - 3_600.0,
        created_at=1_700_000_000.0 + number,
        ended_at=None if status.live else 1_700_000_001.0 + number,
        error=f"ValueError: no {number}" if status is JobStatus.DEAD else None,
    )


@pytest.fixture
async def full(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Web, Counting]]:
    """The web of a store with very many jobs in it, or as many as the test names."""
    store = open_store(f"sqlite:///{tmp_path}/full.db", namespace="default")
    counting, prepare = Counting(store), driver.prepare_reader

    def prepare_and_count(db: Any) -> None:
        prepare(db)
        counting.watch(db)

    monkeypatch.setattr(driver, "prepare_reader", prepare_and_count)
    monkeypatch.setattr("shiftwork.web.job_search.ENOUGH_SECONDS", 0.0)
    await store.open()
    for start in range(0, getattr(request, "param", JOBS), BATCH):
        await store.restore([_job(number) for number in range(start, start + BATCH)], 1_800_000_000.0)
    web = Web(WorkerOrchestrator(counting))
    for number in range(10):
        web.app.register_worker(f"worker-{number}", lambda: None, pool=f"pool-{number % 3}")
    for number in range(3):
        web.app.register_pool(f"pool-{number}")
    yield web, counting
    await web.site.close()
    await web.app.close()


QUESTIONS: Final[list[tuple[str, dict[str, Any], int]]] = [
    ("overview", {}, 0),
    ("history", {}, 0),
    ("pools", {}, 0),
    ("pools/pool-1", {}, A_PAGE),
    ("pools/pool-1/scale", {}, 0),
    ("schedules", {}, 0),
    ("schedule-preview", {"cron": "0 3 * * *"}, 0),
    ("workers", {}, 0),
    ("workers/worker-7", {}, A_PAGE),
    ("graph", {}, 0),
    ("breakers", {}, 0),
    ("jobs", {}, A_PAGE),
    ("jobs", {"after": "job-025000"}, A_PAGE),
    ("jobs", {"status": "dead"}, A_PAGE),
    ("jobs", {"status": ["queued", "completed"], "pool": "pool-2"}, A_PAGE),
    ("jobs", {"worker": "worker-3", "limit": 100}, A_PAGE),
    ("jobs", {"status": "queued"}, A_PAGE),
    ("jobs", {"status": "completed", "worker": "worker-9"}, A_PAGE),
    ("jobs", {"created_after": "2023-11-15T00:00:00Z", "created_before": "2023-11-15T12:00:00Z"}, A_PAGE),
    ("jobs", {"error": "nowhere"}, A_PAGE),
    ("jobs", {"key": "nowhere"}, A_PAGE),
    ("jobs", {"unique_key": "nowhere", "status": ["completed", "dead"]}, A_PAGE),
    ("jobs", {"instance": "nowhere"}, A_PAGE),
    ("jobs", {"payload": "nowhere"}, MOST_RECORDS),
    ("jobs/job-025000", {}, A_PAGE),
    ("jobs/job-025000/explanation", {}, A_PAGE),
    ("dead", {}, MOST_RECORDS),
    ("flows", {}, 0),
    ("nodes", {}, A_PAGE),
    ("events", {}, A_PAGE),
    ("events", {"name": "pool.scaled"}, A_PAGE),
    ("events", {"worker": "worker-3", "since": "2023-11-15T00:00:00Z"}, A_PAGE),
    ("events", {"pool": "pool-2", "by": "ada"}, A_PAGE),
    ("tokens", {}, 0),
    ("me", {}, 0),
    ("openapi.json", {}, 0),
]


async def test_no_page_costs_more_because_there_are_many_jobs(full: tuple[Web, Counting]) -> None:
    web, store = full
    asked = {path.split("/")[0] for path, _, _ in QUESTIONS}
    assert asked == {route.path.split("/")[1] for route in ROUTES if route.method == "GET"} - {"live"}
    await web.get("overview")  # the store is open, and the sampler has looked
    for path, query, records in QUESTIONS:
        web.site.overview.forget()
        store.reset()
        await web.get(path, **query)
        assert store.calls.total() <= MOST_CALLS, (path, query, store.calls)
        assert store.records <= records, (path, query, store.records)
        assert store.vm_steps <= MOST_STEPS, (path, query, store.vm_steps)


@pytest.mark.parametrize("full", [BATCH], indirect=True)
async def test_the_overview_is_asked_for_once_however_many_look(full: tuple[Web, Counting]) -> None:
    import asyncio

    web, store = full
    await web.get("me")
    store.reset()
    await web.get("overview")
    alone = store.calls.total()
    web.site.overview.forget()
    store.reset()
    await asyncio.gather(*(web.get(path) for path in ("overview", "pools", "workers", "graph") for _ in range(10)))
    assert store.calls.total() <= alone
