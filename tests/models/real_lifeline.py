"""The lifeline and the guard as they really are, taking the steps of the model.

The node has its `RemoteRunner`, `StartedProcess` and `ProcessGuard`, the process its `Lifeline`, and the guard is the
`Guard` of its program. Real pipes connect them; processes, the clock and `poll` are the test's.
"""

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.processes import guard, process_guard
from shiftwork.runtime.processes.guard import Guard
from shiftwork.runtime.processes.handover import LEASE
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.process_guard import ProcessGuard
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.serve import spawned
from shiftwork.serve.spawned import Lifeline
from tests.models.actors import Actor
from tests.models.lifeline import NEVER, ROOM, STOP, World
from tests.models.real_handover import HOST, Spawned, bytes_in

NODE: Final = 1000
GROUP: Final = 4_000_000
REPLACED: Final = {
    guard: ("os", "select", "time"),
    process_guard: ("os", "subprocess"),
    spawned: ("os", "select", "time"),
}


class Waiting:
    """One that waits for a pipe, in a thread: its `poll`, its `read` and its clock."""

    def __init__(self, world: "RealLifeline", fd: int, wait: Callable[[], object]) -> None:
        self.fd = fd
        self._world = world
        self._has_read = False
        self.actor = Actor(wait)

    def poll(self, wait: float | None) -> list[tuple[int, int]]:
        self.actor.pause()
        events = select.POLLIN * (bytes_in(self.fd) > 0) | select.POLLHUP * self._world.node_is_dead
        return [(0, events)] if events else []

    def read(self, fd: int, most: int) -> bytes:
        """Read what a pipe has; of a lifeline one renewal at a time, as if there were more than fit."""
        self._has_read = True
        return os.read(self.fd, most if fd == 0 else LEASE.size)

    def monotonic(self) -> float:
        """Something may keep it from going on between what it has read and this look at the clock."""
        if self._has_read:
            self._has_read = False
            self.actor.pause()
        return self._world.clock.monotonic()

    def modules(self, **others: Any) -> dict[str, Any]:
        """Return what its module gets instead of those that it has imported."""
        poll = SimpleNamespace(poll=self.poll, register=lambda fd, events: None)
        return {
            "os": SimpleNamespace(read=self.read, **others),
            "select": SimpleNamespace(poll=lambda: poll, POLLIN=select.POLLIN, POLLNVAL=select.POLLNVAL),
            "time": SimpleNamespace(monotonic=self.monotonic),
        }


class RealGuard(Waiting):
    """What `subprocess.Popen` returns: the guard's program, in a thread."""

    def __init__(self, world: "RealLifeline") -> None:
        orders_end, orders = os.pipe()
        self.stdin = os.fdopen(orders, "wb", buffering=0)
        self.guard = Guard(NODE)
        self.unread = 0
        super().__init__(world, orders_end, self.guard.stand)
        here = self.modules(
            getppid=lambda: 1 if world.node_is_dead else NODE,
            killpg=lambda group, number: world.killed(),
            set_blocking=lambda fd, blocking: os.set_blocking(orders_end, blocking),
        )
        vars(guard).update(here)
        self.actor.step()

    def read(self, fd: int, most: int) -> bytes:
        self.unread = 0
        return super().read(fd, most)

    def write(self, fd: int, orders: bytes) -> int:
        if self.actor.over:
            raise BrokenPipeError
        if self.unread >= ROOM:
            raise BlockingIOError
        self.unread += orders.count(b"\n")
        return os.write(fd, orders)

    def kill(self) -> None:
        self.actor.abandon()

    def wait(self) -> None:
        assert self.actor.over, "the node would wait for it in vain"

    def close(self) -> None:
        self.actor.abandon()
        self.stdin.close()
        os.close(self.fd)


class RealLifeline:
    """Takes the steps of the model one by one."""

    def __init__(self) -> None:
        self.clock = ManualClock(0.0)
        self.node_is_dead = False
        self._guards: list[RealGuard] = []
        self._dead = self._killed_late = False
        self._asked = 0.0
        setup = Setup(app="", role="alone")
        self._runner = RemoteRunner(setup, self.clock, report=lambda job, progress: None, kills=KilledJobs(), host=HOST)
        self._runner._termination = cast("Any", SimpleNamespace(kill=self._kill))
        self._spawned = Spawned.newest
        vars(process_guard).update(
            os=SimpleNamespace(write=self._write, getpid=lambda: NODE, set_blocking=os.set_blocking),
            subprocess=SimpleNamespace(Popen=self._start_guard, PIPE=0, DEVNULL=0),
        )
        self._process_guard = ProcessGuard()
        self._process_guard.watch(GROUP)
        self._runner.renew(STOP)
        self._process_guard.renew(STOP)
        self._process = Waiting(self, self._spawned.alive, Lifeline(self._spawned.alive)._listen)
        vars(spawned).update(self._process.modules(fstat=os.fstat))
        for _ in range(3):
            self._process.actor.step()
        for _ in range(2):
            self._guard.actor.step()

    def close(self) -> None:
        self._process.actor.abandon()
        for each in self._guards:
            each.close()
        self._runner._process._link.close()
        self._spawned.dispose()

    @property
    def _guard(self) -> RealGuard:
        return self._guards[-1]

    def _start_guard(self, *_: object, **__: object) -> RealGuard:
        self._guards.append(RealGuard(self))
        return self._guard

    def _write(self, fd: int, orders: bytes) -> int:
        return self._guard.write(fd, orders)

    def _kill(self, why: str, *, at_once: bool) -> None:
        self._killed_late = True

    def killed(self) -> None:
        """Note that the group of the process is killed."""
        self._dead = True
        self._process.actor.abandon()

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def a_tick(self) -> None:
        self.clock.jump(1.0)

    def node_asks_for_a_renewal(self) -> None:
        self._asked = self.clock.monotonic()

    def node_hears_of_its_renewal(self) -> None:
        if self._asked + STOP > self.clock.monotonic():
            self._runner.renew(self._asked + STOP)

    def node_tells_the_guard(self) -> None:
        assert self._runner._until is not None
        self._process_guard.renew(self._runner._until)

    def node_kills_the_process_too_late_as_it_is(self) -> None:
        self._runner.renewed(self._asked + STOP)
        assert self._killed_late
        self.killed()

    def node_tells_the_guard_to_forget(self) -> None:
        self._process_guard.forget(GROUP)

    def node_dies(self) -> None:
        self.node_is_dead = True
        os.close(self._spawned.lifeline)
        self._guard.stdin.close()

    def guard_dies(self) -> None:
        self._guard.kill()

    def process_dies_by_itself(self) -> None:
        self.killed()

    def _process_goes_on(self) -> None:
        self._process.actor.step()
        self._dead = self._process.actor.over

    def _guard_goes_on(self) -> None:
        self._guard.actor.step()

    process_reads_a_renewal = process_waits = process_finds_no_renewal_in_time = _process_goes_on
    process_sees_the_end_of_its_node = _process_goes_on
    guard_reads_its_orders = guard_waits = guard_kills = guard_kills_at_the_end_of_its_node = _guard_goes_on

    def _nothing(self) -> None:
        """It keeps others from their steps."""

    store_does_not_reply = store_goes_on = node_freezes = node_goes_on = guard_freezes = guard_goes_on = _nothing
    node_its_event_loop_is_blocked = node_its_event_loop_goes_on = node_reaps = _nothing
    process_its_job_takes_the_interpreter = process_its_job_lets_go = the_number_is_given_to_a_stranger = _nothing

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────────────────────

    def seen(self) -> Any:
        here = self._guard.guard
        until = NEVER if here._until is None else here._until
        of_guard = None if self._guard.actor.over else (self._guard.unread, until, GROUP in here._groups)
        return self._dead, self._dead or bytes_in(self._spawned.alive) // LEASE.size, of_guard


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    dead = world.process == "dead"
    of_guard = None if world.guard == "dead" else (len(world.orders), world.guard_known, world.watched)
    return dead, dead or len(world.renewals), of_guard


@contextmanager
def without_programs() -> Iterator[None]:
    """Have nothing start a process, and put back afterwards what the pieces above replace."""
    with pytest.MonkeyPatch.context() as patch:
        for module, names in REPLACED.items():  # each walk has its own
            for name in names:
                patch.setattr(module, name, getattr(module, name))
        yield
