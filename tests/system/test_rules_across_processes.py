"""Two orchestrators in two processes on one SQLite file: conflicts never overlap, dependencies hold."""

from pathlib import Path
from typing import NamedTuple

from tests.polling import wait_until
from tests.system.conftest import Start

RUNS = 400


class Run(NamedTuple):
    start: int
    end: int
    worker: str
    pid: int


def runs_of(log: Path) -> list[Run]:
    """The runs in a log, by start."""
    under_way: dict[tuple[str, str], int] = {}
    runs: list[Run] = []
    for line in log.read_text().splitlines():
        at, pid, worker, what = line.split()
        if what == "start":
            under_way[worker, pid] = int(at)
        else:
            runs.append(Run(under_way.pop((worker, pid)), int(at), worker, int(pid)))
    return sorted(runs)


def test_conflicts_and_dependencies_hold_over_hundreds_of_runs_in_two_processes(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "runs.log"
    url = f"sqlite:///{tmp_path / 'shiftwork.db'}"
    processes = [start("pipeline.py", url, log, RUNS) for _ in range(2)]
    wait_until(lambda: all(process.poll() is not None for process in processes), within=90)
    assert [process.returncode for process in processes] == [0, 0]

    runs = runs_of(log)
    assert len(runs) >= RUNS
    assert len({run.pid for run in runs}) == 2, "one process did all the work; the test proves nothing"
    for worker in ("fetch-data", "process-data", "cleanup"):
        assert sum(run.worker == worker for run in runs) > RUNS // 20

    ended: dict[str, int] = {}
    fetched = False
    for run in runs:
        against = {"process-data": "cleanup", "cleanup": "process-data"}.get(run.worker)
        if against:
            assert ended.get(against, 0) < run.start, f"{run} overlaps a run of {against}"
        if run.worker == "process-data":
            assert fetched, f"{run} started before fetch-data had ever succeeded"
            assert ended["fetch-data"] < run.start, f"{run} started during fetch-data"
        assert ended.get(run.worker, 0) < run.start, f"{run} overlaps another run of itself"
        fetched = fetched or run.worker == "fetch-data"
        ended[run.worker] = max(ended.get(run.worker, 0), run.end)
