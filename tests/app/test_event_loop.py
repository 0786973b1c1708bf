"""The event loops that shiftwork makes: uvloop's where it is installed, asyncio's elsewhere."""

import sys
from importlib.util import find_spec

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.control import calling


async def kind() -> str:
    return calling.running_kind()


def test_uvloop_is_used_where_it_is_installed() -> None:
    assert calling.run(kind()) == ("uvloop" if find_spec("uvloop") else "asyncio")


def test_everything_works_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert calling.run(kind()) == "asyncio"
    app = WorkerOrchestrator("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def work() -> int:
        job = await double.enqueue(21)
        await app.start()
        result = await job.result(timeout_seconds=30)
        await app.stop()
        return result

    assert calling.run(work()) == 42
    assert double.enqueue_blocking(1).record.worker == "double"
    app.control.portal.close()
