"""Threads for plain functions, as many as there are jobs."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final

logger: Final = logging.getLogger("shiftwork")


class JobThreads:
    """Reuses idle threads, and starts one when none is idle.

    It is not a ThreadPoolExecutor: a thread that is given up on must neither take the place of another nor keep the
    interpreter from exiting.
    """

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread at once."""
        with self._lock:
            thread = self._idle.pop() if self._idle else None
        if thread is None:
            thread = _Thread(self)
            thread.start()
        thread.inbox.put((copy_context(), work))

    def close(self) -> None:
        """End idle threads now, and busy ones when they are done. Nothing waits for them."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for thread in idle:
            thread.inbox.put(None)

    def rest(self, thread: "_Thread") -> bool:
        """Take back a thread that has finished its work. False means that it should end."""
        with self._lock:
            if not self._closed:
                self._idle.append(thread)
            return not self._closed


class _Thread(threading.Thread):
    def __init__(self, home: JobThreads) -> None:
        super().__init__(name="shiftwork worker", daemon=True)
        self._home = home
        self.inbox: SimpleQueue[Any] = SimpleQueue()

    def run(self) -> None:
        while True:
            item = self.inbox.get()
            if item is None:
                return
            context, work = item
            try:
                context.run(work)
            except BaseException:  # an exception that a user's code set on this thread, and that came late
                with suppress(BaseException):
                    logger.exception("a thread of %s went on after an exception that is not its own", self.name)
            del context, work, item
            if not self._home.rest(self):
                return
