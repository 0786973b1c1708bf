"""A deadline counts from when a run began, not from when it was started."""

import pytest

from shiftwork.core.jobs.retry import End
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.runtime.claiming.runs import Deadlines
from shiftwork.runtime.running.job_run import LocalRun
from shiftwork.testing import ManualClock


class Race:
    """Runs with a timeout of 60 seconds; those that have expired."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.expired: list[str] = []
        self.deadlines = Deadlines(self.clock, began=lambda run: run.began_at, on_expired=self._expire)

    def start(self, name: str) -> LocalRun:
        job = Claimed(id=name, worker="w", pool="p", payload=b"", fence=1, attempt=1, crashes=0, run_at=0.0)
        run = LocalRun(job, WorkerConfig(name="w", timeout_seconds=60.0), 0.0, self)
        self.deadlines.watch(run, 60.0)
        return run

    def begin(self, run: LocalRun) -> None:
        run.begin(self.clock.monotonic())

    def _expire(self, run: LocalRun) -> None:
        self.expired.append(run.job.id)

    def run_begun(self, run: LocalRun) -> None: ...
    def run_ended(self, run: LocalRun, end: End) -> None: ...


@pytest.fixture
async def race() -> Race:
    return Race()


async def test_a_run_that_has_not_begun_does_not_time_out(race: Race) -> None:
    race.start("never")
    await race.clock.advance(600.0)
    assert race.expired == []


async def test_a_run_has_its_whole_time_from_when_it_began(race: Race) -> None:
    punctual, late, later = (race.start(name) for name in ("punctual", "late", "later"))
    race.begin(punctual)
    await race.clock.advance(50.0)
    race.begin(late)
    await race.clock.advance(10.0)
    assert race.expired == ["punctual"]
    await race.clock.advance(30.0)
    race.begin(later)
    await race.clock.advance(19.0)
    assert race.expired == ["punctual"]
    await race.clock.advance(1.0)
    assert race.expired == ["punctual", "late"]
    await race.clock.advance(39.0)
    assert race.expired == ["punctual", "late"]
    await race.clock.advance(31.0)
    assert race.expired == ["punctual", "late", "later"], "it is looked at again, at the latest after its timeout"


async def test_a_late_run_that_has_ended_does_not_time_out(race: Race) -> None:
    run = race.start("late")
    await race.clock.advance(50.0)
    race.begin(run)
    await race.clock.advance(20.0)
    race.deadlines.forget(run, 60.0)
    await race.clock.advance(600.0)
    assert race.expired == []
