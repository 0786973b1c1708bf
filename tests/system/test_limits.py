"""Timeouts, cancellation and memory limits really end the work, for each kind of pool."""

import os
import signal
from contextlib import suppress

import psutil
import pytest

from shiftwork import JobStatus
from tests.system.mill import Mill, alive, gone, until

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


async def test_a_timeout_ends_each_kind_of_work(mill: Mill) -> None:
    node = await mill.up(mill.node())
    jobs = {name: await getattr(mill.module, name).enqueue(number=0) for name in ("swallow", "oversleep", "ignore")}
    pids = {name: (await mill.noted(name))[0].pid for name in jobs}
    grandchild = psutil.Process(mill.lines("ignore")[0].number)
    processes = {name: psutil.Process(pid) for name, pid in pids.items()}
    for name, job in jobs.items():
        ended = await mill.ended(job)
        assert ended.status is JobStatus.DEAD
        assert (ended.error or "").startswith("timed out after 1 s"), name
        assert name in (ended.history[-1].traceback or ""), "where it was stuck"
    await until(lambda: gone([*processes.values(), grandchild]), what=lambda: f"{processes}\n{node.said}")
    naps = [
        await worker.enqueue(number=1, seconds=0.0)
        for worker in (mill.module.nap_apart, mill.module.nap_in_a_thread, mill.module.nap_in_a_coroutine)
    ]
    assert {job.status for job in await mill.all_ended(naps)} == {JobStatus.COMPLETED}


async def test_cancelling_a_running_job_ends_its_process(mill: Mill) -> None:
    await mill.up(mill.node())
    job = await mill.module.endless.enqueue(number=0)
    (start,) = await mill.noted("endless")
    process = psutil.Process(start.pid)
    await mill.app.cancel_job(job.id)
    assert (await mill.ended(job)).status is JobStatus.CANCELLED
    await until(lambda: gone([process]))


async def test_a_suspect_can_be_cancelled(mill: Mill) -> None:
    await mill.up(mill.node())
    jobs = [await mill.module.wait_in_a_coroutine.enqueue(number=number) for number in range(4)]
    await until(lambda: len(mill.lines("wait_in_a_coroutine", "start")) == 4)
    os.kill(mill.lines("wait_in_a_coroutine")[0].pid, signal.SIGABRT)
    await until(lambda: len(mill.lines("wait_in_a_coroutine", "start")) == 8, what=mill.logs)  # all of them at once
    for job in jobs:
        await mill.app.cancel_job(job.id)
    ended = await mill.all_ended(jobs)
    assert {(job.status, job.record.crashes) for job in ended} == {(JobStatus.CANCELLED, 0)}


async def test_a_hungry_job_is_ended_with_the_figures(mill: Mill) -> None:
    await mill.up(mill.node())
    job = await mill.ended(await mill.module.eat.enqueue(megabytes=200))
    assert job.status is JobStatus.DEAD
    assert "bytes of memory; max_memory_per_instance is 120,000,000" in (job.error or "")
    assert job.record.crashes == 0


async def test_a_process_that_has_grown_is_replaced_and_no_job_is_lost(mill: Mill) -> None:
    await mill.up(mill.node())
    first = await mill.ended(await mill.module.leak.enqueue(number=0, megabytes=100))
    assert first.status is JobStatus.COMPLETED
    process = None
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(mill.lines("leak")[0].pid)
    await until(lambda: process is None or not alive(process), what=mill.logs)
    second = await mill.ended(await mill.module.leak.enqueue(number=1, megabytes=1))
    assert second.status is JobStatus.COMPLETED
    assert len({line.pid for line in mill.lines("leak")}) == 2


async def test_a_worn_process_is_replaced_and_no_job_is_lost(mill: Mill) -> None:
    await mill.up(mill.node())
    jobs = await mill.app.enqueue_many([mill.module.wear.call(number=number) for number in range(20)])
    ended = await mill.all_ended(jobs)
    assert {(job.status, job.attempt) for job in ended} == {(JobStatus.COMPLETED, 1)}
    pids = [await job.result() for job in ended]
    assert max(pids.count(pid) for pid in pids) == 5


@pytest.mark.parametrize("name", ["big", "big_in_a_coroutine"])
async def test_large_payloads_and_results(mill: Mill, name: str) -> None:
    await mill.up(mill.node())
    worker = getattr(mill.module, name)
    data = ["".join(chr(ord("a") + (n + k) % 26) for n in range(1_000)) * 1_000 for k in range(8)]
    jobs = await mill.app.enqueue_many([worker.call(data=text) for text in data])
    ended = await mill.all_ended(jobs)
    assert [await job.result() for job in ended] == [text[::-1] for text in data]


async def test_jobs_that_close_what_is_not_their_own_harm_themselves_only(mill: Mill) -> None:
    node = await mill.up(mill.node())
    jobs = [await mill.module.hang_up.enqueue(number=number) for number in range(2)]

    async def both_crashed() -> bool:
        return all([(await mill.job(job)).record.crashes for job in jobs])

    await until(both_crashed, what=mill.logs)
    for job in jobs:
        (crash, *_) = (await mill.job(job)).history
        assert crash.error.startswith("its process closed its connection with the node"), "not killed from outside"
        await mill.app.cancel_job(job.id)
    nap = await mill.ended(await mill.module.nap_apart.enqueue(number=0, seconds=0.0))
    assert nap.status is JobStatus.COMPLETED
    assert not node.over


async def test_a_process_that_talks_nonsense_is_ended_and_the_culprit_found(mill: Mill) -> None:
    node = await mill.up(mill.node())
    neighbours = [await mill.module.wait_in_a_coroutine.enqueue(number=number) for number in range(3)]
    await until(lambda: len(mill.lines("wait_in_a_coroutine", "start")) == 3)
    job = await mill.module.babble.enqueue(number=0)
    await mill.noted("babble")
    await until(lambda: "sends garbage" in node.said, what=mill.logs)
    mill.module.gate.touch()
    assert {it.status for it in await mill.all_ended(neighbours)} == {JobStatus.COMPLETED}
    ended = await mill.ended(job)
    assert (ended.status, ended.record.crashes) == (JobStatus.DEAD, 3)
    assert "its process wrote to its connection with the node" in (ended.error or "")
