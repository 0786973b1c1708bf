"""Runs that wait in a process that runs one at a time: only the one that has begun is to blame, and none is held up."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.job_parts import FlowFailure
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.runtime.running.job_run import Run
from shiftwork.runtime.running.runner import Runner

APP = """
import ctypes, os
from contextvars import ContextVar
from pathlib import Path
from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator("memory://")
app.register_pool("p", kind="process")
seen = ContextVar("seen", default=0)

@app.task(pool="p")
def note(number: int) -> int:
    before = seen.get()
    seen.set(number)
    return before

@app.task(pool="p")
async def note_on_the_loop(number: int) -> int:
    return note.function(number)

@app.task(pool="p")
def failures(number: int, ctx: Context) -> list[str]:
    return [f"{one.worker} {one.job_id}: {one.error}" for one in ctx.flow_failures]

@app.task(pool="p")
def abort(number: int) -> None:
    os.abort()

@app.task(pool="p")
def hold(number: int) -> None:
    "Keep the interpreter's lock until the test opens the other end."
    ctypes.PyDLL(None).open(bytes(Path(__file__).with_name("held")), os.O_RDONLY)
"""


class Turns:
    """A real process, and what becomes of the runs in it."""

    def __init__(self, folder: Path) -> None:
        self.begun: list[int] = []
        self.ends: dict[int, End] = {}
        self.blamed: list[int] = []
        self._changed = asyncio.Event()
        self.held = folder / "held"
        os.mkfifo(self.held)
        setup = Setup(app="turns:app", role="alone", path=[str(folder)])
        self.runner = RemoteRunner(setup, SystemClock(), report=lambda _job, _progress: None, kills=KilledJobs())
        self.runner.attach(self)

    def start(self, worker: str, number: int, failures: tuple[FlowFailure, ...] = ()) -> Run:
        payload = msgpack.encode({"number": number})
        job = Claimed(
            id=f"{number}", worker=worker, pool="p", payload=payload, fence=number, attempt=1, crashes=0, run_at=0.0
        )
        run = Run(replace(job, failures=failures), WorkerConfig(name=worker), 0.0, self)
        if self.runner.start(run):
            self.run_begun(run)
        return run

    async def release(self) -> None:
        """Let `hold` end, once it has begun."""
        os.close(await asyncio.to_thread(os.open, self.held, os.O_WRONLY))

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(60):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    def run_begun(self, run: Run) -> None:
        self.begun.append(int(run.job.id))
        self._changed.set()

    def run_ended(self, run: Run, end: End) -> None:
        self.ends[int(run.job.id)] = end
        self._changed.set()

    def runner_ready(self, _runner: Runner) -> None:
        self._changed.set()

    def runner_gone(self, _runner: Runner, suspects: Sequence[Run]) -> None:
        self.blamed += [int(run.job.id) for run in suspects]
        self._changed.set()


@pytest.fixture
async def turns(tmp_path: Path) -> AsyncIterator[Turns]:
    (tmp_path / "turns.py").write_text(APP)
    turns = Turns(tmp_path)
    yield turns
    turns.runner.kill("the test is over", at_once=True)
    await turns.until(lambda: turns.runner.dead)


async def test_runs_follow_each_other_and_only_the_one_that_has_begun_crashes(turns: Turns) -> None:
    await turns.until(lambda: turns.runner.ready)
    for number, worker in enumerate(["note", "note", "note_on_the_loop", "note", "abort", "note", "note"], 1):
        turns.start(worker, number)
    assert turns.begun == [1]
    assert turns.runner.waiting == 6
    await turns.until(lambda: turns.runner.dead and len(turns.ends) == 7)
    assert turns.begun == [1, 2, 3, 4, 5], "in order, each after the end of the one before it"
    kinds = [turns.ends[number].kind for number in range(1, 8)]
    assert kinds == [EndKind.RETURNED] * 4 + [EndKind.CRASHED] + [EndKind.DRAINED] * 2
    assert [turns.ends[number].result for number in range(1, 5)] == [msgpack.encode(0)] * 4, (
        "each has a context of its own"
    )
    assert turns.blamed == []


async def test_a_process_is_handed_what_failed_before_a_job(turns: Turns) -> None:
    await turns.until(lambda: turns.runner.ready)
    turns.start("failures", 1, (FlowFailure("fetch", "7", "OSError: no route"),))
    turns.start("failures", 2)
    await turns.until(lambda: len(turns.ends) == 2)
    assert msgpack.decode(turns.ends[1].result or b"") == ["fetch 7: OSError: no route"]
    assert msgpack.decode(turns.ends[2].result or b"") == []


async def test_what_waits_for_a_long_run_is_handed_back_although_the_process_does_not_react(turns: Turns) -> None:
    await turns.until(lambda: turns.runner.ready)
    turns.start("note", 1)
    for number, worker in enumerate(["hold", "note", "note"], 2):
        turns.start(worker, number)
    await turns.until(lambda: {1, 3, 4} <= turns.ends.keys())
    assert [turns.ends[number].kind for number in (1, 3, 4)] == [EndKind.RETURNED, EndKind.DRAINED, EndKind.DRAINED]
    assert turns.runner.waiting == 0
    turns.start("note", 5)
    turns.runner.drain()
    assert turns.ends[5].kind is EndKind.DRAINED
    await turns.release()
    await turns.until(lambda: 2 in turns.ends)
    assert turns.begun == [1, 2]
    turns.start("note", 6)  # what was withdrawn does not stand in its way
    await turns.until(lambda: 6 in turns.ends)
    assert turns.ends[6].kind is EndKind.RETURNED


async def test_a_run_that_waits_can_be_stopped_and_the_others_keep_their_turns(turns: Turns) -> None:
    await turns.until(lambda: turns.runner.ready)
    turns.start("hold", 1)
    stopped, _ = turns.start("note", 2), turns.start("note", 3)
    stopped.stopped_as = EndKind.CANCELLED
    turns.runner.stop(stopped)
    assert turns.ends[2].kind is EndKind.CANCELLED
    assert turns.runner.waiting == 1
    await turns.release()
    await turns.until(lambda: len(turns.ends) == 3)
    assert turns.ends[1].kind is EndKind.RETURNED
    assert turns.ends[3].kind in {EndKind.RETURNED, EndKind.DRAINED}, "it may have waited for too long"


async def test_the_next_run_begins_when_the_first_is_stopped_before_it_begins(turns: Turns) -> None:
    """Its deadline is watched from when its beginning is reported."""
    await turns.until(lambda: turns.runner.ready)
    os.kill(turns.runner.pid, signal.SIGSTOP)
    first, _ = turns.start("note", 1), turns.start("note", 2)
    first.stopped_as = EndKind.CANCELLED
    turns.runner.stop(first)
    os.kill(turns.runner.pid, signal.SIGCONT)
    await turns.until(lambda: len(turns.ends) == 2)
    assert (turns.ends[1].kind, turns.ends[2].kind) == (EndKind.CANCELLED, EndKind.RETURNED)
    assert turns.begun == [1, 2]
