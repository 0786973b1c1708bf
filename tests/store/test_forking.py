"""A process forked from one that uses a store has connections of its own: no call hangs, and none harms the parent."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.servers.postgres import names, server_url
from tests.store.servers.redis import namespace

FORKING = """
import os, sys, threading
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(sys.argv[1], namespace=sys.argv[2])

@app.task
def work(who: str) -> str:
    return who

first, *_ = [work.enqueue_blocking("parent") for _ in range(4)]  # it has a loop, threads and connections by now
child = os.fork()
if child == 0:
    jobs = []
    jobs.extend(work.enqueue_blocking("child") for _ in range(4))
    threads = [threading.Thread(target=lambda: jobs.append(work.enqueue_blocking("child"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({job.id for job in jobs}) == 8
    assert first.blocking.refresh().status == "queued"
    assert len(app.blocking.find_jobs(worker="work")) == 12
    app.blocking.start()                     # nor does it run what the parent runs
    assert first.blocking.result(30) == "parent"
    app.blocking.stop()
    sys.exit(0)                              # everything is torn down, as in a worker of gunicorn
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert work.enqueue_blocking("parent").blocking.refresh().status == "queued"
assert {job.blocking.refresh().status for job in app.blocking.find_jobs(limit=50)} == {"queued", "completed"}
app.blocking.close()
"""


def test_a_forked_process_has_a_store_of_its_own(store_url: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, store_url, namespace()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture(params=["sqlite", "valkey", names()[0]])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, by URL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shiftwork.db"
    if request.param == "valkey":
        url: str = request.getfixturevalue("valkey_url")
        return url
    return server_url(request.param)
