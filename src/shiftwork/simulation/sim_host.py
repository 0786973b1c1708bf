"""A simulated machine as a node sees it: its `Host`, and the guard of its processes."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING

from shiftwork.core.observing.beats import ProcessMark
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
        threads=lambda: SimThreads(world.strands, world.loop, world.soon),
    )


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
        left = self._until - (self._world.loop.time() + self._process.machine.up)
        self._timer = None
        if left > 0:
            self._timer = self._world.loop.call_later(left, self._look, context=self._process.context())
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
