"""A call that was not awaited is reported with the line that made it; one that was awaited, or cancelled, is not."""

import asyncio
import gc
import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.handles.flow import Flow
from shiftwork.handles.job import Job
from shiftwork.handles.worker import Worker

Reports = Callable[[], list[str]]


@pytest.fixture
def reports(caplog: pytest.LogCaptureFixture) -> Iterator[Reports]:
    def reported() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        caplog.clear()
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Python's own report, which names no remedy
        yield reported


def an_app() -> tuple[WorkerOrchestrator, Worker[[int], int]]:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    return app, double


def coroutines(handle: type) -> list[str]:
    return [
        name
        for name in dir(handle)
        if not name.startswith("_") and asyncio.iscoroutinefunction(inspect.getattr_static(handle, name))
    ]


def test_it_names_the_line_and_the_remedy(reports: Reports) -> None:
    app, double = an_app()
    double.enqueue(2)  # type: ignore[unused-coroutine]
    app.disable_worker("double")  # type: ignore[unused-coroutine]
    last = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    added, disabled = reports()
    without = "in code without an event loop"
    assert added == (
        f"{__file__}:{last - 1}: task.enqueue(…) was not awaited, so it did nothing. Write await task.enqueue(…), "
        f"or task.enqueue_blocking(…) {without}"
    )
    assert disabled == (
        f"{__file__}:{last}: app.disable_worker(…) was not awaited, so it did nothing. Write await "
        f"app.disable_worker(…), or app.blocking.disable_worker(…) {without}"
    )


async def test_every_public_coroutine_reports(reports: Reports) -> None:
    app, double = an_app()
    job = await double.enqueue(1)
    flow = await app.enqueue_flow(double.call(1))
    found: list[tuple[object, str]] = [
        (handle, name)
        for handle, kind in ((app, WorkerOrchestrator), (double, Worker), (job, Job), (flow, Flow))
        for name in coroutines(kind)
    ]
    assert {"start", "enqueue_many", "enqueue", "enqueue_with", "result", "cancel"} <= {name for _, name in found}
    for handle, name in found:
        getattr(handle, name)()
        assert [text for text in reports() if f".{name}(…) was not awaited" in text], name
    await app.close()


async def test_a_test_that_forgets_to_run_its_jobs_learns_it(reports: Reports) -> None:
    app, double = an_app()
    async with app.testing() as test:
        await double.enqueue(1)
        test.run_pending()  # type: ignore[unused-coroutine]
        (report,) = reports()
    assert "test.run_pending(…) was not awaited" in report
    assert "test.blocking.run_pending(…)" in report


async def test_what_is_awaited_is_a_coroutine_and_not_reported(reports: Reports) -> None:
    app, double = an_app()
    made = double.enqueue(1), app.find_jobs()
    assert all(inspect.iscoroutine(coroutine) for coroutine in made)
    await asyncio.gather(*made)
    async with asyncio.timeout(30):
        await asyncio.ensure_future(double.enqueue(2))
    await asyncio.create_task(app.workers())
    assert len(await app.find_jobs()) == 2
    await app.close()
    gc.collect()
    assert reports() == []


async def cancelled(coroutine: Coroutine[Any, Any, Any]) -> None:
    task = asyncio.ensure_future(coroutine)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_is_cancelled_before_it_starts_is_not_reported(reports: Reports) -> None:
    app, double = an_app()
    await cancelled(double.enqueue(1))
    await cancelled(app.enable_worker("double"))
    gc.collect()
    assert reports() == []


def test_a_coroutine_that_is_closed_on_purpose_is_not_reported(reports: Reports) -> None:
    app, double = an_app()
    double.enqueue(1).close()
    with closing(app.find_jobs()):
        pass
    gc.collect()
    assert reports() == []


def test_a_call_that_no_python_code_makes_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(
        "import atexit\n"
        "from shiftwork import WorkerOrchestrator\n"
        "app = WorkerOrchestrator('memory://')\n"
        "atexit.register(app.stop)\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=True)
    assert (
        "app.stop(…) was not awaited, so it did nothing. Write await app.stop(…), or app.blocking.stop" in ended.stderr
    )
    assert "Traceback" not in ended.stderr


def test_a_program_that_keeps_the_coroutine_to_its_end_reports_it_then(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(
        "from shiftwork import WorkerOrchestrator\n"
        "app = WorkerOrchestrator('memory://')\n"
        "@app.task\n"
        "def double(n: int) -> int: return 2 * n\n"
        "job = double.enqueue(1)\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=True)
    assert f"{program}:5: task.enqueue(…) was not awaited, so it did nothing" in ended.stderr
