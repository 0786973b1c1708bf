"""Starts the instances of a node, each with its runner: in this process, or in one of its own.

`StartFailures` decides how long to wait before a process that could not begin is started again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.events import Emit
from shiftwork.history.opening import recorder_of
from shiftwork.runtime.claiming.pool_instance import PoolInstance, PoolInstanceListener
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.node.node_services import NodeServices
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.remote_runner import ProcessRole, RemoteRunner
from shiftwork.runtime.running.local_runner import LocalRunner, context_services
from shiftwork.runtime.running.runner import Isolation, Runner
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Bell, Store


class Runners:
    """Starts runners: in this process, or in processes of their own."""

    def __init__(self, services: NodeServices) -> None:
        self._services = services
        self._kills = KilledJobs()
        self.guard = services.host.guard()

    def local(self) -> Runner:
        """Return a runner in this process."""
        here = self._services
        services = context_services(
            self._store,
            here.clock,
            report=here.progress.report,
            middleware=here.registry.middleware,
            outages=here.outages,
            recorder=recorder_of(here.store),
        )
        return LocalRunner(here.registry.callees, services, load=here.gauge.load, threads=here.host.threads())

    def process(self, role: ProcessRole) -> Runner:
        """Start a process that runs many jobs at a time, or one. Raises `OSError` if it cannot be started."""
        here = self._services
        assert here.setup is not None  # noqa: S101 - given wherever a pool runs apart
        setup = replace(here.setup, role=role, now=here.clock.now(), at=time.monotonic())
        return RemoteRunner(
            setup, here.clock, report=here.progress.report, kills=self._kills, guard=self.guard, host=here.host
        )

    async def _store(self) -> Store:
        return self._services.store


class InstanceStarter:
    """Starts instances, each with the runner that its pool wants."""

    def __init__(
        self, services: NodeServices, runners: Runners, isolation: Isolation, on_started: Callable[[], None]
    ) -> None:
        self._services = services
        self._runners = runners
        self._isolation = isolation
        self._on_started = on_started
        """Called when there is one more instance to renew a lease for."""
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)

    def start(self, pool: PoolConfig, bell: Bell, listener: PoolInstanceListener) -> PoolInstance:
        """Start an instance. Raises `OSError` if its process cannot be started."""
        here = self._services
        shares = False
        if not here.settings.runs_apart(pool):
            runner = self._runners.local()
        elif pool.kind == "process":
            runner = self._runners.process("alone")
        else:
            runner, shares = self._runners.process("shared"), True
        instance = PoolInstance(
            pool,
            here,
            # Numbered: an instance that ends may still have jobs, and a lease, when the next one begins.
            name=f"{here.node}/{pool.name}#{next(self._numbers)}",
            runner=runner,
            isolation=self._isolation if shares else None,  # a run that is alone already needs no other place
            listener=listener,
            bell=bell,
        )
        # It claims nothing without a lease. A beat before its pool knows it would leave it out.
        self._loop.call_soon(self._on_started)
        return instance


logger: Final = logging.getLogger("shiftwork")

FIRST_START_WAIT_SECONDS: Final = 0.2
LONGEST_START_WAIT_SECONDS: Final = 30.0
"""How long to wait at most before a process is started again that could not begin; the wait doubles from the first."""
LONGEST_WAIT_AFTER_KILL_SECONDS: Final = 1.0
"""How long to wait at most where the process was killed from outside: that says little about the next."""
FAILING_AFTER: Final = 3
"""After this many failures in a row the pool is failing, and an event says so."""


class StartFailures:
    """Counts the failed starts in a row of one pool, and calls `retry` when it is time for the next try."""

    def __init__(self, pool: str, *, clock: Clock, emit: Emit, retry: Callable[[], None]) -> None:
        self.count: int = 0
        self.failing: str | None = None
        """Why the processes of the pool cannot be started, if they cannot."""
        self._pool = pool
        self._clock = clock
        self._emit = emit
        self._retry = retry
        self._timer: Timer | None = None

    @property
    def waiting(self) -> bool:
        """Whether it is too early for the next try."""
        return self._timer is not None

    def failed(self, error: str, longest: float = LONGEST_START_WAIT_SECONDS) -> None:
        """Note that a process could not be started, and try again later."""
        self.count += 1
        wait = min(longest, FIRST_START_WAIT_SECONDS * 2.0 ** min(self.count - 1, 10))
        logger.error("cannot start a process of pool %s: %s; trying again in %.1f s", self._pool, error, wait)
        if self.count >= FAILING_AFTER and self.failing is None:
            self.failing = error
            self._emit(
                "pool.failing",
                self._pool,
                sentence("pool {pool} is failing: cannot start its processes: {error}", pool=self._pool, error=error),
            )
        if self._timer is None:
            self._timer = self._clock.call_in(wait, self._try_again)

    def succeeded(self) -> None:
        """Note that a process began, and stays."""
        self.count = 0
        if self.failing is not None:
            self.failing = None
            self._emit(
                "pool.recovered",
                self._pool,
                sentence("pool {pool} has recovered: its processes start again", pool=self._pool),
            )

    def close(self) -> None:
        """Try no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _try_again(self) -> None:
        self._timer = None
        self._retry()
