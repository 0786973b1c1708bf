"""Damaged records: whatever a store holds, an orchestrator starts, takes jobs and shows itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.core.doc_kinds import KINDS, SCHEMA
from shiftwork.core.model.doc_types import Doc
from tests.runtime.stage import DEADLINE, worker_of

WRONG_SHAPE = b"\x82\xa4name\xa2\xff\xfe\xa5nodes\x81\xa1\xff\x93\xa1\xfe\x01\xc0"
"""Valid MessagePack of a map, whose strings are not UTF-8."""
DAMAGE = {"not UTF-8": b"\xff\xfe", "the wrong shape": WRONG_SHAPE, "JSON": b'{"properties": {"n": 5}}'}
"""How a whole app meets damage. `tests/core/test_doc_kinds.py` has every kind of it, for the decoder alone."""
REFUSED = {"move", "departure", "arrival"}
"""The kinds whose damage refuses a start on purpose, with the remedy: jobs must not run in a store that has moved."""
READ = sorted({*KINDS, SCHEMA} - REFUSED)
NAMES = ("work", "default", "plan", "stacks", "move", "out", "in", "tick", "0", "other")
"""Names that some kind really has, and one that none has."""


def make(url: str) -> WorkerOrchestrator:
    app = WorkerOrchestrator(url)
    app.register_worker("tick", lambda: None, cron="0 0 1 1 *")

    @app.task()
    async def work(n: int) -> int:
        return n

    return app


async def bodies(app: WorkerOrchestrator, kind: str, body: bytes) -> None:
    """Write this body into every record of a kind that has a name of ours."""
    store = await app.control.store.open()
    for name in {*NAMES, *(doc.name for doc in await store.docs(kind))}:
        written = False
        while not written:  # a node that runs may write the same record meanwhile
            versions = {doc.name: doc.version for doc in await store.docs(kind)}
            [written] = await store.put([Doc(kind, name, body, versions.get(name, 0))])


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_record_stops_nothing(tmp_path: Path, kind: str, damage: str, tolerated: list[str]) -> None:
    tolerated.append("cannot be read")  # that is logged, once for each record
    url = f"sqlite:///{tmp_path}/shiftwork.db"
    app: Any = make(url)
    await bodies(app, kind, DAMAGE[damage])
    async with asyncio.timeout(DEADLINE):
        await app.start()
        added = await worker_of(app, "work").enqueue(7)
        if kind == "pool":  # it may have been paused, and nothing may start that a person has stopped
            await app.resume_pool("default")
        assert await added.ended(DEADLINE) is JobStatus.COMPLETED
        await bodies(app, kind, DAMAGE[damage])
        assert {worker.config.name for worker in (await app.control.system.overview()).workers} >= {"work", "tick"}
        assert (await app.get_health())["status"] in {"ok", "degraded", "failing"}
        await app.control.system.glance()
        await app.nodes()
        await app.get_pool_dashboard()
        await app.control.tokens.all()
        await app.stop()
    await app.close()


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_process_that_only_asks_survives_a_damaged_record(tmp_path: Path, kind: str, damage: str) -> None:
    url = f"sqlite:///{tmp_path}/shiftwork.db"
    owner: Any = make(url)
    job = await worker_of(owner, "work").enqueue(7)
    stranger = WorkerOrchestrator(url)
    await bodies(stranger, kind, DAMAGE[damage])
    await stranger.control.system.overview()
    await stranger.get_health()
    assert (await stranger.get_job(job.id)).status is JobStatus.QUEUED
    assert (await stranger.explain_job(job.id)).waits
    await stranger.pools()
    await stranger.control.doctor.examine()
    for app in (owner, stranger):
        await app.close()
