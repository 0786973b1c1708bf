"""`shiftwork run` as a real process: signals, logs, and orders from another process that take effect at once."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftwork import JobStatus
from shiftwork.cli.running.run import introduce
from shiftwork.serve.loading import load_app
from tests.cli.terminal import SHOP, Terminal, until
from tests.polling import wait_until

FREE = """
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator()


@app.task
def one() -> None: ...
"""
"""An app that leaves its store to the environment."""


def enqueue(shop: Terminal, *words: str) -> str:
    return str(shop.json("enqueue", *words)["job"]["id"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A shop whose node runs: one for all tests that only look at it or order something."""
    here = Terminal(tmp_path_factory.mktemp("running"))
    (here.folder / "shop.py").write_text(SHOP)
    here.node()
    yield here
    here.close()


@pytest.fixture
def served(running: Terminal, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in the shop whose node runs."""
    monkeypatch.chdir(running.folder)
    return running


def status(shop: Terminal, job_id: str) -> str:
    return str(shop.json("job", job_id)["job"]["status"])


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_says_what_it_runs(served: Terminal) -> None:
    node = served.processes[0]
    told = "\n".join(node.lines)
    runs = r"INFO    shiftwork \S+ runs shop:app on sqlite:///.*shop\.db$"
    assert re.search(runs, told, re.MULTILINE)
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO    node \S+ leads$", told, re.MULTILINE)


def test_a_failure_in_another_process_is_in_its_log_with_the_traceback(served: Terminal) -> None:
    node = served.processes[0]
    job_id = enqueue(served, "resize", "path=b.png", "width=-7")
    node.wait_for(f"ERROR   resize: attempt 1 of 1 failed, job {job_id} is dead: ValueError: width -7 is negative")
    node.wait_for("ValueError: width -7 is negative")
    told = "\n".join(node.lines)
    assert re.search(r'is dead: .*\n    Traceback .*\n      File ".*shop\.py", line \d+, in resize\n', told)


def test_on_a_terminal_it_says_what_it_runs_in_tables(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    assert (terminal.folder / "shop.py").exists()
    introduce(load_app("shop:app").served.definition(), "shop:app", as_table=True)
    told = capsys.readouterr().err
    assert re.search(r"^shiftwork \S+ runs shop:app on sqlite:///.*shop\.db$", told, re.MULTILINE)
    assert re.search(r"^fetch +default +every hour, counted from the end of the last run$", told, re.MULTILINE)
    assert re.search(r"^nightly +default +at 03:00 every day, Europe/Vienna$", told, re.MULTILINE)
    assert re.search(r"^images +thread, 1–4$", told, re.MULTILINE)


def test_the_log_as_json(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIFTWORK_STORE", "sqlite:///other.db")
    monkeypatch.setenv("SHIFTWORK_LOG_FORMAT", "json")
    node = terminal.start("run", "shop", "--log-level", "debug")
    node.wait_for("runs 6 workers in 2 pools")
    job_id = enqueue(terminal, "linger", "name=polite")
    node.wait_for("lingering polite")
    node.signal(signal.SIGTERM)
    assert node.end() == 0
    assert status(terminal, job_id) == "completed"
    lines = [json.loads(line) for line in node.lines]
    assert "the code of shop names another store than SHIFTWORK_STORE" in lines[0]["message"]
    first, job = lines[1], next(line for line in lines if line["message"] == "lingering polite")
    assert first["workers"]["resize"] == "on demand"
    assert first["store"].startswith("sqlite:///")
    assert job | {"level": "info", "job_id": job_id, "worker": "linger", "attempt": 1} == job


def test_the_node_and_its_processes_run_on_uvloop_where_it_is_installed(terminal: Terminal) -> None:
    pytest.importorskip("uvloop")
    Path("loops.py").write_text(
        "import asyncio\nfrom shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('sqlite:///shop.db')\n"
        "@app.task\nasync def look() -> str:\n    return type(asyncio.get_running_loop()).__module__\n"
    )
    node = terminal.start("run", "loops", "--log-format", "json")
    node.wait_for("runs 1 worker in 1 pool")
    job_id = terminal.json("enqueue", "look")["job"]["id"]
    wait_until(lambda: status(terminal, job_id) == "completed")
    assert terminal.json("job", job_id)["job"]["result"] == "uvloop"
    node.signal()
    assert node.end() == 0
    assert json.loads(node.lines[0])["loop"] == "uvloop"


def test_the_environment_steers_it(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("free.py").write_text(FREE)
    monkeypatch.setenv("SHIFTWORK_APP", "free:app")
    monkeypatch.setenv("SHIFTWORK_STORE", "sqlite:///env.db")
    monkeypatch.setenv("SHIFTWORK_NAMESPACE", "blue")
    monkeypatch.setenv("SHIFTWORK_LOG_FORMAT", "json")
    monkeypatch.setenv("SHIFTWORK_LOG_LEVEL", "warning")
    monkeypatch.setenv("SHIFTWORK_WEB", "127.0.0.1:0")
    node = terminal.start("run")
    wait_until(lambda: terminal.run("doctor", store=None).exit_code == 0)
    terminal.ok("doctor", "--namespace", "blue", store="sqlite:///env.db")
    node.signal()
    assert node.end() == 0
    assert node.lines == []


def test_a_store_that_cannot_be_opened(terminal: Terminal) -> None:
    Path("shop.db").mkdir()
    node = terminal.start("run", "shop")
    assert node.end() == 3
    assert node.lines[-1].startswith("shiftwork: ")
    assert not [line for line in node.lines if "Traceback" in line]


def test_another_app_in_the_same_namespace(served: Terminal) -> None:
    Path("blog.py").write_text(
        "from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('sqlite:///shop.db')\n"
        "@app.task\ndef publish() -> None: ...\n"
    )
    blog = served.start("run", "blog")
    assert blog.end() == 1
    assert blog.lines[-1].startswith("shiftwork: namespace 'default' of sqlite:///")
    assert "and none of the workers of this app (publish)" in blog.lines[-1]


def test_an_app_in_memory_is_refused(terminal: Terminal) -> None:
    Path("memo.py").write_text("from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('memory://')\n")
    node = terminal.start("run", "memo")
    assert node.end() == 1
    assert "memo keeps its state in memory://, which other processes cannot see" in node.lines[-1]


def test_an_app_that_cannot_start(terminal: Terminal) -> None:
    Path("typo.py").write_text(
        "from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator()\n"
        "@app.worker(depends_on=['nobody'])\ndef report() -> None: ...\n"
    )
    assert "'nobody'" in terminal.refused("run", "typo", store=None)
    assert not Path("shiftwork.db").exists()


def test_it_starts_with_the_new_code_when_a_file_changes(terminal: Terminal) -> None:
    node = terminal.start("run", "free", "--reload", "--no-web")
    node.wait_for("shiftwork: there is no module 'free'")
    node.wait_for("the node has ended (exit code 1)")
    Path("free.py").write_text(FREE)
    node.wait_for("restarting: free.py changed")
    node.wait_for("runs 1 worker in 1 pool")
    node.signal(signal.SIGINT)
    assert node.end() == 0


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_lets_running_work_finish(terminal: Terminal) -> None:
    node = terminal.node()
    job_id = enqueue(terminal, "linger", "name=polite")
    node.wait_for("lingering polite")
    node.signal(signal.SIGINT)
    assert node.end() == 0
    assert status(terminal, job_id) == "completed"
    assert "has stopped" in node.lines[-1]


def test_the_stop_timeout_ends_what_runs_even_threads_that_cannot_be_stopped(terminal: Terminal) -> None:
    node = terminal.node("--stop-timeout", "0.1s")
    jobs = [enqueue(terminal, "linger", "name=stubborn")]
    node.wait_for("lingering stubborn")
    for executor in ("false", "true"):
        jobs.append(enqueue(terminal, "sink", f"executor={executor}"))
        node.wait_for("sinking")
    node.signal()
    node.wait_for("running jobs have 0.1 s to finish")
    assert node.end() == 0
    assert "the process ends without waiting for them" in node.lines[-1]
    assert [(job["status"], job["attempt"]) for job in (terminal.json("job", one)["job"] for one in jobs)] == [
        ("queued", 0)
    ] * 3


# ── orders from another process ──────────────────────────────────────────────────────────────────────────────────────


def test_cancelling_a_running_job(served: Terminal) -> None:
    node = served.processes[0]
    job_id = enqueue(served, "linger", "name=one")
    node.wait_for("lingering one")
    # Which of the two depends on who is quicker: the order, or our look at what became of it.
    assert re.fullmatch(
        r"job \S+ of linger is (running; it was asked to stop|cancelled)\n", served.ok("cancel", job_id)
    )
    until(job_id, JobStatus.CANCELLED)


def test_a_running_job_shows_how_far_it_is(served: Terminal) -> None:
    node = served.processes[0]
    job_id = enqueue(served, "linger", "name=one")
    node.wait_for("lingering one")

    wait_until(lambda: served.json("job", job_id)["job"]["progress"] is not None)
    assert re.search(
        rf"^{job_id} +processing .*running for \d.* s, 1 of 4 \(25%\): sitting down$", served.ok("jobs"), re.MULTILINE
    )
    assert "  progress    1 of 4 (25%): sitting down\n" in served.ok("job", job_id)
    assert served.json("job", job_id)["job"]["progress"]["done"] == 1
    assert f"job {job_id} runs: attempt 1" in served.ok("explain", job_id)
    served.ok("cancel", job_id)


def test_pausing_and_resuming_a_pool(served: Terminal) -> None:
    served.ok("pause", "images")
    job_id = enqueue(served, "resize", "path=a.png")
    assert served.json("explain", job_id)["waits"][0]["code"] == "paused"
    served.ok("resume", "images")
    until(job_id, JobStatus.COMPLETED)


def test_disabling_and_enabling_a_worker(served: Terminal) -> None:
    served.ok("disable", "resize")
    job_id = enqueue(served, "resize", "path=a.png")
    assert served.json("explain", job_id)["waits"][0]["code"] == "disabled"
    served.ok("enable", "resize")
    until(job_id, JobStatus.COMPLETED)


def test_retrying_a_dead_job(served: Terminal) -> None:
    job_id = enqueue(served, "resize", "path=a.png", "width=-1")
    until(job_id, JobStatus.DEAD)
    served.ok("retry", job_id, "--payload", '{"path": "b.png"}')
    until(job_id, JobStatus.COMPLETED)


def test_following_events(served: Terminal) -> None:
    people = served.start("events", "--follow", "--store", "sqlite:///shop.db")
    programs = served.start("events", "-f", "--json", "--store", "sqlite:///shop.db")
    people.wait_for("node.started")
    programs.wait_for("node.started")
    served.ok("disable", "fetch", "--reason", "too loud")
    people.wait_for("worker fetch is disabled: too loud")
    assert json.loads(programs.wait_for("too loud"))["name"] == "worker.disabled"
    for process in (people, programs):
        process.signal(signal.SIGINT)
        assert process.end() == 130
        assert not [line for line in process.lines if "Traceback" in line]


# ── pipes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _same(path: str) -> str:
    return path


def test_a_closed_pipe_is_silent(shop: Terminal) -> None:
    async def fill() -> None:
        app = load_app("shop")
        resize = app.task(name="resize_more", pool="images")(_same)
        await app.enqueue_many([resize.call(path=f"{number}.png") for number in range(3_000)])
        await app.close()

    asyncio.run(fill())
    command = [sys.executable, "-m", "shiftwork", "jobs", "--limit", "10000", "--store", "sqlite:///shop.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as jobs:
        assert jobs.stdout is not None
        assert jobs.stderr is not None
        assert jobs.stdout.readline().startswith("ID ")
        jobs.stdout.close()
        assert jobs.wait(30) == 141
        assert jobs.stderr.read() == ""


def test_standard_streams_that_are_closed_are_opened_before_anything_else(tmp_path: Path) -> None:
    """Otherwise uvloop aborts the process when it closes what has got their numbers."""
    program = (
        "import os, sys; from shiftwork.cli import main\n"
        "try: main(['key'])\n"
        "except SystemExit: pass\n"
        "print('lost', file=sys.stderr)\n"
        "with open('number', 'w') as file: file.write(str(file.fileno()))"
    )
    closed = f'exec {sys.executable} -c "{program}" <&- >&- 2>&-'
    subprocess.run(["/bin/sh", "-c", closed], cwd=tmp_path, timeout=60, check=True)
    assert int((tmp_path / "number").read_text()) > 2


def test_an_old_terminal_gets_question_marks(shop: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    pools = shop.start("pools", "--store", "sqlite:///shop.db")
    assert pools.end() == 0
    assert " 1?4 " in "\n".join(pools.lines)
