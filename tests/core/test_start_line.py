"""What a node says when it starts."""

import pytest

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.workers.joining import start_line

NOW = 1_000_000.0
FETCH = WorkerConfig(name="fetch", interval_seconds=60)
CLEAN = WorkerConfig(name="clean", interval_seconds=3600)
RESIZE = WorkerConfig(name="resize", execution_mode=WorkerExecutionMode.TRIGGERED)
REPORT = WorkerConfig(name="report", cron="* * * * *")
KEPT = "(kept from earlier: 1 worker; intervals go on from their last runs)"


def ran(name: str, ago: float, **more: object) -> dict[str, WorkerState]:
    return {name: WorkerState(worker=name, last_started=NOW - ago, last_ended=NOW - ago, **more)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workers", "states", "line"),
    [
        ([RESIZE], {}, "store s"),
        ([FETCH, CLEAN, RESIZE], {}, "store s; next: clean now, fetch now"),
        ([FETCH, CLEAN], ran("fetch", 19), f"store s {KEPT}; next: clean now, fetch in 41 s"),
        ([FETCH], ran("fetch", 99), f"store s {KEPT}; next: fetch now"),
        ([FETCH], ran("fetch", 19, enabled=False), f"store s {KEPT}"),
        ([RESIZE], ran("resize", 19), "store s (kept from earlier: 1 worker)"),
        ([REPORT], ran("report", 19), "store s (kept from earlier: 1 worker); next: report in 20 s"),
        ([REPORT], {}, "store s; next: report in 20 s"),
    ],
)
def test_the_line(workers: list[WorkerConfig], states: dict[str, WorkerState], line: str) -> None:
    assert start_line("s", workers, states, NOW) == line
