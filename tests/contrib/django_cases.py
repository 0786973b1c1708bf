"""What `shiftwork.contrib.django` promises. `test_django.py` runs this in a process of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.core.management import call_command
from django.db import connection, connections, transaction

from shiftwork import JobPriority, LifecycleError
from shiftwork.app.testing import Bench
from shiftwork.contrib.django import app, enqueue_in_transaction, enqueue_on_commit, system_checks
from shiftwork.contrib.django.project_app import new_app
from shiftwork.contrib.django.site_settings import SiteSettings, setting_problems
from shiftwork.contrib.django.task_api import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from tests.contrib import django_tasks_to_run as tasks
from tests.contrib.django_place import URL, task_backends
from tests.polling import eventually


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    connections.close_all()
    app.blocking.close()


@pytest.fixture
def test() -> Iterator[Bench]:
    with app.testing() as bench:
        yield bench


@app.task(pool="mail", max_retries=0)
def ask(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        number: int = cursor.fetchone()[0]
        return number


@app.task(max_retries=0)
async def ask_async(sql: str) -> int:
    return await sync_to_async(ask)(sql)


# ── settings and checks ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "The setting SHIFTWORK is missing."),
        ("redis://", "SHIFTWORK must be a dict, not 'redis://'"),
        ({}, 'SHIFTWORK["STORE"] is missing.'),
        ({"STORE": None}, 'SHIFTWORK["STORE"] must be a URL, not None'),
        ({"STORE": "memory://", "POOL": {}}, "SHIFTWORK has no key 'POOL': did you mean 'POOLS'?"),
        ({"STORE": "memory://", "POOLS": ["mail"]}, 'SHIFTWORK["POOLS"] must be a dict'),
        ({"STORE": "memory://", "POOLS": {"mail": 3}}, "SHIFTWORK[\"POOLS\"]['mail'] must be a dict of options"),
        ({"STORE": "memory://", "TASK_MODULES": "jobs"}, 'SHIFTWORK["TASK_MODULES"] must be a list'),
    ],
)
def test_a_wrong_setting_is_named(given: Any, words: str) -> None:
    (problem,) = setting_problems(given)
    assert words in problem


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (SiteSettings(store="reddis://x"), 'SHIFTWORK["STORE"]: unknown store scheme'),
        (SiteSettings(store="memory://", pools={"mail": {"size": 3}}), "SHIFTWORK[\"POOLS\"]: pool 'mail'"),
        (SiteSettings(store="memory://", options={"max_concurrent": 0}), "SHIFTWORK: max_concurrent must be"),
    ],
)
def test_a_wrong_value_is_named(given: SiteSettings, words: str) -> None:
    with pytest.raises(ImproperlyConfigured) as raised:
        new_app(given)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("store", "ids"),
    [
        (URL, []),
        ("memory://", ["shiftwork.W002"]),
        ("sqlite:///nowhere/at/all.db", ["shiftwork.W003", "shiftwork.W001"]),
        ("redis://127.0.0.1:1/0", ["shiftwork.W001"]),
    ],
)
def test_deployment_checks_the_store(monkeypatch: pytest.MonkeyPatch, store: str, ids: list[str]) -> None:
    given = SiteSettings(store=store)
    made = new_app(given)
    monkeypatch.setattr(system_checks, "site_settings", lambda: given)
    monkeypatch.setattr(system_checks, "project_app", lambda: made)
    assert [found.id for found in system_checks.check_store()] == ids
    made.blocking.close()


def test_checks_report_a_worker_in_an_unknown_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_app(SiteSettings(store="memory://"))
    made.task(name="stray", pool="mial")(lambda: None)
    monkeypatch.setattr(system_checks, "project_app", lambda: made)
    (found,) = system_checks.check_workers()
    assert found.id == "shiftwork.E002"
    assert "worker stray: there is no pool 'mial'" in found.msg


def test_checks_report_each_problem_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise ImproperlyConfigured("\n".join(setting_problems({"POOLS": 3})))

    monkeypatch.setattr(system_checks, "project_app", refused)
    assert [found.id for found in system_checks.check_setting()] == ["shiftwork.E001", "shiftwork.E001"]
    assert system_checks.check_workers() == []


def test_checks_report_a_queue_without_a_pool() -> None:
    assert [found.id for found in task_backends["lost"].check()] == ["shiftwork.E003"]
    assert list(task_backends["default"].check()) == []


def test_the_command_uses_the_app_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    job = ask.enqueue_blocking("SELECT 1")
    call_command("shiftwork", "jobs", "--worker", "ask")
    assert job.id in capsys.readouterr().out


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("worker", [ask, ask_async])
def test_a_dropped_connection_fails_one_job(test: Bench, worker: Any) -> None:
    drop = "SELECT pg_terminate_backend(pg_backend_pid())::int"
    app.blocking.enqueue_many([worker.call(sql) for sql in ("SELECT 1", drop, "SELECT 2", "SELECT 3")])
    ran = [run.status for run in test.blocking.run_pending()]
    assert ran == ["completed", "dead", "completed", "completed"]


async def test_an_async_job_leaves_no_connection_behind(test: Bench) -> None:
    await ask_async.enqueue("SELECT pg_backend_pid()")
    (run,) = await test.run_pending(raise_errors=True)
    left = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {run.result}"

    async def gone() -> bool:
        return await sync_to_async(ask)(left) == 0

    await eventually(gone, "the end of its server process", within=10)  # the server notices a moment later
    await sync_to_async(connections.close_all)()


# ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def added(tag: str) -> int:
    return len(app.blocking.find_jobs(tag=tag))


@pytest.mark.parametrize("enqueue", [enqueue_on_commit, enqueue_in_transaction])
def test_a_job_comes_with_the_commit(enqueue: Any) -> None:
    tag = enqueue.__name__
    call = ask.with_options(tags=[tag]).call("SELECT 1")
    with rolled_back():
        enqueue(call)
    assert added(tag) == 0
    with transaction.atomic():
        enqueue(call)
        assert added(tag) == 0
    assert added(tag) == 1


def test_only_the_database_of_the_store_can_take_jobs() -> None:
    with pytest.raises(LifecycleError, match="'lite' is sqlite; use enqueue_on_commit"):
        enqueue_in_transaction(ask.call("SELECT 1"), using="lite")


def test_a_task_can_be_added_in_the_transaction() -> None:
    task = tasks.add.using(backend="atomic")
    with rolled_back():
        undone = task.enqueue(1, 2)
    with transaction.atomic():
        done = task.enqueue(1, 2)
    assert task.get_result(done.id).status is TaskResultStatus.READY
    with pytest.raises(TaskResultDoesNotExist):
        task.get_result(undone.id)


# ── Django's tasks ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("task", "kwargs"), [(tasks.add, {"c": 3}), (tasks.add_async, {})])
def test_a_task_runs_and_its_result_can_be_read(test: Bench, task: Any, kwargs: Any) -> None:
    result = task.enqueue(1, 2, **kwargs)
    assert (result.status, result.args, result.kwargs) == ("READY", [1, 2], kwargs)
    test.blocking.run_pending()
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 3 + sum(kwargs.values()), 1)
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    again = task.get_result(result.id)
    assert (again, again.task) == (result, task)


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda: tasks.fail.enqueue("two\nlines: 1"), tasks.OddError, "OddError: two\nlines: 1\n"),
        (tasks.leave.enqueue, SystemExit, "SystemExit: bye\n"),
        (tasks.return_a_function.enqueue, TypeError, "TypeError: Unsupported type: "),
    ],
)
def test_a_task_that_fails_is_failed(test: Bench, result: Any, error: type, words: str) -> None:
    failed = result()
    test.blocking.run_pending()
    failed.refresh()
    assert failed.status is TaskResultStatus.FAILED
    assert failed.errors[0].exception_class is error
    assert words in failed.errors[0].traceback


def test_what_json_cannot_hold_is_not_tried_again(test: Bench) -> None:
    tasks.seen.clear()
    result = tasks.return_a_function.using(backend="retrying").enqueue()
    test.blocking.advance(hours=1)
    result.refresh()
    assert (tasks.seen, result.status) == (["ran"], "FAILED")


def test_retries_have_to_be_asked_for_and_are_seen(test: Bench) -> None:
    result = tasks.fail_once.enqueue()
    test.blocking.run_pending()
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == ("READY", 1, 1)
    assert (result.is_finished, result.finished_at) == (False, None)
    test.blocking.advance(minutes=1)
    result.refresh()
    assert (result.status, result.attempts, len(result.errors)) == ("SUCCESSFUL", 2, 1)
    assert result.return_value == [2, result.id, "RUNNING"]
    assert result.started_at < result.last_attempted_at


def test_a_task_waits_for_its_time(test: Bench) -> None:
    when = datetime.fromtimestamp(test.clock.now(), UTC) + timedelta(hours=1)
    task = tasks.add.using(run_after=when)
    result = task.enqueue(1)
    assert test.blocking.run_pending() == []
    assert task.get_result(result.id).task.run_after == when
    test.blocking.advance(hours=2)
    assert task.get_result(result.id).return_value == 1


@pytest.mark.parametrize(("given", "priority"), [(-100, 0), (-1, 0), (0, 1), (1, 2), (50, 2), (51, 3), (100, 3)])
def test_priorities(test: Bench, given: int, priority: int) -> None:
    result = tasks.add.using(priority=given).enqueue(1)
    assert app.blocking.get_job(result.id).priority is JobPriority(priority)
    assert tasks.add.get_result(result.id).task.priority == given


def test_a_queue_is_a_pool(test: Bench) -> None:
    result = tasks.add.using(queue_name="mail").enqueue(1)
    assert app.blocking.get_job(result.id).pool == "mail"
    test.blocking.run_pending()
    again = tasks.add.get_result(result.id)
    assert (again.return_value, again.task.queue_name) == (1, "mail")
    with pytest.raises(InvalidTask, match="Queue 'slow' is not valid for backend"):
        tasks.add.using(queue_name="slow")
    with pytest.raises(InvalidTask, match="Queue 'nowhere' has no pool"):
        tasks.add.using(backend="lost", queue_name="nowhere")


def test_every_queue_can_be_served_by_a_process_that_only_imports_the_task() -> None:
    workers, _ = app.registered()
    name = tasks.add_async.module_path  # no case sends it to another queue
    assert (workers[name].pool, workers[f"{name}:mail"].pool) == ("default", "mail")


def test_a_result_that_is_not_there_does_not_exist(test: Bench) -> None:
    other = ask.enqueue_blocking("SELECT 1")
    for id in ("unknown", other.id):
        with pytest.raises(TaskResultDoesNotExist):
            tasks.add.get_result(id)


async def test_from_async_code(test: Bench) -> None:
    result = await tasks.add.aenqueue(1, 2)
    await test.run_pending()
    assert (await tasks.add.aget_result(result.id)).return_value == 3
    await result.arefresh()
    assert result.return_value == 3
    with pytest.raises(SynchronousOnlyOperation, match=r"await task\.aenqueue"):
        tasks.add.enqueue(1, 2)
    with pytest.raises(SynchronousOnlyOperation, match=r"await task\.aget_result"):
        tasks.add.get_result(result.id)


def test_signals(test: Bench) -> None:
    heard: list[Any] = []

    def hear(signal: Any, task_result: Any, **_: Any) -> None:
        heard.append((signal, task_result.id, task_result.status))

    signals = (task_enqueued, task_started, task_finished)
    for signal in signals:
        signal.connect(hear)
    good, bad = tasks.add.enqueue(1), tasks.fail_once.enqueue()
    test.blocking.run_pending()
    for signal in signals:
        signal.disconnect(hear)
    assert [(signal, status) for signal, id, status in heard if id == good.id] == [
        (task_enqueued, "READY"),
        (task_started, "RUNNING"),
        (task_finished, "SUCCESSFUL"),
    ]
    assert [(signal, status) for signal, id, status in heard if id == bad.id] == [
        (task_enqueued, "READY"),
        (task_started, "RUNNING"),  # an attempt follows, so it has not finished
    ]
