"""Deaths that can be proven: jobs of a dead neighbour come back at once, and nothing that lives is taken for dead."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from shiftwork import Context, JobStatus
from shiftwork.core.observing.beats import Beat, NodeBeat, ProcessMark
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.local_processes import OWNER, end_groups, is_dead, own_mark, owner_word, seen
from tests.polling import hold_thread, wait_until
from tests.runtime.stage import Stage

Starter = Callable[..., "subprocess.Popen[bytes]"]
HOURS = 36_000.0
"""A lease that does not end while a test runs."""


@pytest.fixture
def start() -> Iterator[Starter]:
    """Start a process in a session of its own, which is ended with all that it has started."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **environment: str) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen(command, env=os.environ | environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def own() -> ProcessMark:
    mark = own_mark()
    assert mark is not None
    return mark


def mark_of(pid: int) -> ProcessMark:
    found = seen(pid)
    assert found is not None
    return replace(own(), pid=pid, born=found.born)


def test_a_process_is_dead_once_it_has_ended_and_not_before(start: Starter) -> None:
    process = start("sleep", "600")
    mark = mark_of(process.pid)
    assert not is_dead(mark, own())
    process.send_signal(signal.SIGSTOP)
    assert not is_dead(mark, own()), "it is frozen, not dead"
    process.kill()
    wait_until(lambda: is_dead(mark, own()))  # though its parent has not been told yet
    process.wait()
    assert is_dead(mark, own())


def test_a_pid_that_another_process_has_now_proves_the_death(start: Starter) -> None:
    mark = mark_of(start("sleep", "600").pid)
    assert is_dead(replace(mark, born=mark.born - 1), own())


@pytest.mark.parametrize("change", [0, 1, 2, 3], ids=["boot", "pids", "time", "host"])
def test_nothing_is_proven_about_processes_elsewhere(change: int) -> None:
    words = own().place.split(" ")
    words[change] = "other"
    nobody = ProcessMark(" ".join(words), pid=2**22 - 7, born=1)
    assert is_dead(replace(nobody, place=own().place), own())
    assert not is_dead(nobody, own())


def test_without_proc_there_is_no_mark(tmp_path: Path) -> None:
    assert own_mark(tmp_path) is None


def test_a_proc_that_shows_other_pids_gives_no_mark(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("b\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    stat = Path("/proc/self/stat").read_text()
    (tmp_path / "self/stat").write_text(stat)
    assert own_mark(tmp_path) is not None
    (tmp_path / "self/stat").write_text(stat.replace(f"{os.getpid()} ", "1 ", 1))
    assert own_mark(tmp_path) is None


def test_what_a_dead_owner_has_left_is_ended_before_the_group_counts_as_empty(start: Starter) -> None:
    owner = replace(own(), pid=2**22 - 7)
    ours = start("sh", "-c", "sleep 600 & sleep 600 & wait", **{OWNER: owner_word(owner)})
    wait_until(lambda: len(group(ours.pid)) == 3)
    ours.kill()
    ours.wait()
    assert not end_groups([ours.pid], owner), "some were alive when it looked"
    wait_until(lambda: end_groups([ours.pid], owner))
    assert not group(ours.pid)


def test_what_does_not_belong_to_the_dead_owner_is_left_alone_and_in_doubt(start: Starter) -> None:
    owner = replace(own(), pid=2**22 - 7)
    stranger = start("sleep", "600", **{OWNER: "1.1"})
    assert not end_groups([stranger.pid], owner)
    hold_thread(0.05)
    assert stranger.poll() is None
    assert end_groups([], owner)


def test_a_group_that_is_hidden_or_has_only_ended_processes(start: Starter, tmp_path: Path) -> None:
    owner, member = replace(own(), pid=2**22 - 7), start("sleep", "600")
    assert not end_groups([member.pid], owner, tmp_path), "this /proc shows nothing, but the group is there"
    member.kill()
    wait_until(lambda: end_groups([member.pid], owner), failure=lambda: "an ended process counts as alive")
    member.wait()
    assert end_groups([member.pid], owner, tmp_path)


def group(number: int) -> list[int]:
    """The living members of a process group."""
    found = [seen(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [one.pid for one in found if one is not None and one.group == number and not one.ended]


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def act(ctx: Context) -> None:
    """Do nothing."""


async def appear(stage: Stage, clock: ManualClock, mark: ProcessMark | None, *, children: tuple[int, ...] = ()) -> None:
    """Another node leads, and has claimed what is queued, under a lease of hours."""
    machine = NodeBeat(host=socket.gethostname(), cores=1.0, memory=1, pools=("default",))
    shared: dict[str, Any] = {"node": "other", "apart": True, "workers": ("act",)}
    node = Beat(instance="other/leader", pool="", slots=0, machine=machine, process=mark, children=children, **shared)
    instance = Beat(instance="other/default#1", pool="default", slots=5, **shared)
    await stage.store.beat([node, instance], HOURS, clock.now())
    assert await stage.store.hold("leader", "other", 1, HOURS, clock.now())
    assert (await stage.store.claim("other/default#1", "default", 5, clock.now(), ["act"])).jobs


async def test_a_node_takes_back_the_jobs_of_a_dead_neighbour_when_it_starts(
    stage: Stage, clock: ManualClock, start: Starter
) -> None:
    process = start("sleep", "600")
    mark = mark_of(process.pid)
    app = stage.app()
    job = await app.register_worker("act", act, execution_mode="triggered").enqueue()
    await appear(stage, clock, mark)
    process.kill()
    process.wait()
    await app.start()
    await clock.advance(1.0)
    ended = await app.get_job(job.id)
    assert (ended.status, ended.attempt, ended.crashes) == (JobStatus.COMPLETED, 1, 0)
    assert [attempt.kind for attempt in ended.history] == ["lost"]
    events = {event.name: event.message for event in await app.events()}
    assert events["node.lost"] == "node other is lost: its process has died"
    assert "leader.elected" in events


async def test_a_node_that_survives_takes_back_the_jobs_of_a_neighbour_that_dies(
    stage: Stage, clock: ManualClock, start: Starter
) -> None:
    process = start("sleep", "600")
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    stage.bench(app)
    job = await worker.enqueue()
    await clock.advance(0.1)
    await appear_beside(stage, clock, mark_of(process.pid))
    await clock.advance(10.0)
    assert (await app.get_job(job.id)).status is JobStatus.PROCESSING, "its neighbour lives"
    process.kill()
    process.wait()
    await clock.advance(1.5)
    assert (await app.get_job(job.id)).status is JobStatus.QUEUED


async def test_jobs_of_a_node_that_another_one_has_buried_did_not_crash(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    job = await app.register_worker("act", act, execution_mode="triggered").enqueue()
    await appear(stage, clock, own())
    await app.start()
    await stage.store.leave(["other/leader", "other/default#1"], clock.now())
    await stage.store.drop("leader", "other")
    await clock.advance(5.0)
    ended = await app.get_job(job.id)
    assert (ended.status, ended.crashes) == (JobStatus.COMPLETED, 0)
    assert [attempt.kind for attempt in ended.history] == ["lost"]


async def appear_beside(stage: Stage, clock: ManualClock, mark: ProcessMark) -> None:
    shared: dict[str, Any] = {"node": "other", "apart": True, "workers": ("act",)}
    node = Beat(instance="other/leader", pool="", slots=0, process=mark, **shared)
    instance = Beat(instance="other/default#1", pool="default", slots=5, **shared)
    await stage.store.beat([node, instance], HOURS, clock.now())
    assert (await stage.store.claim("other/default#1", "default", 5, clock.now(), ["act"])).jobs


@pytest.mark.parametrize("why", ["it lives", "it is elsewhere", "it cannot tell", "its jobs go on"])
async def test_no_job_is_taken_whose_death_is_not_proven(
    stage: Stage, clock: ManualClock, start: Starter, why: str
) -> None:
    process, straggler = start("sleep", "600"), start("sleep", "600")
    mark: ProcessMark | None = mark_of(process.pid)
    assert mark is not None
    if why == "it is elsewhere":
        mark = replace(mark, place="another machine", pid=2**22 - 7)
    elif why == "it cannot tell":
        mark = None
    if why == "its jobs go on":
        process.kill()
        process.wait()
    app = stage.app()
    job = await app.register_worker("act", act, execution_mode="triggered").enqueue()
    await appear(stage, clock, mark, children=(straggler.pid,))
    await app.start()
    await clock.advance(20.0)
    assert (await app.get_job(job.id)).status is JobStatus.PROCESSING
    if why == "its jobs go on":
        straggler.kill()
        straggler.wait()
        await clock.advance(2.0)
        assert (await app.get_job(job.id)).status is JobStatus.COMPLETED
