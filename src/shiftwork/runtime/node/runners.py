"""The runners of a node: in its own process, or in processes that it starts."""

import time

from msgspec.structs import replace

from shiftwork.runtime.engine.context_services import context_services
from shiftwork.runtime.engine.local_runner import LocalRunner
from shiftwork.runtime.engine.runner import Runner
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.processes.kill_record import KillRecord
from shiftwork.runtime.processes.process_guard import ProcessGuard
from shiftwork.runtime.processes.remote_runner import ProcessRole, RemoteRunner
from shiftwork.store.protocol import Store


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
