"""Jobs that hold up their process: theirs while they are in time, ended when they are not, harmless to the others."""

import os
import signal
import time
from functools import partial

import pytest

from shiftwork import JobStatus
from tests.polling import eventually
from tests.system.mill import Mill, gone, living, statuses

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy

HOLDERS = ("hold_everything", "hold_the_loop")
NOTED = ("hold", "hold_loop")
"""What they note."""


@pytest.fixture
def lease() -> float:
    """As long as a frozen node keeps its jobs."""
    return 4.0


async def test_jobs_that_hold_their_process_up_keep_their_node_while_they_are_in_time(mill: Mill) -> None:
    """The lease is four seconds, they hold everything up for ten, and may do so for thirty."""
    for node in [mill.node(), mill.node()]:
        await mill.up(node)
    held = [await getattr(mill.module, holder).enqueue(number=0, seconds=10) for holder in HOLDERS]
    pids = {(await mill.noted(worker))[0].pid for worker in NOTED}
    workers = [mill.module.nap_in_a_thread, mill.module.nap_in_a_coroutine]
    naps = await mill.app.enqueue_many([workers[n % 2].call(number=n, seconds=0.01) for n in range(30)])
    assert statuses(await mill.all_ended(naps)) == {JobStatus.COMPLETED: 30}
    ended = await mill.all_ended(held)
    assert [(job.status, job.attempt, job.record.crashes) for job in ended] == [(JobStatus.COMPLETED, 1, 0)] * 2
    by_number = {line.number: line for line in mill.lines(what="end") if line.worker not in NOTED}
    held_until = min(line.at for worker in NOTED for line in mill.lines(worker, "end"))
    assert {line.pid for line in by_number.values()}.isdisjoint(pids)
    assert all(line.at < held_until for line in by_number.values()), "the short ones have waited for the long ones"


async def test_jobs_that_hold_their_process_up_beyond_their_time_are_killed(mill: Mill) -> None:
    node = await mill.up(mill.node())
    too_long = (mill.module.hold_too_long, mill.module.hold_the_loop_too_long)
    held = [await worker.enqueue(number=0, seconds=600) for worker in too_long]
    processes = living([(await mill.noted(worker))[0].pid for worker in NOTED])
    for name, job in zip(NOTED, await mill.all_ended(held), strict=True):
        assert job.status is JobStatus.DEAD
        assert job.error == "timed out after 1 s and did not stop; its process was killed"
        assert f"in {name}" in (job.history[-1].traceback or ""), "where it was stuck"
    await eventually(lambda: gone(processes))
    assert not node.over


async def test_a_killed_node_takes_all_its_processes_with_it_whatever_they_do(mill: Mill) -> None:
    node = await mill.up(mill.node())
    for holder in HOLDERS:
        await getattr(mill.module, holder).enqueue(number=0, seconds=600)
    for worker in ("ignore", "endless"):
        await getattr(mill.module, worker).enqueue(number=0)
    for worker in (*NOTED, "ignore", "endless"):
        await mill.noted(worker)
    children = node.children()
    assert "sleep" in {child.name() for child in children}, "a job has started it"
    node.signal(signal.SIGKILL)
    await eventually(lambda: gone(children), within=30)


async def test_a_frozen_node_loses_its_jobs_but_nothing_overlaps_and_it_comes_back(mill: Mill) -> None:
    module = mill.module
    frozen = await mill.up(mill.node())
    waiting = [await module.wait_apart.enqueue(number=0), await module.wait_in_a_coroutine.enqueue(number=0)]
    for worker in ("wait_apart", "wait_in_a_coroutine"):
        await mill.noted(worker)
    guards = frozen.guards()
    children = [child for child in frozen.children() if child not in guards]
    heir = await mill.up(mill.node())
    frozen.signal(signal.SIGSTOP)
    await eventually(lambda: gone(children), failure=lambda: "its processes go on")
    assert len(mill.lines(what="start")) == 2, "they ended after somebody else had begun"
    await eventually(lambda: len(mill.lines(what="start")) >= 4, failure=mill.logs)
    assert not mill.lines(what="overlap")
    module.gate.touch()
    ended = await mill.all_ended(waiting)
    assert [(job.status, job.record.crashes) for job in ended] == [(JobStatus.COMPLETED, 0)] * 2
    fences = [job.record.fence for job in ended]

    frozen.signal(signal.SIGCONT)
    heir.signal(signal.SIGTERM)
    assert heir.end() == 0
    again = await mill.app.enqueue_many([module.nap_apart.call(number=number, seconds=0.01) for number in range(5)])
    assert statuses(await mill.all_ended(again)) == {JobStatus.COMPLETED: 5}
    assert [(await mill.job(job)).record.fence for job in waiting] == fences
    assert not frozen.over


def started_more_than(mill: Mill, times: int) -> bool:
    return len(mill.lines("wait_apart", "start")) > times


async def test_a_node_that_was_frozen_within_its_lease_blames_no_job(mill: Mill) -> None:
    """Its processes have ended themselves, and the lease is still its own."""
    node = await mill.up(mill.node())
    job = await mill.module.wait_apart.enqueue(number=0)
    await mill.noted("wait_apart")
    for times in range(1, 4):
        processes = living([mill.lines("wait_apart", "start")[-1].pid])
        node.signal(signal.SIGSTOP)
        await eventually(partial(gone, processes))
        node.signal(signal.SIGCONT)
        await eventually(partial(started_more_than, mill, times), failure=mill.logs)
    mill.module.gate.touch()
    ended = await mill.ended(job)
    assert (ended.status, ended.attempt, ended.record.crashes) == (JobStatus.COMPLETED, 1, 0)


@pytest.mark.parametrize("worker", ["quick_in_a_coroutine", "quick_in_a_thread"])
async def test_what_a_frozen_process_has_not_begun_is_not_timed_out(mill: Mill, worker: str) -> None:
    """Their timeout is half a second, and there is no retry."""
    node = await mill.up(mill.node())
    quick = getattr(mill.module, worker)
    await mill.all_ended([await quick.enqueue(number=0)])
    process = mill.lines(worker, "start")[0].pid
    os.kill(process, signal.SIGSTOP)
    jobs = await mill.app.enqueue_many([quick.call(number=number) for number in range(1, 4)])

    async def beyond_their_time() -> bool:
        found = [await mill.job(job) for job in jobs]
        return all(job.ended_at is not None or (job.started_at or time.time()) + 0.7 < time.time() for job in found)

    await eventually(beyond_their_time)
    os.kill(process, signal.SIGCONT)
    ended = await mill.all_ended(jobs)
    assert [(job.status, job.attempt, job.record.crashes) for job in ended] == [(JobStatus.COMPLETED, 1, 0)] * 3
    assert sorted(line.number for line in mill.lines(worker, "start")) == [0, 1, 2, 3]
    assert not node.over
