"""A simulated machine as a node sees it: its `Host`, and the guard of its processes."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from shiftwork.core.observing.beats import ProcessMark
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.node.lease_renewer import LeaseRenewer
from shiftwork.runtime.processes.host import Host
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.strands import SimThreads
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.sim_child import LiveApp, SimSpawned

if TYPE_CHECKING:
    from asyncio import TimerHandle

KILLED = -9


def host_of(
    world: World, node: SimProcess, make_app: Callable[[SimProcess], LiveApp], children: list[SimProcess]
) -> Host:
    """Return the host of a node. `children` gets every process that the node starts."""
    machine = node.machine

    def start(on_failure: ExitStack) -> SimSpawned:
        if machine.full:
            raise OSError("the machine has no room for another process")
        spawned = SimSpawned(world, node, on_failure, make_app)
        children.append(spawned.process)
        return spawned

    def end_groups(groups: Collection[int], _owner: ProcessMark) -> bool:
        left = [machine.processes[pid] for pid in groups if pid in machine.processes]
        for process in left:
            world.later(world.home, world.soon(), process.die, KILLED)
        return not left

    return Host(
        measure=machine.measure,
        usage=machine.usage,
        starved=lambda: 0,
        mark=lambda: machine.mark(node.pid),
        is_dead=machine.is_dead,
        end_groups=end_groups,
        start=start,
        guard=lambda: SimGuard(world, node),
        pulse=partial(SimPulse, world, node),
        watches_loops=False,
        threads=lambda: SimThreads(world.strands, world.time, world.soon),
    )


class SimPulse:
    """The thread of a node's pulse: an event loop of its own, which goes on while that of the node is blocked."""

    def __init__(
        self, world: World, node: SimProcess, pulse: LeaseRenewer, beside: Callable[[], Sequence[Duty]]
    ) -> None:
        self._world = world
        self._thread = world.thread(node, "pulse")
        self._pulse = pulse
        self._beside = beside
        self._duties: list[Duty] = []
        self._home = asyncio.get_running_loop()
        self._gone = asyncio.Event()

    def start(self) -> None:
        """Begin to beat."""
        self._world.time.inside(self._thread, self._begin)

    async def stop(self) -> None:
        """End."""
        self._thread.loop.call_soon_threadsafe(self._pulse.over.set)
        await self._gone.wait()

    def _begin(self) -> None:
        self._duties = [self._pulse.duty(), *self._beside()]
        for duty in self._duties:
            duty.start()
        self._world.live(self._end())

    async def _end(self) -> None:
        await self._pulse.over.wait()
        for duty in self._duties:
            await duty.stop()
        self._home.call_soon_threadsafe(self._gone.set)


class SimGuard:
    """Ends the processes of a node with it, or when its leases have ended; it is a process of its own."""

    def __init__(self, world: World, node: SimProcess) -> None:
        self._world = world
        self._node = node
        self._process = world.start(node.machine, f"{node.name} guard")
        self._groups: dict[int, None] = {}
        self._until: float | None = None
        self._timer: TimerHandle | None = None
        node.on_death(lambda _status: world.later(self._process, world.soon(), self._end))

    def watch(self, group: int) -> None:
        """End this process with the node."""
        self._groups[group] = None

    def forget(self, group: int) -> None:
        """Forget a process that has ended."""
        self._groups.pop(group, None)

    def renew(self, until: float) -> None:
        """Note until when the leases hold."""
        self._until = until
        if self._timer is None and self._groups:
            self._look()

    def close(self) -> None:
        """End."""
        self._process.die(0)

    def _look(self) -> None:
        assert self._until is not None  # noqa: S101 - it was renewed
        left = self._until - (self._world.time.now + self._process.machine.up)
        self._timer = None
        if left > 0:
            self._timer = self._world.time.later(self._process, left, self._look)
        else:
            self._kill()

    def _kill(self) -> None:
        processes = self._process.machine.processes
        for group in [*self._groups]:
            if group in processes:
                processes[group].die(KILLED)

    def _end(self) -> None:
        self._kill()
        self._process.die(0)
