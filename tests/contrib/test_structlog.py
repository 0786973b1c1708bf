"""structlog names the job of a line, in tasks and in threads, and in no line outside one."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from shiftwork import WorkerOrchestrator
from shiftwork.contrib.structlog import add_job
from tests.runtime.stage import started


@pytest.fixture
def captured() -> Iterator[list[Any]]:
    capture = LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, add_job, capture])
    yield capture.entries
    structlog.reset_defaults()


async def test_every_line_within_a_job_names_it(captured: list[Any]) -> None:
    app = WorkerOrchestrator("memory://")
    app.register_pool("mail")
    log = structlog.get_logger()

    @app.task(pool="mail")
    async def pack() -> None:
        await asyncio.to_thread(log.info, "packing", order=7)

    @app.task
    def send() -> None:
        log.info("sending", worker="the carrier")

    async with started(app):
        jobs = [await pack.enqueue(), await send.enqueue()]
        for job in jobs:
            await job.ended(30)
    log.info("outside")
    told = {entry.pop("event"): entry for entry in captured}
    about = {"log_level": "info", "attempt": 1}
    assert told["packing"] == about | {"job_id": jobs[0].id, "worker": "pack", "pool": "mail", "order": 7}
    assert told["sending"] == about | {"job_id": jobs[1].id, "worker": "the carrier", "pool": "default"}
    assert told["outside"] == {"log_level": "info"}
