"""Performs a story before a viewer, until it ends or is stopped by Ctrl-C."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from examples.company.look import Observer
from examples.company.server import ShowError
from examples.company.view import View

LOOK_SECONDS: Final = 0.4


class Stop:
    """Ctrl-C and SIGTERM: what is going on is cancelled, and nothing more begins."""

    def __init__(self) -> None:
        self.asked = False
        self._task: asyncio.Task[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        if self._task is not None and not self.asked:  # only once: what is stopped must be able to tidy up
            self._task.cancel()
        self.asked = True

    async def unless(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do this unless it is stopped, and return whether it came to its end. Raises what it raises."""
        if self.asked:
            work.close()
            return False
        self._task = asyncio.create_task(work)
        await asyncio.wait([self._task])
        if self._task.cancelled():
            return False
        self._task.result()
        return True


async def perform(stop: Stop, story: Coroutine[Any, Any, None], observer: Observer, view: View) -> bool:
    """Play a story and show it, and return whether it was played to its end. Raises ShowError if it cannot continue."""
    watch = asyncio.create_task(_watch(observer, view))
    try:
        played = await stop.unless(story)
        if not played:
            observer.tell("stopped; running jobs may finish")
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        if observer.begun:
            view.show(await observer.look())
    except* ShowError as errors:
        raise errors.exceptions[0] from None
    finally:
        watch.cancel()
        view.close()
    return played


async def _watch(observer: Observer, view: View) -> None:
    while True:
        if observer.begun:
            view.show(await observer.look())
        await asyncio.sleep(LOOK_SECONDS)
