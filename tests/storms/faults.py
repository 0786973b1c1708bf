"""What harms a storm's system: each fault is drawn from the seed, noted in the history, and undone by itself."""

import os
import random
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

import psutil

from tests.polling import pass_time
from tests.storms.memory import little_memory

FREEZES: Final = (1.0, 4.0, 9.0)
"""How long something is frozen: less than the lease, about it, and longer."""
CLOCK_STEPS: Final = (-3600.0, -20.0, 20.0, 7200.0)
LOOK_SECONDS: Final = 0.1
OUTAGES: Final = (0.5, 3.0, 8.0)


class System(Protocol):
    """What a storm can harm."""

    def nodes(self) -> list[int]:
        """The pids of the nodes that run jobs; not of those that are starting."""

    def children(self, pid: int) -> list[psutil.Process]:
        """The processes of a node that run jobs."""

    def start_node(self) -> None: ...

    def leader(self) -> int | None:
        """The pid of the node that leads, if it is known."""

    def set_clock(self, pid: int, ahead: float) -> None:
        """Set the wall clock of a node and its processes."""

    async def harm_store(self, how: str, seconds: float) -> None: ...

    @property
    def store_faults(self) -> tuple[str, ...]:
        """How its store can be harmed: such as "restart" or "lost reply"."""

    def note(self, kind: str, what: str, seconds: float | None = None) -> None:
        """Write the fault into the history."""


class Faults:
    """Draws faults from a seed, and injects them one after the other."""

    def __init__(self, system: System, seed: int) -> None:
        self._system = system
        self._dice = random.Random(seed)
        kinds: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self._kill_child, 6),
            (self._kill_node, 2),
            (self._kill_leader, 1),
            (self._freeze_node, 2),
            (self._freeze_child, 2),
            (self._replace_node, 2),
            (self._step_clock, 2),
            (self._starve_node, 2),
            (self._harm_store, 3 if system.store_faults else 0),
        ]
        self._kinds = [kind for kind, weight in kinds for _ in range(weight)]

    async def strike(self) -> None:
        """Do one fault, and undo it."""
        await self._dice.choice(self._kinds)()

    async def _kill_child(self) -> None:
        children = [child for node in self._system.nodes() for child in self._system.children(node)]
        if children:
            victim = self._dice.choice(children)
            self._system.note("kill", f"process {victim.pid}")
            _send(victim.pid, signal.SIGKILL)

    async def _kill_node(self) -> None:
        await self._kill(self._node(), "node")

    async def _kill_leader(self) -> None:
        await self._kill(self._system.leader(), "leader")

    def _node(self) -> int | None:
        """Draw a node; None if none runs."""
        nodes = self._system.nodes()
        return self._dice.choice(nodes) if nodes else None

    async def _kill(self, pid: int | None, what: str) -> None:
        if pid is None:
            return
        others = [child.pid for child in self._system.children(pid)]
        self._system.note("kill", " ".join([what, *map(str, [pid, *others])]))
        _send(pid, signal.SIGKILL)
        self._system.start_node()

    async def _freeze_node(self) -> None:
        pid = self._node()
        if pid is None:
            return
        pids = [pid, *(child.pid for child in self._system.children(pid))] if self._dice.random() < 0.5 else [pid]
        await self._freeze(pids, f"node {pid}" + (" and its processes" if len(pids) > 1 else ""))

    async def _freeze_child(self) -> None:
        children = [child for node in self._system.nodes() for child in self._system.children(node)]
        if children:
            victim = self._dice.choice(children).pid
            await self._freeze([victim], f"process {victim}")

    async def _freeze(self, pids: Iterable[int], what: str) -> None:
        seconds = self._dice.choice(FREEZES)
        self._system.note("freeze", what, seconds)
        pids = list(pids)
        for pid in pids:
            _send(pid, signal.SIGSTOP)
        await pass_time(seconds)
        for pid in pids:
            _send(pid, signal.SIGCONT)

    async def _replace_node(self) -> None:
        """Stop a node as a deployment does, beside a new one."""
        pid = self._node()
        if pid is None:
            return
        self._system.note("replace", f"node {pid}")
        self._system.start_node()
        _send(pid, signal.SIGTERM)

    async def _step_clock(self) -> None:
        pid, seconds = self._node(), self._dice.choice(FREEZES)
        if pid is None:
            return
        ahead = self._dice.choice(CLOCK_STEPS)
        self._system.note("clock", f"node {pid} by {ahead:+g} s", seconds)
        self._system.set_clock(pid, ahead)
        await pass_time(seconds)
        self._system.set_clock(pid, 0.0)

    async def _starve_node(self) -> None:
        """Give the processes of a node little memory until the kernel kills one, or none of them asks for more."""
        node, seconds = self._node(), self._dice.choice(FREEZES)
        children = [] if node is None else self._system.children(node)
        with little_memory([child.pid for child in children]) as kills:
            if kills is None:
                return
            self._system.note("memory", f"node {node}", seconds)
            for _ in range(int(seconds / LOOK_SECONDS)):
                await pass_time(LOOK_SECONDS)
                if kills():
                    gone = [f"{child.pid}" for child in children if not child.is_running()]
                    self._system.note("oom kill", " ".join(["process", *gone]))
                    return

    async def _harm_store(self) -> None:
        how, seconds = self._dice.choice(self._system.store_faults), self._dice.choice(OUTAGES)
        self._system.note(how, "store", None if how == "lost reply" else seconds)
        await self._system.harm_store(how, seconds)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
