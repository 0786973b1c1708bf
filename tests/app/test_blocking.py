"""The coroutines of an orchestrator and of a job as plain calls: all of them, and from threads."""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shiftwork import Job, JobStatus, LifecycleError, UnknownJobError, WorkerOrchestrator
from shiftwork.app.blocking import BlockingOrchestrator
from shiftwork.handles.job import BlockingJob
from shiftwork.store.sqlite import SqliteStore
from tests.polling import wait_until
from tests.runtime.stage import DEADLINE


def coroutines(kind: type) -> dict[str, inspect.Signature]:
    """The public coroutine methods of a class, with their signatures."""
    methods = {name: method for name, method in inspect.getmembers(kind) if not name.startswith("_")}
    return {name: inspect.signature(method) for name, method in methods.items() if inspect.iscoroutinefunction(method)}


def test_every_coroutine_of_an_orchestrator_is_a_plain_call() -> None:
    app = WorkerOrchestrator("memory://")
    plain = {name for name in vars(BlockingOrchestrator) if not name.startswith("_")}
    assert plain == coroutines(WorkerOrchestrator).keys()
    for name in plain:
        call, original = getattr(app.blocking, name), getattr(app, name)
        assert not inspect.iscoroutinefunction(call), name
        assert str(inspect.signature(call)) == str(inspect.signature(original)), name
        assert call.__doc__, name


def test_every_coroutine_of_a_job_is_a_plain_call() -> None:
    plain = {name: inspect.signature(call) for name, call in vars(BlockingJob).items() if not name.startswith("_")}
    assert plain == coroutines(Job)


def test_a_program_without_an_event_loop_runs_and_asks_everything() -> None:
    app = WorkerOrchestrator("memory://", tick_interval=0.1)

    @app.task
    def double(n: int) -> int:
        return 2 * n

    app.blocking.start()
    assert app.get_status()["state"] == "running"
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(double.enqueue_blocking, range(20)))
        assert list(threads.map(lambda job: job.blocking.result(DEADLINE), jobs)) == [2 * n for n in range(20)]
    many = app.blocking.enqueue_many([double.call(n) for n in (5, 6)])
    assert [job.blocking.ended(DEADLINE) for job in many] == [JobStatus.COMPLETED] * 2
    assert app.blocking.get_job(many[0].id).blocking.refresh().status is JobStatus.COMPLETED
    with pytest.raises(UnknownJobError):
        app.blocking.get_job("nothing")
    app.blocking.stop()
    assert app.get_status()["state"] == "stopped"
    assert [job.id for job in app.blocking.find_jobs(worker="double", limit=1)]
    app.blocking.close()


def test_closing_ends_the_threads_of_the_store_too(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    app = WorkerOrchestrator(f"sqlite:///{tmp_path / 'shop.db'}")
    assert app.blocking.find_jobs() == []
    own = {*threading.enumerate()} - before
    assert own
    app.blocking.close()
    wait_until(lambda: own.isdisjoint(threading.enumerate()))


def test_a_forked_process_is_told_to_name_its_store_by_url(tmp_path: Path) -> None:
    app = WorkerOrchestrator(SqliteStore(str(tmp_path / "shiftwork.db")))
    app.control.store.forked()
    with pytest.raises(LifecycleError, match="belongs to the process that forked this one; name the store by its URL"):
        app.blocking.find_jobs()
    app.control.portal.close()
