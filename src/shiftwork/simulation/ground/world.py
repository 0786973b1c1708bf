"""The simulated world: one loop, its machines and processes, the way to the store, and what is written down.

Nodes, clients and faults are made of this; they are in files of their own.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

from shiftwork.history.recorded_store import RecordedStore
from shiftwork.simulation.ground.links import HANDOVER, Handover
from shiftwork.simulation.ground.network import Connection, Network, StoreDelays
from shiftwork.simulation.ground.process_loop import ProcessLoop
from shiftwork.simulation.ground.sim_machine import SimMachine, SimProcess
from shiftwork.simulation.ground.sim_recorder import RecordedLines
from shiftwork.simulation.ground.strands import Strands
from shiftwork.simulation.ground.virtual_time import VirtualTime

LONG_INTERRUPTION_SHARE: Final = 0.02
"""How many of all interruptions are long."""


class Rhythm(StoreDelays, frozen=True, kw_only=True):
    """How long other things take than the way to the store, and how often a process loses the processor."""

    notice: float = 0.0002
    """How long it takes until a process notices something: a message, a death, a new thread."""
    interrupted_share: float = 0.05
    """How often a process loses the processor at a place where others may see what it has done by then."""
    interruption: float = 0.003
    """For how long, usually; sometimes for a hundred times as long."""


class World:
    """Everything that is simulated."""

    def __init__(self, seed: int, rhythm: Rhythm, handover: Handover = HANDOVER) -> None:
        self.seed = seed
        self.handover = handover
        self.rhythm = rhythm
        self.time: Final = VirtualTime(Random(f"{seed} order"))
        self.met: Final[Counter[str]] = Counter()
        """What has gone wrong, and how often, as far as it met something."""
        self.serving: Final[dict[str, int]] = {}
        """The version of the app that each node runs now."""
        self._chance = Random(f"{seed} world")
        self.machines: Final[dict[str, SimMachine]] = {}
        self.processes: Final[list[SimProcess]] = []
        """All that ever were."""
        self.home: Final = self.start(self.machine("store", wall=0.0, up=1000.0, cores=4.0), "store")
        """The process of the store."""
        self.network: Final = Network(
            self.time,
            self.home,
            chance=Random(f"{seed} network"),
            pace=rhythm,
            met=self.met,
        )
        self.strands: Final = Strands(self.time, self.home)
        self.records: Final = RecordedLines(self.time)
        self._runs: Counter[str] = Counter()
        self._lives: list[asyncio.Task[None]] = []
        self._at_end: list[Callable[[], object]] = []

    # ── machines and processes ───────────────────────────────────────────────────────────────────────────────────

    def machine(self, name: str, *, wall: float, up: float, cores: float) -> SimMachine:
        """Return a new machine."""
        made = self.machines[name] = SimMachine(name, wall=wall, up=up, cores=cores)
        return made

    def start(self, machine: SimMachine, name: str) -> SimProcess:
        """Return a new process, which does nothing yet."""
        process = SimProcess(name, machine, machine.give_pid())
        process.loop = ProcessLoop(self.time, process)
        machine.processes[process.pid] = process
        process.on_death(lambda _status: machine.forget(process.pid))
        self.processes.append(process)
        return process

    def thread(self, process: SimProcess, name: str) -> SimProcess:
        """Return a new thread of a process, with an event loop of its own."""
        thread = SimProcess(f"{process.name} {name}", process.machine, process.pid, of=process)
        thread.loop = ProcessLoop(self.time, thread)
        self.processes.append(thread)
        return thread

    def connect(self, process: SimProcess) -> tuple[RecordedStore, Connection]:
        """Return the store as a process sees it, which writes down what it asks, and its way there."""
        connection = self.network.connect(process)
        recorder = self.records.recorder(process, connection)
        return RecordedStore(connection, recorder), connection

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def soon(self) -> float:
        """Return how long it takes until something is noticed."""
        return self._chance.expovariate(1.0 / self.rhythm.notice)

    def later(self, process: SimProcess, seconds: float, callback: Callable[..., object], *args: object) -> None:
        """Let a process call this after a while."""
        self.time.later(process, seconds, callback, *args)

    def interrupt(self) -> None:
        """Perhaps take the process that runs off the processor for a moment."""
        draw, process = self._chance.random, self.time.current
        if process is None or draw() >= self.rhythm.interrupted_share:
            return
        seconds = draw() * self.rhythm.interruption * (100.0 if draw() < LONG_INTERRUPTION_SHARE else 1.0)
        self.met["interruption"] += 1
        if self.strands.inside:
            self.strands.lose_processor(process, seconds)
        else:
            self.time.preempt(seconds)

    # ── what happens to processes ────────────────────────────────────────────────────────────────────────────────

    def next_run(self, name: str) -> int:
        """Return which run of a job or a worker begins now, from 0, in all processes."""
        self._runs[name] += 1
        return self._runs[name] - 1

    @property
    def here(self) -> SimProcess:
        """The process that runs, whichever of its threads that is."""
        assert self.time.current is not None  # noqa: S101 - something runs, and asks
        return self.time.current.main

    def kill(self, process: SimProcess, status: int) -> None:
        """Let a process end at once."""
        process.die(status)

    def freeze(self, process: SimProcess, seconds: float) -> None:
        """Let a process stand still for this long, with all its threads."""
        for one in (process, *process.threads):
            self.block(one, seconds)

    def block(self, process: SimProcess, seconds: float) -> None:
        """Hold up the event loop of a process for this long, or of a thread of one."""
        self.time.freeze(process)
        self.later(self.home, seconds, self.time.thaw, process)

    def at_end(self, callback: Callable[[], object]) -> None:
        """Call this when the simulation is over."""
        self._at_end.append(callback)

    def live(self, life: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Begin a coroutine in the process that runs."""
        task = asyncio.get_running_loop().create_task(life, name=name)
        task.add_done_callback(self._ended)
        self._lives.append(task)

    def _ended(self, life: "asyncio.Task[None]") -> None:
        """Note what the simulation's own coroutines raise: nothing else would show it."""
        if not life.cancelled() and (error := life.exception()) is not None:
            self.time.surprises.append(f"{life.get_name()}: {error!r}")

    def close(self) -> None:
        """End the simulation."""
        self.records.close()
        self.time.close()
        self.strands.close()
        self.time.current = None
        for process in self.processes:
            self.time.inside(process, process.dispose)  # asyncio would make a real event loop where none runs
        for callback in self._at_end:
            callback()
