"""What a deployment does once, before its nodes start: the functions of `@app.on_deploy`.

Several processes may deploy at once, as when each machine does so before its node starts. They take turns, by a lease
in the store. So the functions run again, and side by side only if a process was frozen for longer than its lease.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from shiftwork.control.control import Control
from shiftwork.errors import ConfigurationError, StoreError
from shiftwork.store.protocol import Store

NAME: Final = "deployment"
HELD_SECONDS: Final = 15.0
"""How long a process that died while it deployed keeps others from deploying."""
RENEW_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 0.1


class Deployment:
    """The functions of an app that a deployment runs."""

    def __init__(self) -> None:
        self._functions: list[Callable[[], Any]] = []

    def add(self, function: Callable[[], Any]) -> None:
        """Add a function. Raises `ConfigurationError` if it cannot be called without arguments."""
        try:
            inspect.signature(function).bind()
        except TypeError as error:
            name = getattr(function, "__name__", function)
            message = f"@app.on_deploy calls its function without arguments: {name}(); {error}"
            raise ConfigurationError(message) from None
        self._functions.append(function)

    async def run(self, control: Control) -> list[str]:
        """Run the functions one after another, and return their names. Raises what a function raises."""
        store = await control.store.open_to_change()
        async with _turn(store, control.now), _portal(control):
            for function in self._functions:
                await _call(function)
        return [getattr(function, "__name__", repr(function)) for function in self._functions]


async def _call(function: Callable[[], Any]) -> None:
    """Call a function, a plain one in a thread, where it may call `app.blocking`. It may return a coroutine."""
    done = function() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function)
    if inspect.isawaitable(done):
        await done


@asynccontextmanager
async def _turn(store: Store, now: Callable[[], float]) -> AsyncIterator[None]:
    """Wait for our turn, and keep it until the end."""
    holder = uuid4().hex
    while not await store.hold(NAME, holder, 1, HELD_SECONDS, now()):  # noqa: ASYNC110 - no bell
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    renewing = asyncio.ensure_future(_renew(store, holder, now))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
        with suppress(StoreError):  # then others wait until it has run out
            await store.drop(NAME, holder)


async def _renew(store: Store, holder: str, now: Callable[[], float]) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        with suppress(StoreError):
            await store.hold(NAME, holder, 1, HELD_SECONDS, now())


@asynccontextmanager
async def _portal(control: Control) -> AsyncIterator[None]:
    """Have blocking calls run on this event loop, where the store is open, unless they run on another one already."""
    portal = control.portal
    before, portal.loop = portal.loop, portal.loop or asyncio.get_running_loop()
    try:
        yield
    finally:
        portal.loop = before
