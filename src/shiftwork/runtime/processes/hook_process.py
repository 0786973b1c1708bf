"""The process that imports the app for a node: it describes the app to the node, and calls the app's hooks."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.event import Event
from shiftwork.core.words import counted
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
from shiftwork.runtime.processes.started_process import StartedProcess, exit_in_words

logger: Final = logging.getLogger("shiftwork")

HOOK_RESTART_SECONDS: Final = 5.0
"""How long to wait before a hook process that has died is replaced."""
DRAIN_SECONDS: Final = LONGEST_HOOK_SECONDS + 1.0
"""How long the process may take to exit when the node stops: it waits for hooks under way, and reports what is left."""
LONGEST_HOOK_RESTART_SECONDS: Final = 60.0
"""The same for one that dies again and again before it can call hooks: each wait is twice as long as the last."""
LONGEST_BACKLOG: Final = 1_000_000
"""How many bytes of events may wait for hooks that do not keep up."""
MOST_KEPT: Final = 1_000
"""How many events may wait for the next process."""
HOOK_QUIET_SECONDS: Final = 60.0
"""How often to log that hooks are not called."""


class HookProcess:
    """Imports the app in a process, so that the node need not."""

    def __init__(self, setup: Setup, clock: Clock) -> None:
        self._setup = setup
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._process: StartedProcess | None = None
        self._gone = asyncio.Event()
        self._described: asyncio.Future[Definition] | None = None
        self._closed = False
        self._ready = False
        """Whether the process has imported the app, and calls hooks."""
        self._failures = 0
        """How many processes in a row ended before they were ready."""
        self._error: str | None = None
        """Why the process cannot import the app, if it has reported that."""
        self._kept: deque[Event] = deque()
        """The events that wait until a process is ready."""
        self._skipped = 0
        self._told_at = -HOOK_QUIET_SECONDS
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
        """Have the hooks called. Events that a blocking hook holds up are kept, up to a limit, and so are those that
        come while a process that has died is replaced.
        """
        if self._closed:
            return
        if self._process is None or not self._ready:
            if len(self._kept) < MOST_KEPT:
                self._kept.append(event)
                return
        elif self._process.backlog <= LONGEST_BACKLOG:
            self._process.send(CallHooks(event))
            return
        self._skip(event)

    def _skip(self, event: Event) -> None:
        """Log that hooks are not called: at once, then once in a while for many."""
        self._skipped += 1
        now = self._clock.monotonic()
        if now - self._told_at >= HOOK_QUIET_SECONDS:
            events, self._skipped, self._told_at = counted(self._skipped, "event"), 0, now
            logger.warning(
                "the hooks of %s do not keep up; they are not called for %s, the latest: %s",
                self._setup.app,
                events,
                event.message,
            )

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
        self._ready, self._error = False, None
        self._process = StartedProcess(on_frames=self._received, on_ended=self._ended, longest=LONGEST_DEFINITION)
        self._process.send(replace(self._setup, role="hooks", now=self._clock.now(), at=time.monotonic()))

    def _received(self, frames: Sequence[ProcessFrame]) -> None:
        for message in (message for frame in frames for message in frame.messages):
            if isinstance(message, Definition):
                self._is_ready(message)
            elif isinstance(message, SetupFailed):
                self._error = message.error
                if self._described is not None and not self._described.done():
                    self._closed = True  # it may end before `describe` continues, and must not be started again
                    self._described.set_exception(AppImportError(message.error))

    def _is_ready(self, definition: Definition) -> None:
        self._ready, self._failures = True, 0
        if self._described is not None and not self._described.done():
            self._described.set_result(definition)
        while self._kept and self._process is not None:
            self._process.send(CallHooks(self._kept.popleft()))

    def _ended(self, status: int) -> None:
        stack = self._process.last_words() if self._process is not None else ""
        self._failures += not self._ready
        self._process, self._ready = None, False
        self._gone.set()
        if self._described is not None and not self._described.done():
            message = f"importing {self._setup.app} ended the process: it {exit_in_words(status)}\n{stack}".rstrip()
            self._described.set_exception(AppImportError(message))
        elif not self._closed:
            seconds = min(LONGEST_HOOK_RESTART_SECONDS, HOOK_RESTART_SECONDS * 2.0 ** min(self._failures, 10))
            why = exit_in_words(status) if self._error is None else f"cannot import the app: {self._error}"
            logger.error("the process that calls the hooks %s; starting it again in %g s", why, seconds)
            self._loop.call_later(seconds, self._start_again)

    def _start_again(self) -> None:
        if self._closed:
            return
        try:
            self._start()
        except OSError as error:
            logger.error(  # noqa: TRY400 - the error says it all
                "cannot start the process that calls the hooks: %s; trying again in %g s", error, HOOK_RESTART_SECONDS
            )
            self._loop.call_later(HOOK_RESTART_SECONDS, self._start_again)
