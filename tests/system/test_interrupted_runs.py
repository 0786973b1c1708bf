"""A run that is interrupted costs its job neither an attempt nor its place in the queue, in every kind of pool."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from shiftwork import Job, JobStatus
from tests.polling import eventually
from tests.store.servers.postgres import postgres_servers
from tests.system.mill import Mill
from tests.system.shared_stores import Place, on_postgres, on_sqlite, on_valkey

pytestmark = pytest.mark.timeout(240)  # many processes; the machine may be busy

__all__ = ["postgres_servers"]

KINDS = ("process", "thread", "async")
JOBS = 12
LEASE = 600.0
"""Ten times as long as a test waits: whatever waits for a lease fails."""

on_every_store = pytest.mark.parametrize("place", [on_sqlite, on_valkey, on_postgres])


class Lines:
    """A queue of jobs in front of each pool's only slot."""

    def __init__(self, mill: Mill) -> None:
        self.mill = mill
        self.jobs: dict[str, list[Job[Any]]] = {}
        mill.module.allowed.mkdir()

    async def form(self, *kinds: str) -> None:
        """Enqueue the jobs, and let the first two end: the third runs, all others wait behind it."""
        for kind in kinds:
            worker = getattr(self.mill.module, f"stand_in_{kind}")
            self.jobs[kind] = await self.mill.app.enqueue_many([worker.call(number=n) for n in range(JOBS)])
        for number in ("0", "1"):
            (self.mill.module.allowed / number).touch()
        await self.reach(lambda kind: self.starts(kind)[-1:] == [2])

    def starts(self, kind: str) -> list[int]:
        """The numbers of the jobs, in the order in which they have started."""
        return [line.number for line in self.mill.lines(f"stand_in_{kind}", "start")]

    def pid(self, kind: str) -> int:
        """The process of the run that started last."""
        return self.mill.lines(f"stand_in_{kind}", "start")[-1].pid

    async def reach(self, met: Callable[[str], bool]) -> None:
        await eventually(
            lambda: all(met(kind) for kind in self.jobs),
            failure=lambda: f"{ {kind: self.starts(kind) for kind in self.jobs} }\n{self.mill.logs()}",
        )

    async def pause_is_over(self) -> None:
        """Wait until the interrupted jobs run again, or wait in the queue like all others, however they got there."""
        await eventually(self._none_is_held_up, failure=self.mill.logs)

    async def _none_is_held_up(self) -> bool:
        for kind, jobs in self.jobs.items():
            started = self.starts(kind)
            waiting = [job for number, job in enumerate(jobs) if number not in started]
            if started[-1] != 2:
                waiting.append(jobs[2])
            if any([(await self.mill.job(job)).status is not JobStatus.QUEUED for job in waiting]):
                return False
        return True

    async def end(self) -> None:
        (self.mill.module.allowed / "all").touch()
        for jobs in self.jobs.values():
            ended = await self.mill.all_ended(jobs)
            assert {(job.status, job.attempt) for job in ended} == {(JobStatus.COMPLETED, 1)}


@pytest.fixture
def lease() -> float:
    return LEASE


@pytest.fixture
async def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lease: float, place: Place) -> AsyncIterator[Mill]:
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    with place(tmp_path) as url:
        it = Mill(tmp_path, lease=lease, program="line", store=url)
        yield it
        await it.close()


def in_order(starts: list[int]) -> bool:
    """Whether the third job runs again as soon as it can: after those, at most, that began during its pause."""
    second = starts.index(2, 3)
    meanwhile = starts[3:second]
    return len(meanwhile) <= 1 and starts == [0, 1, 2, *meanwhile, 2, *range(3 + len(meanwhile), JOBS)]


@on_every_store
async def test_a_job_whose_process_is_killed_keeps_its_place(mill: Mill) -> None:
    lines = Lines(mill)
    await mill.up(mill.node("--no-web"))
    await lines.form(*KINDS)
    for kind in KINDS:
        os.kill(lines.pid(kind), signal.SIGKILL)
    await _goes_on(lines)


@pytest.mark.parametrize("place", [on_sqlite])
@pytest.mark.parametrize("kind", ["thread", "async"])
async def test_a_job_that_is_killed_again_apart_from_others_keeps_its_place(mill: Mill, kind: str) -> None:
    """Killed from outside for the first time, it runs again at once, and no crash is counted. The second one is one."""
    lines = Lines(mill)
    await mill.up(mill.node("--no-web"))
    await lines.form(kind)
    os.kill(lines.pid(kind), signal.SIGKILL)
    await lines.reach(lambda kind: len(lines.starts(kind)) > 3)
    os.kill(lines.pid(kind), signal.SIGKILL)
    await lines.reach(lambda kind: len(lines.starts(kind)) > 4)
    await lines.pause_is_over()
    await lines.end()
    starts = lines.starts(kind)
    assert (await mill.job(lines.jobs[kind][2])).crashes == 1, mill.logs()
    assert starts in ([0, 1, 2, 2, 2, *range(3, JOBS)], [0, 1, 2, 2, 3, 2, *range(4, JOBS)])


@on_every_store
async def test_a_job_whose_node_is_killed_keeps_its_place(mill: Mill) -> None:
    lines = Lines(mill)
    victim = await mill.up(mill.node("--no-web"))
    await lines.form(*KINDS)
    victim.kill()
    await mill.up(mill.node("--no-web"))
    await _goes_on(lines)


@pytest.mark.parametrize("place", [on_sqlite])
async def test_a_job_whose_node_is_stopped_keeps_its_place(mill: Mill) -> None:
    lines = Lines(mill)
    node = await mill.up(mill.node("--no-web", "--stop-timeout", "0"))
    await lines.form(*KINDS)
    node.signal(signal.SIGTERM)
    assert node.end() == 0, node.said
    await mill.up(mill.node("--no-web"))
    await _goes_on(lines)


async def _goes_on(lines: Lines) -> None:
    await lines.reach(lambda kind: len(lines.starts(kind)) > 3)
    await lines.pause_is_over()
    await lines.end()
    starts = {kind: lines.starts(kind) for kind in KINDS}
    assert {kind: in_order(found) for kind, found in starts.items()} == dict.fromkeys(KINDS, True), starts
