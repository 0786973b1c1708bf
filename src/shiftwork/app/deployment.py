"""What a deployment does once, before its nodes start: the functions of `@app.on_deploy`.

Several processes may deploy at once, as when each machine does so before its node starts. They take turns, by a lease
in the store. So the functions never run side by side, and should be safe to run again.
"""

import asyncio
import inspect
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, Final
from uuid import uuid4

from shiftwork.control.control import Control
from shiftwork.errors import ConfigurationError, LifecycleError, StoreError
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

DEPLOYMENT_LEASE: Final = "deployment"
HELD_SECONDS: Final = 15.0
"""How long a process that died while it deployed keeps others from deploying."""
RENEW_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 0.1


class Deployment:
    """The functions of an app that a deployment runs."""

    def __init__(self) -> None:
        self._functions: list[Callable[[], Any]] = []

    def add(self, function: Callable[[], Any]) -> None:
        """Add a function. Raises `ConfigurationError` if it cannot be called without arguments, or yields."""
        name = _name(function)
        try:
            inspect.signature(function).bind()
        except TypeError as error:
            message = f"@app.on_deploy calls its function without arguments: {name}(); {error}"
            raise ConfigurationError(message) from None
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            message = f"@app.on_deploy: {name}() yields, so calling it does nothing; remove the yield"
            raise ConfigurationError(message)
        self._functions.append(function)

    async def run(self, control: Control) -> list[str]:
        """Run the functions one after another, and return their names. Raises what a function raises."""
        store = await control.store.open_to_change()
        async with _deploy_lease(store, control.now) as lease, _portal(control):
            for function in self._functions:
                await _call(function)
                await lease.confirm()
        return [_name(function) for function in self._functions]


def _name(function: Callable[[], Any]) -> str:
    function = function.func if isinstance(function, partial) else function
    return getattr(function, "__name__", type(function).__name__)


async def _call(function: Callable[[], Any]) -> None:
    """Call a plain function in a thread, where it may call `app.blocking`."""
    made = function() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function)
    if inspect.isawaitable(made):  # also of a lambda, or of an object whose __call__ is async
        await made


class _DeployLease:
    """The lease of the process that deploys."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._holder = uuid4().hex
        self._held_until = math.inf

    async def take(self) -> bool:
        """Take or renew the lease. False if another process has it, or may have had it since it was renewed last."""
        asked = monotonic()
        held = await self._store.hold(DEPLOYMENT_LEASE, self._holder, 1, HELD_SECONDS, self._now())
        if not held or asked > self._held_until:
            return False
        self._held_until = asked + HELD_SECONDS
        return True

    async def keep(self) -> None:
        """Renew the lease, over and over, until that fails."""
        held = True
        while held:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(StoreError):
                held = await self.take()

    async def confirm(self) -> None:
        """Raise `LifecycleError` if another process may have deployed meanwhile."""
        if not await self.take():
            problem = f"this process did not renew its turn to deploy for {HELD_SECONDS:g} s"
            message = f"{problem}, so another one may have deployed at the same time: deploy again"
            raise LifecycleError(message)

    async def end(self) -> None:
        """Let the next process deploy."""
        with suppress(StoreError):  # then others wait until it has run out
            await self._store.drop(DEPLOYMENT_LEASE, self._holder)


@asynccontextmanager
async def _deploy_lease(store: Store, now: Callable[[], float]) -> AsyncIterator[_DeployLease]:
    """Wait for our turn, and keep it until the end."""
    lease, waiting = _DeployLease(store, now), False
    while not await lease.take():
        if not waiting:
            logger.warning("another process deploys; waiting until it has ended")
            waiting = True
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    keeping = asyncio.ensure_future(lease.keep())
    try:
        yield lease
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await lease.end()


@asynccontextmanager
async def _portal(control: Control) -> AsyncIterator[None]:
    """Have blocking calls run on this event loop, where the store is open, unless they run on another one already."""
    portal = control.portal
    before, portal.loop = portal.loop, portal.loop or asyncio.get_running_loop()
    try:
        yield
    finally:
        portal.loop = before
