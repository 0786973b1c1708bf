"""Timeouts, cancellation and memory limits really end the work, for each kind of pool."""

import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from shiftwork import JobStateError, JobStatus
from tests.polling import eventually
from tests.system.mill import Mill, gone, living

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mill]:
    """A mill with a node, for all tests whose jobs have names of their own in its log."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
            patch.setenv(name, "")
        it = Mill(tmp_path_factory.mktemp("mill"), lease=15.0)
        it.node()
        yield it
        it.end()


@pytest.fixture
async def shared(at_work: Mill) -> AsyncIterator[Mill]:
    """The mill at work, from the event loop of this test."""
    yield at_work
    await at_work.app.close()


async def test_a_timeout_ends_each_kind_of_work(shared: Mill) -> None:
    (node,) = shared.nodes
    jobs = {name: await getattr(shared.module, name).enqueue(number=0) for name in ("swallow", "oversleep", "ignore")}
    processes = living([(await shared.noted(name))[0].pid for name in jobs])
    processes += living([shared.lines("ignore")[0].number])  # it has started another one
    for name, job in jobs.items():
        ended = await shared.ended(job)
        assert ended.status is JobStatus.DEAD
        assert (ended.error or "").startswith("timed out after 1 s"), name
        assert name in (ended.history[-1].traceback or ""), "where it was stuck"
    await eventually(lambda: gone(processes), failure=lambda: f"{processes}\n{node.said}")
    naps = [
        await worker.enqueue(number=1, seconds=0.0)
        for worker in (shared.module.nap_apart, shared.module.nap_in_a_thread, shared.module.nap_in_a_coroutine)
    ]
    assert {job.status for job in await shared.all_ended(naps)} == {JobStatus.COMPLETED}


async def test_cancelling_a_running_job_ends_its_process(shared: Mill) -> None:
    job = await shared.module.endless.enqueue(number=0)
    (start,) = await shared.noted("endless")
    processes = living([start.pid])
    await shared.app.cancel_job(job.id)
    assert (await shared.ended(job)).status is JobStatus.CANCELLED
    await eventually(lambda: gone(processes))


async def test_a_suspect_can_be_cancelled(shared: Mill) -> None:
    jobs = [await shared.module.wait_in_a_coroutine.enqueue(number=number) for number in range(4)]
    await eventually(lambda: len(shared.lines("wait_in_a_coroutine", "start")) >= 4)
    os.kill(shared.lines("wait_in_a_coroutine")[0].pid, signal.SIGABRT)
    await eventually(
        lambda: len(shared.lines("wait_in_a_coroutine", "start")) >= 8, failure=shared.logs
    )  # all of them at once
    for job in jobs:
        await shared.app.cancel_job(job.id)
    ended = await shared.all_ended(jobs)
    assert {(job.status, job.record.crashes) for job in ended} == {(JobStatus.CANCELLED, 0)}


async def test_a_hungry_job_is_ended_with_the_figures(shared: Mill) -> None:
    job = await shared.ended(await shared.module.eat.enqueue(megabytes=200))
    assert job.status is JobStatus.DEAD
    assert "bytes of memory; max_memory_per_instance is 120,000,000" in (job.error or "")
    assert job.record.crashes == 0


async def test_a_process_that_has_grown_is_replaced_and_no_job_is_lost(shared: Mill) -> None:
    first = await shared.ended(await shared.module.leak.enqueue(number=0, megabytes=100))
    assert first.status is JobStatus.COMPLETED
    processes = living([shared.lines("leak")[0].pid])
    await eventually(lambda: gone(processes), failure=shared.logs)
    second = await shared.ended(await shared.module.leak.enqueue(number=1, megabytes=1))
    assert second.status is JobStatus.COMPLETED
    assert len({line.pid for line in shared.lines("leak")}) == 2


async def test_a_worn_process_is_replaced_and_no_job_is_lost(shared: Mill) -> None:
    jobs = await shared.app.enqueue_many([shared.module.wear.call(number=number) for number in range(20)])
    ended = await shared.all_ended(jobs)
    assert {(job.status, job.attempt) for job in ended} == {(JobStatus.COMPLETED, 1)}
    pids = [await job.result() for job in ended]
    assert max(pids.count(pid) for pid in pids) == 5


@pytest.mark.parametrize("name", ["big", "big_in_a_coroutine"])
async def test_large_payloads_and_results(shared: Mill, name: str) -> None:
    worker = getattr(shared.module, name)
    data = ["".join(chr(ord("a") + (n + k) % 26) for n in range(1_000)) * 1_000 for k in range(8)]
    jobs = await shared.app.enqueue_many([worker.call(data=text) for text in data])
    ended = await shared.all_ended(jobs)
    assert [await job.result() for job in ended] == [text[::-1] for text in data]


async def test_jobs_that_close_what_is_not_their_own_harm_only_themselves(shared: Mill) -> None:
    (node,) = shared.nodes
    jobs = [await shared.module.hang_up.enqueue(number=number) for number in range(2)]

    async def both_crashed() -> bool:
        return all([(await shared.job(job)).record.crashes for job in jobs])

    await eventually(both_crashed, failure=shared.logs)
    for job in jobs:
        (crash, *_) = (await shared.job(job)).history
        # libuv aborts when its own file descriptor is closed; asyncio raises an error
        assert re.search("closed its connection with the node|closes file descriptors", crash.error), crash.error
        with suppress(JobStateError):  # it may have crashed three times by now
            await shared.app.cancel_job(job.id)
    nap = await shared.ended(await shared.module.nap_apart.enqueue(number=0, seconds=0.0))
    assert nap.status is JobStatus.COMPLETED
    assert not node.over


async def test_a_process_that_talks_nonsense_is_ended_and_the_culprit_found(mill: Mill) -> None:
    node = await mill.up(mill.node())
    neighbours = [await mill.module.wait_in_a_coroutine.enqueue(number=number) for number in range(3)]
    await eventually(lambda: len(mill.lines("wait_in_a_coroutine", "start")) >= 3)
    job = await mill.module.babble.enqueue(number=0)
    await mill.noted("babble")
    await eventually(lambda: "sends garbage" in node.said, failure=mill.logs)
    mill.module.gate.touch()
    assert {it.status for it in await mill.all_ended(neighbours)} == {JobStatus.COMPLETED}
    ended = await mill.ended(job)
    assert (ended.status, ended.record.crashes) == (JobStatus.DEAD, 3)
    assert "its process wrote to its connection with the node" in (ended.error or "")
