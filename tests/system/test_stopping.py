"""SIGTERM under load: what can finish does, the rest is handed back untouched, and no process is left behind."""

import signal

import pytest

from shiftwork import JobStatus
from tests.polling import eventually
from tests.system.mill import Mill, gone, statuses

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


async def test_sigterm_under_load_loses_nothing_and_counts_nothing(mill: Mill) -> None:
    module = mill.module
    node = await mill.up(mill.node("--stop-timeout", "2s"))
    workers = [module.nap_apart, module.nap_in_a_thread, module.nap_in_a_coroutine, module.left, module.middle]
    jobs = await mill.app.enqueue_many(
        [workers[number % len(workers)].call(number=number, seconds=0.05) for number in range(100)]
    )
    stubborn = await mill.app.enqueue_many(
        [module.nap_apart.call(number=1000, seconds=600), module.nap_in_a_thread.call(number=1000, seconds=600)]
    )
    await eventually(lambda: len(mill.lines(what="end")) > 20, failure=mill.logs)
    children = node.children()
    node.signal(signal.SIGTERM)
    assert node.end() == 0, node.said  # though two of its jobs would take ten minutes
    assert gone(children)

    left = [await mill.job(job) for job in [*jobs, *stubborn]]
    assert statuses(left).keys() <= {JobStatus.COMPLETED, JobStatus.QUEUED}
    assert all(job.attempt == 0 and not job.record.crashes for job in left if job.status is JobStatus.QUEUED)
    heir = mill.node("--stop-timeout", "0")
    ended = await mill.all_ended(jobs)
    assert statuses(ended) == {JobStatus.COMPLETED: 100}
    assert {job.attempt for job in ended} == {1}
    assert not mill.lines(what="overlap")
    done = [line.number for line in mill.lines(what="end")]
    assert sorted(done) == list(range(100)), "some have run twice to the end"
    heir.signal(signal.SIGTERM)
    assert heir.end() == 0


async def test_the_second_signal_is_quick_whatever_runs(mill: Mill) -> None:
    module = mill.module
    node = await mill.up(mill.node("--stop-timeout", "600s"))
    jobs = await mill.app.enqueue_many(
        [module.endless.call(number=0), module.nap_in_a_thread.call(number=0, seconds=600)]
    )
    await mill.noted("endless")
    await mill.noted("nap_in_a_thread")
    children = node.children()
    node.signal(signal.SIGTERM)
    await eventually(lambda: "a second signal stops them now" in node.said)
    node.signal(signal.SIGTERM)
    assert node.end(within=30) == 0
    assert gone(children)
    assert [(job.status, job.attempt) for job in [await mill.job(job) for job in jobs]] == [(JobStatus.QUEUED, 0)] * 2


async def test_what_is_handed_back_begins_elsewhere_only_once_it_has_ended_here(mill: Mill) -> None:
    node = await mill.up(mill.node("--stop-timeout", "0"))
    job = await mill.module.wait_in_a_thread.enqueue(number=0)
    (start,) = await mill.noted("wait_in_a_thread")
    await mill.up(mill.node())

    async def the_other_is_there() -> bool:
        await mill.ended(await mill.module.nap_in_a_thread.enqueue(number=0, seconds=0.0))
        return any(line.pid != start.pid for line in mill.lines("nap_in_a_thread"))

    await eventually(the_other_is_there)
    node.signal(signal.SIGTERM)
    await eventually(lambda: len(mill.lines("wait_in_a_thread", "start")) >= 2, failure=mill.logs)
    mill.module.gate.touch()
    ended = await mill.ended(job)
    assert (ended.status, ended.attempt) == (JobStatus.COMPLETED, 1)
    assert not mill.lines(what="overlap")
    assert node.end() == 0


async def test_sigterm_while_it_starts(mill: Mill) -> None:
    node = mill.node()
    await eventually(lambda: " runs " in node.said, failure=lambda: node.said)
    children = node.children()
    node.signal(signal.SIGTERM)
    assert node.end() in {0, -signal.SIGTERM}, node.said
    await eventually(lambda: gone(children), within=30)
    assert not await mill.instances()
