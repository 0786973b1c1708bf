"""How hard a process works: what is reported, and that it is right."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.gauge import Gauge, Lateness, Load, OwnGauge, Stopwatch
from shiftwork.runtime.machine import Usage, usage
from shiftwork.runtime.node.node_pools import NodePools
from shiftwork.runtime.outage_log import OutageLog
from tests.polling import eventually, pass_time
from tests.runtime.stage import DEADLINE, Act, Stage, lag_of, started


class Machine:
    """A process and a clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.usage: Usage | None = Usage(50.0, 1_000)

    def monotonic(self) -> float:
        return self.now

    def read(self, _pid: int) -> Usage | None:
        return self.usage

    def later(self, seconds: float, cpu_seconds: float = 0.0) -> None:
        assert self.usage is not None
        self.now += seconds
        self.usage = Usage(self.usage.cpu_seconds + cpu_seconds, self.usage.memory)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_use_of_the_processor_is_reported_over_a_few_seconds(machine: Machine) -> None:
    gauge = Gauge(1, machine.monotonic, machine.read)
    assert (gauge.look(), gauge.cpu) == (1_000, None)
    machine.later(1, 0.5)
    gauge.look()
    assert gauge.cpu == 50.0, "better than nothing"
    for _ in range(4):
        machine.later(1, 2.0)
        gauge.look()
    assert gauge.cpu == 50.0, "not yet"
    machine.later(1, 2.0)
    gauge.look()
    assert gauge.cpu == 200.0


def test_nothing_is_reported_of_a_process_that_is_gone(machine: Machine) -> None:
    gauge = Gauge(1, machine.monotonic, machine.read)
    gauge.look()
    machine.later(1, 1)
    gauge.look()
    machine.usage = None
    assert (gauge.look(), gauge.cpu, gauge.memory) == (0, None, 0)


def test_what_a_process_uses_is_read_whatever_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    numbers = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "7" / "stat").write_text(f"7 (a) b (c)) R {numbers}\n")
    seen = usage(7, tmp_path)
    assert seen is not None
    assert seen.cpu_seconds == pytest.approx((14 + 15) / 100)
    assert seen.memory == 24 * 4096


def test_lateness_is_the_worst_of_late_and_fades(machine: Machine) -> None:
    late = Lateness(machine.monotonic)
    assert late.overdue == 0.0
    late.came()
    late.due_in(1.0)
    machine.later(1.0)
    late.came()
    assert late.seconds == 0.0
    late.due_in(1.0)
    machine.later(9.0)
    assert (late.overdue, late.seconds) == (8.0, 8.0), "it has not come yet"
    late.came()
    for worst in (4.0, 2.0):
        late.due_in(1.0)
        machine.later(1.0)
        late.came()
        assert late.seconds == worst


async def test_the_stopwatch_returns_the_mean_since_it_was_read(machine: Machine) -> None:
    stopwatch = Stopwatch(machine.monotonic, OutageLog(machine.monotonic))

    async def call(seconds: float) -> float:
        machine.later(seconds)
        return seconds

    assert stopwatch.read() is None
    assert [await stopwatch.time("calling", call(seconds)) for seconds in (1.0, 3.0)] == [1.0, 3.0]
    assert stopwatch.read() == 2.0
    assert stopwatch.read() == 2.0, "nothing newer is known"
    await stopwatch.time("calling", call(0.5))
    assert stopwatch.read() == 0.5


async def test_a_node_in_place_reports_its_process_its_loop_and_the_store(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(lease_seconds=15)
    app.register_worker("nap", Act(), execution_mode="triggered")
    await app.start()
    (node,) = await app.nodes()
    assert node.memory_used is not None
    assert node.memory_used > 1_000_000, "from the first beat on"
    await clock.advance(16)
    (node,) = await app.nodes()
    (instance,) = await app.control.pools.instances()
    assert (node.lag, node.store_seconds) == (0.0, 0.0), "the clock stands still meanwhile"
    assert node.cpu is not None
    assert instance["cpu"] is not None, "as it is now; those of the node are as of its last beat"
    assert instance["memory"] is not None
    assert instance["memory"] > 1_000_000
    assert instance["lag"] == 0.0


async def test_what_its_processes_use_is_counted_as_the_nodes(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnGauge, "load", lambda _: Load(cpu=10.04, memory=1_000, lag=0.5))
    monkeypatch.setattr(NodePools, "children", [Load(cpu=120.0, memory=200, lag=9.0), Load(memory=30)])
    app = stage.app(lease_seconds=15)
    await app.start()
    await clock.advance(6)
    (node,) = await app.nodes()
    assert (node.cpu, node.memory_used, node.lag) == (130.0, 1_230, 0.5)


async def test_a_blocked_loop_is_seen_from_elsewhere(tmp_path: Path) -> None:
    """The loop of the program stands still; its pulse reports that."""
    url = f"sqlite:///{tmp_path}/shiftwork.db"
    app = WorkerOrchestrator(url, lease_seconds=3.0)

    async def until_it_is_late() -> float:
        watcher = WorkerOrchestrator(url)
        async with asyncio.timeout(DEADLINE):
            while not (lag := (await watcher.nodes())[0].lag) or lag < 0.3:
                await pass_time(0.01)
        await watcher.close()
        return lag

    async with started(app):
        await eventually(lambda: lag_of(app) is not None)
        with ThreadPoolExecutor(1) as elsewhere:
            assert elsewhere.submit(asyncio.run, until_it_is_late()).result() >= 0.3  # our loop waits for it, blocked
