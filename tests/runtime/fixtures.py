"""Fixtures of the tests that play on a `Stage`: the stage itself, and a guard against what would go unnoticed."""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from shiftwork.runtime.clock import ManualClock
from tests.runtime.stage import Stage


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    """A memory store under a manual clock; whatever runs on it is stopped at the end."""
    made = Stage()
    yield made
    await made.close()


@pytest.fixture
def clock(stage: Stage) -> ManualClock:
    """The stage's clock."""
    return stage.clock


@pytest.fixture(autouse=True)
def tolerated(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Nothing fails behind a test's back, but for messages that hold one of the texts put in here.

    Whatever shiftwork or the event loop logs together with an exception was not foreseen.
    """
    texts: list[str] = []
    yield texts
    records = [record for phase in ("setup", "call", "teardown") for record in caplog.get_records(phase)]
    unforeseen = [
        record.getMessage()
        for record in records
        if record.levelno >= logging.ERROR and record.exc_info and record.name in {"shiftwork", "asyncio"}
    ]
    assert [message for message in unforeseen if not any(text in message for text in texts)] == []
