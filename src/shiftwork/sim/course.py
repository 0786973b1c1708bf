"""What is kept of a simulated pool: its curves, its scaling steps, its cost."""

from typing import Final

from msgspec import Struct, field

from shiftwork.core.scaling.plan import cores_of
from shiftwork.sim.judging import waits_of
from shiftwork.sim.pool_queue import PoolQueue
from shiftwork.sim.simulated import PoolCourse, ScalingStep

HOUR: Final = 3600.0


class Recorder(Struct):
    """Keeps the curves of a pool while it is simulated."""

    queue: PoolQueue
    depth: list[int] = field(default_factory=list)
    slots: list[float] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    steps: list[ScalingStep] = field(default_factory=list)
    unplaced: str | None = None
    _slot_seconds: float = 0.0
    _added: int = 0
    _marked_at: float = 0.0

    def mark(self, at: float) -> None:
        """End a step of the curves."""
        queue = self.queue
        slot_seconds = queue.slot_seconds(at)
        self.depth.append(queue.take_peak())
        self.slots.append((slot_seconds - self._slot_seconds) / (at - self._marked_at))
        self.arrivals.append(queue.added - self._added)
        self._slot_seconds, self._added, self._marked_at = slot_seconds, queue.added, at

    def course(self, at: float, price: float) -> PoolCourse:
        """Return everything that was kept. `price`: of a core for an hour."""
        queue = self.queue
        counts = [queue.slots, *(n for step in self.steps for n in (step.before, step.after))]
        slot_hours = queue.slot_seconds(at) / HOUR
        return PoolCourse(
            depth=self.depth,
            slots=self.slots,
            arrivals=self.arrivals,
            waits=waits_of(wait for worker in range(len(queue.waits)) for wait in queue.waits_until(at, worker)),
            steps=self.steps,
            deepest=max(self.depth, default=0),
            fewest_slots=min(counts),
            most_slots=max(counts),
            left=queue.left,
            dead=queue.dead,
            slot_hours=slot_hours,
            busy_hours=queue.busy_seconds(at) / HOUR,
            cost=slot_hours * cores_of(queue.pool) * price,
            unplaced=self.unplaced,
        )
