"""A node that is killed: its jobs run again without waiting for a lease, and nothing of it keeps running."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from benchmarks.recovery.measure import recover
from shiftwork import JobStatus
from tests.polling import eventually
from tests.store.servers.postgres import postgres_servers
from tests.system.mill import Mill, gone
from tests.system.shared_stores import Place, on_postgres, on_sqlite, on_valkey

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy

__all__ = ["postgres_servers"]

LEASE = 600.0
"""Ten times as long as a test waits: whatever waits for a lease fails."""


@pytest.mark.parametrize(
    "place",
    [on_sqlite, pytest.param(on_valkey, marks=pytest.mark.soak), pytest.param(on_postgres, marks=pytest.mark.soak)],
)
def test_a_killed_node_that_is_started_again_takes_back_its_jobs_at_once(place: Place, tmp_path: Path) -> None:
    with place(tmp_path) as url:
        assert recover(url, survivor=False, lease=LEASE).jobs < LEASE / 10


@pytest.mark.soak
@pytest.mark.parametrize("lease", [60.0])
async def test_a_surviving_node_takes_over_from_a_killed_neighbour(mill: Mill, lease: float) -> None:
    victim = await mill.up(mill.node())
    jobs = [await mill.module.wait_in_a_coroutine.enqueue(number=number) for number in range(4)]
    await eventually(lambda: len(mill.lines("wait_in_a_coroutine", "start")) >= 4)
    await mill.up(mill.node())
    victim.kill()
    mill.module.gate.touch()
    ended = await mill.all_ended(jobs)
    assert {(job.status, job.attempt, job.record.crashes) for job in ended} == {(JobStatus.COMPLETED, 1, 0)}


@pytest.mark.parametrize("lease", [4.0])
async def test_a_job_that_holds_the_interpreter_ends_before_the_lease_of_its_frozen_node(
    mill: Mill, lease: float
) -> None:
    node = await mill.up(mill.node())
    await mill.module.hold_everything.enqueue(number=0, seconds=600)
    (line,) = await mill.noted("hold")
    holder = psutil.Process(line.pid)
    node.signal(signal.SIGSTOP)
    await eventually(lambda: gone([holder]))
    node.signal(signal.SIGCONT)


@pytest.mark.soak
async def test_a_guard_that_is_killed_is_replaced(mill: Mill) -> None:
    node = await mill.up(mill.node())
    await eventually(lambda: len(node.guards()) == 1)
    (first,) = node.guards()
    os.kill(first.pid, signal.SIGKILL)
    await eventually(lambda: [guard.pid for guard in node.guards()] not in ([], [first.pid]), failure=mill.logs)
    children = node.children()
    node.signal(signal.SIGTERM)
    assert node.end() == 0
    assert gone(children)


async def test_a_crowd_that_is_killed_from_outside_runs_again_at_once(mill: Mill) -> None:
    await mill.up(mill.node())
    jobs = [await mill.module.wait_in_a_coroutine.enqueue(number=number) for number in range(6)]
    await eventually(lambda: len(mill.lines("wait_in_a_coroutine", "start")) >= 6)
    os.kill(mill.lines("wait_in_a_coroutine")[0].pid, signal.SIGKILL)
    await eventually(
        lambda: len(mill.lines("wait_in_a_coroutine", "start")) >= 12, failure=mill.logs
    )  # none has ended yet
    mill.module.gate.touch()
    ended = await mill.all_ended(jobs)
    assert {(job.status, job.record.crashes) for job in ended} == {(JobStatus.COMPLETED, 0)}
