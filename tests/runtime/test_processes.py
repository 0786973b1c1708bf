"""The node's side of its processes, and theirs: nothing hangs, nothing leaks, nothing runs twice."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from fcntl import fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_parts import RunOptions
from shiftwork.core.model.jobs import Claimed, JobStatus, Progress
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.runtime.claiming.instance_services import UnaskedHandBacks
from shiftwork.runtime.claiming.runs import JobEnder, Runs
from shiftwork.runtime.clock import ManualClock, SystemClock
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.processes import hook_process as hook_process_module
from shiftwork.runtime.processes import started_process
from shiftwork.runtime.processes.child_process import ChildProcess
from shiftwork.runtime.processes.handover import NodeEnd, ProcessEnd
from shiftwork.runtime.processes.hook_process import HookProcess
from shiftwork.runtime.processes.host import Host
from shiftwork.runtime.processes.link import Link
from shiftwork.runtime.processes.messages import (
    Definition,
    Exit,
    LookAgain,
    NodeFrame,
    Pong,
    ProcessFrame,
    Progressed,
    Ready,
    RunEnded,
    Setup,
    Start,
    Stop,
)
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.quarantine import LONG_CELL_SECONDS, LONGEST_CELL_WAIT_SECONDS, Quarantine
from shiftwork.runtime.processes.remote_runner import ProcessRole, RemoteRunner
from shiftwork.runtime.processes.spawn import SpawnedProcess
from shiftwork.runtime.processes.started_process import (
    APP_IMPORT_SECONDS,
    STUBBORN_SECONDS,
    StartedProcess,
    Termination,
)
from shiftwork.runtime.running.job_run import LocalRun, Run, RunOwner
from shiftwork.runtime.running.local_runner import LocalRunner, context_services
from shiftwork.runtime.running.runner import Runner, RunnerListener
from shiftwork.store.memory import MemoryStore
from shiftwork.testing.contexts import MadeValues
from tests.polling import eventually, pass_time


def claimed(number: int = 1, **changes: Any) -> Claimed:
    facts = {"crashes": 0, **changes}
    return Claimed(
        id=f"job-{number}", worker="nap", pool="p", payload=b"\x80", fence=number, attempt=1, run_at=0.0, **facts
    )


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("broken", ["truncate", "Popen", "pidfd_open"])
async def test_a_process_that_cannot_be_started_leaves_nothing_behind(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_more: Any) -> None:
        raise OSError(24, "Too many open files")

    children: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            children.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(subprocess if broken == "Popen" else os, broken, fail)
    before = open_files()
    for _ in range(3):
        with pytest.raises(OSError, match="Too many"):
            StartedProcess(on_frames=lambda _: None, on_ended=lambda _: None, longest=1_000)
    assert open_files() == before
    assert all(child.returncode is not None for child in children)


async def test_a_process_that_has_ended_leaves_nothing_behind() -> None:
    before = open_files()
    over = asyncio.Event()
    process = StartedProcess(on_frames=lambda _: None, on_ended=lambda _: over.set(), longest=1_000)
    process.kill()
    await over.wait()
    assert open_files() == before


async def test_a_process_that_lives_on_without_its_connection_is_killed_and_the_reason_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(started_process, "SPEECHLESS_SECONDS", 0.05)
    spawned: list[SpawnedProcess] = []
    statuses: list[int] = []

    def start(on_failure: ExitStack) -> SpawnedProcess:
        spawned.append(SpawnedProcess(on_failure))
        os.kill(spawned[0].pid, signal.SIGSTOP)  # it cannot notice
        return spawned[0]

    process = StartedProcess(on_frames=lambda _: None, on_ended=statuses.append, longest=1_000, host=Host(start=start))
    assert process.severed is None
    spawned[0].socket.shutdown(socket.SHUT_RDWR)
    await eventually(lambda: statuses)
    assert statuses == [-signal.SIGKILL]
    assert process.severed == started_process.CUT_OFF_WORDS


async def test_killing_a_process_ends_what_it_has_started_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    over = asyncio.Event()

    def start(on_failure: ExitStack) -> SpawnedProcess:
        spawned = SpawnedProcess(on_failure)
        monkeypatch.setattr(spawned, "end_group", lambda: ended.append(True))
        return spawned

    process = StartedProcess(
        on_frames=lambda _: None, on_ended=lambda _: over.set(), longest=1_000, host=Host(start=start)
    )
    process.kill()
    assert ended == [True]
    await over.wait()
    assert ended == [True] * 2, "what it has started meanwhile"
    process.kill()
    assert ended == [True] * 2, "the number of the group may belong to others by now"


async def test_processes_of_a_node_with_very_many_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.py").write_text(
        "from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('sqlite:///tiny.db')\napp.on('*', print)\n"
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 4096, hard))
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        setup = Setup(app="tiny:app", role="hooks", path=[str(tmp_path)])
        hook_process = HookProcess(setup, SystemClock())
        definition = await hook_process.describe()
        assert definition.hooks == ("*",)
        await pass_time(0.2)  # it must not end by itself
        assert hook_process.alive
        await hook_process.drain()
    finally:
        for fd in many:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_events_wait_for_the_process_that_replaces_a_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "heard.py").write_text(
        "import os\n"
        "from pathlib import Path\n"
        "from shiftwork import WorkerOrchestrator\n"
        "app = WorkerOrchestrator('memory://')\n"
        "@app.on('job.dead')\n"
        "def hear(event):\n"
        "    if event.subject == 'poison': os._exit(7)\n"
        "    with Path(__file__).with_suffix('.txt').open('a') as file: file.write(f'{event.subject}\\n')\n"
    )
    heard = tmp_path / "heard.txt"
    monkeypatch.setattr(hook_process_module, "HOOK_RESTART_SECONDS", 0.05)
    monkeypatch.setattr(hook_process_module, "MOST_KEPT", 3)
    process = HookProcess(Setup(app="heard:app", role="hooks", path=[str(tmp_path)]), SystemClock())
    await process.describe()
    process.fire(dead("poison"))
    await eventually(lambda: not process.alive)
    for number in range(50):
        process.fire(dead(f"{number}"))
    await eventually(lambda: heard.exists() and heard.read_text() == "0\n1\n2\n")
    await process.drain()
    assert [line for line in caplog.messages if "hooks" in line] == [
        "the process that calls the hooks exited with status 7; starting it again in 0.05 s",
        "the hooks of heard:app do not keep up; they are not called for 1 event, the latest: 3 is dead",
    ]


async def test_a_hook_process_is_started_again_however_often_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    wanted = 1_100  # 2.0 ** 1024 is more than a float can hold
    starts: list[StartedProcess] = []
    enough = asyncio.Event()

    class DyingProcess:
        """Imports the app the first time, and then never again, until it was started often enough."""

        def __init__(
            self, *, on_frames: Callable[[Sequence[ProcessFrame]], None], on_ended: Callable[[int], None], longest: int
        ) -> None:
            self._ended = on_ended
            starts.append(cast("StartedProcess", self))
            if len(starts) == 1:
                loop.call_soon(on_frames, [ProcessFrame([DEFINITION])])
            if len(starts) == 3:
                message = "out of memory"
                raise OSError(message)
            if len(starts) < wanted:
                loop.call_soon(on_ended, 1)
            else:
                enough.set()

        def send(self, message: object) -> None:
            if isinstance(message, Exit):
                loop.call_soon(self._ended, 0)

        def last_words(self) -> str:
            return ""

        def kill(self) -> None: ...

    monkeypatch.setattr(hook_process_module, "StartedProcess", DyingProcess)
    monkeypatch.setattr(hook_process_module, "HOOK_RESTART_SECONDS", 0.0)
    process = HookProcess(Setup(app="dying:app", role="hooks", path=[]), SystemClock())
    await process.describe()
    async with asyncio.timeout(30):
        await enough.wait()
    await process.drain()
    assert len(starts) == wanted


DEFINITION = Definition(
    store="memory://",
    namespace="default",
    tick_interval=1.0,
    lease_seconds=15.0,
    health_checks=True,
    workers=[],
    pools=[],
    gates={},
    max_payload_bytes=1_000,
    schemas={},
    hooks=("*",),
)


def dead(subject: str) -> Event:
    return Event(at=0.0, name="job.dead", subject=subject, message=f"{subject} is dead")


# ── talking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", [b"\x05\x00\x00\x00hello", b"\xff\xff\xff\xff", b"\x01\x00\x00\x00\xc1"])
async def test_a_process_that_talks_nonsense_is_disconnected(words: bytes) -> None:
    ours, theirs = socket.socketpair()
    gone = asyncio.Event()
    received: list[ProcessFrame] = []
    link: Link[ProcessFrame] = Link(ours, ProcessFrame, on_frames=received.extend, on_closed=gone.set, wrap=NodeFrame)
    theirs.send(words)
    async with asyncio.timeout(30):
        await gone.wait()
    assert link.closed
    assert not received
    link.send(ProcessFrame([]))  # harmless
    theirs.close()


async def test_a_connection_that_a_job_has_closed_ends_quietly() -> None:
    ours, theirs = socket.socketpair()
    gone = asyncio.Event()
    link: Link[ProcessFrame] = Link(ours, ProcessFrame, on_frames=lambda _: None, on_closed=gone.set, wrap=NodeFrame)
    os.close(ours.fileno())
    link.send(ProcessFrame([]))
    link.flush()
    assert gone.is_set()
    theirs.close()


class Callee(MadeValues):
    config = WorkerConfig(name="nap")
    is_async = True
    retry_rule = None
    schema: bytes | None = None

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[int] = []

    async def function(self, number: int) -> None:
        self.ran.append(number)

    def bind(self, _payload: bytes, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (context.fence,), {}

    def encode_result(self, _value: Any) -> bytes | None:
        return None

    def discreet(self, _payload: bytes, text: str, _values: Sequence[bytes] = ()) -> str:
        return text


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    theirs, ours = socket.socketpair()
    yield theirs, ours
    theirs.close()
    ours.close()


def told(sock: socket.socket, *messages: Any) -> None:
    body = msgpack.encode(NodeFrame(list(messages)))
    sock.send(len(body).to_bytes(4, "little") + body)


async def a_while() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


class Given:
    """Runs that are given to an instance, over both ends of the handover."""

    def __init__(self) -> None:
        self.node = NodeEnd()
        self.process = ProcessEnd(self.node.tokens, self.node.page)
        self.node.close_page()

    def __call__(self, job: Claimed) -> Start:
        start = Start(job, *self.node.give())
        self.node.write()
        return start


@pytest.fixture
def given() -> Iterator[Given]:
    given = Given()
    yield given
    given.process.close()
    given.node.close()


async def no_store() -> MemoryStore:
    return MemoryStore()


async def test_nothing_is_done_before_sending_once_a_connection_is_closed() -> None:
    """The tokens of runs would be written to whatever has the number of the closed pipe by then."""
    theirs, ours = socket.socketpair()
    written: list[str] = []
    link: Link[NodeFrame] = Link(
        ours,
        NodeFrame,
        on_frames=lambda _: None,
        on_closed=lambda: None,
        wrap=ProcessFrame,
        before_send=lambda: written.append("tokens"),
    )
    link.send(RunEnded("1", 1, End(EndKind.RETURNED)))
    link.close()
    await a_while()
    assert written == []
    theirs.close()


async def test_what_is_delivered_arrives_whole_and_behind_what_was_sent_before() -> None:
    """Also where the socket has room for a part of it only."""
    theirs, ours = socket.socketpair()
    link: Link[NodeFrame] = Link(ours, NodeFrame, on_frames=lambda _: None, on_closed=lambda: None, wrap=ProcessFrame)
    large = RunEnded("2", 2, End(EndKind.RAISED, error="x" * 2_000_000))
    ends = [RunEnded("1", 1, End(EndKind.RETURNED)), large, large, RunEnded("3", 3, End(EndKind.RETURNED))]

    def read() -> list[Any]:
        heard: list[Any] = []
        with theirs.makefile("rb") as stream:
            while len(heard) < len(ends):
                body = stream.read(int.from_bytes(stream.read(4), "little"))
                heard += msgpack.decode(body, type=ProcessFrame).messages
        return heard

    reading = asyncio.get_running_loop().run_in_executor(None, read)
    link.send(ends[0])
    for end in ends[1:]:
        link.deliver(end)
    assert await reading == ends
    link.close()
    theirs.close()


async def test_what_the_node_has_taken_back_is_not_begun(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    instance, callee = ChildProcess(ours, given.process), Callee()
    instance.serve({"nap": callee}, no_store, Middleware(), alone=False)
    told(theirs, given(claimed(1)), given(claimed(2)))
    assert given.node.take_back() == [1, 2]  # before it has read any of them
    told(theirs, given(claimed(3)))
    await eventually(lambda: callee.ran != [])
    await a_while()
    assert callee.ran == [3]
    assert [given.node.began(n - 1) is None for n in (1, 2, 3)] == [True, True, False]
    instance.link.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set")
async def test_runs_whose_tokens_were_away_begin_when_they_are_back(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    fcntl(given.node.tokens, 1031, 1)  # F_SETPIPE_SZ: room for some of the tokens
    instance, callee = ChildProcess(ours, given.process), Callee()
    instance.serve({"nap": callee}, no_store, Middleware(), alone=False)
    numbers = [*range(1, 1_001)]
    told(theirs, *[given(claimed(number)) for number in numbers])
    await eventually(lambda: len(callee.ran) >= 256)
    await a_while()
    assert 0 < len(callee.ran) < 1_000
    given.node.write()
    told(theirs, LookAgain())
    await eventually(lambda: callee.ran == numbers)
    instance.link.close()


class PlainCallee(Callee):
    """A plain function, which holds up its thread."""

    is_async = False

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def function(self, number: int) -> None:  # type: ignore[override]
        self.ran.append(number)
        assert self.go_on.wait(30)


@pytest.mark.parametrize("callee", [Callee(), PlainCallee()], ids=["coroutine", "plain"])
async def test_a_run_that_is_told_to_stop_before_it_begins_does_not_begin(callee: Callee) -> None:
    clock, ended = SystemClock(), asyncio.Event()
    services = context_services(no_store, clock, report=lambda _job, _progress: None, middleware=Middleware())
    runner, ends = LocalRunner({"nap": callee}, services, gives_up=False), []

    class Owner:
        def run_begun(self, run: Run) -> None: ...

        def run_ended(self, _run: Run, end: End) -> None:
            ends.append(end.kind)
            ended.set()

    run = LocalRun(claimed(1), callee.config, clock.now(), Owner())
    run.stopped_as = EndKind.CANCELLED
    runner.start(run)
    async with asyncio.timeout(30):
        await ended.wait()
    runner.close()
    assert (ends, callee.ran, runner.began(run)) == ([EndKind.CANCELLED], [], None)


async def test_a_run_that_a_thread_has_just_taken_can_be_stopped(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    plain, coroutine, preparing = PlainCallee(), Callee(), threading.Event()

    class Callees(dict[str, Callee]):
        def get(self, worker: str, default: Any = None) -> Any:
            if worker == "late":  # the thread has taken the run, and makes it
                preparing.set()
                time.sleep(0.2)
            return super().get(worker, default)

    instance = ChildProcess(ours, given.process)
    instance.serve(Callees({"nap": plain, "late": coroutine}), no_store, Middleware(), alone=True)
    late = replace(claimed(2), worker="late")
    told(theirs, given(claimed(1)), given(late))
    await eventually(lambda: plain.ran != [])
    plain.go_on.set()
    assert preparing.wait(30)  # without a turn of the event loop, so that the message is next
    told(theirs, Stop(late.id, late.fence, EndKind.CANCELLED))
    said = b""
    while said.count(b"job-2") == 0:
        said += await asyncio.to_thread(theirs.recv, 100_000)
    assert b"cancelled" in said
    assert coroutine.ran == []
    instance.link.close()


async def test_an_end_that_does_not_fit_into_a_message_is_reported_all_the_same(
    ends: tuple[socket.socket, socket.socket], given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    theirs, ours = ends

    class Wordy(Callee):
        def encode_result(self, _value: Any) -> bytes:
            return b"r" * 5_000

    instance = ChildProcess(ours, given.process)
    instance.link.longest = 1_000
    instance.serve({"nap": Wordy()}, no_store, Middleware(), alone=False)
    told(theirs, given(claimed(1)))
    said = b""
    while b"RunEnded" not in said:
        said += await asyncio.to_thread(theirs.recv, 100_000)
    assert b"unencodable" in said
    assert b"its end cannot be reported to the node" in said
    instance.send(Progressed("job-1", 1, Progress(1.0, 2.0, "m" * 5_000, 0.0)))
    instance.link.flush()
    assert "cannot send a Progressed message" in caplog.text
    instance.link.close()


async def test_a_frame_of_the_greatest_length_arrives_and_a_longer_one_is_refused() -> None:
    message, longer = (Progressed("job-1", 1, Progress(1.0, 2.0, "m" * n, 0.0)) for n in (500, 501))
    arrived: list[ProcessFrame] = []
    refused: list[object] = []
    options: Any = {
        "on_closed": lambda: pytest.fail("the connection is closed"),
        "on_refused": lambda which, _why: refused.append(which),
        "longest": len(msgpack.encode(ProcessFrame([message]))),
    }
    near, far = socket.socketpair()
    sender = Link(near, NodeFrame, on_frames=lambda _: None, wrap=ProcessFrame, **options)
    receiver = Link(far, ProcessFrame, on_frames=arrived.extend, wrap=NodeFrame, **options)
    for one in (message, longer):
        sender.send(one)
        sender.flush()
    await eventually(lambda: arrived)
    assert (arrived, refused) == ([ProcessFrame([message])], [longer])
    sender.close()
    receiver.close()


async def test_a_job_that_comes_back_before_its_run_has_ended_ends_too(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    over = [asyncio.Event(), asyncio.Event()]

    class Slow(Callee):
        async def function(self, number: int) -> None:
            self.ran.append(number)
            await over[number - 1].wait()

    instance, callee = ChildProcess(ours, given.process), Slow()
    instance.serve({"nap": callee}, no_store, Middleware(), alone=False)
    for fence in (1, 2):
        told(theirs, given(replace(claimed(1), fence=fence)))
        await eventually(lambda fence=fence: callee.ran[-1:] == [fence])  # type: ignore[misc]
    for event in over:
        event.set()
        await a_while()
    assert theirs.recv(100_000).count(b"RunEnded") == 2
    instance.link.close()


async def test_a_process_runs_a_job_with_the_job_s_own_limits(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    seen: list[tuple[int, float | None]] = []

    class Looking(Callee):
        def bind(self, _payload: bytes, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            seen.append((context.worker.max_retries, context.timeout_seconds))
            return super().bind(_payload, context)

    instance = ChildProcess(ours, given.process)
    instance.serve({"nap": Looking()}, no_store, Middleware(), alone=False)
    own = RunOptions(max_retries=9, timeout_seconds=7.0).packed()
    told(theirs, given(claimed(1, options=own)), given(claimed(2)))
    await eventually(lambda: len(seen) == 2)
    assert seen == [(9, 7.0), (3, 60.0)]
    instance.link.close()


async def test_a_worker_that_the_process_does_not_know_fails_alone(
    ends: tuple[socket.socket, socket.socket], given: Given
) -> None:
    theirs, ours = ends
    instance, callee = ChildProcess(ours, given.process), Callee()
    instance.serve({"nap": callee}, no_store, Middleware(), alone=False)
    stranger = Claimed(id="x", worker="stranger", pool="p", payload=b"", fence=9, attempt=1, crashes=0, run_at=0.0)
    told(theirs, given(stranger), given(claimed(2)))
    await eventually(lambda: callee.ran == [2])
    await a_while()
    said = theirs.recv(100_000)
    assert b"worker stranger is not registered in the app" in said
    instance.link.close()


# ── quarantine ───────────────────────────────────────────────────────────────────────────────────────────────────────


class PlayedRunner:
    """A process of the quarantine, played by the test."""

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self.ready = self.dead = False
        self.error = "no such luck"
        self.open = False
        self.runs: list[Run] = []
        self.until: float | None = None
        self.listener: RunnerListener | None = None

    def attach(self, listener: RunnerListener) -> None:
        self.listener = listener

    def is_ready(self) -> None:
        self.ready = self.open = True
        assert self.listener is not None
        self.listener.runner_ready(cast("Runner", self))

    def start(self, run: Run) -> None:
        assert self.open
        assert self.shared or not self.runs
        self.runs.append(run)

    def stop(self, run: Run) -> None: ...

    def look(self, memory_limit: int | None) -> None: ...

    def close(self) -> None:
        self.open = False

    def renewed(self, until: float) -> None:
        self.until = until

    def end(self, end: End) -> None:
        run = self.runs.pop(0)
        run.ended = True
        run.owner.run_ended(run, end)

    def die(self) -> None:
        self.dead, self.open = True, False
        assert self.listener is not None
        suspects = self.runs if self.shared else []
        if self.runs and not self.shared:
            self.end(End(EndKind.CRASHED))
        self.listener.runner_gone(cast("Runner", self), suspects)


class Ward:
    """A quarantine whose runners are played; it owns the runs that it puts there."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.runners: list[PlayedRunner] = []
        self.begun: list[str] = []
        self.ends: list[tuple[str, EndKind]] = []
        self.gone = 0
        self.refuses = False
        self.quarantine = Quarantine(
            self._start, self.clock, cells=2, memory_limit=lambda _: None, on_gone=self._changed
        )

    def _start(self, role: ProcessRole) -> Runner:
        if self.refuses:
            raise OSError(11, "no more processes")
        self.runners.append(PlayedRunner(shared=role == "shared"))
        return cast("Runner", self.runners[-1])

    def _changed(self) -> None:
        self.gone += 1

    def run_begun(self, run: Run) -> None:
        self.begun.append(run.job.id)

    def run_ended(self, run: Run, end: End) -> None:
        self.ends.append((run.job.id, end.kind))

    def take(self, *numbers: int, timeout: float | None = None) -> None:
        config = WorkerConfig(name="nap", timeout_seconds=timeout)
        self.take_again([Run(claimed(number), config, 0.0, self) for number in numbers])

    def take_again(self, runs: Sequence[Run]) -> None:
        self.quarantine.take(runs, self.take_again)

    def begin(self) -> None:
        """Let every process that was started get ready."""
        for runner in list(self.runners):
            if not runner.ready:
                runner.is_ready()

    @property
    def running(self) -> list[str]:
        return [run.job.id for runner in self.runners if not runner.dead for run in runner.runs]


async def test_a_process_that_is_being_ended_gets_no_suspect() -> None:
    ward = Ward()
    ward.take(1)
    ward.take(2)
    ward.take(3)
    ward.runners[0].is_ready()
    ward.runners[1].is_ready()
    ward.runners[0].open = False  # it is being killed, and its run ends by itself meanwhile
    ward.runners[0].end(End(EndKind.TIMED_OUT))
    assert ward.running == ["job-2"]
    ward.runners[0].die()
    assert len(ward.runners) == 3
    ward.runners[2].is_ready()
    assert ward.running == ["job-2", "job-3"]


async def test_those_that_died_together_all_run_again_at_once() -> None:
    ward = Ward()
    ward.take(*range(1, 21))
    ward.begin()
    assert len(ward.runners) == 2
    assert ward.running == ward.begun == [f"job-{number}" for number in range(1, 21)]


async def test_halving_finds_the_one_that_kills_its_process() -> None:
    ward = Ward()
    ward.take(*range(1, 21))
    for _ in range(20):
        ward.begin()
        deadly = [runner for runner in ward.runners if not runner.dead and "job-7" in ward_ids(runner)]
        if not deadly:
            break
        deadly[0].die()
        await ward.clock.advance(LONG_CELL_SECONDS)  # the others go on, and are in nobody's way
        ward.quarantine.look()
    assert ward.ends == [("job-7", EndKind.CRASHED)], "it alone is to blame"
    for _ in range(20):
        ward.begin()
        for runner in ward.runners:
            while runner.runs and not runner.dead:
                runner.end(End(EndKind.RETURNED))
    assert sorted(job_id for job_id, kind in ward.ends if kind is EndKind.RETURNED) == sorted(
        f"job-{number}" for number in range(1, 21) if number != 7
    )


def ward_ids(runner: PlayedRunner) -> list[str]:
    return [run.job.id for run in runner.runs]


async def test_one_that_still_waits_is_stopped_at_once_and_the_others_wait_on() -> None:
    ward = Ward()
    ward.take(1, 2, 3, 4)
    waiting = Run(claimed(5), WorkerConfig(name="nap"), 0.0, ward)
    ward.take_again([Run(claimed(6), WorkerConfig(name="nap"), 0.0, ward), waiting])
    waiting.stopped_as = EndKind.CANCELLED
    ward.quarantine.stop(waiting)
    assert waiting.ended
    assert ward.ends == [("job-5", EndKind.CANCELLED)]
    while ward.begun != ["job-1", "job-2", "job-3", "job-4", "job-6"]:
        ward.begin()
        ward.runners[0].end(End(EndKind.RETURNED))
        await ward.clock.advance(LONG_CELL_SECONDS)
        ward.quarantine.look()
    assert ("job-5", EndKind.DRAINED) not in ward.ends


async def test_what_is_closed_lets_its_processes_go_and_keeps_no_timer() -> None:
    ward = Ward()
    ward.take(1)
    ward.begin()
    ward.runners[0].end(End(EndKind.RETURNED))  # from now on it waits for the next suspects
    ward.refuses = True
    ward.take(2, 3)
    ward.quarantine.close()
    assert not ward.runners[0].open
    await ward.clock.advance(600.0)
    assert ward.ends == [("job-1", EndKind.RETURNED)], "nothing happens after the end"


async def test_of_those_that_wait_the_short_ones_come_first() -> None:
    ward = Ward()
    ward.take(1)
    ward.take(2)
    ward.begin()
    ward.take(3, timeout=600.0)
    ward.take(4, timeout=5.0)
    for _ in range(2):
        ward.runners[0].end(End(EndKind.RETURNED))
    assert ward.begun == ["job-1", "job-2", "job-4", "job-3"]


async def test_waiting_runs_do_not_wait_for_a_nights_work() -> None:
    ward = Ward()
    for number in range(1, 4):
        ward.take(number)
    for runner in list(ward.runners):
        runner.is_ready()
    assert ward.running == ward.begun == ["job-1", "job-2"]
    await ward.clock.advance(LONG_CELL_SECONDS + 1)
    ward.quarantine.look()
    ward.runners[-1].is_ready()
    assert ward.running == ["job-1", "job-2", "job-3"]


async def test_suspects_for_whom_no_process_can_be_started_are_handed_back_ever_more_slowly() -> None:
    ward = Ward()
    ward.refuses = True
    waits = []
    for number in range(1, 10):
        ward.take(number)
        began = ward.clock.now()
        while len(ward.ends) < number:
            await ward.clock.advance(0.5)
        waits.append(ward.clock.now() - began)
    assert {kind for _, kind in ward.ends} == {EndKind.DRAINED}
    assert waits == sorted(waits)
    assert waits[0] <= 2
    assert waits[-1] == LONGEST_CELL_WAIT_SECONDS
    ward.refuses = False
    ward.take(10)
    ward.runners[-1].is_ready()
    assert ward.running == ["job-10"]


async def test_suspects_whose_process_cannot_begin_are_handed_back(caplog: pytest.LogCaptureFixture) -> None:
    ward = Ward()
    ward.take(1)
    ward.runners[0].die()
    assert "cannot start a process for jobs in quarantine: no such luck" in caplog.text
    assert not ward.ends
    await ward.clock.advance(2)
    assert ward.ends == [("job-1", EndKind.DRAINED)]
    assert ward.quarantine.empty
    assert ward.gone == 1
    assert not ward.begun


async def test_a_new_process_knows_the_lease_before_it_gets_a_suspect() -> None:
    ward = Ward()
    ward.quarantine.renewed(123.0)
    ward.take(1)
    ward.runners[0].is_ready()
    assert ward.runners[0].until == 123.0


# ── deaths ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Puppet:
    """A process that the test kills."""

    pid = 4711
    unsent = False
    severed: str | None = None
    stack_left = "the last stack"
    latest: "Puppet"

    def __init__(
        self,
        *,
        on_frames: Callable[[Any], None],
        on_ended: Callable[[int], None],
        on_refused: Callable[[Any, str], None],
        longest: int,
        guard: object,
        host: object,
    ) -> None:
        Puppet.latest = self
        assert guard is None, "there is no process to guard"
        self.on_frames, self.on_ended, self.on_refused, self.longest = on_frames, on_ended, on_refused, longest
        self.said: list[Any] = []
        self.killed = False
        self.runs = NodeEnd()
        self.process = ProcessEnd(self.runs.tokens, self.runs.page)
        self.runs.close_page()

    def send(self, message: Any) -> None:
        self.said.append(message)
        self.runs.write()
        if isinstance(message, Start):
            self.process.arrived(message)

    def take(self) -> Start:
        """Take the next run, as the process does."""
        start = self.process.take()
        assert start is not None
        return start

    def begin(self) -> None:
        self.process.times[self.take().place] = 1.0

    def catch_up(self) -> None: ...

    def renew(self, until: float) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None:
        self.killed = True

    async def stack(self) -> str:
        return "the stack"

    def last_words(self) -> str:
        return self.stack_left


class Theatre:
    """A runner whose process is a puppet, and what becomes of its runs."""

    def __init__(self, role: Any = "shared", kills: KilledJobs | None = None, *, ready: bool = True) -> None:
        self.clock = ManualClock()
        self.suspects: list[str] = []
        self.begun: list[str] = []
        self.ends: dict[str, End] = {}
        self.gone = 0
        self.starved = 0
        self.runner = RemoteRunner(
            Setup(app="a:b", role=role),
            self.clock,
            report=lambda _job, _progress: None,
            kills=kills or KilledJobs(),
            host=Host(starved=lambda: self.starved),
        )
        self.runner.attach(self)
        self.puppet = Puppet.latest
        if ready:
            self.says(Ready())

    def runner_ready(self, runner: Runner) -> None:
        assert runner.ready

    def runner_gone(self, runner: Runner, suspects: Sequence[Run]) -> None:
        assert runner.dead
        self.suspects += [run.job.id for run in suspects]
        self.gone += 1

    def says(self, *messages: Any) -> None:
        self.puppet.on_frames([ProcessFrame(list(messages))])

    def start(self, number: int, owner: RunOwner | None = None, *, begun: bool = True) -> Run:
        run = Run(claimed(number), WorkerConfig(name="nap"), 0.0, owner or self)
        if self.runner.start(run):
            self.begun.append(run.job.id)
        if begun:
            self.puppet.begin()
        return run

    def run_begun(self, run: Run) -> None:
        self.begun.append(run.job.id)

    def run_ended(self, run: Run, end: End) -> None:
        assert run.job.id not in self.ends, "it has ended twice"
        self.ends[run.job.id] = end


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Theatre:
    monkeypatch.setattr("shiftwork.runtime.processes.remote_runner.StartedProcess", Puppet)
    return Theatre("shared")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Theatre:
    monkeypatch.setattr("shiftwork.runtime.processes.remote_runner.StartedProcess", Puppet)
    return Theatre("alone")


async def test_all_that_died_together_are_suspects(shared: Theatre) -> None:
    for number in range(1, 201):
        shared.start(number)
    shared.puppet.on_ended(-6)
    assert len(shared.suspects) == 200
    assert not shared.ends
    assert shared.gone == 1


@pytest.mark.usefixtures("shared")
async def test_a_kill_from_outside_blames_no_job_unless_it_happens_again() -> None:
    kills = KilledJobs()
    first = Theatre(kills=kills)
    for number in range(1, 21):
        first.start(number)
    first.puppet.on_ended(-9)
    assert not first.suspects
    assert {end.kind for end in first.ends.values()} == {EndKind.DRAINED}
    assert len(first.ends) == 20
    second = Theatre(kills=kills)
    second.start(7)
    second.start(21)
    second.puppet.on_ended(-9)
    assert second.suspects == ["job-7"], "it was there both times; it is tried alone before it is blamed"
    assert second.ends["job-21"].kind is EndKind.DRAINED


async def test_a_kill_of_our_own_does_not_come_from_outside(alone: Theatre) -> None:
    alone.start(1)
    alone.puppet.killed = True  # it had stopped to speak, say
    alone.puppet.on_ended(-9)
    assert not alone.ends["job-1"].from_outside


async def test_one_that_was_stopped_has_ended_and_the_other_one_is_tried_again(shared: Theatre) -> None:
    shared.start(1)
    stopped = shared.start(2)
    stopped.stopped_as = EndKind.CANCELLED
    shared.runner.stop(stopped)
    shared.puppet.on_ended(-6)
    assert shared.suspects == ["job-1"]
    assert shared.ends["job-2"].kind is EndKind.CANCELLED
    await shared.clock.advance(60)  # whatever was to happen to it later does not


@pytest.mark.usefixtures("shared")
async def test_why_a_process_died_before_it_was_ready_is_known() -> None:
    by_itself, by_us = Theatre(ready=False), Theatre(ready=False)
    by_itself.puppet.on_ended(3)
    assert by_itself.runner.error == "the process exited with status 3 before it was ready\nthe last stack"
    by_us.runner.kill("it took too long to begin", at_once=True)
    by_us.puppet.on_ended(-9)
    assert str(by_us.runner.error).startswith("it took too long to begin\n")


async def test_one_that_dies_alone_has_crashed(shared: Theatre) -> None:
    shared.start(1)
    shared.puppet.on_ended(-6)
    assert shared.ends["job-1"].kind is EndKind.CRASHED
    assert shared.ends["job-1"].error == "its process was killed by SIGABRT"


async def test_one_that_aborts_without_a_stack_has_probably_closed_too_much(shared: Theatre) -> None:
    shared.start(1)
    shared.puppet.stack_left = ""
    shared.puppet.on_ended(-6)
    assert shared.ends["job-1"].kind is EndKind.CRASHED
    assert "closes file descriptors that it has not opened" in (shared.ends["job-1"].error or "")


@pytest.mark.parametrize(("status", "outside"), [(-9, True), (-6, False), (1, False)])
async def test_a_process_killed_from_outside_is_less_to_blame(alone: Theatre, status: int, *, outside: bool) -> None:
    alone.start(1)
    alone.puppet.on_ended(status)
    assert (alone.ends["job-1"].kind, alone.ends["job-1"].from_outside) == (EndKind.CRASHED, outside)


async def test_a_process_that_cut_itself_off_was_not_killed_from_outside(alone: Theatre) -> None:
    alone.start(1)
    alone.puppet.severed = "closed its connection"
    alone.puppet.kill()
    alone.puppet.on_ended(-9)
    end = alone.ends["job-1"]
    assert (end.kind, end.from_outside, end.error) == (EndKind.CRASHED, False, "its process closed its connection")


async def test_a_payload_that_is_too_long_for_the_process_ends_its_job_alone(shared: Theatre) -> None:
    shared.start(1)
    shared.start(2)
    start = next(message for message in shared.puppet.said if isinstance(message, Start))
    shared.puppet.on_refused(start, "it has 9 bytes; 8 are allowed")
    shared.puppet.on_refused(start, "it has 9 bytes; 8 are allowed")  # it has ended already
    assert {id: end.kind for id, end in shared.ends.items()} == {"job-1": EndKind.UNDECODABLE}
    assert "it has 9 bytes; 8 are allowed; raise max_payload_bytes" in (shared.ends["job-1"].error or "")


async def test_a_process_killed_for_want_of_memory_is_to_blame(alone: Theatre) -> None:
    alone.start(1)
    alone.starved = 1
    alone.puppet.on_ended(-9)
    assert (alone.ends["job-1"].kind, alone.ends["job-1"].from_outside) == (EndKind.CRASHED, False)


async def test_a_run_whose_end_goes_wrong_keeps_no_other_from_ending(shared: Theatre, tolerated: list[str]) -> None:
    tolerated += ["cannot handle a RunEnded message", "cannot end job"]

    class Failing(Theatre):
        def __init__(self) -> None: ...

        def run_ended(self, run: Run, end: End) -> None:
            message = "the store is full, says the test"
            raise RuntimeError(message)

    shared.start(1, Failing())
    shared.start(2)
    shared.says(RunEnded("job-1", 1, End(EndKind.RETURNED)), RunEnded("job-2", 2, End(EndKind.RETURNED)))
    assert shared.ends["job-2"].kind is EndKind.RETURNED
    for run in (shared.start(3, Failing()), shared.start(4)):
        run.stopped_as = EndKind.DRAINED
    shared.puppet.on_ended(0)
    assert shared.ends["job-4"].kind is EndKind.DRAINED
    assert shared.gone == 1


async def test_a_process_that_lost_its_lease_blames_no_job(alone: Theatre) -> None:
    alone.runner.renewed(alone.clock.monotonic() + 10)
    alone.start(1)
    await alone.clock.advance(11)
    alone.runner.renewed(alone.clock.monotonic() + 10)  # too late
    alone.puppet.on_ended(-9)
    assert alone.ends["job-1"].kind is EndKind.DRAINED


@pytest.mark.parametrize("role", ["alone", "shared"])
@pytest.mark.usefixtures("shared")
async def test_what_a_frozen_process_has_not_taken_is_handed_back_when_it_is_drained(role: ProcessRole) -> None:
    theatre = Theatre(role)
    theatre.start(1, begun=False)
    theatre.runner.drain()
    assert {job_id: end.kind for job_id, end in theatre.ends.items()} == {"job-1": EndKind.DRAINED}


async def test_what_the_process_has_taken_is_its_own_before_it_has_noted_the_beginning(shared: Theatre) -> None:
    """It may begin at any moment: handed back, its job would run twice."""
    for number in (1, 2, 3):
        shared.start(number, begun=False)
    start = shared.puppet.take()
    shared.runner.drain()
    assert {job_id: end.kind for job_id, end in shared.ends.items()} == dict.fromkeys(
        ("job-2", "job-3"), EndKind.DRAINED
    )
    shared.puppet.process.times[start.place] = 1.0
    shared.says(RunEnded("job-1", 1, End(EndKind.RETURNED)))
    assert shared.ends["job-1"].kind is EndKind.RETURNED


def runs_of(theatre: Theatre, settle: Callable[[Run, End], None], isolation: Any = None) -> Runs:
    """The runs of an instance in this process."""
    here = SimpleNamespace(
        registry=SimpleNamespace(workers={"nap": Callee()}),
        states={},
        clock=theatre.clock,
        reporter=SimpleNamespace(run_begun=lambda _job: None),
    )
    return Runs(
        cast("Any", here),
        theatre.runner,
        isolation,
        ender=cast("Any", SimpleNamespace(settle=settle)),
        on_suspects=lambda _suspects: None,
        on_end=lambda _run: None,
    )


async def test_a_job_that_has_killed_its_process_before_runs_apart_from_others(shared: Theatre) -> None:
    apart: list[str] = []
    isolation = SimpleNamespace(take=lambda runs, _again: apart.extend(run.job.id for run in runs))
    runs = runs_of(shared, lambda _run, _end: None, isolation)
    runs.start(claimed(1))
    runs.start(claimed(2, crashes=1))
    assert apart == ["job-2"]
    assert [message.job.id for message in shared.puppet.said if isinstance(message, Start)] == ["job-1"]


async def test_a_cancel_is_for_one_run_and_the_first_reason_to_stop_it_stays(shared: Theatre) -> None:
    runs = runs_of(shared, lambda _run, _end: None)
    runs.start(claimed(1))
    shared.puppet.begin()
    stops: list[list[Stop]] = []
    for fence in (99, None, 1):  # the first is of another run of the job
        if fence is None:
            runs.stop(runs.active["job-1"], EndKind.TIMED_OUT)
        else:
            runs.cancel("job-1", fence)
        stops.append([message for message in shared.puppet.said if isinstance(message, Stop)])
    assert stops == [[], *[[Stop("job-1", 1, EndKind.TIMED_OUT)]] * 2]
    assert runs.active["job-1"].stopped_as is EndKind.TIMED_OUT


async def test_runs_that_have_not_begun_are_taken_back_together_when_all_are_stopped(shared: Theatre) -> None:
    """One by one, thousands of them would hold up the node for seconds, just when its leases end."""
    settled: list[Any] = []
    here = SimpleNamespace(
        registry=SimpleNamespace(workers={"nap": Callee()}),
        outbox=SimpleNamespace(put=settled.append),
        clock=shared.clock,
        unasked_hand_backs=UnaskedHandBacks(),
    )
    ender = JobEnder(cast("Any", here), cast("Any", SimpleNamespace(name="i")))
    runs = runs_of(shared, ender.settle)
    for number in range(1, 101):
        runs.start(claimed(number))
    shared.puppet.begin()
    runs.stop_all()
    handed_back = [(one.outcome.status, one.outcome.attempt, one.outcome.run_at) for one in settled]
    assert handed_back == [(JobStatus.QUEUED, 0, 0.0)] * 99, "their jobs have waited all the time"
    assert [run.job.id for run in runs.active.values()] == ["job-1"], "it was asked to stop"
    assert [message for message in shared.puppet.said if not isinstance(message, Setup | Start)] == [
        Stop("job-1", 1, EndKind.DRAINED)
    ]


async def looked_at(theatre: Theatre, seconds: int, *, answers: bool) -> bool:
    """Look at a process every second; returns whether it was killed."""
    for _ in range(seconds):
        theatre.runner.look(None)
        if answers:
            theatre.says(Pong())
        await theatre.clock.advance(1.0)
    return theatre.puppet.killed


class Ending:
    """A process that is to be ended: what was done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def stack(self) -> str:
        self.done.append("stack")
        return "the stack"

    def terminate(self) -> None:
        self.done.append("terminate")

    def kill(self) -> None:
        self.done.append("kill")


async def test_a_process_that_runs_one_job_may_clean_up_before_it_is_killed() -> None:
    clock, process = ManualClock(), Ending()
    termination = Termination(cast("Any", process), clock, gently=True)
    termination.ready()
    termination.kill("it took too long")
    termination.kill("it used too much memory")
    await clock.advance(STUBBORN_SECONDS - 0.1)
    assert (process.done, termination.why, termination.stack) == (
        ["stack", "terminate"],
        "it took too long",
        "the stack",
    )
    await clock.advance(0.2)
    assert process.done == ["stack", "terminate", "kill"]


async def test_a_process_that_many_jobs_share_is_killed_and_one_that_has_ended_is_left_alone() -> None:
    clock, process = ManualClock(), Ending()
    termination = Termination(cast("Any", process), clock, gently=False)
    termination.kill("it begins nothing")
    await clock.advance(0.0)
    assert process.done == ["stack", "kill"]
    ended = Ending()
    termination = Termination(cast("Any", ended), clock, gently=True)
    termination.give_a_while()
    assert (termination.asked, termination.under_way) == (True, True)
    termination.done()
    termination.kill("it took too long")
    await clock.advance(1_000.0)
    assert ended.done == []


async def test_a_process_that_is_asked_to_end_and_one_that_never_starts_are_ended_in_a_while() -> None:
    clock, asked, starting = ManualClock(), Ending(), Ending()
    Termination(cast("Any", asked), clock, gently=False).give_a_while()
    never = Termination(cast("Any", starting), clock, gently=False)
    await clock.advance(STUBBORN_SECONDS)
    assert asked.done == ["kill"]
    await clock.advance(APP_IMPORT_SECONDS - STUBBORN_SECONDS)
    assert starting.done == ["stack", "kill"]
    assert never.why == f"the process was not ready after {APP_IMPORT_SECONDS:g} s"


@pytest.mark.usefixtures("shared")
async def test_a_silent_process_gets_no_other_job_unless_its_own_job_holds_it_up() -> None:
    """A job that is alone may take all of its process; where jobs share one, the next would not begin."""
    for role, busy, is_open in (("shared", True, False), ("alone", True, True), ("alone", False, False)):
        theatre = Theatre(role)
        if busy:
            theatre.start(1)
        await looked_at(theatre, 3, answers=True)
        assert theatre.runner.open
        await looked_at(theatre, 3, answers=False)
        assert theatre.runner.open is is_open, (role, busy)


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("role", ["alone", "shared"])
@pytest.mark.usefixtures("shared")
async def test_a_process_that_begins_nothing_is_killed(role: ProcessRole, *, answers: bool) -> None:
    """It may be frozen; or a job has closed the pipe from which it takes its runs."""
    theatre = Theatre(role)
    theatre.start(1)
    assert not await looked_at(theatre, 30, answers=True), "it runs a job"
    theatre.says(RunEnded("job-1", 1, End(EndKind.RETURNED)))
    theatre.start(2, begun=False)
    theatre.puppet.take()
    theatre.start(3, begun=False)
    assert not await looked_at(theatre, 10, answers=answers)
    assert await looked_at(theatre, 10, answers=answers)
    theatre.puppet.on_ended(-9)
    assert {theatre.ends[job_id].kind for job_id in ("job-2", "job-3")} == {EndKind.DRAINED}
    assert theatre.suspects == []


async def test_a_process_that_a_run_holds_up_is_not_killed(shared: Theatre, alone: Theatre) -> None:
    for theatre in (shared, alone):
        theatre.start(1)
        theatre.start(2, begun=False)
        theatre.puppet.take()
        assert not await looked_at(theatre, 60, answers=False)
        theatre.puppet.process.times[1] = 1.0
        assert not await looked_at(theatre, 60, answers=True)


async def test_a_process_that_leaves_or_is_being_ended_takes_no_runs(alone: Theatre, shared: Theatre) -> None:
    stages = (alone, shared)
    assert [stage.runner.open for stage in stages] == [True, True]
    alone.runner.close()
    shared.runner.kill("a test says so")
    assert [stage.runner.open for stage in stages] == [False, False], "at once, not when it is gone"


async def test_messages_about_ended_runs_are_ignored(shared: Theatre) -> None:
    shared.start(1)
    ended = RunEnded("job-1", 1, End(EndKind.RETURNED))
    shared.says(ended, ended, RunEnded("job-9", 9, End(EndKind.RETURNED)), RunEnded("job-1", 7, End(EndKind.RAISED)))
    assert list(shared.ends) == ["job-1"]
    assert shared.runner.served == 1


async def test_a_run_that_continues_is_not_handed_back_before_its_process_is_gone(shared: Theatre) -> None:
    for run in (shared.start(1), shared.start(2)):
        run.stopped_as = EndKind.DRAINED
        shared.runner.stop(run)
    shared.says(RunEnded("job-1", 1, End(EndKind.DRAINED), stray=True))
    assert not shared.ends
    assert shared.runner.open, "the other one may end by itself"
    shared.says(RunEnded("job-2", 2, End(EndKind.DRAINED)))
    assert list(shared.ends) == ["job-2"]
    await a_while()
    assert shared.puppet.killed
    shared.puppet.on_ended(-9)
    assert shared.ends["job-1"].kind is EndKind.DRAINED


@pytest.mark.parametrize("role", ["alone", "shared"])
@pytest.mark.usefixtures("shared")
async def test_a_process_looks_again_when_one_run_is_taken_back(role: ProcessRole) -> None:
    """The tokens of the others were away, and it may have looked for them just then."""
    theatre = Theatre(role)
    theatre.start(1)
    stopped, _ = (theatre.start(number, begun=False) for number in (2, 3))
    stopped.stopped_as = EndKind.CANCELLED
    theatre.runner.stop(stopped)
    assert (theatre.ends["job-2"].kind, theatre.ends["job-2"].begun) == (EndKind.CANCELLED, False)
    assert theatre.puppet.said[-1] == LookAgain()
    assert theatre.puppet.take().job.id == "job-3"


async def test_a_job_that_is_here_again_before_its_run_was_stopped_has_two_runs(shared: Theatre) -> None:
    """The lease was lost, and the instance has claimed the job under its new name."""
    ends: list[tuple[int, EndKind]] = []

    class Owner:
        def run_begun(self, run: Run) -> None: ...

        def run_ended(self, run: Run, end: End) -> None:
            ends.append((run.job.fence, end.kind))

    runs = [Run(replace(claimed(1), fence=fence), WorkerConfig(name="nap"), 0.0, Owner()) for fence in (1, 2)]
    shared.runner.start(runs[0])
    shared.puppet.begin()
    runs[0].stopped_as = EndKind.DRAINED
    shared.runner.stop(runs[0])
    shared.runner.start(runs[1])
    assert [shared.runner.began(run) is None for run in runs] == [False, True]
    shared.says(RunEnded("job-1", 1, End(EndKind.DRAINED)))
    await shared.clock.advance(60)
    assert not shared.puppet.killed
    shared.puppet.begin()
    shared.says(RunEnded("job-1", 2, End(EndKind.RETURNED)))
    assert ends == [(1, EndKind.DRAINED), (2, EndKind.RETURNED)]


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set")
async def test_more_runs_than_the_pipe_holds_begin_when_it_has_room(shared: Theatre) -> None:
    """Like a user with very many pipes."""
    fcntl(shared.puppet.runs.tokens, 1031, 1)  # F_SETPIPE_SZ
    runs = [shared.start(number, begun=False) for number in range(1, 1_001)]

    def take_what_is_there() -> int:
        while (start := shared.puppet.process.take()) is not None:
            shared.puppet.process.times[start.place] = 1.0
        return sum(shared.runner.began(run) is not None for run in runs)

    assert 0 < take_what_is_there() < 1_000
    shared.says(Pong())
    assert isinstance(shared.puppet.said[-1], LookAgain)
    assert take_what_is_there() == 1_000
