"""Wherever people read that a job failed, they read that it will be retried."""

import asyncio

import pytest

from shiftwork import JobStatus
from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.core.words import status_text
from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal
from tests.polling import eventually

BANK = """
from shiftwork import Retry, WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")


@app.task(retry=Retry(base_seconds=90_000, jitter=0, max_seconds=90_000))
async def charge() -> None:
    raise ConnectionError("the terminal is offline")
"""


@pytest.fixture
def bank(terminal: Terminal) -> Terminal:
    """A terminal beside a store where the first attempt of job c-1 has failed."""
    (terminal.folder / "bank.py").write_text(BANK)

    async def fail() -> None:
        app = load_app("bank:app")
        await app.start()
        await app.control.jobs.enqueue("charge", {}, CheckedJobOptions(job_id="c-1"))
        await eventually(lambda: app.find_jobs(status=JobStatus.FAILED))
        await app.stop()

    asyncio.run(fail())
    return terminal


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("jobs", "failed, retries in 25 h"),
        ("job c-1", "status      failed, retries in 25 h"),
        ("explain c-1", "job c-1 failed, retries in 25 h; it waits: due at"),
        ("enqueue charge --id c-1", "job c-1 of charge exists already: failed, to be retried"),
    ],
)
def test_a_failed_job_says_when_it_is_retried(bank: Terminal, command: str, shown: str) -> None:
    assert shown in bank.run(*command.split(), "--app", "bank:app").stdout


def test_a_failed_job_cannot_be_discarded_because_it_is_retried(bank: Terminal) -> None:
    result = bank.run("discard", "c-1", "--app", "bank:app")
    assert "job c-1 is failed, to be retried: only ended jobs can be discarded" in result.stderr


def test_only_failed_says_more_than_the_status() -> None:
    assert [status_text(one, 5.0) for one in JobStatus if one is not JobStatus.FAILED] == [
        one.value for one in JobStatus if one is not JobStatus.FAILED
    ]
    assert status_text(JobStatus.FAILED, 5.0) == "failed, retries in 5 s"
    assert status_text(JobStatus.FAILED, -3.0) == "failed, retries now"
    assert status_text(JobStatus.FAILED) == "failed, to be retried"
