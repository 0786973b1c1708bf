"""What a function and its policy say about the next attempt holds on every kind of pool."""

import asyncio
import importlib
import logging
from pathlib import Path

import pytest

from shiftwork import JobStatus
from tests.system.conftest import PROGRAMS

pytestmark = pytest.mark.timeout(180)  # a process; the machine may be busy

BUSY = "BusyError: try again"
EXPECTED = {
    ("plain", "give up"): ("dead", 1, "GiveUp: the customer is gone"),
    ("plain", "retry after"): ("completed", 2, None),
    ("plain", "snooze"): ("completed", 1, None),
    ("plain", "busy"): ("dead", 3, BUSY),
    ("on", "busy"): ("dead", 3, BUSY),
    ("on", "wrong"): ("dead", 1, "ValueError: wrong; not retried: on has only ConnectionError"),
    ("never-on", "busy"): ("dead", 1, f"{BUSY}; not retried: never_on has ConnectionError"),
    ("never-on", "wrong"): ("dead", 3, "ValueError: wrong"),
    ("rule", "busy"): ("dead", 2, f"{BUSY}; not retried: its retry function returned None"),
    ("rule", "wrong"): ("dead", 1, "ValueError: wrong; not retried: its retry function returned None"),
}


async def test_every_choice_on_every_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CHOOSY_FOLDER", str(tmp_path))
    monkeypatch.setenv("CHOOSY_STORE", f"sqlite:///{tmp_path}/shiftwork.db")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    caplog.set_level(logging.CRITICAL, "shiftwork")  # many tracebacks
    program = importlib.import_module("choosy")
    pools = ("coroutines", "threads", "apart")
    await program.app.start()
    try:
        calls = {
            (pool, *case): program.WORKERS[f"{pool} {case[0]}"].call(how=case[1]) for pool in pools for case in EXPECTED
        }
        jobs = dict(zip(calls, await program.app.enqueue_many(list(calls.values())), strict=True))
        async with asyncio.timeout(150):
            for job in jobs.values():
                await job.ended()
    finally:
        await program.app.stop(0.0)
    seen = {case: (job.status, job.attempt, job.error) for case, job in jobs.items()}
    expected = {(pool, *case): wanted for pool in pools for case, wanted in EXPECTED.items()}
    assert {case: end for case, end in seen.items() if end != expected[case]} == {}
    assert seen["apart", "plain", "snooze"][0] is JobStatus.COMPLETED
