"""The instances of one pool on this node: as many as the plan wants, each replaced when it is spent.

In place, a pool is one instance with as many slots as it shall have workers. In processes of their own, an async or
thread pool likewise, in one process; a process pool has an instance for each worker.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from shiftwork.core.model import PoolConfig
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.engine.engine import Engine
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.store.protocol import Bell

logger: Final = logging.getLogger("shiftwork")

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 30.0
"""How long to wait before a process is started again that could not even begin; it doubles from the first."""
LONGEST_WAIT_AFTER_KILL_SECONDS: Final = 1.0
"""Likewise, where somebody has killed it: that says little about the next."""
STEADY_SECONDS: Final = 5.0
"""One that has been there for so long, or has run a job, could begin; one that dies earlier could not."""
FAILING_AFTER: Final = 3
"""So many of them in a row make the pool a failing one, which is said aloud."""
BURSTING: Final = 1.5
"""A process whose memory is so many times its limit is ended, whatever it runs."""


class Emit(Protocol):
    """Something happened."""

    def __call__(self, name: str, subject: str, message: str) -> None: ...


class PoolInstances:
    """Keeps as many instances as it shall, and claims for them."""

    def __init__(
        self,
        pool: PoolConfig,
        *,
        apart: bool,
        hire: Callable[["PoolInstances"], Engine],
        dismissed: Callable[[Engine], None],
        full: Callable[[], None],
        clock: Clock,
        bell: Bell,
        emit: Emit,
    ) -> None:
        self.pool = pool
        self.engines: list[Engine] = []
        self.target = 0
        self.failing: str | None = None
        """Why its processes cannot be started, if they cannot."""
        self._one_each = apart and pool.kind == "process"
        """Whether each worker is an instance of its own."""
        self._hire = hire
        self._dismissed = dismissed
        self._full = full
        self._clock = clock
        self._bell = bell
        self._emit = emit
        self._failures = 0
        self._again: Timer | None = None
        self._over = False

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def poll(self) -> float | None:
        """Claim for every instance that has room, the idlest first, until the queue has no more."""
        next_at: float | None = None
        for engine in sorted(self.engines, key=lambda engine: -engine.free):
            free = engine.free
            claims = await engine.claim()
            if claims.next_at is not None:
                next_at = claims.next_at if next_at is None else min(next_at, claims.next_at)
            if len(claims.jobs) < free:
                return next_at
        if self.target < self.pool.max_workers:
            self._full()  # all are busy, and there may be more to do
        return next_at

    # ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def resize(self, target: int) -> None:
        """Have so many workers from now on. Running jobs are never interrupted for it."""
        self.target = target
        self.reconcile()

    def reconcile(self) -> None:
        """Start what is missing, let go of what is too many."""
        if self._over:
            return
        serving = sorted(self._serving(), key=lambda engine: -len(engine.runs))
        wanted = self.target if self._one_each else min(self.target, 1)
        for engine in serving[wanted:]:  # the idle ones
            self._retire(engine)
        for _ in range(self._missing(wanted, len(serving))):
            if not self._add():
                break
        if not self._one_each:
            for engine in self._serving():
                engine.resize(self.target)

    def _missing(self, wanted: int, serving: int) -> int:
        """How many to start now: where the last one failed, one is enough to see whether the next will, too."""
        if self._again is not None or (self._failures and any(not self._begun(engine) for engine in self.engines)):
            return 0
        return min(wanted - serving, 1) if self._failures else wanted - serving

    def _begun(self, engine: Engine) -> bool:
        return not isinstance(engine.runner, RemoteRunner) or engine.runner.ready

    def _serving(self) -> Iterator[Engine]:
        for engine in self.engines:
            runner = engine.runner
            if engine.draining or (isinstance(runner, RemoteRunner) and (runner.dead or self._stuck(runner))):
                continue
            yield engine

    def _stuck(self, runner: RemoteRunner) -> bool:
        """Whether it has been silent for so long that another takes its place."""
        return runner.ready and not runner.alone and runner.silence > self.pool.heartbeat_interval

    def _add(self) -> bool:
        try:
            engine = self._hire(self)
        except OSError as error:
            self._failed_to_start(f"no process can be started: {error}")
            return False
        engine.resize(1 if self._one_each else self.target)
        self.engines.append(engine)
        return True

    def _retire(self, engine: Engine) -> None:
        engine.drain()
        self.ended(engine)

    def ended(self, engine: Engine) -> None:
        """A run of this one has ended: perhaps it was the last thing that kept it."""
        runner = engine.runner
        if self._failures and isinstance(runner, RemoteRunner) and runner.served:
            self._is_steady()
        if isinstance(runner, RemoteRunner) and not engine.draining and self._spent(engine, runner):
            engine.drain()
            self.reconcile()
        if engine.draining and not engine.runs and not self._over:
            if isinstance(runner, RemoteRunner) and not runner.dead:
                if runner.strays:
                    runner.kill("a run that was given up on goes on in it")
                else:
                    runner.close()
            else:
                self._dismiss(engine)

    def _spent(self, engine: Engine, runner: RemoteRunner) -> bool:
        most = self.pool.max_jobs_per_instance
        limit = self.pool.max_memory_per_instance
        if runner.strays:
            return True
        if most is not None and runner.served >= most:
            logger.info("%s has run %d jobs and is replaced", engine.instance, runner.served)
            return True
        if limit is not None and runner.load.memory > limit:
            logger.info(
                "%s uses %d bytes of memory, its limit is %d; it is replaced",
                engine.instance,
                runner.load.memory,
                limit,
            )
            return True
        return False

    def _dismiss(self, engine: Engine) -> None:
        if engine in self.engines:  # the end of its last run and the end of its process may both bring us here
            self.engines.remove(engine)
            self._dismissed(engine)

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    def ready(self) -> None:
        """One of its processes has begun."""
        self.reconcile()
        self._bell.ring()

    def _is_steady(self) -> None:
        self._failures = 0
        if self.failing is not None:
            self.failing = None
            self._emit("pool.recovered", self.pool.name, f"the processes of pool {self.pool.name} can be started again")
        self.reconcile()

    def gone(self, engine: Engine) -> None:
        """Its process is dead."""
        runner = engine.runner
        expected = engine.draining or self._over
        engine.draining = True
        if isinstance(runner, RemoteRunner) and not expected and not runner.lapsed and self._stillborn(engine, runner):
            longest = LONGEST_WAIT_AFTER_KILL_SECONDS if runner.killed_from_outside else LONGEST_WAIT_SECONDS
            self._failed_to_start(runner.error or "it ended as soon as it was ready", longest)
        if not engine.runs and not self._over:
            self._dismiss(engine)
        self.reconcile()

    def _stillborn(self, engine: Engine, runner: RemoteRunner) -> bool:
        return not runner.ready or (not runner.used and engine.age < STEADY_SECONDS)

    def _failed_to_start(self, error: str, longest: float = LONGEST_WAIT_SECONDS) -> None:
        self._failures += 1
        wait = min(longest, FIRST_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10))
        logger.error("a process of pool %s cannot be started: %s; trying again in %.1f s", self.pool.name, error, wait)
        if self._failures >= FAILING_AFTER and self.failing is None:
            self.failing = error
            message = f"pool {self.pool.name} is failing: its processes cannot be started: {error}"
            self._emit("pool.failing", self.pool.name, message)
        if self._again is None:
            self._again = self._clock.call_in(wait, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self.reconcile()

    def look(self) -> None:
        """Now and then: are they there, and how much do they use?"""
        for engine in list(self.engines):
            runner = engine.runner
            if not isinstance(runner, RemoteRunner) or runner.dead or not runner.ready:
                continue
            if self._failures and not engine.draining and engine.age > STEADY_SECONDS:
                self._is_steady()
            self._look_at_memory(engine, runner)
            if self._stuck(runner):
                engine.hand_back(runner.take_back())
            runner.ping()
        self.reconcile()

    def _look_at_memory(self, engine: Engine, runner: RemoteRunner) -> None:
        used, limit = runner.measure(), self.pool.max_memory_per_instance
        if limit is None or used <= limit:
            return
        words = f"used {used:,} bytes of memory; max_memory_per_instance of pool {self.pool.name} is {limit:,}"
        if runner.alone and engine.runs:
            runner.fail(words)
        elif used > BURSTING * limit:
            runner.kill(words)
        else:
            self.ended(engine)

    def close(self) -> None:
        """No more: the node stops."""
        self._over = True
        if self._again is not None:
            self._again.cancel()
