"""A blocked event loop is named: the job, the file, the line, and how long it took."""

import asyncio
import logging
import re

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.runtime.running import loop_watch
from tests import polling
from tests.polling import eventually, hold_thread, pass_time, wait_until
from tests.runtime.stage import DEADLINE, started


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(loop_watch, "LOOP_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(loop_watch, "BLOCKED_SECONDS", 0.2)
    caplog.set_level(logging.INFO)


async def test_a_job_that_blocks_the_loop_is_named_with_file_and_line_and_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def busy() -> None:
        await asyncio.sleep(0)
        wait_until(lambda: "busy: has blocked the event loop" in caplog.text)

    @app.task
    async def patient() -> None:
        await asyncio.sleep(1)

    async with started(app):
        await patient.enqueue()
        job = await busy.enqueue()
        await job.ended(DEADLINE)
        await eventually(lambda: "busy: blocked the event loop for" in caplog.text)
    (named,) = [one for one in caplog.records if "busy: has blocked the event loop" in one.getMessage()]
    assert named.levelno == logging.WARNING
    place = re.search(r"at (\S+):\d+ in (wait_until|<lambda>)", named.getMessage())
    assert place is not None
    assert place[1] in {__file__, polling.__file__}
    assert (vars(named)["job_id"], vars(named)["worker"]) == (job.id, "busy")


async def test_other_code_that_blocks_the_loop_is_named_too_and_not_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def count(text: str) -> int:
        return caplog.text.count(f"other code: {text}")

    async with started(WorkerOrchestrator("memory://")):
        for _ in range(loop_watch.NAMED_IN_FULL):
            named, told = count("has blocked"), count("blocked")
            wait_until(lambda named=named: count("has blocked") > named)  # type: ignore[misc]
            await eventually(lambda told=told: count("blocked") > told)  # type: ignore[misc]
        hold_thread(0.6)
        await pass_time(0.1)
        assert count("has blocked") == loop_watch.NAMED_IN_FULL
