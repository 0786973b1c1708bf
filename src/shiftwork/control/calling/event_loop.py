"""The event loops that shiftwork makes: uvloop's where it is installed (the extra `fast`), else asyncio's.

On Windows it is asyncio's selector loop: psycopg cannot use the default one.

A loop that the caller made is left as it is.
"""

import asyncio
import importlib
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on a new event loop, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def run_once(main: Coroutine[Any, Any, T]) -> T:
    """Do the same for a short program, which would end before uvloop is imported."""
    with asyncio.Runner(loop_factory=_plain_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop."""
    try:
        fast = importlib.import_module("uvloop")
    except ImportError:  # as always on Windows
        return _plain_event_loop()
    return cast("Callable[[], asyncio.AbstractEventLoop]", fast.new_event_loop)()


def _plain_event_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


def running_kind() -> str:
    """Return which library made the event loop that runs here: "uvloop" or "asyncio"."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]
