"""The time of a file: processes share it, and a wall clock that was set does not change it at once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.core.steady_time import STEP_FOLLOWED_SECONDS, Reading
from shiftwork.store.machine_clock import SteadyClock, read_clocks
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file.file_clock import FileClock
from tests.store.conformance.acts import add, claim_one, job, signs

HOUR = 3600.0
NOON = 1_794_744_000.0


class Machine:
    """The clocks of a machine; each process may have a wall clock of its own."""

    def __init__(self) -> None:
        self.ticks = 1000.0
        self.off: dict[str, float] = {}

    def clock_of(self, process: str) -> FileClock:
        return FileClock(lambda: Reading(NOON + self.ticks + self.off.get(process, 0.0), self.ticks, "this boot"))


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
async def stores(tmp_path: Path, machine: Machine) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    """Two processes that use the same file."""
    one, other = (SqliteStore(str(tmp_path / "shiftwork.db")) for _ in range(2))
    for store, name in ((one, "one"), (other, "other")):
        store._clock = machine.clock_of(name)
        await store.open()
    yield one, other
    await one.close()
    await other.close()


async def offs(machine: Machine, *stores: SqliteStore, seconds: float = 90.0) -> set[float]:
    """Let time pass, with a beat every 5 s; returns by how much the time was wrong."""
    wrong: set[float] = set()
    for _ in range(int(seconds / 5)):
        machine.ticks += 5.0
        for store in stores:
            wrong.add(round(await store.server_time() - NOON - machine.ticks, 3))
    return wrong


async def test_a_step_of_one_process_is_not_followed(
    machine: Machine, stores: tuple[SqliteStore, SqliteStore], caplog: pytest.LogCaptureFixture
) -> None:
    assert await offs(machine, *stores) == {0.0}
    machine.off["one"] = HOUR
    assert await offs(machine, *stores) == {0.0}
    machine.off["one"] = 0.0
    assert await offs(machine, *stores) == {0.0}
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[0].startswith("the clock of this machine was set 3600 s ahead")


async def test_a_step_that_lasts_is_followed_by_all(machine: Machine, stores: tuple[SqliteStore, SqliteStore]) -> None:
    await offs(machine, *stores)
    machine.off = {"one": -HOUR, "other": -HOUR}
    assert await offs(machine, *stores, seconds=STEP_FOLLOWED_SECONDS) == {0.0}
    await offs(machine, *stores, seconds=10)
    assert await offs(machine, *stores) == {-HOUR}


async def test_a_process_that_does_not_know_yet_that_the_clock_was_set_back_takes_no_live_job(
    machine: Machine, stores: tuple[SqliteStore, SqliteStore]
) -> None:
    one, other = stores
    await offs(machine, *stores)
    await add(one, job("1"))
    await claim_one(one, "1", instance="i")
    machine.off = {"one": -HOUR, "other": -HOUR}
    await offs(machine, one, seconds=STEP_FOLLOWED_SECONDS + 10)
    now, before = NOON + machine.ticks - HOUR, NOON + machine.ticks
    await one.beat([signs("i")], 15.0, now)
    assert await other.reap("leader", 10, before) == []
    assert await other.server_time() == pytest.approx(now)
    assert await other.reap("leader", 10, now) == []
    assert [record.id for record in await other.reap("leader", 10, now + 16)] == ["1"]


async def test_reading_the_time_writes_nothing(machine: Machine, stores: tuple[SqliteStore, SqliteStore]) -> None:
    one, other = stores
    await offs(machine, *stores)
    version = await other._read(lambda session: session.value("read_data_version"))
    await offs(machine, one)
    assert await other._read(lambda session: session.value("read_data_version")) == version


async def test_a_delay_is_counted_by_the_time_of_the_file(tmp_path: Path) -> None:
    """A node whose wall clock is an hour ahead does not make jobs due early, nor late."""
    url = f"sqlite:///{tmp_path / 'shiftwork.db'}"
    right, wrong = (WorkerOrchestrator(url) for _ in range(2))
    ahead = FileClock(lambda: Reading(read_clocks().wall + HOUR, read_clocks().ticks, read_clocks().boot))
    wrong.control.store.store._clock = ahead  # type: ignore[attr-defined]

    async def act() -> None: ...

    due = []
    for app in (right, wrong):
        task = app.task(name="act")(act)
        await app.start()
        due.append((await task.with_options(delay_seconds=100).enqueue()).record.run_at)
    assert due[1] - due[0] < 60
    assert [job.status for job in await right.find_jobs()] == ["scheduled", "scheduled"]
    for app in (wrong, right):
        await app.stop()


def test_a_store_of_one_process_is_steady_too() -> None:
    off, ticks = 0.0, 0.0
    clock = SteadyClock(lambda: Reading(NOON + ticks + off, ticks, "this boot"))
    assert clock.time() == NOON
    off, ticks = HOUR, 5.0
    assert clock.time() == NOON + 5
    ticks += STEP_FOLLOWED_SECONDS
    assert clock.time() == NOON + ticks + HOUR


def test_the_clocks_of_this_machine_can_be_read() -> None:
    one, other = read_clocks(), read_clocks()
    assert other.ticks >= one.ticks > 0
    assert one.boot == other.boot
