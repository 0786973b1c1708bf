"""The process that has imported the app on behalf of a node: it says what the app is, and calls its hooks."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model import Event
from shiftwork.errors import AppImportError
from shiftwork.events import LONGEST_HOOK_SECONDS
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.processes.messages import Bye, Definition, Failed, Frame, Happened, Hello
from shiftwork.runtime.processes.process import Process, in_words

logger: Final = logging.getLogger("shiftwork")

AGAIN_SECONDS: Final = 5.0
"""How long to wait before a herald that has died is replaced."""
DRAIN_SECONDS: Final = LONGEST_HOOK_SECONDS + 1.0
"""How long it may take to go when the node stops: it waits for hooks that are under way, and says what is left."""
LONGEST_BACKLOG: Final = 1_000_000
"""So many bytes of events may wait for hooks that do not keep up."""


class HookProcess:
    """Knows the app, so that the node need not."""

    def __init__(self, hello: Hello, clock: Clock) -> None:
        self._hello = hello
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._gone = asyncio.Event()
        self._described: asyncio.Future[Definition] | None = None
        self._closed = False

    async def describe(self) -> Definition:
        """Import the app. Raises `AppImportError` with what is wrong with it."""
        self._described = self._loop.create_future()
        self._begin()
        wanted = False
        try:
            definition = await self._described
            wanted = definition.hooks
        finally:
            if not wanted:
                await self.drain()
        return definition

    def fire(self, event: Event) -> None:
        """Have the hooks called. What a hook that blocks has not heard yet is kept, but not without end."""
        if self._process is None:
            return
        if self._process.backlog > LONGEST_BACKLOG:
            logger.warning(
                "the hooks of %s do not keep up: they are not called for: %s", self._hello.app, event.message
            )
        else:
            self._process.send(Happened(event))

    async def drain(self) -> None:
        """Let it call the last hooks, and go."""
        self._closed = True
        process = self._process
        if process is None:
            return
        process.send(Bye())
        patience = self._loop.call_later(DRAIN_SECONDS, process.kill)
        await self._gone.wait()
        patience.cancel()

    def _begin(self) -> None:
        self._gone.clear()
        self._process = Process(heard=self._heard, ended=self._ended)
        self._process.send(replace(self._hello, role="herald", now=self._clock.now()))

    def _heard(self, frames: Sequence[Frame]) -> None:
        for message in (message for frame in frames for message in frame.messages):
            if self._described is None or self._described.done():
                return
            if isinstance(message, Definition):
                self._described.set_result(message)
            elif isinstance(message, Failed):
                self._closed = True  # its end may be seen before `describe` goes on; it is not to be started again
                self._described.set_exception(AppImportError(message.error))

    def _ended(self, status: int) -> None:
        stack = self._process.last_words() if self._process is not None else ""
        self._process = None
        self._gone.set()
        if self._described is not None and not self._described.done():
            message = f"importing {self._hello.app} ended the process: it {in_words(status)}\n{stack}".rstrip()
            self._described.set_exception(AppImportError(message))
        elif not self._closed:
            logger.error("the process that calls the hooks %s; starting it again", in_words(status))
            self._loop.call_later(AGAIN_SECONDS, self._again)

    def _again(self) -> None:
        if self._closed:
            return
        try:
            self._begin()
        except OSError as error:
            logger.error("the process that calls the hooks cannot be started: %s; trying again", error)  # noqa: TRY400
            self._loop.call_later(AGAIN_SECONDS, self._again)
