"""Ending the process in time, although threads cannot be killed and the interpreter waits for some of them."""

import logging
import os
import sys
import threading
from typing import Final

EXIT_SECONDS: Final = 2.0
"""How long threads of the app may delay the end of the process."""
THREADS: Final = "threads of the app are still running; the process ends without waiting for them"


def end_in_time(code: int, seconds: float = EXIT_SECONDS, why: str = THREADS) -> threading.Timer:
    """End the process with this code after a while, unless it ends by itself or the timer is cancelled."""

    def end() -> None:
        logging.getLogger("shiftwork").warning(why)
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer
