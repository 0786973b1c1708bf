"""Flask: jobs run in the app context of an application, also in processes that have only a factory's name."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, current_app, g

from shiftwork import ConfigurationError, WorkerOrchestrator
from shiftwork.contrib.flask import Shiftwork, orchestrator
from tests.runtime.stage import started


async def test_jobs_run_in_an_app_context_that_is_torn_down_with_their_exception() -> None:
    jobs = WorkerOrchestrator("memory://")
    web = Flask("a_shop")
    web.config["SHOP"] = "chairs"
    Shiftwork(jobs, web)
    torn: list[str] = []

    @web.teardown_appcontext
    def tear_down(error: BaseException | None) -> None:
        torn.append(f"{g.get('order')} {type(error).__name__}")

    @jobs.task
    def plain(order: int) -> str:
        g.order = order
        return f"{current_app.config['SHOP']} {order}"

    @jobs.task(max_retries=0)
    async def coroutine(order: int) -> None:
        assert g.get("order") is None, "each job has its own"
        g.order = order
        raise ValueError(current_app.config["SHOP"])

    async with started(jobs):
        assert await (await plain.enqueue(order=7)).result(30) == "chairs 7"
        failed = await coroutine.enqueue(order=8)
        assert await failed.ended(30) == "dead"
        assert failed.error == "ValueError: chairs"
    assert torn == ["7 NoneType", "8 ValueError"]


def test_a_view_adds_jobs_and_finds_its_orchestrator() -> None:
    jobs = WorkerOrchestrator("memory://")
    web = Flask("a_shop")
    Shiftwork(jobs).init_app(web)

    @jobs.task
    def pack(order: int) -> None: ...

    @web.post("/orders/<int:order>")
    def place(order: int) -> dict[str, str]:
        assert orchestrator() is jobs
        return {"job": pack.enqueue_blocking(order=order).id}

    job_id = web.test_client().post("/orders/7").get_json()["job"]
    assert jobs.blocking.get_job(job_id).payload == {"order": 7}
    jobs.blocking.close()


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match="the first argument is a WorkerOrchestrator"):
        Shiftwork(Flask("a_shop"))  # type: ignore[arg-type]
    with Flask("a_shop").app_context(), pytest.raises(ConfigurationError, match="has no orchestrator"):
        orchestrator()


async def test_without_an_application_a_job_says_how_to_give_it_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLASK_APP", raising=False)
    jobs = WorkerOrchestrator("memory://")
    Shiftwork(jobs)

    @jobs.task(max_retries=0)
    def pack() -> None: ...

    async with started(jobs):
        job = await pack.enqueue()
        await job.ended(30)
        assert "this process has no Flask application" in str(job.error)


SHOP = """
from flask import Flask, current_app
from shiftwork import WorkerOrchestrator
from shiftwork.contrib.flask import Shiftwork

jobs = WorkerOrchestrator("sqlite:///shop.db")
shiftwork = Shiftwork(jobs)


@jobs.task
def name() -> str:
    return current_app.config["SHOP"]


def create_app(shop="chairs"):
    web = Flask(__name__)
    web.config["SHOP"] = shop
    shiftwork.init_app(web)
    return web
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with a factory, as a process that runs jobs imports it."""
    (tmp_path / "flask_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("FLASK_APP", raising=False)
    yield importlib.import_module("flask_shop")
    del sys.modules["flask_shop"]


async def test_a_process_without_an_application_makes_the_one_that_the_environment_names(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLASK_APP", "flask_shop:create_app('tables')")
    async with started(shop.jobs):
        assert await (await shop.name.enqueue()).result(30) == "tables"


def test_its_command_line_uses_the_orchestrator_of_the_application(shop: Any) -> None:
    shop.name.enqueue_blocking()
    shop.jobs.blocking.close()
    runner = shop.create_app().test_cli_runner()
    told = runner.invoke(args=["shiftwork", "jobs", "--json"])
    assert told.exit_code == 0, told.output
    assert [job["worker"] for job in json.loads(told.output)["jobs"]] == ["name"]
    assert runner.invoke(args=["shiftwork", "job", "unknown"]).exit_code == 1
    assert "Run the workers of an app" in runner.invoke(args=["shiftwork", "run", "--help"]).output


@pytest.mark.soak
def test_a_node_that_flask_starts_runs_jobs_in_processes_that_make_the_application(shop: Any, tmp_path: Path) -> None:
    flask = [sys.executable, "-m", "flask", "--app", "flask_shop:create_app('tables')", "shiftwork", "run", "--no-web"]
    with subprocess.Popen(flask, cwd=tmp_path, stderr=subprocess.DEVNULL) as node:
        try:
            assert shop.name.enqueue_blocking().blocking.result(60) == "tables"
            node.terminate()
            assert node.wait(60) == 0
        finally:
            node.kill()
    shop.jobs.blocking.close()
