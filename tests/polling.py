"""Waits for what nothing announces: looks again and again, with a deadline. Tests sleep nowhere else."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

DEADLINE: Final = 60.0
"""Generous, because it costs nothing when the test passes."""


async def eventually(
    true: Callable[[], Any | Awaitable[Any]],
    what: str = "it",
    *,
    within: float = DEADLINE,
    every: float = 0.005,
    failure: Callable[[], str] = str,
) -> None:
    """Wait until something is true. It may be a coroutine function: what a store says, for example."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        found = true()
        if await found if isawaitable(found) else found:
            return
        assert loop.time() < deadline, f"{what} did not come about within {within:g} s {failure()}".rstrip()
        await asyncio.sleep(every)


def wait_until(
    true: Callable[[], Any], *, within: float = DEADLINE, every: float = 0.02, failure: Callable[[], str] = str
) -> None:
    """Wait until something is true, without an event loop, or blocking it on purpose."""
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, failure() or f"not true within {within:g} s: {true}"
        time.sleep(every)


async def pass_time(seconds: float) -> None:
    """Let this time pass: an outage, a freeze, the pace of a client. Never to wait for something."""
    await asyncio.sleep(seconds)


def hold_thread(seconds: float) -> None:
    """Hold this thread, and its event loop if it has one, for so long. Never to wait for something."""
    time.sleep(seconds)
