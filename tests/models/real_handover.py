"""Both ends of a handover as they really are, taking the steps of the model.

The node's end is a `RemoteRunner` with its `StartedProcess`, link, pipe and page; the process's end is a `ChildProcess`
with its runner. Left out are the functions of the runs, and the socket from the process to the node.
"""

import os
import signal
import socket
import termios
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import ioctl
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from msgspec import msgpack

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.processes import child_process, handover
from shiftwork.runtime.processes.child_process import ChildProcess, SerialRunner
from shiftwork.runtime.processes.handover import LEASE, NodeEnd, ProcessEnd
from shiftwork.runtime.processes.host import Host
from shiftwork.runtime.processes.messages import NodeFrame, Ping, Pong, ProcessFrame, RunEnded, Setup
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.runtime.running.execute import cancelled
from shiftwork.runtime.running.job_run import LocalRun, Run
from shiftwork.runtime.running.local_runner import LocalRunner
from tests.models.handover import World

CONFIG: Final = WorkerConfig(name="w")
CALLEES: Final[Any] = {"w": SimpleNamespace(config=CONFIG, is_async=False)}
DECODER: Final = msgpack.Decoder(NodeFrame)
FAILED: Final = -11


class NarrowPipes:
    """`os`, with pipes that have room for only a few tokens."""

    def __init__(self, room: int) -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, fd: int, tokens: "array[int]") -> int:
        if bytes_in(fd) // 8 + len(tokens) > self._room:
            raise BlockingIOError
        return os.write(fd, tokens)


def bytes_in(fd: int) -> int:
    """How many bytes wait in a pipe."""
    size = array("i", [0])
    ioctl(fd, termios.FIONREAD, size)
    return size[0]


class PausingEnd(NodeEnd):
    """Writes the other tokens again only when the walk says so."""

    pausing = False

    def write(self) -> bool:
        return False if self.pausing else super().write()


class Spawned:
    """What the start of a process leaves behind, without a process: both ends are ours."""

    newest: "Spawned"

    def __init__(self, on_failure: ExitStack) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.runs = PausingEnd()
        self.pid = os.getpid()
        self.alive, self.lifeline = os.pipe()
        os.set_blocking(self.lifeline, False)
        self.stacks = SimpleNamespace(unread=str, close=lambda: None)
        Spawned.newest = self

    def watch(self, on_death: Callable[[], None]) -> None:
        """Never report a death: the model does."""

    def renew(self, until: float) -> None:
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self.lifeline, LEASE.pack(until))

    def send_signal(self, number: signal.Signals) -> None:
        """Do nothing: there is no process."""

    def end_group(self) -> None:
        """Do nothing, likewise."""

    def reap(self) -> int:
        return 0

    def close(self) -> None:
        """Renew it no more."""
        with suppress(OSError):
            os.close(self.lifeline)

    def dispose(self) -> None:
        """Close both ends."""
        self.socket.close()
        self.theirs.close()
        self.runs.close_page()
        self.runs.close()
        os.close(self.alive)
        with suppress(OSError):  # it is closed with the node
            os.close(self.lifeline)


class Mailbox(list[Any]):
    """The process's messages to the node, which gets them one by one."""

    def __init__(self, *_: object, **__: object) -> None:
        self.send = self.deliver = self.append


class PausingLocal(LocalRunner):
    def start(self, run: LocalRun) -> bool:
        self._running.add(run)
        return True

    def close(self) -> None:
        self._watch.cancel()


class PausingSerial(SerialRunner):
    def start(self, run: LocalRun) -> bool:
        self._running.add(run)
        return True

    def close(self) -> None:
        self._watch.cancel()


class Note:
    """Keeps the note of a beginning until the walk says that it is made."""

    def __init__(self) -> None:
        self.at: float | None = None

    def __setitem__(self, place: int, at: float) -> None:
        self.at = at


@contextmanager
def narrowed(room: int) -> Iterator[None]:
    """Put the pieces above in their places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "os", NarrowPipes(room))
        patch.setattr(handover, "_WHOLE", 1)
        patch.setattr(child_process, "Link", Mailbox)
        yield


HOST: Final = Host(start=Spawned, starved=lambda: 0)
"""Starts nothing."""


class RealHandover:
    """Takes the steps of the model one by one."""

    def __init__(self, *, alone: bool) -> None:
        self._clock = clock = ManualClock()
        setup = Setup(app="", role="alone" if alone else "shared")
        self._runner = RemoteRunner(setup, clock, report=lambda job, progress: None, kills=KilledJobs(), host=HOST)
        self._runner.attach(cast("Any", self))
        self._spawned = Spawned.newest
        self._socket, self._end = self._spawned.theirs, self._spawned.runs
        self._given: list[Run] = []
        self._fates: list[str] = []
        self._given_end = given = ProcessEnd(self._end.tokens, self._end.page)
        self._child = ChildProcess(self._socket, given)
        services: Any = SimpleNamespace(clock=clock, recorder=None)
        self._local: LocalRunner
        if alone:
            self._local = self._child._serial = PausingSerial(
                CALLEES, services, given, prepare=self._child._prepare, on_not_started=self._child._not_started
            )
        else:
            self._local = PausingLocal(CALLEES, services)
        self._child._runner = self._local
        self._child._callees = CALLEES
        self._notes: dict[int, Note] = {}
        self._mail = cast("Mailbox", self._child.link)
        self._alive = True
        self._runner._process.flush()
        self._frame()

    def close(self) -> None:
        self._local.close()
        self._given_end.close()
        self._runner._process._link.close()
        self._spawned.dispose()

    # ── the node ─────────────────────────────────────────────────────────────────────────────────────────────────

    def node_gives(self, number: int) -> None:
        job = Claimed(id=str(number), worker="w", pool="p", payload=b"", fence=number, attempt=1, crashes=0, run_at=0.0)
        run = Run(job, CONFIG, 0.0, cast("Any", self))
        self._given.append(run)
        self._fates.append("")
        self._runner.start(run)

    def node_writes_tokens_and_sends_messages(self) -> None:
        self._runner._process.flush()
        if not self._alive:
            self._frame()

    def node_takes_back(self) -> None:
        for run in self._runner.take_back():
            self._over(run, "handed back")

    def node_stops(self, number: int) -> None:
        run = self._given[number - 1]
        run.stopped_as = EndKind.CANCELLED
        self._end.pausing = True
        self._runner.stop(run)
        self._end.pausing = False

    def node_writes_the_other_tokens_again(self) -> None:
        self._end.write()

    def node_pings(self) -> None:
        self._runner._process.send(Ping(0.0, 0.0))

    def node_gets_a_message(self) -> None:
        self._runner._received([ProcessFrame([self._mail.pop(0)])])

    def node_sees_that_the_process_is_dead(self) -> None:
        self._runner._ended(FAILED)

    def run_ended(self, run: Run, end: End) -> None:
        self._over(run, "crashed" if self._runner.dead and end.begun else "ended" if end.begun else "handed back")

    def run_begun(self, run: Run) -> None:
        """It is the first one's turn."""

    def runner_gone(self, runner: object, suspects: list[Run]) -> None:
        for run in suspects:
            self._over(run, "crashed")

    def _over(self, run: Run, fate: str) -> None:
        before = self._fates[int(run.job.id) - 1]
        self._fates[int(run.job.id) - 1] = f"{before} and {fate}" if before else fate

    # ── the process ──────────────────────────────────────────────────────────────────────────────────────────────

    def _frame(self) -> NodeFrame:
        length = int.from_bytes(self._socket.recv(4), "little")
        return DECODER.decode(self._socket.recv(length))

    def process_gets_a_frame(self) -> None:
        self._child._received([self._frame()])

    def process_sees_that_may_begin(self, number: int) -> None:
        run = self._taken[number]
        self._notes[number] = run.times = cast("Any", Note())
        assert run.begin(1.0)

    def process_does_not_begin(self, number: int) -> None:
        run = self._taken[number]
        assert not run.begin(1.0)
        self._local._ended(run, cancelled(run))

    def process_notes_that_begins(self, number: int) -> None:
        at = self._notes.pop(number).at
        assert at is not None
        self._given_end.times[self._taken[number].place] = at

    def process_ends(self, number: int) -> None:
        self._local._ended(self._taken[number], End(EndKind.RETURNED))

    def process_gives_up_on(self, number: int) -> None:
        self._local._give_up(self._taken[number])

    def process_dies(self) -> None:
        self._alive = False
        with suppress(BlockingIOError):
            self._socket.recv(65_536, socket.MSG_DONTWAIT)

    @property
    def _taken(self) -> dict[int, LocalRun]:
        return {int(run.job.id): run for run in (*self._local._running, *self._local.strays)}

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────────────────────

    def seen(self) -> Any:
        active = [run for run, fate in zip(self._given, self._fates, strict=True) if not fate]
        return (
            tuple(self._fates),
            {int(run.job.id): run.place for run in active},
            {int(run.job.id) for run in active if self._runner.began(run) is not None},
            bytes_in(self._end.tokens) // 8,
            tuple(self._end._unwritten),
            self._seen_in_process() if self._alive else (),
            tuple(_kind(message) for message in self._mail),
        )

    def _seen_in_process(self) -> tuple[Any, ...]:
        end = self._given_end
        return tuple(start.number for start in end._arrived), tuple(end._tokens), set(self._taken)


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    active = [run for run, fate in enumerate(world.fates, 1) if not fate]
    held = world.held or ()
    return (
        world.fates,
        {run: world.places[run - 1] for run in active},
        {run for run in active if world.page[world.places[run - 1]]},
        len(world.pipe),
        world.unwritten + held,
        (world.arrived, world.tokens, {run for run, _ in world.runs}) if world.alive else (),
        tuple(what for what, _ in world.mail),
    )


def _kind(message: object) -> str:
    return (
        "pong" if isinstance(message, Pong) else "stray" if isinstance(message, RunEnded) and message.stray else "ended"
    )
