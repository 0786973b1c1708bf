"""Jobs that hold up their process: theirs while they are in time, ended when they are not, harmless to the others."""

import asyncio
import signal

import psutil
import pytest

from tests.system.mill import Mill, gone, statuses, until
from windlass import JobStatus

HOLDERS = ["hold_everything", "hold_the_loop"]


@pytest.mark.parametrize("holder", HOLDERS)
async def test_a_job_that_holds_its_process_up_keeps_its_node_while_it_is_in_time(mill: Mill, holder: str) -> None:
    """Its lease is two seconds, it holds everything up for three, and may do so for four."""
    await mill.up(mill.node())
    await mill.up(mill.node())
    nap = mill.module.nap_in_a_thread if holder == "hold_everything" else mill.module.nap_in_a_coroutine
    held = await getattr(mill.module, holder).enqueue(number=0, seconds=3)
    (start,) = await mill.noted(holder)
    naps = await mill.app.enqueue_many([nap.call(number=number, seconds=0.01) for number in range(20)])
    assert statuses(await mill.all_ended(naps)) == {JobStatus.COMPLETED: 20}
    job = await mill.ended(held)
    assert (job.status, job.attempt, job.record.crashes) == (JobStatus.COMPLETED, 1, 0)
    assert [line.pid for line in mill.lines(holder)] == [start.pid, start.pid]
    naps_ended = max(line.at for line in mill.lines(nap.name, "end"))
    assert start.pid not in {line.pid for line in mill.lines(nap.name)}
    assert naps_ended < mill.lines(holder, "end")[0].at, "the short ones have waited for the long one"


@pytest.mark.parametrize("holder", HOLDERS)
async def test_a_job_that_holds_its_process_up_beyond_its_time_is_killed(mill: Mill, holder: str) -> None:
    node = await mill.up(mill.node())
    held = await getattr(mill.module, holder).enqueue(number=0, seconds=600)
    (start,) = await mill.noted(holder)
    process = psutil.Process(start.pid)
    job = await mill.ended(held)
    assert job.status is JobStatus.DEAD
    assert job.error == "timed out after 4 s and did not stop; its process was killed"
    assert holder in (job.attempts[-1].traceback or "")
    await until(lambda: gone([process]))
    assert not node.over


@pytest.mark.parametrize("holder", HOLDERS)
async def test_a_killed_node_takes_processes_with_it_that_are_held_up(mill: Mill, holder: str) -> None:
    node = await mill.up(mill.node())
    await getattr(mill.module, holder).enqueue(number=0, seconds=600)
    await mill.noted(holder)
    children = node.children()
    assert len(children) > 3
    node.signal(signal.SIGKILL)
    await until(lambda: gone(children), within=10)


async def test_a_frozen_node_loses_its_jobs_but_nothing_overlaps_and_it_comes_back(mill: Mill) -> None:
    module = mill.module
    frozen = await mill.up(mill.node())
    waiting = [await module.wait_apart.enqueue(number=0), await module.wait_in_a_coroutine.enqueue(number=0)]
    for worker in ("wait_apart", "wait_in_a_coroutine"):
        await mill.noted(worker)
    children = frozen.children()
    heir = await mill.up(mill.node())
    frozen.signal(signal.SIGSTOP)
    await until(lambda: gone(children), what=lambda: "its processes go on")
    assert len(mill.lines(what="start")) == 2, "they ended after somebody else had begun"
    for worker in ("wait_apart", "wait_in_a_coroutine"):
        await until(lambda worker=worker: len(mill.lines(worker, "start")) == 2, what=mill.logs)
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


async def test_a_node_that_was_frozen_within_its_lease_blames_no_job(mill: Mill) -> None:
    """Its processes have ended themselves, and the lease is still its own."""
    node = await mill.up(mill.node())
    job = await mill.module.wait_apart.enqueue(number=0)
    await mill.noted("wait_apart")
    children = node.children()
    for _ in range(4):
        node.signal(signal.SIGSTOP)
        await until(lambda children=children: gone(children))
        node.signal(signal.SIGCONT)
        before = len(mill.lines("wait_apart", "start"))
        await until(lambda before=before: len(mill.lines("wait_apart", "start")) > before, what=mill.logs)
        await asyncio.sleep(0)
        children = [psutil.Process(mill.lines("wait_apart", "start")[-1].pid)]
    mill.module.gate.touch()
    ended = await mill.ended(job)
    assert (ended.status, ended.attempt, ended.record.crashes) == (JobStatus.COMPLETED, 1, 0)
