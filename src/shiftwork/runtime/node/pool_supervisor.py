"""The instances of one pool on this node: as many as the plan wants, each replaced when it is worn out.

In the node's own process a pool is one instance, with as many slots as the plan gives it. Apart from it, each process
is an instance: `core.scaling.placement` decides how many there are, and how many slots each of them has.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.scaling.placement import process_count, shares
from shiftwork.core.words import counted
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.node.instance_starter import (
    LONGEST_START_WAIT_SECONDS,
    LONGEST_WAIT_AFTER_KILL_SECONDS,
    InstanceStarter,
    StartFailures,
)
from shiftwork.runtime.node.node_services import NodeServices
from shiftwork.runtime.running.runner import Runner
from shiftwork.store.protocol import Bell

logger: Final = logging.getLogger("shiftwork")

STEADY_SECONDS: Final = 5.0
"""A process that lives this long, or has run a job, could begin; one that dies earlier could not."""


class ChangeWatch:
    """Wakes the task that waits for a condition, when something has changed. One task at a time may wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._look: Callable[[], None] | None = None

    def happened(self) -> None:
        """Something has changed: look whether the condition is met now."""
        if self._look is not None:
            self._look()

    async def until(self, met: Callable[[], bool], deadline: float | None = None) -> None:
        """Return when the condition is met, or at the deadline."""
        if deadline is not None and deadline <= self._clock.now():
            return  # a clock that a test moves by hand would not call back
        over = asyncio.Event()
        timer = None if deadline is None else self._clock.call_at(deadline, over.set)

        def look() -> None:
            if met():
                over.set()

        self._look = look
        look()
        await over.wait()
        self._look = None
        if timer is not None:
            timer.cancel()


class PoolSupervisor:
    """Keeps as many instances as the plan wants, and claims for them."""

    def __init__(
        self,
        pool: PoolConfig,
        services: NodeServices,
        starter: InstanceStarter,
        *,
        cores: float,
        bell: Bell,
        on_full: Callable[[], None],
        on_poll: Callable[[], None],
        on_change: Callable[[], None],
        on_ended: Callable[[PoolInstance], None],
    ) -> None:
        self.pool = pool
        self._wears_out = pool.max_jobs_per_instance is not None or pool.max_memory_per_instance is not None
        self.instances: list[PoolInstance] = []
        self.target: int = 0
        """How many slots the pool has on this node, by the plan."""
        self._apart = services.settings.runs_apart(pool)
        self._cores = cores
        """How many cores this machine has."""
        self._starter = starter
        self._bell = bell
        self._on_full = on_full
        """Called when all slots are busy and the pool may grow."""
        self._on_poll = on_poll
        """Called before each claim: jobs may have come."""
        self._on_change = on_change
        """Called when a run or a process has ended."""
        self._on_ended = on_ended
        """Called with an instance that has ended and holds nothing."""
        emit = services.reporter.emit
        self._failures = StartFailures(pool.name, clock=services.clock, emit=emit, retry=self.reconcile)
        self._closed = False

    @property
    def failing(self) -> str | None:
        """Why its processes cannot be started, if they cannot."""
        return self._failures.failing

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def poll(self) -> float | None:
        """Claim for every instance that has room, the idlest first, until the queue has no more."""
        self._on_poll()
        next_at: float | None = None
        for instance in sorted(self.instances, key=lambda instance: (-instance.claimer.free, instance.claimer.waiting)):
            wanted, claims = await instance.claimer.claim()
            next_at = min(
                (at for at in (next_at, claims.next_at, instance.claimer.look_at) if at is not None), default=None
            )
            if len(claims.jobs) < wanted:
                return next_at
        if self.target < self.pool.max_workers:
            self._on_full()
        return next_at

    # ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def resize(self, target: int) -> None:
        """Have this many slots from now on. Running jobs are never interrupted for it."""
        self.target = target
        self.reconcile()

    def reconcile(self) -> None:
        """Start instances that are missing, and let go of those that are too many."""
        if self._closed:
            return
        serving, wanted = self._busiest_first(), self._wanted()
        for instance in serving[wanted:]:  # the idle ones
            instance.drain()
            self._end_if_idle(instance)
        for _ in range(self._missing(wanted, len(serving))):
            if not self._start():
                break
        serving = self._busiest_first()
        for instance, slots in zip(serving, shares(self.target, len(serving)), strict=True):
            instance.resize(slots)

    def _wanted(self) -> int:
        """Return how many instances there should be."""
        return process_count(self.pool, self.target, self._cores) if self._apart else min(self.target, 1)

    def _busiest_first(self) -> list[PoolInstance]:
        return sorted(self._serving(), key=lambda instance: (-len(instance.runs.active), -instance.claimer.slots))

    def _serving(self) -> Iterator[PoolInstance]:
        for instance in self.instances:
            if not instance.lease.draining and not instance.runner.dead and not self._stuck(instance.runner):
                yield instance

    def _stuck(self, runner: Runner) -> bool:
        """Return whether the runner has been silent for so long that another takes its place."""
        return runner.ready and runner.silence > self.pool.heartbeat_interval

    def _missing(self, wanted: int, serving: int) -> int:
        """Return how many to start now. After a failure, one is enough to see whether the next one fails too."""
        if self._failures.waiting:
            return 0
        if not self._failures.count:
            return wanted - serving
        if any(not instance.runner.ready for instance in self.instances):
            return 0
        return min(wanted - serving, 1)

    def _start(self) -> bool:
        try:
            instance = self._starter.start(self.pool, self._bell, self)
        except OSError as error:
            self._failures.failed(str(error))
            return False
        self.instances.append(instance)
        return True

    # ── what happens to them ─────────────────────────────────────────────────────────────────────────────────────

    def instance_ready(self, _instance: PoolInstance) -> None:
        self.reconcile()

    def run_ended(self, instance: PoolInstance) -> None:
        """Replace an instance that is worn out. The run may have been the last thing that kept one that drains."""
        if self._failures.count and instance.runner.served:
            self._succeeded()
        if (self._wears_out or instance.runner.strays) and instance.runner.apart:
            self._replace_if_worn_out(instance)
        if instance.lease.draining:
            self._end_if_idle(instance)
        self._on_change()

    def instance_gone(self, instance: PoolInstance, *, expected: bool) -> None:
        runner = instance.runner
        if not expected and not self._closed and not runner.lapsed and self._could_not_begin(instance):
            longest = LONGEST_WAIT_AFTER_KILL_SECONDS if runner.killed_from_outside else LONGEST_START_WAIT_SECONDS
            self._failures.failed(runner.error or "it ended as soon as it was ready", longest)
        self._end_if_idle(instance)
        self.reconcile()
        self._on_change()

    def _could_not_begin(self, instance: PoolInstance) -> bool:
        runner = instance.runner
        return not runner.ready or (not runner.used and instance.age < STEADY_SECONDS)

    def _succeeded(self) -> None:
        self._failures.succeeded()
        self.reconcile()

    def _replace_if_worn_out(self, instance: PoolInstance) -> None:
        if not instance.lease.draining and self._worn_out(instance):
            instance.drain()
            self.reconcile()

    def _worn_out(self, instance: PoolInstance) -> bool:
        runner, most, limit = instance.runner, self.pool.max_jobs_per_instance, self.pool.max_memory_per_instance
        if runner.strays:
            return True
        if most is not None and runner.served >= most:
            logger.info("replacing %s: it has run %s", instance.name, counted(runner.served, "job"))
            return True
        if limit is not None and runner.load.memory > limit:
            used = runner.load.memory
            logger.info("replacing %s: it uses %d bytes of memory, and its limit is %d", instance.name, used, limit)
            return True
        return False

    def _end_if_idle(self, instance: PoolInstance) -> None:
        """Let go of an instance that claims no more, once its last run has ended: first its runner, then its lease."""
        if not instance.lease.draining or instance.runs.active or self._closed:
            return
        if instance.runner.dead:
            if instance in self.instances:  # the ends of its last run and of its runner may both lead here
                self.instances.remove(instance)
                self._on_ended(instance)
        elif instance.runner.strays:
            instance.runner.kill("a run that was given up on goes on in it")
        else:
            instance.runner.close()

    # ── looking after them ───────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> None:
        """Find instances that do not answer, or use too much memory. Called every second."""
        limit = self.pool.max_memory_per_instance
        for instance in list(self.instances):
            runner = instance.runner
            if runner.dead or not runner.ready:
                continue
            if self._failures.count and not instance.lease.draining and instance.age > STEADY_SECONDS:
                self._succeeded()
            if self._stuck(runner):
                instance.runs.hand_back_unbegun()
            runner.look(limit)
            if limit is not None and runner.apart and runner.load.memory > limit:
                self._replace_if_worn_out(instance)
                self._end_if_idle(instance)
        self.reconcile()

    def close(self) -> None:
        """Start and end no more instances: the node stops."""
        self._closed = True
        self._failures.close()
