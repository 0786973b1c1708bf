"""SIGTERM and SIGINT stop gracefully; a second signal stops at once."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

logger: Final = logging.getLogger("shiftwork")


@contextmanager
def stop_signals(hurry: Callable[[], None], *, patience: float) -> Iterator[asyncio.Event]:
    """An event that is set at the first signal; the second calls `hurry`. `patience` is for the log line."""
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            logger.warning("stopping now, because of a second signal")
            hurry()
        else:
            logger.info("stopping: running jobs have %g s to finish; a second signal stops them now", patience)
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield signalled
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
