"""Whatever a job does, on every kind of pool: it runs once, ends once, with a text, and its slot is free again."""

import asyncio
import importlib
import logging
from collections import Counter
from pathlib import Path

import pytest

from shiftwork import JobStatus
from tests.system.conftest import PROGRAMS

pytestmark = pytest.mark.timeout(180)  # a process; the machine may be busy


async def test_every_way_to_end_is_one_end_with_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = tmp_path / "journal"
    monkeypatch.setenv("HOSTILE_JOURNAL", str(journal))
    monkeypatch.syspath_prepend(str(PROGRAMS))
    caplog.set_level(logging.CRITICAL, "shiftwork")  # hundreds of tracebacks
    program = importlib.import_module("hostile")
    await program.app.start()
    try:
        calls = [worker.call(how=how) for how in program.WAYS for worker in program.WORKERS]
        bad = await program.app.enqueue_many(calls)
        good = await program.app.enqueue_many([worker.call(how="be good") for worker in program.WORKERS])
        async with asyncio.timeout(150):
            assert [await job.result() for job in good] == ["good"] * len(good), "every slot is free again"
            for job in bad:
                await job.ended()
    finally:
        await program.app.stop(0.0)
        await program.app.close()
    told = {
        f"{job.worker}: {job.payload['how']}": (job.status, job.attempt, job.crashes, len(job.history))
        for job in bad
        if (job.status, job.attempt, job.crashes, len(job.history)) != (JobStatus.DEAD, 1, 0, 1) or not job.error
    }
    assert told == {}
    runs = Counter(journal.read_text().splitlines())
    assert {how: times for how, times in runs.items() if times != 1} == {}, "nothing runs again silently"
    assert len(runs) == len(bad) + len(good)
