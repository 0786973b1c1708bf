"""The process that has imported the app on behalf of a node: it describes the app, and calls its hooks."""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model import Event
from shiftwork.errors import AppImportError
from shiftwork.events import LONGEST_HOOK_SECONDS
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.processes.link import LONGEST_DEFINITION
from shiftwork.runtime.processes.messages import (
    CallHooks,
    Definition,
    Exit,
    ProcessFrame,
    Setup,
    SetupFailed,
)
from shiftwork.runtime.processes.process import Process, exit_in_words

logger: Final = logging.getLogger("shiftwork")

AGAIN_SECONDS: Final = 5.0
"""How long to wait before a hook process that has died is replaced."""
DRAIN_SECONDS: Final = LONGEST_HOOK_SECONDS + 1.0
"""How long the process may take to exit when the node stops: it waits for hooks under way, and reports what is left."""
LONGEST_BACKLOG: Final = 1_000_000
"""How many bytes of events may wait for hooks that do not keep up."""


class HookProcess:
    """Knows the app, so that the node need not."""

    def __init__(self, setup: Setup, clock: Clock) -> None:
        self._setup = setup
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._gone = asyncio.Event()
        self._described: asyncio.Future[Definition] | None = None
        self._closed = False
        self.names: frozenset[str] = frozenset()
        """The events for which the app has hooks."""

    @property
    def alive(self) -> bool:
        """Whether the process runs now."""
        return self._process is not None

    async def describe(self) -> Definition:
        """Import the app. Raises `AppImportError` if that fails."""
        self._described = self._loop.create_future()
        self._start()
        wanted = False
        try:
            definition = await self._described
            self.names = frozenset(definition.hooks)
            wanted = bool(definition.hooks)
        finally:
            if not wanted:
                await self.drain()
        return definition

    def fire(self, event: Event) -> None:
        """Have the hooks called. Events that a blocking hook holds up are kept, up to a limit."""
        if self._process is None:
            return
        if self._process.backlog > LONGEST_BACKLOG:
            logger.warning(
                "the hooks of %s do not keep up; they are not called for this event: %s", self._setup.app, event.message
            )
        else:
            self._process.send(CallHooks(event))

    async def drain(self) -> None:
        """Let the process call the last hooks, and exit."""
        self._closed = True
        process = self._process
        if process is None:
            return
        process.send(Exit())
        patience = self._loop.call_later(DRAIN_SECONDS, process.kill)
        await self._gone.wait()
        patience.cancel()

    def _start(self) -> None:
        self._gone.clear()
        self._process = Process(receive=self._received, ended=self._ended, longest=LONGEST_DEFINITION)
        self._process.send(replace(self._setup, role="hooks", now=self._clock.now(), at=time.monotonic()))

    def _received(self, frames: Sequence[ProcessFrame]) -> None:
        for message in (message for frame in frames for message in frame.messages):
            if self._described is None or self._described.done():
                return
            if isinstance(message, Definition):
                self._described.set_result(message)
            elif isinstance(message, SetupFailed):
                self._closed = True  # it may end before `describe` continues, and must not be started again
                self._described.set_exception(AppImportError(message.error))

    def _ended(self, status: int) -> None:
        stack = self._process.last_words() if self._process is not None else ""
        self._process = None
        self._gone.set()
        if self._described is not None and not self._described.done():
            message = f"importing {self._setup.app} ended the process: it {exit_in_words(status)}\n{stack}".rstrip()
            self._described.set_exception(AppImportError(message))
        elif not self._closed:
            logger.error("the process that calls the hooks %s; starting it again", exit_in_words(status))
            self._loop.call_later(AGAIN_SECONDS, self._start_again)

    def _start_again(self) -> None:
        if self._closed:
            return
        try:
            self._start()
        except OSError as error:
            logger.error(  # noqa: TRY400 - the error says it all
                "cannot start the process that calls the hooks: %s; trying again in %g s", error, AGAIN_SECONDS
            )
            self._loop.call_later(AGAIN_SECONDS, self._start_again)
