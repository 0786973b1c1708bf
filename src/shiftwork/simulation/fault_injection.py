"""Lets things go wrong as an episode says, and puts everything right again at its end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast, get_args

from shiftwork.history.lines import Fault
from shiftwork.simulation.episode import Episode, FaultPlan
from shiftwork.simulation.ground.network import Fate
from shiftwork.simulation.ground.sim_machine import SimMachine, SimProcess
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.sim_node import SimNode

if TYPE_CHECKING:
    from shiftwork.simulation.ground.network import Away

KILLED: Final = -9
DEPLOY_SECONDS: Final = 3.0
LATER: Final = frozenset((*get_args(Fate), "kill at call"))
"""What meets something only later, and is counted then."""


class Faults:
    """What goes wrong."""

    def __init__(self, world: World, episode: Episode, nodes: Sequence[SimNode]) -> None:
        self._world = world
        self._nodes = nodes
        self._machines: list[SimMachine] = [*dict.fromkeys(node.machine for node in nodes)]
        self._lease_seconds = episode.lease_seconds
        self._versions = episode.versions
        self._over = False
        for fault in episode.faults:
            world.later(world.home, fault.at, self._happen, fault)

    def _happen(self, fault: FaultPlan) -> None:
        if self._over:
            return
        if getattr(self, "_" + fault.kind.replace(" ", "_"))(fault) is not False:
            if fault.kind not in LATER:
                self._world.met[self._name(fault)] += 1
            line = Fault(self._world.time.now, fault.kind, f"{fault.target} {fault.what}".strip(), fault.seconds)
            self._world.records.write("harness", line)

    def _name(self, fault: FaultPlan) -> str:
        """Return what is counted: the kind of a fault, and what makes a difference."""
        if fault.kind.startswith("freeze"):
            asleep = ", asleep" if fault.what else ""
            return f"{fault.kind}{asleep}" + (" beyond its lease" if fault.seconds > self._lease_seconds else "")
        if fault.kind in ("outage", "partition", "stop node"):
            return f"{fault.kind} {fault.what}".strip()
        if fault.kind == "clock":
            return f"clock of {'the store' if fault.what else 'a machine'}"
        return fault.kind + (" at an await" if fault.callbacks else "")

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    def _node(self, fault: FaultPlan) -> SimNode:
        return self._nodes[fault.target % len(self._nodes)]

    def _child(self, fault: FaultPlan) -> SimProcess | None:
        children = [child for node in self._nodes for child in node.children]
        return children[fault.target % len(children)] if children else None

    def _kill_node(self, fault: FaultPlan) -> bool:
        return self._kill(self._node(fault).process, KILLED, fault.callbacks)

    def _kill_child(self, fault: FaultPlan) -> bool:
        return self._kill(self._child(fault), -int(fault.what or 9), fault.callbacks)

    def _kill(self, process: SimProcess | None, status: int, callbacks: int) -> bool:
        if process is None or not process.alive:
            return False
        if callbacks:
            process.fuse = callbacks
        else:
            self._world.kill(process, status)
        return True

    def _freeze_node(self, fault: FaultPlan) -> bool:
        process = self._node(fault).process
        return self._freeze([process] if process is not None else [], fault.seconds)

    def _freeze_child(self, fault: FaultPlan) -> bool:
        child = self._child(fault)
        return self._freeze([child] if child is not None else [], fault.seconds)

    def _freeze_machine(self, fault: FaultPlan) -> bool:
        machine = self._machine(fault)
        if fault.what == "asleep":  # its clocks stand still, and so do its timers
            machine.up -= fault.seconds
            self._world.time.put_off(lambda process: process.machine is machine, fault.seconds)
        return self._freeze([*machine.processes.values()], fault.seconds)

    def _freeze(self, processes: list[SimProcess], seconds: float) -> bool:
        frozen = [process for process in processes if process.alive and not process.frozen]
        for process in frozen:
            self._world.freeze(process, seconds)
        return bool(frozen)

    def _kill_at_call(self, fault: FaultPlan) -> None:
        self._node(fault).die_at(fault.what)

    def _stop_node(self, fault: FaultPlan) -> None:
        node = self._node(fault)
        if fault.what == "deploy":
            node.deploy(2, fault.seconds)
        else:
            node.stop(fault.seconds)

    def _cannot_start(self, fault: FaultPlan) -> None:
        self._machine(fault).full = True
        self._world.later(self._world.home, fault.seconds, self._machine(fault).make_room)

    # ── the store and the way there ──────────────────────────────────────────────────────────────────────────────

    def _machine(self, fault: FaultPlan) -> SimMachine:
        return self._machines[fault.target % len(self._machines)]

    def _outage(self, fault: FaultPlan) -> bool:
        network = self._world.network
        if network.away is not None:
            return False
        network.away = cast("Away", fault.what)
        self._world.later(self._world.home, fault.seconds, self._store_is_back)
        return True

    def _store_is_back(self) -> None:
        self._world.network.away = None
        self._world.network.back()

    def _partition(self, fault: FaultPlan) -> bool:
        machine = self._machine(fault)
        if machine.cut is not None:
            return False
        machine.cut = fault.what
        self._world.later(self._world.home, fault.seconds, self._connect, machine)
        return True

    def _connect(self, machine: SimMachine) -> None:
        machine.cut = None
        self._world.network.back()

    def _lost_request(self, fault: FaultPlan) -> bool:
        process = self._node(fault).process
        return process is not None and self._world.network.doom(process, fault.what or None, cast("Fate", fault.kind))

    _lost_reply = _late = _lost_request

    def _rings(self, fault: FaultPlan) -> None:
        self._world.network.doubled = 0.5
        self._world.later(self._world.home, fault.seconds, setattr, self._world.network, "doubled", 0.0)

    def _clock(self, fault: FaultPlan) -> None:
        machine = self._world.home.machine if fault.what == "store" else self._machine(fault)
        machine.wall += fault.seconds

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        """Put everything right."""
        self._over = True
        self._world.network.calm = True
        self._store_is_back()
        for machine in self._machines:
            self._connect(machine)
            machine.full = False
            for process in [*machine.processes.values()]:
                process.fuse = 0
                for one in (process, *process.threads):
                    self._world.time.thaw(one)
        for node in self._nodes:
            node.die_at(None)
            if node.version < self._versions:  # or no node would have what is new
                node.deploy(self._versions, DEPLOY_SECONDS)
