"""The runners of a node: in its own process, or in processes that it starts."""

import asyncio
import time
from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from shiftwork.core.model.worker import PoolConfig
from shiftwork.runtime.context.context_services import context_services
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.pool_instance import PoolInstance, PoolInstanceListener
from shiftwork.runtime.processes.kill_record import KillRecord
from shiftwork.runtime.processes.process_guard import ProcessGuard
from shiftwork.runtime.processes.remote_runner import ProcessRole, RemoteRunner
from shiftwork.runtime.running.isolation import Isolation
from shiftwork.runtime.running.local_runner import LocalRunner
from shiftwork.runtime.running.runner import Runner
from shiftwork.store.protocol import Bell, Store


class Runners:
    """Starts runners."""

    def __init__(self, environment: NodeEnvironment) -> None:
        self._environment = environment
        self._kills = KillRecord()
        self.guard = ProcessGuard()

    def local(self) -> Runner:
        """A runner in this process."""
        here = self._environment
        services = context_services(
            self._store,
            here.clock,
            report=here.notebook.report,
            surroundings=here.registry.surroundings,
            voice=here.voice,
        )
        return LocalRunner(here.registry.callees, services, load=here.gauge.load)

    def process(self, role: ProcessRole) -> Runner:
        """A process that runs many jobs at a time, or one. Raises `OSError` if it cannot be started."""
        here = self._environment
        assert here.setup is not None  # noqa: S101 - given wherever a pool runs apart
        setup = replace(here.setup, role=role, now=here.clock.now(), at=time.monotonic())
        return RemoteRunner(setup, here.clock, report=here.notebook.report, kills=self._kills, guard=self.guard)

    async def _store(self) -> Store:
        return self._environment.store


class InstanceStarter:
    """Starts instances, each with the runner that its pool wants."""

    def __init__(
        self, environment: NodeEnvironment, runners: Runners, isolation: Isolation, started: Callable[[], None]
    ) -> None:
        self._environment = environment
        self._runners = runners
        self._isolation = isolation
        self._started = started
        """Called when there is one more instance to renew a lease for."""
        self._loop = asyncio.get_running_loop()
        self._numbers = count(1)

    def start(self, pool: PoolConfig, bell: Bell, listener: PoolInstanceListener) -> PoolInstance:
        """Start an instance. Raises `OSError` if its process cannot be started."""
        here = self._environment
        shares = False
        if not here.settings.runs_apart(pool):
            runner = self._runners.local()
        elif pool.kind == "process":
            runner = self._runners.process("alone")
        else:
            runner, shares = self._runners.process("shared"), True
        engine = PoolInstance(
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
        self._loop.call_soon(self._started)
        return engine
