"""Every process of a node writes a file of its own: the node what it asks of the store, the others what they run."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from shiftwork.history.lines import Asked, Began, Defined, Ended, Opened
from tests.history.written import asked, everything, files, of
from tests.polling import wait_until

SHOP = """
import os, signal
from pathlib import Path
from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")
app.register_pool("apart", kind="process", min_workers=1, max_workers=1)

@app.task(pool="apart")
def die_once() -> None:
    mark = Path("died")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

@app.task
async def call() -> None: ...

if __name__ == "__main__":
    jobs = [die_once.enqueue_blocking(), call.enqueue_blocking()]
    for job in jobs:
        job.blocking.result(timeout_seconds=60)
    app.blocking.close()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of all processes."""
    (tmp_path / "shop.py").write_text(SHOP)
    return {**os.environ, "SHIFTWORK_HISTORY": str(tmp_path / "history")}


def test_every_process_of_a_node_records_its_part(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "shiftwork", "run", "shop:app", "--no-web"]
    node = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    try:
        subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, env=environment, check=True, timeout=90)
        wait_until(lambda: len(of(everything(tmp_path / "history"), Ended)) == 2)
    finally:
        node.send_signal(signal.SIGTERM)
        _, said = node.communicate(timeout=60)
    assert node.returncode == 0, said
    by_pid = {of(lines, Opened)[0].pid: lines for lines in files(tmp_path / "history")}
    assert of(by_pid[node.pid], Began) == []
    assert {one.name for one in of(by_pid[node.pid], Defined)} == {"die_once", "call", "apart", "default"}
    assert {"beat", "claim", "finish", "hold", "put"} <= {one.call for one in of(by_pid[node.pid], Asked)}
    began = [(pid, one) for pid, lines in by_pid.items() for one in of(lines, Began)]
    worker = {job[0]: job[1] for [batch] in asked(everything(tmp_path / "history"), "add") for job in batch}
    assert Counter(worker[one.job] for _, one in began) == {"die_once": 2, "call": 1}
    assert len({pid for pid, _ in began}) == 3
    ended = {(one.job, one.fence): one.kind for one in of(everything(tmp_path / "history"), Ended)}
    killed, again = sorted((one for _, one in began if worker[one.job] == "die_once"), key=lambda one: one.fence)
    assert (killed.job, killed.fence) not in ended
    assert ended[again.job, again.fence] == "returned"
    adders = [pid for pid, lines in by_pid.items() if any(one.call == "add" for one in of(lines, Asked))]
    assert len(adders) == 1
    assert adders[0] not in {node.pid, *(pid for pid, _ in began)}


def test_a_node_says_which_folder_it_cannot_use(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "history").write_text("a file")
    command = [sys.executable, "-m", "shiftwork", "run", "shop:app", "--no-web"]
    node = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert node.returncode != 0
    assert re.search(rf"SHIFTWORK_HISTORY names .*{tmp_path}/history: File exists", node.stdout + node.stderr)
    assert "Traceback" not in node.stderr
