"""How an instance of a pool is started on a node."""

import asyncio
from collections.abc import Callable
from itertools import count

from shiftwork.core.model import PoolConfig
from shiftwork.runtime.engine.engine import Engine, EngineListener
from shiftwork.runtime.engine.isolation import Isolation
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.node.runners import Runners
from shiftwork.store.protocol import Bell


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

    def start(self, pool: PoolConfig, bell: Bell, listener: EngineListener) -> Engine:
        """Start an instance. Raises `OSError` if its process cannot be started."""
        here = self._environment
        shares = False
        if not here.settings.runs_apart(pool):
            runner = self._runners.local()
        elif pool.kind == "process":
            runner = self._runners.process("alone")
        else:
            runner, shares = self._runners.process("shared"), True
        engine = Engine(
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
